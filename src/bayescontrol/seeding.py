"""One seed and a run number give independent named streams of random numbers.

    state of (seed, run, role) = SeedSequence(entropy = seed, spawn_key = (run, code of role))
    code of role               = CRC-32 of its UTF-8 name

The agent P and the environment Q have separate streams, so that changing one does not change
the random numbers of the other. The numbers of a run depend neither on other runs nor on the
worker that computes it. A `Stream` has NumPy's method names and calls `kernels.random`: a
compiled loop that gets `stream.state` draws the same numbers as the methods.
"""

import math
import sys
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, IntArray, UIntArray, as_integer, as_numbers
from bayescontrol.errors import IncompatibleState

Size: TypeAlias = int | tuple[int, ...]
Floats: TypeAlias = float | FloatArray
Ints: TypeAlias = int | IntArray
T = TypeVar("T")

#: The argument `seed` of public functions: see `as_stream`.
SeedLike: TypeAlias = "int | Stream | np.random.Generator | None"
#: The argument `rng` of built-in methods: see `require_stream`.
StreamLike: TypeAlias = "Stream | np.random.Generator"

#: The name of the saved state.
ALGORITHM = "xoshiro256++"
#: The end of 64-bit integers: the largest is one less.
INT64 = 2**63
WORD = 2**32 - 1  # the largest 32-bit word
#: If this module is loaded, so is Numba, and kernels can be called at once.
_KERNELS = "bayescontrol.kernels.random"
_DOUBLE = np.dtype(np.float64)
#: Relative rounding errors that a covariance matrix may have.
_ROUNDING = 1e-12
#: The largest number of trials and the largest mean of a Poisson number: both are doubles.
MAX_COUNT = 2**53


class Stream:
    """A reproducible stream of random numbers: xoshiro256++ under NumPy's method names.

    Each method draws one number, or an array of shape `size`, which holds the same numbers as
    single draws. Bad arguments raise a ValueError and draw nothing.

    `seed` is an integer, or a SeedSequence of NumPy.

    >>> rng = Stream(7)
    >>> twin = rng.copy()
    >>> [rng.random() for _ in range(3)] == twin.random(size=3).tolist()
    True
    >>> rng.choice(["left", "right"], p=[0, 1])
    'right'
    """

    __slots__ = ("state",)

    #: The four words of the generator's state, which kernels advance in place.
    state: UIntArray

    def __init__(self, seed: "int | np.random.SeedSequence") -> None:
        if not isinstance(seed, np.random.SeedSequence):
            seed = np.random.SeedSequence(as_integer("seed", seed, 0, end=2**128))
        self.state = seed.generate_state(4, np.uint64).astype(np.uint64)

    @classmethod
    def named(cls, seed: int, run: int, role: str) -> "Stream":
        """Return the stream of one role in one run: SeedSequence(seed, spawn_key=(run, role)).

        >>> Stream.named(0, 3, "agent") == Stream.named(0, 3, "agent")
        True
        >>> Stream.named(0, 3, "agent") == Stream.named(0, 3, "environment")
        False
        """
        if not isinstance(role, str):
            raise TypeError(f'role={role!r}: expected a name, such as "agent"')
        seed = seed if type(seed) is int else as_integer("seed", seed, 0)  # True is not a key
        words, run = _words(seed), as_integer("run", run, 0, end=INT64)
        code = zlib.crc32(role.encode())
        if _KERNELS not in sys.modules:  # do not load Numba before the first draw
            return cls(np.random.SeedSequence(seed, spawn_key=(run, code)))
        stream = cls.__new__(cls)
        stream.state = np.empty(4, np.uint64)
        kernels.seed_sequence.seed_state(words, run, code, stream.state)
        return stream

    @overload
    def random(self, size: None = None) -> float: ...
    @overload
    def random(self, size: Size) -> FloatArray: ...
    def random(self, size: Size | None = None) -> Floats:
        """U uniform on [0, 1)."""
        if size is None:
            return kernels.random.uniform(self.state)
        return self._fill(kernels.random.fill_uniform, size)

    @overload
    def uniform(self, low: float = 0.0, high: float = 1.0, size: None = None) -> float: ...
    @overload
    def uniform(self, low: float = 0.0, high: float = 1.0, *, size: Size) -> FloatArray: ...
    def uniform(self, low: float = 0.0, high: float = 1.0, size: Size | None = None) -> Floats:
        """Uniform on [low, high); as in NumPy, rounding can return `high` itself."""
        low = _finite("low", low)
        width = _finite("high - low", _finite("high", high) - low, 0.0)
        return low + width * self.random(size)

    @overload
    def normal(self, loc: float = 0.0, scale: float = 1.0, size: None = None) -> float: ...
    @overload
    def normal(self, loc: float = 0.0, scale: float = 1.0, *, size: Size) -> FloatArray: ...
    def normal(self, loc: float = 0.0, scale: float = 1.0, size: Size | None = None) -> Floats:
        """N(loc, scale²); the second argument is the standard deviation."""
        loc, scale = _finite("loc", loc), _finite("scale", scale, 0.0)
        if size is None:
            return loc + scale * kernels.random.normal(self.state)
        return loc + scale * self._fill(kernels.random.fill_normal, size)

    def multivariate_normal(
        self, mean: ArrayLike, cov: ArrayLike, size: Size | None = None
    ) -> FloatArray:
        """N(mean, cov): an array of shape (d,), or of shape (*size, d). `cov` may be singular.

        >>> Stream(0).multivariate_normal([0.0, 5.0], [[1.0, 0.0], [0.0, 0.0]], size=3).shape
        (3, 2)
        """
        centre, factor = _mean_and_factor(mean, cov)
        shape = np.broadcast_to(0, () if size is None else size).shape
        z = self.normal(size=(*shape, centre.size))
        out = np.broadcast_to(centre, z.shape).copy()
        for k, row in enumerate(factor):  # not a matrix product, whose rounding depends on `size`
            out += z[..., k, None] * row
        return out

    @overload
    def exponential(self, scale: float = 1.0, size: None = None) -> float: ...
    @overload
    def exponential(self, scale: float = 1.0, *, size: Size) -> FloatArray: ...
    def exponential(self, scale: float = 1.0, size: Size | None = None) -> Floats:
        """Density e^(-x/scale) / scale."""
        scale = _finite("scale", scale, 0.0)
        if size is None:
            return scale * kernels.random.exponential(self.state)
        return scale * self._fill(kernels.random.fill_exponential, size)

    @overload
    def gamma(self, shape: float, scale: float = 1.0, size: None = None) -> float: ...
    @overload
    def gamma(self, shape: float, scale: float = 1.0, *, size: Size) -> FloatArray: ...
    def gamma(self, shape: float, scale: float = 1.0, size: Size | None = None) -> Floats:
        """Density ∝ x^(shape-1) e^(-x/scale)."""
        shape, scale = _positive("shape", shape), _finite("scale", scale, 0.0)
        if size is None:
            return scale * kernels.random.gamma(self.state, shape)
        return scale * self._fill(kernels.random.fill_gamma, size, shape)

    @overload
    def beta(self, a: float, b: float, size: None = None) -> float: ...
    @overload
    def beta(self, a: float, b: float, size: Size) -> FloatArray: ...
    def beta(self, a: float, b: float, size: Size | None = None) -> Floats:
        """Density ∝ x^(a-1) (1-x)^(b-1)."""
        a, b = _positive("a", a), _positive("b", b)
        if size is None:
            return kernels.random.beta(self.state, a, b)
        return self._fill(kernels.random.fill_beta, size, a, b)

    @overload
    def poisson(self, lam: float = 1.0, size: None = None) -> int: ...
    @overload
    def poisson(self, lam: float = 1.0, *, size: Size) -> IntArray: ...
    def poisson(self, lam: float = 1.0, size: Size | None = None) -> Ints:
        """k with probability lam^k e^-lam / k!, for lam up to 2^53."""
        lam = _finite("lam", lam, 0.0, MAX_COUNT)
        if size is None:
            return int(kernels.counts.poisson(self.state, lam))
        return self._fill(kernels.counts.fill_poisson, size, lam, dtype=np.int64)

    @overload
    def binomial(self, n: int, p: float, size: None = None) -> int: ...
    @overload
    def binomial(self, n: int, p: float, size: Size) -> IntArray: ...
    def binomial(self, n: int, p: float, size: Size | None = None) -> Ints:
        """The number of successes in n trials, each with probability p, for n up to 2^53."""
        trials = float(as_integer("n", n, 0, end=MAX_COUNT + 1))
        p = _finite("p", p, 0.0, 1.0)
        if size is None:
            return int(kernels.counts.binomial(self.state, trials, p))
        return self._fill(kernels.counts.fill_binomial, size, trials, p, dtype=np.int64)

    @overload
    def integers(self, low: int, high: int | None = None, size: None = None) -> int: ...
    @overload
    def integers(self, low: int, high: int | None = None, *, size: Size) -> IntArray: ...
    def integers(self, low: int, high: int | None = None, size: Size | None = None) -> Ints:
        """Uniform on low … high - 1; with one argument on 0 … low - 1."""
        if high is None:
            low, high = 0, low
        low = as_integer("low", low, -INT64, end=INT64)
        # The kernel needs high - low < 2^63.
        n = as_integer("high", high, low + 1, end=min(low + INT64, INT64 + 1)) - low
        if size is None:
            return low + kernels.random.below(self.state, n)
        return low + self._fill(kernels.random.fill_below, size, n, dtype=np.int64)

    @overload
    def categorical(self, p: ArrayLike, size: None = None) -> int: ...
    @overload
    def categorical(self, p: ArrayLike, size: Size) -> IntArray: ...
    def categorical(self, p: ArrayLike, size: Size | None = None) -> Ints:
        """An index i with probability p_i / Σ p. The weights p need not sum to one."""
        weights = _as_weights(p)
        if weights.ndim != 1:
            raise ValueError(f"p has shape {weights.shape}: pass one weight per outcome")
        # For an array, this draw from a copy only checks the weights; -1: they are invalid.
        i = kernels.random.categorical(self.state if size is None else self.state.copy(), weights)
        if i < 0:
            raise _invalid_weights(weights)
        if size is None:
            return i
        return self._fill(kernels.random.fill_categorical, size, weights, dtype=np.int64)

    @overload
    def choice(self, options: int, p: ArrayLike | None = None, size: None = None) -> int: ...
    @overload
    def choice(self, options: Sequence[T], p: ArrayLike | None = None, size: None = None) -> T: ...
    @overload
    def choice(
        self, options: int | Sequence[Any], p: ArrayLike | None = None, *, size: Size
    ) -> npt.NDArray[Any]: ...
    def choice(
        self, options: int | Sequence[Any], p: ArrayLike | None = None, size: Size | None = None
    ) -> Any:
        """One of the options, or of 0 … options - 1 if `options` is a number; p are the weights."""
        items = None if isinstance(options, int | np.integer) else options
        n = as_integer("options", options if items is None else len(items), 1, end=INT64)
        if p is not None and np.shape(p) != (n,):
            raise ValueError(f"p has shape {np.shape(p)} but there are {n} options")
        if size is None:
            i = self.integers(n) if p is None else self.categorical(p)
            return i if items is None else items[i]
        indices = self.integers(n, size=size) if p is None else self.categorical(p, size)
        return indices if items is None else np.asarray(items)[indices]

    def permutation(self, n: int) -> IntArray:
        """0 … n - 1 in uniformly random order."""
        out = np.empty(as_integer("n", n, 0, end=INT64), dtype=np.int64)
        kernels.random.permutation(self.state, out)
        return out

    def generator(self) -> "np.random.Generator":
        """Return a NumPy Generator seeded with the next four words; each call returns a new one."""
        words = [int(kernels.random.next_uint64(self.state)) for _ in range(4)]
        return np.random.Generator(np.random.PCG64(words))

    def save(self) -> dict[str, UIntArray]:
        """Return the state by the name of the algorithm. `load(save())` continues bit for bit."""
        return {ALGORITHM: self.state.copy()}

    def load(self, arrays: dict[str, UIntArray]) -> None:
        """Restore the state that `save` returned."""
        state = np.asarray(arrays[ALGORITHM]) if set(arrays) == {ALGORITHM} else np.empty(0)
        # No stream is ever in the state of four zeros.
        if state.dtype != np.uint64 or state.shape != (4,) or not state.any():
            raise IncompatibleState(
                f"the saved stream is damaged: expected one array, {ALGORITHM!r}, of four 64-bit "
                f"words (uint64) that are not all 0, found {arrays}"
            )
        self.state[:] = state

    def copy(self) -> "Stream":
        """Return an independent stream that will draw the same numbers."""
        clone = Stream.__new__(Stream)
        clone.state = self.state.copy()
        return clone

    __copy__ = copy

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and bool(np.array_equal(self.state, other.state))

    def __repr__(self) -> str:
        return f"<Stream {ALGORITHM} {' '.join(f'{int(s):016x}' for s in self.state)}>"

    def _fill(
        self, fill: Callable[..., None], size: Size, *parameters: object, dtype: type = np.float64
    ) -> npt.NDArray[Any]:
        """Return an array of this shape whose numbers a kernel draws one after the other."""
        out: npt.NDArray[Any] = np.empty(size, dtype)
        fill(self.state, *parameters, out.reshape(-1))
        return out


def as_stream(seed: SeedLike) -> Stream:
    """Return the stream of a `seed`.

    A Stream is used itself, a number seeds a new one, None takes fresh entropy from the system,
    and a NumPy Generator draws a seed, so it advances.

    >>> as_stream(5) == Stream(5)
    True
    """
    if isinstance(seed, Stream):
        return seed
    if seed is None:
        return Stream(np.random.SeedSequence())
    if isinstance(seed, np.random.Generator):
        # Eight words: MT19937 puts only 32 bits into each.
        return Stream(np.random.SeedSequence(seed.bit_generator.random_raw(8).tolist()))
    return Stream(seed)


def as_seed(seed: SeedLike) -> int:
    """Return a number that repeats a run. None draws a fresh one from the system.

    A Stream or a NumPy Generator draws a number, so it advances.

    >>> as_seed(5), as_seed(None) == as_seed(None)
    (5, False)
    """
    if seed is None or isinstance(seed, Stream | np.random.Generator):
        return as_stream(seed).integers(INT64 - 1)
    return as_integer("seed", seed, 0, end=2**128)


def require_stream(rng: StreamLike) -> Stream:
    """Return a Stream itself; a NumPy Generator draws the seed of a new one, so it advances.

    Anything else raises a TypeError. A number too: it would give the same draws in every call.

    >>> rng = Stream(5)
    >>> require_stream(rng) is rng, type(require_stream(rng.generator())).__name__
    (True, 'Stream')
    """
    if isinstance(rng, Stream):
        return rng
    if isinstance(rng, np.random.Generator):
        return as_stream(rng)
    raise TypeError(
        f"rng={rng!r}: expected a Stream, such as Stream(0), or a NumPy Generator; create it once "
        "and pass it to every call"
    )


def state_of(rng: StreamLike) -> UIntArray:
    """Return the state of `require_stream(rng)`, which kernels advance in place."""
    return rng.state if isinstance(rng, Stream) else require_stream(rng).state


@lru_cache(maxsize=1000)
def _words(seed: int) -> UIntArray:
    """Return the four 32-bit words of a seed."""
    seed = as_integer("seed", seed, 0, end=2**128)
    return np.array([seed >> shift & WORD for shift in (0, 32, 64, 96)], np.uint64)


def _finite(name: str, value: float, least: float = -math.inf, greatest: float = math.inf) -> float:
    """Return the value as a float; raise ValueError unless it is finite and within the bounds."""
    try:
        number = float(value) if math.isfinite(value) else math.nan
    except (TypeError, OverflowError):
        number = math.nan
    if not least <= number <= greatest:  # also if it is NaN
        bound = "" if least == -math.inf else f" of at least {least:g}"
        bound += "" if greatest == math.inf else f" and at most {greatest:g}"
        raise ValueError(f"{name} = {value!r} must be one finite number{bound}")
    return number


def _positive(name: str, value: float) -> float:
    """Return the value as a float; raise ValueError unless it is finite and above 0."""
    number = _finite(name, value, 0.0)
    if number == 0.0:
        raise ValueError(f"{name} = {value!r} must be greater than 0")
    return number


def _mean_and_factor(mean: ArrayLike, cov: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the mean and a matrix V with VᵀV = cov; raise ValueError if they are invalid."""
    centre = as_numbers(mean, "mean", ValueError)
    C = as_numbers(cov, "cov", ValueError)
    if centre.ndim != 1 or C.shape != (centre.size, centre.size):
        raise ValueError(f"mean shape {centre.shape} and cov {C.shape}: expected (d,) and (d, d)")
    if not (np.isfinite(centre).all() and np.isfinite(C).all()):
        raise ValueError("mean and cov must be finite")
    scale = np.abs(C).max(initial=0.0)
    if np.abs(C - C.T).max(initial=0.0) > _ROUNDING * scale:
        raise ValueError("cov is not symmetric: pass (cov + cov.T) / 2")
    least = np.linalg.eigvalsh(C).min(initial=0.0)
    if least < -_ROUNDING * scale * centre.size:
        raise ValueError(f"cov has the eigenvalue {least:.3g}: it must be positive semidefinite")
    return centre, kernels.regression.factor(C)


def _as_weights(p: ArrayLike) -> FloatArray:
    """Return p as a contiguous float64 array, as the kernels need it; copy it only if necessary."""
    if isinstance(p, np.ndarray) and p.dtype is _DOUBLE and p.flags.carray:
        return p
    return np.array(p, np.float64, order="C")


def _invalid_weights(weights: FloatArray) -> ValueError:
    """Return the error that names the first invalid weight, or else the sum of the weights."""
    for i, p_i in enumerate(weights):
        if not p_i >= 0.0:
            return ValueError(f"p[{i}] = {p_i} must be at least 0")
    return ValueError(f"p sums to {weights.sum()}: weights must be finite and one positive")
