"""Consistency: modes that cannot be told apart must act alike, or the agent never settles.

    m ∈ [m*] and P(a | m, x) ≠ P(a | m*, x) in situations that recur: P(a | âo_≤t) stays a mixture

Two policies stay in region A, where their hypotheses agree, and act differently there: the
posterior stays at the prior for ever. The repair gives both one policy for A: the agent acts
rightly at once, and never knows which mode is true.
"""

from typing import Final

from bayescontrol.experiments.consistency.figures import draw
from bayescontrol.experiments.consistency.replica import Settings, run
from bayescontrol.experiments.consistency.score import score
from bayescontrol.lab import Experiment

__all__ = ["Settings", "experiment"]

experiment: Final = Experiment(
    name="consistency",
    summary="two modes that cannot be told apart and act differently, and their repair",
    settings=Settings,
    quick=Settings(runs=400),
    full=Settings(runs=5000, steps=1000),
    run=run,
    score=score,
    figures=draw,
)
