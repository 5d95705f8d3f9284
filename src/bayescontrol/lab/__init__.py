"""Experiments (settings, run, score, figures), the runner of their replicas, and stored results."""

from bayescontrol.lab.experiment import Claim, Columns, Experiment, Score, Table
from bayescontrol.lab.registry import find, names
from bayescontrol.lab.runner import conduct, run_replicas
from bayescontrol.lab.store import ResultStore, Shard, Study, merge, read
from bayescontrol.statistics import mean_and_error, wilson

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
