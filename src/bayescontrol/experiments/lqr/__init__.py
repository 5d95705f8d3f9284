"""Adaptive linear-quadratic control: draws against certainty equivalence, at five plants.

    y = A x + B u + w,   A, B and W unknown         c = xᵀQx + uᵀRu

The gain in use is judged by its exact cost J(K) = tr(P_K W), the run by its regret.
"""

from bayescontrol.experiments.lqr.figures import draw
from bayescontrol.experiments.lqr.replica import Settings, run
from bayescontrol.experiments.lqr.score import score
from bayescontrol.lab import Experiment

__all__ = ["experiment"]

#: The experiment `lqr`.
experiment = Experiment(
    name="lqr",
    summary="unknown linear plants, quadratic costs: the control rule and certainty equivalence",
    settings=Settings,
    quick=Settings(runs=8, steps=2500),
    full=Settings(runs=50),
    run=run,
    score=score,
    figures=draw,
)
