"""Figures: plots of a run, and charts that describe the figures of an experiment.

Each function draws one plot of a record on Matplotlib axes and returns the axes. `run`, which is
also `record.plot()`, draws all that a record holds. `plot.chart` describes figures as data, and
`plot.figures` draws them.
"""

from bayescontrol.plot.mazes import maze
from bayescontrol.plot.runs import (
    action_shares,
    drawn_mode,
    posterior,
    regret,
    reward,
    run,
    surprise,
)

__all__ = [
    "action_shares", "drawn_mode", "maze", "posterior", "regret", "reward", "run", "surprise",
]  # fmt: skip
