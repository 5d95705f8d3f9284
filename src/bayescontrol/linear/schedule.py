"""When to draw a system again: when the data have doubled what is known.

    det Λ_t ≥ 2 det Λ at the last draw

About d log₂ T draws in T steps, against T of the rule that draws at each. The lazy schedule of
Abbasi-Yadkori & Szepesvári, "Bayesian optimal control of smoothly parameterized systems" (2015).
"""

from dataclasses import dataclass
from typing import Any

from bayescontrol.errors import MissingCapability
from bayescontrol.schedules import Held
from bayescontrol.seeding import Stream


class HeldSystem(Held[Any]):
    """What is known of the held mode, and by what factor det Λ has grown since it was drawn.

    >>> held = HeldSystem.of(Held(t=7, age=3, x=None, drawn_in=None), growth=1.5)
    >>> held.drawn_at, held.growth
    (4, 1.5)
    """

    growth: float

    @classmethod
    def of(cls, held: Held[Any], growth: float) -> "HeldSystem":
        """The same, and the growth."""
        grown = cls(*held)
        grown.growth = growth
        return grown


@dataclass(frozen=True)
class DeterminantDoubling:
    """Draw when det Λ has grown by `factor` since the last draw; for a `LinearAgent`.

    >>> due = DeterminantDoubling()
    >>> due(HeldSystem.of(Held(t=7, age=3, x=None, drawn_in=None), growth=2.5), rng=None)
    True
    """

    factor: float = 2.0

    def __post_init__(self) -> None:
        if not 1.0 < self.factor < float("inf"):
            raise ValueError(f"DeterminantDoubling(factor={self.factor}): a factor is above 1")

    def __call__(self, held: Held[Any], rng: Stream) -> bool:
        """Has it grown enough?"""
        if not isinstance(held, HeldSystem):
            raise MissingCapability(
                "DeterminantDoubling needs to know the regression: give it to a LinearAgent"
            )
        return held.growth >= self.factor
