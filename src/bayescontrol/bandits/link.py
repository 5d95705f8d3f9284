"""A link: how the reward of an arm hangs on its score x·w.

    P(r | x·w)        the reward, given the score
    x·w ~ N(s, q)     the score, given the past

The equations of learning and paying are kernels (`kernels.regression`), found by the link's
number; a link adds what a person needs: checks, means, densities.
"""

from typing import Any, Protocol, runtime_checkable

from bayescontrol.arrays import FloatArray


class Link(Protocol):
    """What the belief, the environment and the compiled loop ask of a link."""

    @property
    def kind(self) -> int:
        """Its number in `kernels.regression`."""

    @property
    def constants(self) -> FloatArray:
        """What is known for certain: a standard deviation."""

    @property
    def additive(self) -> bool:
        """Whether the evidence of a reward does not depend on the rewards before it."""

    def settings(self) -> dict[str, Any]:
        """The arguments of the link as plain values, as logs store them."""

    def reward(self, o: Any) -> float:
        """o as a number, if an arm can pay it; else BadEvidence."""

    def mean(self, score: FloatArray) -> FloatArray:
        """E[r | x·w]."""

    def expected(self, s: float, q: float) -> float:
        """E[r] for a score N(s, q)."""

    def log_predictive(self, s: float, q: float, r: float) -> float:
        """ln P(r) for a score N(s, q), a density where rewards are continuous."""


@runtime_checkable
class FiniteLink(Protocol):
    """The link pays one of finitely many rewards."""

    def predictive(self, s: float, q: float) -> dict[float, float]: ...
