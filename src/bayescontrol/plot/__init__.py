"""Figures: plots of a run, and charts that describe the figures of an experiment.

Each function draws on Matplotlib axes, by default on those of a new figure, and returns a `Plot`.
Its `axes` is a tuple of Matplotlib axes, and `save(path)` writes the figure to a file. `run`, which
is also `record.plot()`, draws all that a record holds; `arms` draws what a bandit agent knows.
`plot.chart` describes figures as data, and `plot.figures` draws them.
"""

from bayescontrol.plot.figures import Plot
from bayescontrol.plot.mazes import maze
from bayescontrol.plot.runs import (
    action_shares,
    arms,
    drawn_mode,
    posterior,
    regret,
    reward,
    run,
    surprise,
)

__all__ = [
    "Plot", "action_shares", "arms", "drawn_mode", "maze", "posterior", "regret", "reward", "run",
    "surprise",
]  # fmt: skip
