"""What an experiment says, in numbers: expected, ours, its error, and whether it holds.

    source "paper"   the authors' statement; it may be refuted, and then says why
    source "ours"    theory or an exact value; it must hold

A refuted claim of the paper is a result. A failed claim of ours is a defect: the exit code
of `bayescontrol run` is 1 then, and only then.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from bayescontrol.errors import BayesControlError

__all__ = ["Claim", "InvalidClaim", "Source", "Verdict", "all_ours_hold"]

Source: TypeAlias = Literal["paper", "ours"]
Verdict: TypeAlias = Literal["holds", "refuted", "fails"]


class InvalidClaim(BayesControlError, ValueError):
    """A claim that cannot be printed honestly.

    >>> issubclass(InvalidClaim, BayesControlError) and issubclass(InvalidClaim, ValueError)
    True
    """


def _plain(value: float | str) -> float | str:
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True)
class Claim:
    """One claim: `expected` against `ours` ± `error`, and the verdict on it.

    `error` is a standard error or a tolerance of `ours`, None where `ours` is exact. `reason`
    says why a claim is refuted, or what to know about it. NumPy scalars become Python's.

    >>> claim = Claim(
    ...     name="bayes-optimal-time", claim="the Bayes-optimal agent needs k steps",
    ...     source="ours", expected=3.0, ours=3.0, error=None, holds=True,
    ... )
    >>> claim.verdict
    'holds'
    """

    name: str
    claim: str
    source: Source
    expected: float | str
    ours: float | str
    error: float | None
    holds: bool
    reason: str = ""

    def __post_init__(self) -> None:
        if self.source not in get_args(Source):
            raise InvalidClaim(
                f"claim {self.name!r}: source is {self.source!r}, it must be 'paper' or 'ours'"
            )
        if self.source == "paper" and not self.holds and not self.reason.strip():
            raise InvalidClaim(
                f"claim {self.name!r} of the paper does not hold and gives no reason: "
                "pass reason=... saying why it is refuted"
            )
        if self.error is not None and not math.isnan(self.error) and self.error < 0:
            raise InvalidClaim(
                f"claim {self.name!r}: the error is {self.error}, it must be at least 0, "
                "or None where the value is exact"
            )
        object.__setattr__(self, "expected", _plain(self.expected))
        object.__setattr__(self, "ours", _plain(self.ours))
        object.__setattr__(self, "error", None if self.error is None else float(self.error))
        object.__setattr__(self, "holds", bool(self.holds))

    @property
    def verdict(self) -> Verdict:
        """holds; else refuted for a claim of the paper, fails for one of ours.

        >>> Claim("x", "x is 1", "paper", 1.0, 2.0, 0.1, False, reason="misprint").verdict
        'refuted'
        """
        if self.holds:
            return "holds"
        return "refuted" if self.source == "paper" else "fails"


def all_ours_hold(claims: Iterable[Claim]) -> bool:
    """Whether every claim of source "ours" holds: ∀c, source(c) = ours ⇒ holds(c).

    >>> all_ours_hold([Claim("x", "x is 1", "paper", 1.0, 2.0, 0.1, False, reason="misprint")])
    True
    >>> all_ours_hold([Claim("y", "y is 1", "ours", 1.0, 2.0, 0.1, False)])
    False
    """
    return all(claim.verdict != "fails" for claim in claims)
