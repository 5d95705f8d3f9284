"""What an experiment claims, in numbers: expected, ours, its error, and the verdict.

    source "paper"   the authors' statement, with its place in the paper; it may be refuted, or
                     not be comparable, and then says why
    source "ours"    theory or an exact value; it must hold

A refuted claim of the paper is a result. A failed claim of ours is a defect: the exit code
of `bayescontrol run` is 1 then, and only then. Claims that no simulated run can change are
`exact`, and are counted apart.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np

from bayescontrol.errors import BayesControlError

ClaimSource: TypeAlias = Literal["paper", "ours"]
ClaimVerdict: TypeAlias = Literal["holds", "refuted", "not comparable", "fails"]


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

    `error` is a standard error or a tolerance of `ours`, None where `ours` is exact. `holds` is
    None for a claim of the paper that cannot be compared with our numbers. `reason` says why a
    claim is refuted or not comparable, or what to know about it. `place` is the section, figure
    or theorem of the paper that makes the claim; it is required where the source is the paper.
    `exact` marks a claim that no simulated run can change: a constant, an optimum, the time that
    a table takes. `threshold_origin` says where the threshold of the verdict comes from: theory,
    a pilot on other seeds, results at full size, the paper, or other programs. NumPy scalars
    become Python's.

    >>> claim = Claim(
    ...     name="bayes-optimal-time", claim="the Bayes-optimal agent needs k steps",
    ...     source="paper", expected=3.0, ours=3.0, error=None, holds=True, place="section 6.1",
    ... )
    >>> claim.verdict
    'holds'
    """

    name: str
    claim: str
    source: ClaimSource
    expected: float | str
    ours: float | str
    error: float | None
    holds: bool | None
    reason: str = ""
    place: str = field(default="", kw_only=True)
    exact: bool = field(default=False, kw_only=True)
    threshold_origin: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if self.source not in get_args(ClaimSource):
            raise InvalidClaim(
                f"claim {self.name!r}: source is {self.source!r}, it must be 'paper' or 'ours'"
            )
        if self.source == "paper" and not self.place.strip():
            raise InvalidClaim(
                f"claim {self.name!r} of the paper does not say where the paper makes it: "
                "pass place=... with the section or figure, or source='ours'"
            )
        if self.source == "paper" and not self.holds and not self.reason.strip():
            raise InvalidClaim(
                f"claim {self.name!r} of the paper does not hold and gives no reason: "
                "pass reason=... saying why it is refuted or not comparable"
            )
        if self.source == "ours" and self.holds is None:
            raise InvalidClaim(
                f"claim {self.name!r} of ours must hold or fail: only a claim of the paper can be "
                "not comparable (holds=None)"
            )
        if self.error is not None and not math.isnan(self.error) and self.error < 0:
            raise InvalidClaim(
                f"claim {self.name!r}: the error is {self.error}, it must be at least 0, "
                "or None where the value is exact"
            )
        object.__setattr__(self, "expected", _plain(self.expected))
        object.__setattr__(self, "ours", _plain(self.ours))
        object.__setattr__(self, "error", None if self.error is None else float(self.error))
        object.__setattr__(self, "holds", None if self.holds is None else bool(self.holds))

    @property
    def verdict(self) -> ClaimVerdict:
        """holds or not comparable; else refuted for a claim of the paper, fails for one of ours.

        >>> claim = Claim(
        ...     "x", "x is 1", "paper", 1.0, 2.0, 0.1, False, "misprint", place="section 2"
        ... )
        >>> claim.verdict
        'refuted'
        """
        if self.holds is None:
            return "not comparable"
        if self.holds:
            return "holds"
        return "refuted" if self.source == "paper" else "fails"


def all_ours_hold(claims: Iterable[Claim]) -> bool:
    """Whether every claim of source "ours" holds: ∀c, source(c) = ours ⇒ holds(c).

    >>> all_ours_hold([Claim("x", "x is 1", "ours", 1.0, 1.0, 0.1, True)])
    True
    >>> all_ours_hold([Claim("y", "y is 1", "ours", 1.0, 2.0, 0.1, False)])
    False
    """
    return all(claim.verdict != "fails" for claim in claims)


def tally(claims: Iterable[Claim]) -> dict[str, dict[ClaimVerdict, int]]:
    """The number of claims by verdict, those by simulation and the exact ones apart.

    >>> tally([Claim("x", "x is 1", "ours", 1.0, 1.0, None, True, exact=True)])
    {'by simulation': {}, 'exact': {'holds': 1}}
    """
    counts = Counter((claim.exact, claim.verdict) for claim in claims)
    return {
        kind: {
            verdict: counts[exact, verdict]
            for verdict in get_args(ClaimVerdict)
            if counts[exact, verdict]
        }
        for kind, exact in (("by simulation", False), ("exact", True))
    }
