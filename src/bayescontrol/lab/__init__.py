"""Experiments (settings, run, score, figures), the runner of their replicas, and stored results."""

from bayescontrol.lab.discovery import find, names
from bayescontrol.lab.experiment import Claim, Columns, Experiment, Score, Table
from bayescontrol.lab.runner import conduct, run_replicas
from bayescontrol.lab.store import ResultStore, Study, read
from bayescontrol.statistics import mean_and_error, wilson

__all__ = [
    "Claim",
    "Columns",
    "Experiment",
    "ResultStore",
    "Score",
    "Study",
    "Table",
    "conduct",
    "find",
    "mean_and_error",
    "names",
    "read",
    "run_replicas",
    "wilson",
]
