"""Experiments (settings, run, score, figures), the runner of their replicas, and stored results."""

from bayescontrol.lab.discovery import find as find
from bayescontrol.lab.discovery import names as names
from bayescontrol.lab.experiment import Claim as Claim
from bayescontrol.lab.experiment import Columns as Columns
from bayescontrol.lab.experiment import Experiment as Experiment
from bayescontrol.lab.experiment import Score as Score
from bayescontrol.lab.experiment import Table as Table
from bayescontrol.lab.runner import conduct as conduct
from bayescontrol.lab.runner import run_replicas as run_replicas
from bayescontrol.lab.store import ResultStore as ResultStore
from bayescontrol.lab.store import Study as Study
from bayescontrol.lab.store import read as read
from bayescontrol.statistics import mean_and_error as mean_and_error
from bayescontrol.statistics import wilson as wilson

# Type checkers read the imports, which re-export every name.
__all__ = sorted(name for name, value in list(globals().items()) if callable(value))
