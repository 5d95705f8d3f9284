"""Vanishing posteriors: whoever is outside the core loses all weight; inside, it depends.

    m ∉ [m*]   ⇒   P(m | âo_≤t) → 0 almost surely,   and never above P(m)/P(m*) e^(-d_t(m*‖m))

Outside the core weights fall exponentially. Inside, a mode that acts as m* does may keep its
weight for ever; one that acts differently may be refuted by its own policy, but slowly: the less
it weighs, the less it acts, and the less is learnt about it. Its weight falls like 1/t.
"""

from typing import Final

from bayescontrol.experiments.vanishing.figures import draw
from bayescontrol.experiments.vanishing.replica import Settings, run
from bayescontrol.experiments.vanishing.score import score
from bayescontrol.lab import Experiment

__all__ = ["Settings", "experiment"]

experiment: Final = Experiment(
    name="vanishing",
    summary="whose weight vanishes, how fast, and who keeps it: outside the core and inside",
    settings=Settings,
    quick=Settings(runs=250),
    full=Settings(runs=2000, long_steps=10_000),
    run=run,
    score=score,
    figures=draw,
)
