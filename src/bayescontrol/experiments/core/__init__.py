"""The core: which modes the policy of the true one can tell from it.

    m ∉ [m*]   iff   from wherever the agent may be, the policy of m* comes to where m predicts
                     something else

H1 and H2 agree on region A and differ on B, H3 differs everywhere, and H1 is true. P2 stays in A:
under it H3 is refuted and H2 never. P1 enters B, when it acts for long enough.
"""

from typing import Final

from bayescontrol.experiments.core.figures import draw
from bayescontrol.experiments.core.replica import Settings, run
from bayescontrol.experiments.core.score import score
from bayescontrol.lab import Experiment

__all__ = ["Settings", "experiment"]

experiment: Final = Experiment(
    name="core",
    summary="three hypotheses: what each policy can refute, and how long it must act",
    settings=Settings,
    quick=Settings(runs=300),
    full=Settings(runs=2000, steps=10_000),
    run=run,
    score=score,
    figures=draw,
)
