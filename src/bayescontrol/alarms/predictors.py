"""Mode-free predictors: the alternatives against which the alarm compares the modes.

    Krichevsky-Trofimov    q(o | x, a, past) = (n_{xao} + 1/2) / (n_{xa} + K/2)
    Student                q(o | x, a, past) = t_{2α}(o; μ, β (κ + 1) / (α κ))

Each predictor gives a normalised distribution of the next observation given the past, Σ_o q = 1 or
∫ q do = 1, with separate statistics for every key; the default key is (x, a). It predicts o before
it counts o. The ratio of q and P(o | m, x, a) is meaningful only if both are probabilities or both
are densities.

`LinearPredictor` needs no settings. It is a Bayesian linear regression:

    y = Wᵀz + noise,    z = (1, situation, action),    components of y with independent noise
    q(y_j | z, past) = t_{n-rank}(y_j; regression of the past, variance of its residuals)

The prior of W and of the variances is improper, so the predictor has no scale to choose: it gives
the same ratios in any unit. It does not predict before p + 2 observations, nor while z has a
direction that no observation had; then it returns None. An e-process stays as it is at such a step:
this is q = P(o | m, x, a), separately for every m. Whether a step is of this kind depends on z and
on the past only, so q is a proper density whenever there is one.

If there is no situation, the last observation takes its place, for modes with private state.
Numbers, arrays, tuples and named tuples are taken apart. Names, such as labelled actions, are not
numbers: each combination of names has its own regression.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from operator import index
from types import SimpleNamespace
from typing import Any, ClassVar, Final, Protocol, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import AnyArray, ArrayLike, Arrays, FloatArray, IntArray, as_numbers
from bayescontrol._support import saved
from bayescontrol._support.saved import Array, Copied, Field, Fixed, Plain, Saved, damaged, declare
from bayescontrol._support.values import pack, unpack
from bayescontrol.errors import BadEvidence, MissingCapability, counted

#: (x, a) -> the key of the statistics that the predictor uses.
Key: TypeAlias = Callable[[Any, Any], Hashable]


class Predictor(Protocol):
    """q(o | x, a, past): call `log_predict` for ln q first, then `update` to learn o.

    An attribute `density` is optional: True if q is a density, False if q is a probability. With
    it, the alarm can reject modes that give the other kind of likelihood. `log_predict` may return
    None if there is no prediction yet; whether it does must not depend on o.
    """

    def log_predict(self, x: Any, a: Any, o: Any, /) -> float | None: ...
    def update(self, x: Any, a: Any, o: Any, /) -> None: ...


class _Keyed(Saved):
    """Base class: one row of statistics per key; `new_row` is the row of a new key."""

    saved_fields = declare(
        Fixed("start", "_new_row", setting="observations or prior"),
        Plain("keys", lambda q: sorted(q._rows, key=repr), "the list of a predictor's keys"),
        Array("rows", lambda q: q._sorted_rows(), shape=(None, None)),
        Copied("_rows", nested=True),
    )

    def __init__(self, new_row: AnyArray, key: Key | None) -> None:
        self._new_row, self._key = new_row, key
        self._rows: dict[Hashable, AnyArray] = {}

    def _key_of(self, x: Any, a: Any) -> Hashable:
        """Return the key of (x, a); raise `MissingCapability` if it is not hashable."""
        key = (_to_python(x), _to_python(a)) if self._key is None else _to_python(self._key(x, a))
        try:
            hash(key)
        except TypeError:
            raise MissingCapability(
                f"the key {key!r} of situation {x!r} and action {a!r} is not hashable: pass key=, "
                "a function of (x, a) that returns a number, a string or a tuple"
            ) from None
        return key

    def _row(self, key: Hashable) -> AnyArray:
        return self._rows.get(key, self._new_row)

    def _sorted_rows(self) -> AnyArray:
        """Return the rows of all keys, an array [key, statistic]; keys are sorted by their repr."""
        rows = [self._rows[key] for key in sorted(self._rows, key=repr)]
        return np.array(rows, self._new_row.dtype).reshape(len(rows), len(self._new_row))

    def _check_state(self, new: SimpleNamespace) -> None:
        shape = len(new.keys), len(self._new_row)
        if not isinstance(new.keys, list) or new.rows.shape != shape:
            raise damaged(f"the keys are {new.keys!r}, the rows have shape {new.rows.shape}")
        if not self._are_valid(new.rows):
            raise damaged(f"the rows of the predictor are {new.rows}")
        new._rows = dict(zip(new.keys, new.rows, strict=True))

    @abstractmethod
    def _are_valid(self, rows: AnyArray) -> bool:
        """Return whether all rows are possible statistics of this predictor."""


class KrichevskyTrofimov(_Keyed):
    """q(o | x, a, past) = (n_{xao} + 1/2) / (n_{xa} + K/2), for K possible observations.

    `observations` lists the possible observations, or is their number K if they are 0 … K - 1. The
    predictor's log-loss on n observations exceeds that of the best fixed distribution by at most
    (K - 1)/2 ln n + ln K. Use this predictor for modes that give probabilities.

    >>> q = KrichevskyTrofimov(["rain", "sun"])
    >>> q.update("coast", "look", "sun")
    >>> q.predictive("coast", "look"), q.predictive("hills", "look")
    ({'rain': 0.25, 'sun': 0.75}, {'rain': 0.5, 'sun': 0.5})
    """

    #: q is a probability.
    density: ClassVar[bool] = False
    saved_fields = declare(Fixed("observations", lambda predictor: list(predictor.observations)))

    def __init__(self, observations: int | Iterable[Any], key: Key | None = None) -> None:
        try:
            if isinstance(observations, Iterable):
                alphabet = tuple(map(_to_python, observations))
            else:
                alphabet = tuple(range(index(observations)))
            self._index_by_observation = {o: k for k, o in enumerate(alphabet)}
        except TypeError:
            raise MissingCapability(
                f"observations={observations!r}: give their number, or a list of hashable values"
            ) from None
        #: The possible observations, in order.
        self.observations: tuple[Any, ...] = alphabet
        if not alphabet or len(self._index_by_observation) < len(alphabet):
            raise ValueError(
                f"observations={observations!r}: give at least one, without repetitions"
            )
        # A row: n_{xao} for every o, then their sum n_{xa}.
        super().__init__(np.zeros(len(alphabet) + 1, np.int64), key)

    @property
    def plain(self) -> bool:
        """Whether the observations are 0 … K - 1 and the keys are (x, a)."""
        return self._key is None and self.observations == tuple(range(len(self.observations)))

    def log_predict(self, x: Any, a: Any, o: Any) -> float:
        """Return ln q(o | x, a, past)."""
        k = self._index(o)
        return float(kernels.tabular.log_estimate(self._row(self._key_of(x, a)), k))

    def update(self, x: Any, a: Any, o: Any) -> None:
        """Count o: n_{xao} ← n_{xao} + 1."""
        k, key = self._index(o), self._key_of(x, a)
        if key not in self._rows:
            self._rows[key] = self._new_row.copy()
        kernels.tabular.count(self._rows[key], k)

    def predictive(self, x: Any, a: Any) -> dict[Any, float]:
        """Return q(o | x, a, past) for every o."""
        n = self._row(self._key_of(x, a))
        q = (n[:-1] + 0.5) / (n[-1] + 0.5 * len(self.observations))
        return dict(zip(self.observations, q.tolist(), strict=True))

    def table(self, situations: int, actions: int) -> IntArray:
        """Return an array [x, a] of the rows of counts for a compiled loop; see `set_table`."""
        return np.array(
            [[self._row((x, a)) for a in range(actions)] for x in range(situations)], np.int64
        )

    def set_table(self, counts: IntArray) -> None:
        """Store the counts of `table` after a compiled loop has updated them."""
        for x, a in np.argwhere(counts[:, :, -1]).tolist():
            self._rows[x, a] = counts[x, a].copy()

    def _index(self, o: Any) -> int:
        try:
            return self._index_by_observation[o]
        except (KeyError, TypeError):
            shown = ", ".join(map(repr, self.observations[:8]))
            more = ", …" if len(self.observations) > 8 else ""
            raise BadEvidence(
                f"observation {o!r} is not one of {shown}{more}: add it to the predictor's list"
            ) from None

    def _are_valid(self, rows: AnyArray) -> bool:
        return bool((rows >= 0).all() and (rows[:, :-1].sum(1) == rows[:, -1]).all())

    def __repr__(self) -> str:
        size = counted(len(self.observations), "observation")
        return f"KrichevskyTrofimov({size}, {counted(len(self._rows), 'key')})"


class StudentPredictor(_Keyed):
    """q(o | x, a, past) = t_{2α}(o; μ, β (κ + 1) / (α κ)), for numbers or vectors.

    The prior is o ~ N(m, v) with v ~ inverse-gamma(α, β) and m ~ N(μ, v / κ); the coordinates of a
    vector are independent. `mean` is μ, a vector if the observations are vectors; `beta` is one
    number, or one per coordinate. E[1/v] = α/β, so choose β of the order of α v. After n
    observations κ and α are κ + n and α + n/2. If situations or actions are real numbers, pass a
    `key` that puts (x, a) into bins: exact values hardly ever repeat, so the predictor would never
    learn. Use this predictor for modes that give densities.

    >>> q = StudentPredictor(mean=0.0, key=lambda x, a: (round(x), a))
    >>> print(f"{q.log_predict(0.2, 'left', 1.0):.4f}")
    -1.7210
    >>> for o in (1.1, 0.9, 1.0):
    ...     q.update(0.1, "left", o)
    >>> print(f"{q.log_predict(-0.3, 'left', 1.0):.4f}")
    -0.8386
    """

    #: q is a density.
    density: ClassVar[bool] = True

    def __init__(
        self,
        mean: ArrayLike = 0.0,
        kappa: float = 1.0,
        alpha: float = 1.0,
        beta: ArrayLike = 1.0,
        *,
        key: Key | None = None,
    ) -> None:
        mu, betas = np.array(mean, np.float64), np.array(beta, np.float64)
        if betas.shape not in ((), mu.shape):
            raise ValueError(
                f"beta={beta!r} does not fit mean={mean!r}: give one number or one per coordinate"
            )
        betas = np.broadcast_to(betas, mu.shape)
        if mu.ndim > 1 or not mu.size or not np.isfinite(mu).all():
            raise ValueError(
                f"mean={mean!r}: it must be a finite number or a list of finite numbers"
            )
        numbers = (kappa, alpha, *betas.ravel().tolist())
        if not all(0.0 < number < math.inf for number in numbers):
            raise ValueError(
                f"kappa={kappa!r}, alpha={alpha!r}, beta={beta!r}: all must be positive and finite"
            )
        #: () for numbers, (d,) for vectors.
        self.shape = mu.shape
        # For d coordinates a row has 2d + 2 numbers: μ_1 … μ_d, β_1 … β_d, and κ and α, which all
        # coordinates share.
        super().__init__(np.concatenate([mu.ravel(), betas.ravel(), [kappa, alpha]]), key)

    def require_key(self, *parts: Any) -> None:
        """Raise `MissingCapability` for real-valued situations or actions if there is no `key`.

        >>> StudentPredictor().require_key((3, "left"))
        >>> StudentPredictor().require_key((0.3, 0.1))
        Traceback (most recent call last):
        bayescontrol.errors.MissingCapability: (0.3, 0.1) contains real numbers, ...
        """
        reals = [part for part in parts if _contains_reals(part)] if self._key is None else []
        if reals:
            raise MissingCapability(
                f"{reals[0]!r} contains real numbers, which hardly ever repeat: the predictor "
                "would never learn, and the alarm would never be raised. Pass key=, a function of "
                "(x, a) that puts them into bins; if they do repeat, pass key=lambda x, a: (x, a)"
            )

    def _key_of(self, x: Any, a: Any) -> Hashable:
        self.require_key(x, a)
        return super()._key_of(x, a)

    def _parameters(self, x: Any, a: Any) -> tuple[FloatArray, FloatArray, float, float]:
        """Return μ, β, κ and α for (x, a)."""
        row, d = self._row(self._key_of(x, a)), len(self._new_row) // 2 - 1
        return row[:d], row[d : 2 * d], float(row[-2]), float(row[-1])

    def _as_vector(self, o: Any) -> FloatArray:
        """Return o as an array of d numbers; raise `BadEvidence` if o is invalid."""
        is_array = type(o) is np.ndarray and o.dtype == np.float64
        value = o if is_array else as_numbers(o, f"observation {o!r}", BadEvidence)
        if value.shape != self.shape or not np.isfinite(value).all():
            expected = f"{self.shape[0]} finite numbers" if self.shape else "a finite number"
            raise BadEvidence(f"observation {o!r} is invalid: expected {expected}")
        return value.ravel()

    def log_predict(self, x: Any, a: Any, o: Any) -> float:
        """Return the log-density ln q(o | x, a, past)."""
        mu, beta, kappa, alpha = self._parameters(x, a)
        value = self._as_vector(o)
        # ν s², with ν = 2α degrees of freedom and scale s.
        nu_s2 = 2.0 * beta * (kappa + 1.0) / kappa
        constant = math.lgamma(alpha + 0.5) - math.lgamma(alpha) - 0.5 * math.log(math.pi)
        with np.errstate(over="ignore"):
            tail = np.log1p((value - mu) ** 2 / nu_s2)
        log_q = float((constant - 0.5 * np.log(nu_s2) - (alpha + 0.5) * tail).sum())
        if not math.isfinite(log_q):
            raise BadEvidence(f"observation {o!r} is too far from mean {mu.tolist()}: rescale it")
        return log_q

    def update(self, x: Any, a: Any, o: Any) -> None:
        """Update μ ← (κμ + o)/(κ + 1), β ← β + κ (o - μ)² / 2(κ + 1), κ ← κ + 1, α ← α + 1/2."""
        self.log_predict(x, a, o)  # raises if o is invalid
        mu, beta, kappa, alpha = self._parameters(x, a)
        gap = self._as_vector(o) - mu
        mu = mu + gap / (kappa + 1.0)
        beta = beta + kappa * gap**2 / (2.0 * (kappa + 1.0))
        self._rows[self._key_of(x, a)] = np.concatenate([mu, beta, [kappa + 1.0, alpha + 0.5]])

    def _are_valid(self, rows: AnyArray) -> bool:
        d = len(self._new_row) // 2 - 1
        # The numbers after the d means are β, κ and α, which must be positive.
        return bool(np.isfinite(rows).all() and (rows[:, d:] > 0.0).all())

    def __repr__(self) -> str:
        values = f"vectors of {self.shape[0]}" if self.shape else "numbers"
        return f"StudentPredictor({values}, {counted(len(self._rows), 'key')})"


def _to_python(value: Any) -> Any:
    """Convert a NumPy scalar to a Python number, because `save` sorts keys by their repr."""
    return value.item() if isinstance(value, np.generic) else value


def _contains_reals(value: Any) -> bool:
    """Return whether a number, an array, or a part of a tuple or list is of a floating type."""
    if isinstance(value, tuple | list):
        return any(map(_contains_reals, value))
    return isinstance(value, float) or getattr(getattr(value, "dtype", None), "kind", "") == "f"


#: Types that count as numbers; everything else is a name.
NUMBER: Final = int | float | np.number


class _SavedRegressions(Field):
    """The regressions of a `LinearPredictor` by key; names in keys must be plain values."""

    copied = nested = True

    def save(self, owner: Any, arrays: Arrays) -> None:
        """Add the keys and their arrays."""
        regressions = self.value(owner)
        keys = sorted(regressions, key=repr)
        arrays["keys"] = pack(keys, "the names of situations and actions")
        for i, (F, n) in enumerate(regressions[key] for key in keys):
            arrays |= {f"factor/{i}": F.copy(), f"rows/{i}": n.copy()}

    def read(self, owner: Any, arrays: Arrays) -> dict[Hashable, tuple[FloatArray, IntArray]]:
        """Return the arrays by key."""
        keys, places = unpack(arrays["keys"]), owner._places
        try:
            sizes = [int(p) + int(d) for _, p, d in keys]
        except (TypeError, ValueError):
            raise damaged(f"the keys are {keys}") from None
        saved.require_arrays(
            arrays, (f"{name}/{i}" for name in ("factor", "rows") for i in range(len(keys)))
        )
        return {
            key: (
                saved.checked_array(arrays, f"factor/{i}", np.float64, (size, size, places)).copy(),
                saved.checked_array(arrays, f"rows/{i}", np.int64, (places,)).copy(),
            )
            for i, (key, size) in enumerate(zip(keys, sizes, strict=True))
        }


class LinearPredictor(Saved):
    """q(o | x, a, past) by Bayesian linear regression of o on (1, x, a); it needs no settings.

    `log_predict` returns None while there is no prediction. Use this predictor for modes that give
    densities. With `starts` above 1 it holds this number of predictors, which can be restarted one
    by one; `log_predict` is that of the first one. Memory and time do not grow with the number of
    observations: each regression is a triangle that is updated by rotations.

    >>> q = LinearPredictor()
    >>> for x, a, o in [(0.0, 1.0, 2.1), (1.0, 0.0, 0.9), (1.0, 1.0, 3.0), (2.0, 1.0, 4.1),
    ...                 (0.0, 2.0, 3.9)]:
    ...     assert q.log_predict(x, a, o) is None
    ...     q.update(x, a, o)
    >>> print(f"{q.log_predict(2.0, 2.0, 6.0):.3f} {q.log_predict(2.0, 2.0, 5.0):.3f}")
    0.356 -3.288
    """

    #: q is a density.
    density: ClassVar[bool] = True
    saved_fields = declare(
        Array("last", "_last", shape=(None,), shared=True),
        _SavedRegressions("keys", "_regressions"),
    )

    def __init__(self, starts: int = 1) -> None:
        self._places = starts
        # (names, p, d) -> the triangles F and the numbers of observations n, of all places; see
        # `_key_and_row` for the key, and `kernels.restarts` for F.
        self._regressions: dict[Hashable, tuple[FloatArray, IntArray]] = {}
        self._last: FloatArray = np.zeros(0)  # the last observation

    def log_predict(self, x: Any, a: Any, o: Any) -> float | None:
        """Return the log-density ln q(o | x, a, past), or None if there is no prediction."""
        log_q = float(self.log_predict_each(x, a, o)[0])
        return None if math.isnan(log_q) else log_q

    def observations_needed(self, x: object, a: object, o: object) -> int:
        """Return p + 2, the number of observations before the first prediction."""
        # Without x the last observation takes its place, and has as many numbers as o.
        (_, p, _), _ = _key_and_row(o if x is None else x, a, o)
        return p + 2

    def log_predict_each(self, x: Any, a: Any, o: Any) -> FloatArray:
        """Return ln q(o | x, a, past) of every place; NaN where there is no prediction."""
        key, row = _key_and_row(self._last if x is None else x, a, o)
        if key not in self._regressions:
            return np.full(self._places, math.nan)
        F, n = self._regressions[key]
        kernels.restarts.log_student(F, n, row, key[1], out := np.empty(self._places))
        return out

    def update(self, x: Any, a: Any, o: Any) -> None:
        """Let all starts learn o."""
        key, row = _key_and_row(self._last if x is None else x, a, o)
        if key not in self._regressions:
            shape = row.size, row.size, self._places
            self._regressions[key] = np.zeros(shape), np.zeros(self._places, np.int64)
        kernels.restarts.absorb_rows(*self._regressions[key], row)
        self._last = row[key[1] :].copy()  # y, the numbers of o

    def restart(self, place: int) -> None:
        """Forget what the predictor in this place has learned."""
        for F, n in self._regressions.values():
            F[:, :, place], n[place] = 0.0, 0

    @property
    def observations(self) -> int:
        """The number of observations that the first predictor has learned."""
        return sum(int(n[0]) for _, n in self._regressions.values())

    def __repr__(self) -> str:
        return f"LinearPredictor({counted(self.observations, 'observation')})"


def _key_and_row(x: Any, a: Any, o: Any) -> tuple[tuple[tuple[Any, ...], int, int], FloatArray]:
    """Return the key of the regression and the row (z, y) of numbers, z = (1, x, a) and y = o.

    The key is (names, p, d): the names in x and a, and the lengths of z and y.
    """
    names: tuple[Any, ...] = ()
    if _is_vector(x) and _is_vector(a) and _is_vector(o):  # the usual case, fast
        z_size, y_size = 1 + x.size + a.size, o.size
        row = np.concatenate([_ONE, x, a, o])
    else:
        parts, y = [*_parts_of(x), *_parts_of(a)], [*_parts_of(o)]
        z = [1.0, *(part for part in parts if isinstance(part, NUMBER))]
        names = tuple(part for part in parts if not isinstance(part, NUMBER))
        for name in names:
            if not isinstance(name, Hashable):
                raise MissingCapability(
                    f"{name!r} is neither a number nor a name: use numbers, arrays or tuples, or a "
                    "predictor with a key"
                )
        if not y or not all(isinstance(part, NUMBER) for part in y):
            raise BadEvidence(
                f"observation {o!r} is not made of numbers: use KrichevskyTrofimov for names"
            )
        z_size, y_size, row = len(z), len(y), np.array(z + y, np.float64)
    if not kernels.lqr.is_within_limits(row):
        raise BadEvidence(
            f"observation {o!r} after action {a!r} in situation {x!r} has a number that is not "
            "finite or above 1e100"
        )
    return (names, z_size, y_size), row


#: The first number of every row.
_ONE: Final = np.ones(1)


def _is_vector(value: Any) -> bool:
    """Return whether the value is a vector of at least one double."""
    is_array = type(value) is np.ndarray and value.dtype == np.float64
    return is_array and value.ndim == 1 and value.size > 0


def _parts_of(value: Any) -> Iterator[Any]:
    """Yield the numbers and names in nested tuples, lists and arrays; None has no parts."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, tuple | list):
        for part in value:
            yield from _parts_of(part)
    elif value is not None:
        yield value
