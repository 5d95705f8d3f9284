"""Divergence processes: how evidence piles up against a wrong mode, and under which policy.

    d_t(m*‖m) = Σ_{τ≤t} ln P(o_τ | m*, x_τ, a_τ) / P(o_τ | m, x_τ, a_τ)        in nats
    P(m | âo_≤t) ≤ P(m)/P(m*) e^(-d_t(m*‖m))
    d_t = Σ_m' g_t(m'),  by the mode m' in charge;   g - G is a martingale in the world of m*

Some processes diverge and some stay; how fast they grow hangs on who acts; and g strays from
its mean G like √t, so no single band holds it for all times.
"""

from typing import Final

from bayescontrol.experiments.divergence.figures import draw
from bayescontrol.experiments.divergence.replica import Settings, run
from bayescontrol.experiments.divergence.score import score
from bayescontrol.lab import Experiment

__all__ = ["Settings", "experiment"]

experiment: Final = Experiment(
    name="divergence",
    summary="evidence against wrong modes: what diverges, what stays, under which policy, "
    "and how far it strays from its mean",
    settings=Settings,
    quick=Settings(runs=300),
    full=Settings(runs=2000, steps=1600),
    run=run,
    score=score,
    figures=draw,
)
