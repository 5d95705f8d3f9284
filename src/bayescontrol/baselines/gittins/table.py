"""All Gittins indices of a Bernoulli arm up to so many pulls, with a proven error.

    ν(s, f) = sup_τ E[Σ_{t<τ} γ^t o_t | s, f] / E[Σ_{t<τ} γ^t | s, f],     θ ~ Beta(α, β)

s successes and f failures were seen. Pulling the arm of the highest index is the Bayes-optimal play
of a bandit with discount γ (Gittins 1979). The table says ν(s, f) = index(s, f) ± radius(s, f).
"""

import math
import operator

import numpy as np

from bayescontrol import kernels
from bayescontrol.baselines.gittins.cache import key_of, recall, remember
from bayescontrol.baselines.gittins.march import march
from bayescontrol.baselines.gittins.single import checked, gittins_index
from bayescontrol.errors import BadEvidence

#: A table of so many pulls has fifty million states.
LARGEST_PULLS = 10_000


class GittinsTable:
    """ν(s, f) for s + f ≤ pulls, an arm with Beta(α, β) prior, discount γ ≤ .9999.

    Every index is certified to `tolerance`; `error` is the widest radius there is. With `lookahead`
    the arm can be learnt about until it was pulled so often in all; after that the better of μ and
    the other arm is kept for ever. Tables are kept on disk (`cache=False`: not).

    >>> table = GittinsTable(0.9, 50, cache=False)
    >>> round(table.index(0, 0), 3), table.error <= 1e-4
    (0.703, True)
    >>> low, high = table.bounds(1, 0)
    >>> low < 0.80005628 < high
    True
    >>> round(GittinsTable(0.9, 50, lookahead=50, cache=False).index(20, 30) - 21 / 52, 12)
    0.0
    """

    def __init__(
        self,
        discount: float,
        pulls: int,
        prior: tuple[float, float] = (1.0, 1.0),
        tolerance: float = 1e-4,
        lookahead: int | None = None,
        *,
        cache: bool = True,
    ) -> None:
        self.problem = checked(prior, discount, pulls, lookahead)
        if self.problem.pulls > LARGEST_PULLS:
            raise ValueError(f"pulls={pulls}: a table goes up to {LARGEST_PULLS}")
        if not 1e-8 <= tolerance <= 0.1:
            raise ValueError(
                f"tolerance={tolerance}: a table is certified to something from 1e-8 to 0.1; "
                "gittins_bounds goes further, for one state"
            )
        self.tolerance = float(tolerance)
        n = self.problem.pulls
        found = recall(self.key, (n + 1) * (n + 2) // 2) if cache else None
        #: Whether the numbers come from the disk.
        self.recalled = found is not None
        if found is None:
            lower, upper = march(self.problem, self.tolerance)
            nu = 0.5 * (lower + upper)
            found = nu, np.maximum(upper - nu, nu - lower)
            if cache:
                remember(self.key, *found)
        #: ν and its radius by levels: the place of (s, f) is n (n+1) / 2 + s, n = s + f.
        self.nu, self.radii = found
        self.nu.flags.writeable = self.radii.flags.writeable = False

    @property
    def key(self) -> str:
        """What names this table: all that was asked for, and the code that made it."""
        return key_of(self.problem, self.tolerance)

    @property
    def pulls(self) -> int:
        """s + f goes up to this."""
        return self.problem.pulls

    @property
    def error(self) -> float:
        """max |ν - index|, proven."""
        return float(self.radii.max())

    @property
    def states(self) -> int:
        """How many indices there are."""
        return int(self.nu.size)

    def index(self, s: int, f: int) -> float:
        """ν(s, f), within the radius; beyond the table, to twelve digits, in its own time."""
        k = self._place(s, f)
        if k is not None:
            return float(self.nu[k])
        p, n = self.problem, s + f
        left = None if p.lookahead is None else max(p.lookahead - n, 0)
        return gittins_index(p.alpha + s, p.beta + f, p.gamma, lookahead=left)

    def bounds(self, s: int, f: int) -> tuple[float, float]:
        """lower ≤ ν(s, f) ≤ upper, proven; for a state of the table."""
        k = self._place(s, f)
        if k is None:
            raise BadEvidence(
                f"({s}, {f}) is beyond the {self.pulls} pulls of this table: make a larger one, or "
                "ask gittins_bounds"
            )
        nu, radius = float(self.nu[k]), float(self.radii[k])
        return math.nextafter(nu - radius, -math.inf), math.nextafter(nu + radius, math.inf)

    def _place(self, s: int, f: int) -> int | None:
        s, f = operator.index(s), operator.index(f)
        if s < 0 or f < 0:
            raise BadEvidence(f"{s} successes and {f} failures: counts are not negative")
        return int(kernels.gittins.place(s, f)) if s + f <= self.pulls else None

    def __repr__(self) -> str:
        p = self.problem
        ahead = "" if p.lookahead is None else f", lookahead={p.lookahead}"
        return (
            f"GittinsTable(discount={p.gamma}, pulls={p.pulls}, prior=({p.alpha:g}, {p.beta:g})"
            f"{ahead}: {self.states:,} indices ± {self.error:.2g})"
        )
