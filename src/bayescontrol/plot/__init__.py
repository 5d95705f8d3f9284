"""Figures: plots of a run, and charts that describe the figures of an experiment.

Each function draws on Matplotlib axes, by default on those of a new figure, and returns a `Plot`.
Its `axes` is a tuple of Matplotlib axes, and `save(path)` writes the figure to a file. `run`, which
is also `record.plot()`, draws all that a record holds; `arms` draws what a bandit agent knows.
`plot.chart` describes figures as data, and `plot.figures` draws them.
"""

from bayescontrol.plot.figures import Plot as Plot
from bayescontrol.plot.mazes import maze as maze
from bayescontrol.plot.runs import action_shares as action_shares
from bayescontrol.plot.runs import arms as arms
from bayescontrol.plot.runs import drawn_mode as drawn_mode
from bayescontrol.plot.runs import posterior as posterior
from bayescontrol.plot.runs import regret as regret
from bayescontrol.plot.runs import reward as reward
from bayescontrol.plot.runs import run as run
from bayescontrol.plot.runs import state_belief as state_belief
from bayescontrol.plot.runs import surprise as surprise
from bayescontrol.plot.runs import unresolved as unresolved

# Type checkers read the imports, which re-export every name.
__all__ = sorted(name for name, value in list(globals().items()) if callable(value))
