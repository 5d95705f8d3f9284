"""One adaptive controller out of tuned ones, on Gymnasium's classic plants.

    CartPole       twenty hypotheses: length and mass of the pole, sign of the force
    Pendulum       nine rods, swung up and held            MountainCar   ten hills, both gears

The control rule against the right expert, every wrong one, the mean of their actions, their vote,
and the naive mixture; and a motor that is rewired while the pole stands: a static posterior
cannot follow, switching modes and fading evidence do.
"""

from bayescontrol.experiments.experts.figures import draw
from bayescontrol.experiments.experts.replica import run
from bayescontrol.experiments.experts.score import score
from bayescontrol.experiments.experts.settings import Settings
from bayescontrol.lab import Experiment

__all__ = ["experiment"]

#: The experiment `experts`.
experiment = Experiment(
    name="experts",
    summary="experts for unknown plants: CartPole with either sign of force, rods, hills",
    settings=Settings,
    quick=Settings(runs=6),
    full=Settings(runs=200),
    run=run,
    score=score,
    figures=draw,
)
