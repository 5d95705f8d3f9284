"""Convergence: does the agent come to act as the true mode does? Theorem, curves, verdict.

    P(a_t | âo_<t) = Σ_m P(a_t | m, x_t) P(m | âo_<t)   →   P(a_t | m*, x_t)      almost surely,
    if divergences are bounded and all modes are consistent with each other

The distance of the two is measured at every step, in total variation, in six classes. Beside it
stands what `bayescontrol.convergence.check` says of the class before anything is simulated.
"""

from typing import Final

from bayescontrol.experiments.convergence.figures import draw
from bayescontrol.experiments.convergence.replica import Settings, run
from bayescontrol.experiments.convergence.score import score
from bayescontrol.lab import Experiment

__all__ = ["Settings", "experiment"]

experiment: Final = Experiment(
    name="convergence",
    summary="does the agent come to act as the true mode does? six classes, each with its verdict",
    settings=Settings,
    quick=Settings(runs=250, steps=400),
    full=Settings(runs=2000, steps=2000),
    run=run,
    score=score,
    figures=draw,
)
