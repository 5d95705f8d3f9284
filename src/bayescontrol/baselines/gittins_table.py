"""All Gittins indices of a Bernoulli arm up to a number of pulls, with a proven error.

    ν(s, f) = sup_τ E[Σ_{t<τ} γ^t o_t | s, f] / E[Σ_{t<τ} γ^t | s, f],     θ ~ Beta(α, β)

after s successes and f failures. Pulling the arm with the highest index is Bayes-optimal for a
bandit with discount γ (Gittins 1979). The table gives ν(s, f) = index(s, f) ± radius(s, f).

Tables are cached on disk, in .npz files, which hold checksums. The name of a file is a digest of
the settings and of the code. A file that cannot be read is written again. If the folder is not
writable, tables are computed each time.
"""

import contextlib
import hashlib
import math
import operator
import os
import zipfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray, require_between
from bayescontrol._support.files import atomic_write
from bayescontrol.baselines.gittins_solver import checked_problem, gittins_index, march
from bayescontrol.errors import BadEvidence

#: A table of this many pulls has fifty million states.
LARGEST_PULLS = 10_000


class GittinsTable:
    """ν(s, f) for s + f ≤ pulls, an arm with Beta(α, β) prior, discount γ ≤ .9999.

    Every index is certified to `tolerance`; `error` is the largest radius. With `lookahead`, the
    arm can be learned about until it has been pulled that many times in total. After that, the
    better of its mean μ and the certain alternative is chosen for ever. Tables are cached on disk
    unless `cache=False`.

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
        self.problem = checked_problem(prior, discount, pulls, lookahead)
        require_between("pulls", pulls, 0, LARGEST_PULLS)
        if not 1e-8 <= tolerance <= 0.1:
            raise ValueError(
                f"tolerance={tolerance}: expected 1e-8 to 0.1; for the index of a single state, "
                "gittins_bounds is more precise"
            )
        self.tolerance = float(tolerance)
        table = _read(self.key) if cache else None
        #: Whether the table was read from the cache.
        self.recalled = table is not None
        if table is None:
            lower, upper = march(self.problem, self.tolerance)
            nu = 0.5 * (lower + upper)
            table = nu, np.maximum(upper - nu, nu - lower)
            if cache:
                _write(self.key, *table)
        #: The indices ν and their radii, ordered by level: (s, f) is at n (n+1) / 2 + s, n = s + f.
        self.nu, self.radii = table
        self.nu.flags.writeable = self.radii.flags.writeable = False
        # The indices that were computed beyond the table, by (s, f).
        self._beyond: dict[tuple[int, int], float] = {}

    @property
    def key(self) -> str:
        """The key of the table in the cache: its settings, and a digest of the code."""
        return f"{self.problem!r} to {self.tolerance!r} code {_code()}"

    @property
    def pulls(self) -> int:
        """The largest s + f."""
        return self.problem.pulls

    @property
    def error(self) -> float:
        """A proven upper bound of |ν - index| for all states of the table."""
        return float(self.radii.max())

    @property
    def states(self) -> int:
        """The number of indices."""
        return int(self.nu.size)

    def index(self, s: int, f: int) -> float:
        """Return ν(s, f) within its radius; beyond the table, compute it to twelve digits."""
        k = self._place(s, f)
        if k is not None:
            return float(self.nu[k])
        if (s, f) not in self._beyond:
            p = self.problem
            left = None if p.lookahead is None else max(p.lookahead - s - f, 0)
            self._beyond[s, f] = gittins_index(p.alpha + s, p.beta + f, p.gamma, lookahead=left)
        return self._beyond[s, f]

    def bounds(self, s: int, f: int) -> tuple[float, float]:
        """Return proven bounds (lower, upper) of ν(s, f), for a state of the table."""
        k = self._place(s, f)
        if k is None:
            raise BadEvidence(
                f"({s}, {f}) is beyond the {self.pulls} pulls of this table: make a larger table, "
                "or use gittins_bounds"
            )
        nu, radius = float(self.nu[k]), float(self.radii[k])
        return math.nextafter(nu - radius, -math.inf), math.nextafter(nu + radius, math.inf)

    def _place(self, s: int, f: int) -> int | None:
        """Return the position of (s, f) in `nu`, or None if it is beyond the table."""
        s, f = operator.index(s), operator.index(f)
        if s < 0 or f < 0:
            raise BadEvidence(f"{s} successes and {f} failures: counts must not be negative")
        return int(kernels.gittins.state_index(s, f)) if s + f <= self.pulls else None

    def __repr__(self) -> str:
        p = self.problem
        lookahead = "" if p.lookahead is None else f", lookahead={p.lookahead}"
        return (
            f"GittinsTable(discount={p.gamma}, pulls={p.pulls}, prior=({p.alpha:g}, {p.beta:g})"
            f"{lookahead}: {self.states:,} indices ± {self.error:.2g})"
        )


# -- cache -------------------------------------------------------------------------------------


def folder() -> Path:
    """Return the cache folder, in `$NUMBA_CACHE_DIR`, `$XDG_CACHE_HOME` or `~/.cache`."""
    parent = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    return (Path(parent) if parent else Path.home() / ".cache") / "bayescontrol" / "gittins"


def _sources() -> list[Path]:
    """Return the source files on which a table depends: the Gittins modules and all kernels."""
    package = Path(__file__).parents[1]
    return sorted([*package.glob("baselines/gittins*.py"), *package.glob("kernels/*.py")])


@lru_cache
def _code() -> str:
    """Return a digest of `_sources`."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in _sources())).hexdigest()[:16]


def _path(key: str) -> Path:
    """Return the file of the table with this key."""
    return folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npz"


def _read(key: str) -> tuple[FloatArray, FloatArray] | None:
    """Read (ν, radius) of a table; None if there is no intact file."""
    try:
        with _path(key).open("rb") as file, np.load(file) as saved:
            return saved["nu"], saved["radius"]
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        return None


def _write(key: str, nu: FloatArray, radius: FloatArray) -> None:
    """Write a table to the cache, atomically, if the folder is writable."""
    with contextlib.suppress(OSError):
        folder().mkdir(parents=True, exist_ok=True)
        with atomic_write(_path(key)) as file:
            np.savez(file, nu=nu, radius=radius)
