"""The paper's grid-world: the control rule against R-learning, with suboptimal limit cycles.

    control rule   (Q, ρ) drawn by one Gibbs sweep a step, a = arg max_a Q(x,a); priors A and B
    R-learning     a = arg max_a Q(x,a) + C/F(x,a),  C = 200, 30, 5

The map of the paper's figure is not known: ours is `three-cups`, made from what the paper says.
Numbers are compared as shares of what the best policy earns.
"""

from bayescontrol.experiments.maze.figures import draw
from bayescontrol.experiments.maze.replica import Settings, run
from bayescontrol.experiments.maze.score import score
from bayescontrol.lab import Experiment

__all__ = ["experiment"]

#: The experiment `maze`.
experiment = Experiment(
    name="maze",
    summary="a grid-world with one-way membranes: the control rule's Gibbs agent and R-learning",
    settings=Settings,
    quick=Settings(),
    full=Settings(runs=10, steps=500_000),
    run=run,
    score=score,
    figures=draw,
)
