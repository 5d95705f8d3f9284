"""Experiments that are settings, run, score and figures; the runner of their replicas; results."""

from bayescontrol.lab.claims import Claim
from bayescontrol.lab.experiment import Columns, Experiment, Score, Table, find, names
from bayescontrol.lab.runner import conduct, run_replicas
from bayescontrol.lab.shards import Shard, merge
from bayescontrol.lab.statistics import mean_and_error, wilson
from bayescontrol.lab.store import ResultStore, read
from bayescontrol.lab.study import Study

__all__ = [
    "Claim",
    "Columns",
    "Experiment",
    "ResultStore",
    "Score",
    "Shard",
    "Study",
    "Table",
    "conduct",
    "find",
    "mean_and_error",
    "merge",
    "names",
    "read",
    "run_replicas",
    "wilson",
]
