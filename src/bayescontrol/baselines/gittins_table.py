"""All Gittins indices of a Bernoulli arm up to a number of pulls, with a proven error.

    ν(s, f) = sup_τ E[Σ_{t<τ} γ^t o_t | s, f] / E[Σ_{t<τ} γ^t | s, f],     θ ~ Beta(α, β)

after s successes and f failures. Pulling the arm with the highest index is Bayes-optimal for a
bandit with discount γ (Gittins 1979). The table gives ν(s, f) = index(s, f) ± radius(s, f).

Tables are cached on disk. The key of a table is its settings and a digest of the code. A file is

    SHA-256 of the rest | key, a line of text | ν and radius, little-endian doubles

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
from bayescontrol.arrays import FloatArray
from bayescontrol.baselines.gittins_solver import checked_problem, gittins_index, march
from bayescontrol.errors import BadEvidence
from bayescontrol.files import atomic_write

#: A table of this many pulls has fifty million states.
LARGEST_PULLS = 10_000
_DIGEST = 32


class GittinsTable:
    """ν(s, f) for s + f ≤ pulls, an arm with Beta(α, β) prior, discount γ ≤ .9999.

    Every index is certified to `tolerance`; `error` is the largest radius. With `lookahead` the
    arm can be learnt about until it was pulled that often in all; after that the better of μ and
    the alternative is chosen for ever. Tables are cached on disk unless `cache=False`.

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
        if self.problem.pulls > LARGEST_PULLS:
            raise ValueError(f"pulls={pulls}: it must be at most {LARGEST_PULLS}")
        if not 1e-8 <= tolerance <= 0.1:
            raise ValueError(
                f"tolerance={tolerance}: it must be from 1e-8 to 0.1; gittins_bounds is more "
                "precise, for one state"
            )
        self.tolerance = float(tolerance)
        n = self.problem.pulls
        found = _read(self.key, (n + 1) * (n + 2) // 2) if cache else None
        #: Whether the table was read from the cache.
        self.recalled = found is not None
        if found is None:
            lower, upper = march(self.problem, self.tolerance)
            nu = 0.5 * (lower + upper)
            found = nu, np.maximum(upper - nu, nu - lower)
            if cache:
                _write(self.key, *found)
        #: ν and its radius, ordered by level: (s, f) is at n (n+1) / 2 + s, n = s + f.
        self.nu, self.radii = found
        self.nu.flags.writeable = self.radii.flags.writeable = False

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
        """A proven bound of max |ν - index|."""
        return float(self.radii.max())

    @property
    def states(self) -> int:
        """The number of indices."""
        return int(self.nu.size)

    def index(self, s: int, f: int) -> float:
        """ν(s, f) within its radius; beyond the table it is computed to twelve digits."""
        k = self._place(s, f)
        if k is not None:
            return float(self.nu[k])
        p, n = self.problem, s + f
        left = None if p.lookahead is None else max(p.lookahead - n, 0)
        return gittins_index(p.alpha + s, p.beta + f, p.gamma, lookahead=left)

    def bounds(self, s: int, f: int) -> tuple[float, float]:
        """Proven bounds lower ≤ ν(s, f) ≤ upper, for a state of the table."""
        k = self._place(s, f)
        if k is None:
            raise BadEvidence(
                f"({s}, {f}) is beyond the {self.pulls} pulls of this table: make a larger table, "
                "or use gittins_bounds"
            )
        nu, radius = float(self.nu[k]), float(self.radii[k])
        return math.nextafter(nu - radius, -math.inf), math.nextafter(nu + radius, math.inf)

    def _place(self, s: int, f: int) -> int | None:
        s, f = operator.index(s), operator.index(f)
        if s < 0 or f < 0:
            raise BadEvidence(f"{s} successes and {f} failures: counts must not be negative")
        return int(kernels.gittins.state_index(s, f)) if s + f <= self.pulls else None

    def __repr__(self) -> str:
        p = self.problem
        ahead = "" if p.lookahead is None else f", lookahead={p.lookahead}"
        return (
            f"GittinsTable(discount={p.gamma}, pulls={p.pulls}, prior=({p.alpha:g}, {p.beta:g})"
            f"{ahead}: {self.states:,} indices ± {self.error:.2g})"
        )


# -- cache -------------------------------------------------------------------------------------


class DamagedCache(UserWarning):
    """A cached table is damaged or belongs to another key; the table is computed again."""


def folder() -> Path:
    """The cache folder, in `$NUMBA_CACHE_DIR`, `$XDG_CACHE_HOME` or `~/.cache`."""
    named = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "bayescontrol" / "gittins"


def _sources() -> list[Path]:
    """The sources on which a table depends: those of the Gittins index, and all kernels."""
    package = Path(__file__).parents[1]
    return sorted([*package.glob("baselines/gittins*.py"), *package.glob("kernels/*.py")])


@lru_cache
def _code() -> str:
    """A digest of `_sources`; the version of the package if there are none (as in a zip file)."""
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
    head = key.encode() + b"\n"
    rest = memoryview(content)[_DIGEST:]
    if (
        hashlib.sha256(rest).digest() == content[:_DIGEST]
        and content.startswith(head, _DIGEST)
        and len(rest) == len(head) + 16 * states
    ):
        numbers = np.frombuffer(rest, "<f8", offset=len(head)).astype(np.float64)
        return numbers[:states], numbers[states:]
    warnings.warn(
        f"{path} is damaged or not the table of {key!r}: the table is computed again",
        DamagedCache,
        stacklevel=3,
    )
    return None


def _write(key: str, nu: FloatArray, radius: FloatArray) -> None:
    """Write a table to the cache, atomically, if the folder is writable."""
    rest = b"".join(
        (key.encode(), b"\n", nu.astype("<f8").tobytes(), radius.astype("<f8").tobytes())
    )
    path = _path(key)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(hashlib.sha256(rest).digest() + rest)
