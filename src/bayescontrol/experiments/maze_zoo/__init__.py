"""All agents for Markov decision problems, on all maps and on the paper's chain.

    regret   R_t = t ρ* - (r_1 + … + r_t),  all agents of a run with the same start and luck

Which agent is best depends on the map and on how long it has to learn it.
"""

from bayescontrol.experiments.maze_zoo.figures import draw
from bayescontrol.experiments.maze_zoo.replica import Settings, run
from bayescontrol.experiments.maze_zoo.score import score
from bayescontrol.lab import Experiment

__all__ = ["experiment"]

#: The experiment `maze-zoo`.
experiment = Experiment(
    name="maze-zoo",
    summary="all agents for Markov decision problems, on all maps: regret against steps",
    settings=Settings,
    quick=Settings(),
    full=Settings(runs=6, steps=200_000, costly_runs=2, costly_steps=200_000),
    run=run,
    score=score,
    figures=draw,
)
