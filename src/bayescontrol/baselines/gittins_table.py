"""All Gittins indices of a Bernoulli arm up to a number of pulls, with a proven error.

    ν(s, f) = sup_τ E[Σ_{t<τ} γ^t o_t | s, f] / E[Σ_{t<τ} γ^t | s, f],     θ ~ Beta(α, β)

after s successes and f failures. Pulling the arm with the highest index is Bayes-optimal for a
bandit with discount γ (Gittins 1979). The table gives ν(s, f) = index(s, f) ± radius(s, f).

Tables are cached on disk. The key of a table is its settings and a digest of the code. A file is

    SHA-256 of what follows | key, a line of text | ν and radius, little-endian doubles

Files are written atomically and ignored, with a warning, if the digest does not match. If the
folder is not writable, tables are computed each time.
"""

import contextlib
import hashlib
import math
import operator
import os
import warnings
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray, require_between
from bayescontrol._support.files import atomic_write
from bayescontrol.baselines.gittins_solver import checked_problem, gittins_index, march
from bayescontrol.errors import BadEvidence

#: A table of this many pulls has fifty million states.
LARGEST_PULLS = 10_000
_DIGEST_BYTES = 32


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
        n = self.problem.pulls
        table = _read(self.key, (n + 1) * (n + 2) // 2) if cache else None
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


class DamagedCache(UserWarning):
    """A cached table is damaged or belongs to another key; the table is computed again."""


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
    """Return a digest of `_sources`, or the version of a package without them, as in a zip file."""
    sources = [path.read_bytes() for path in _sources()]
    if not sources:
        return f"version {version('bayescontrol')}"
    return hashlib.sha256(b"\0".join(sources)).hexdigest()[:16]


def _path(key: str) -> Path:
    return folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.table"


def _read(key: str, states: int) -> tuple[FloatArray, FloatArray] | None:
    """Read (ν, radius) of a table with this many states; None if there is no intact file."""
    path = _path(key)
    try:
        content = path.read_bytes()
    except OSError:
        return None
    header = key.encode() + b"\n"
    payload = memoryview(content)[_DIGEST_BYTES:]
    if (
        hashlib.sha256(payload).digest() == content[:_DIGEST_BYTES]
        and content.startswith(header, _DIGEST_BYTES)
        and len(payload) == len(header) + 16 * states
    ):
        numbers = np.frombuffer(payload, "<f8", offset=len(header)).astype(np.float64)
        return numbers[:states], numbers[states:]
    warnings.warn(
        f"{path} is damaged or not the table of {key!r}: the table is computed again",
        DamagedCache,
        stacklevel=3,
    )
    return None


def _write(key: str, nu: FloatArray, radius: FloatArray) -> None:
    """Write a table to the cache, atomically, if the folder is writable."""
    numbers = np.concatenate([nu, radius]).astype("<f8")
    payload = key.encode() + b"\n" + numbers.tobytes()
    path = _path(key)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(hashlib.sha256(payload).digest() + payload)
