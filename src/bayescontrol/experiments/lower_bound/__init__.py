"""The posterior of the true mode is bounded from below: it may fall, but not far and not often.

    theorem   for any δ there is a λ > 0: P(m* | âo_≤t) ≥ λ/|M| for all t, with probability 1 - δ
    Ville     P( P(m* | âo_≤t) < δ P(m*) at some t ) ≤ δ,   hence λ = δ |M| P(m*) will do

P(m*)/P(m* | ·) = Σ_m P(m) e^(-d_t(m*‖m)) is a non-negative supermartingale that starts at one: the
bound needs no bounded divergences, and any number of modes. An agent that takes its own actions
for evidence has no such bound.
"""

from typing import Final

from bayescontrol.experiments.lower_bound.figures import draw
from bayescontrol.experiments.lower_bound.replica import Settings, run
from bayescontrol.experiments.lower_bound.score import score
from bayescontrol.lab import Experiment

__all__ = ["Settings", "experiment"]

experiment: Final = Experiment(
    name="lower-bound",
    summary="how rarely the true mode ever loses its weight, beside an agent that deludes itself",
    settings=Settings,
    quick=Settings(runs=1000, steps=100),
    full=Settings(runs=20_000),
    run=run,
    score=score,
    figures=draw,
)
