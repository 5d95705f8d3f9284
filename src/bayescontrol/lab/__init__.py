"""Experiments that are settings, run, score and figures; and the runner of their replicas."""

from bayescontrol.lab.claims import Claim
from bayescontrol.lab.experiment import Columns, Experiment, Outcome, Table, find, names
from bayescontrol.lab.runner import conduct, run_replicas
from bayescontrol.lab.statistics import mean_and_error, wilson

__all__ = [
    "Claim",
    "Columns",
    "Experiment",
    "Outcome",
    "Table",
    "conduct",
    "find",
    "mean_and_error",
    "names",
    "run_replicas",
    "wilson",
]
