"""What the control rule's settings do: μ0, λ0, p, sweeps per step, partial sweeps, both priors.

    maze      `three-cups`, one parameter changed at a time
    toys      a frozen lake and a walk along a cliff, made continuing: the precision p sets how
              widely Q is drawn, so how long is explored, relative to the scale of the rewards

With the precision unknown the chain draws it too, and need not be told the scale.
"""

from bayescontrol.experiments.maze_sensitivity.figures import draw
from bayescontrol.experiments.maze_sensitivity.replica import Settings, run
from bayescontrol.experiments.maze_sensitivity.score import score
from bayescontrol.lab import Experiment

__all__ = ["experiment"]

#: The experiment `maze-sensitivity`.
experiment = Experiment(
    name="maze-sensitivity",
    summary="the Gibbs agent's settings: prior, precision, sweeps; a frozen lake and a cliff",
    settings=Settings,
    quick=Settings(),
    full=Settings(runs=10, steps=200_000, toy_steps=500_000),
    run=run,
    score=score,
    figures=draw,
)
