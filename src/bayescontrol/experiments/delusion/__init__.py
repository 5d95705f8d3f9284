"""Delusion: what goes wrong when an agent takes its own actions for evidence.

    naive    P(m | ao_≤t)  ∝ P(m) Π_τ P(a_τ | m, x_τ) P(o_τ | m, x_τ, a_τ)
    causal   P(m | âo_≤t)  ∝ P(m) Π_τ P(o_τ | m, x_τ, a_τ)

Both agents meet prize-or-frog and a process of three modes, with m* drawn from the prior. Four
identities hold for the causal agent and fail for the naive one: `identities`, and that other
policies with the same hypotheses leave the posterior of a history alone.
"""

from typing import Final

from bayescontrol.experiments.delusion.figure import draw
from bayescontrol.experiments.delusion.replica import Settings, run
from bayescontrol.experiments.delusion.score import score
from bayescontrol.lab import Experiment

__all__ = ["Settings", "experiment"]

experiment: Final = Experiment(
    name="delusion",
    summary="an agent that takes its own actions for evidence, against the control rule",
    settings=Settings,
    quick=Settings(runs=1200),
    full=Settings(runs=10_000, steps=100),
    run=run,
    score=score,
    figures=draw,
)
