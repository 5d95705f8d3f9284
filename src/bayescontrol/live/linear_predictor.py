"""A predictor of continuous observations without settings: Bayesian linear regression.

    y = Wᵀz + noise,    z = (1, situation, action),    components of y with independent noise
    q(y_j | z, past) = t_{n-p}(y_j; regression of the past, variance of its residuals)

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
from collections.abc import Hashable
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray, IntArray
from bayescontrol.errors import BadEvidence, IncompatibleState, MissingCapability, counted
from bayescontrol.protocols import Persistent
from bayescontrol.values import pack, part_of, require_arrays, require_shapes, unpack


class PredictorBank(Protocol):
    """Predictors in numbered places that can be restarted one by one."""

    def log_predict(self, x: Any, a: Any, o: Any, /) -> FloatArray: ...
    def update(self, x: Any, a: Any, o: Any, /) -> None: ...
    def restart(self, place: int, /) -> None: ...
    def stop(self, place: int, /) -> None: ...
    def copy(self) -> Any: ...
    def save(self) -> Arrays: ...
    def load(self, arrays: Arrays, /) -> None: ...


class RegressionBank:
    """Regressions in numbered places; an unused place has n = -1 rows."""

    def __init__(self, places: int) -> None:
        self._used = np.full(places, -1, np.int64)
        # (names, p, d) -> the triangles F and the numbers of rows n of all places.
        self._parts: dict[Hashable, tuple[FloatArray, IntArray]] = {}
        self._last: FloatArray = np.zeros(0)  # the last observation

    def log_predict(self, x: Any, a: Any, o: Any) -> FloatArray:
        """Return ln q(o | x, a, past) of every place; NaN where there is no prediction."""
        key, p, row = _row(self._last if x is None else x, a, o)
        out = np.full(len(self._used), math.nan)
        if key in self._parts:
            kernels.regression.log_student(*self._parts[key], row, p, np.empty(len(row)), out)
        return out

    def update(self, x: Any, a: Any, o: Any) -> None:
        """Let all places learn o."""
        key, p, row = _row(self._last if x is None else x, a, o)
        if key not in self._parts:
            size = len(row)
            self._parts[key] = np.zeros((len(self._used), size, size)), self._used.copy()
        F, n = self._parts[key]
        kernels.regression.absorb_rows(F, n, row, np.empty(len(row)), np.zeros(len(row)))
        self._last = row[p:].copy()

    def restart(self, place: int) -> None:
        """Forget all that this place has learnt, and use it from now on."""
        self._used[place] = 0
        for F, n in self._parts.values():
            F[place], n[place] = 0.0, 0

    def stop(self, place: int) -> None:
        """Do not use this place any more."""
        self._used[place] = -1
        for _, n in self._parts.values():
            n[place] = -1

    def copy(self) -> Self:
        """Return an independent copy."""
        clone = type(self)(len(self._used))
        clone._used, clone._last = self._used.copy(), self._last.copy()
        clone._parts = {key: (F.copy(), n.copy()) for key, (F, n) in self._parts.items()}
        return clone

    def save(self) -> Arrays:
        """Return named arrays."""
        keys = sorted(self._parts, key=repr)
        names = pack(keys, "the names of situations and actions")
        arrays = {"used": self._used.copy(), "last": self._last.copy(), "keys": names}
        for i, key in enumerate(keys):
            F, n = self._parts[key]
            arrays |= {f"factor/{i}": F.copy(), f"rows/{i}": n.copy()}
        return arrays

    def load(self, arrays: Arrays) -> None:
        """Restore what `save` returned, for as many places. An error changes nothing."""
        require_arrays(arrays, {"used", "keys", "last"}, "predictor")
        places = len(self._used)
        require_shapes(arrays, {"last": (arrays["last"].size,)})
        require_shapes(arrays, {"used": (places,)}, np.int64)
        parts: dict[Hashable, tuple[FloatArray, IntArray]] = {}
        keys = unpack(arrays["keys"])
        try:
            sizes = [int(p) + int(d) for _, p, d in keys]
        except (TypeError, ValueError):
            raise IncompatibleState(
                f"the saved predictor is damaged: its keys are {keys}"
            ) from None
        for i, (key, size) in enumerate(zip(keys, sizes, strict=True)):
            require_shapes(arrays, {f"factor/{i}": (places, size, size)})
            require_shapes(arrays, {f"rows/{i}": (places,)}, np.int64)
            parts[key] = arrays[f"factor/{i}"].copy(), arrays[f"rows/{i}"].copy()
        self._used, self._last, self._parts = arrays["used"].copy(), arrays["last"].copy(), parts


class CopiesBank:
    """Copies of any predictor in numbered places."""

    def __init__(self, predictor: Any, places: int) -> None:
        for name in ("log_predict", "update", "copy"):
            if not hasattr(predictor, name):
                raise MissingCapability(
                    f"{predictor!r} cannot be restarted: it has no {name}; for continuous "
                    "observations leave `predictor` out"
                )
        self.fresh = predictor.copy()
        self._copies: dict[int, Any] = {}
        self._places = places

    def log_predict(self, x: Any, a: Any, o: Any) -> FloatArray:
        """Return ln q(o | x, a, past) of every place; NaN where there is no prediction."""
        out = np.full(self._places, math.nan)
        for place, predictor in self._copies.items():
            log_q = predictor.log_predict(x, a, o)
            if log_q is not None:
                if not log_q < math.inf:  # NaN or +∞
                    raise BadEvidence(
                        f"the log-likelihood of observation {o!r} under {predictor!r} is invalid: "
                        f"{log_q}; expected a number below infinity"
                    )
                out[place] = log_q
        return out

    def update(self, x: Any, a: Any, o: Any) -> None:
        """Let all copies learn o."""
        for predictor in self._copies.values():
            predictor.update(x, a, o)

    def restart(self, place: int) -> None:
        """Put a fresh predictor in this place."""
        self._copies[place] = self.fresh.copy()

    def stop(self, place: int) -> None:
        """Do not use this place any more."""
        self._copies.pop(place, None)

    def copy(self) -> Self:
        """Return an independent copy."""
        clone = type(self)(self.fresh, self._places)
        clone._copies = {place: predictor.copy() for place, predictor in self._copies.items()}
        return clone

    def save(self) -> Arrays:
        """Return the arrays of every copy."""
        if not isinstance(self.fresh, Persistent):
            raise MissingCapability(f"{self.fresh!r} has no save and load: add these methods")
        arrays: Arrays = {"used": np.array(sorted(self._copies), np.int64)}
        for place, predictor in self._copies.items():
            arrays |= {f"{place}/{name}": v for name, v in predictor.save().items()}
        return arrays

    def load(self, arrays: Arrays) -> None:
        """Restore what `save` returned. An error changes nothing."""
        require_arrays(arrays, {"used"}, "predictor")
        if not isinstance(self.fresh, Persistent):
            raise IncompatibleState(f"{self.fresh!r} has no save and load: add these methods")
        copies: dict[int, Any] = {}
        fresh: Any = self.fresh
        for place in arrays["used"].tolist():
            copies[place] = fresh.copy()
            copies[place].load(part_of(arrays, f"{place}/"))
        self._copies = copies


class LinearPredictor:
    """q(o | x, a, past) by Bayesian linear regression of o on (1, x, a); it needs no settings.

    `log_predict` returns None while there is no prediction. Use this predictor for modes that give
    densities.

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

    def __init__(self) -> None:
        self._bank = RegressionBank(1)
        self._bank.restart(0)

    def log_predict(self, x: Any, a: Any, o: Any) -> float | None:
        """Return the log-density ln q(o | x, a, past), or None if there is no prediction."""
        log_q = float(self._bank.log_predict(x, a, o)[0])
        return None if math.isnan(log_q) else log_q

    def update(self, x: Any, a: Any, o: Any) -> None:
        """Learn o."""
        self._bank.update(x, a, o)

    def copy(self) -> Self:
        """Return an independent copy."""
        clone = type(self)()
        clone._bank = self._bank.copy()
        return clone

    def save(self) -> Arrays:
        """Return named arrays; names of situations and actions must be plain values."""
        return self._bank.save()

    def load(self, arrays: Arrays) -> None:
        """Restore what `save` returned."""
        self._bank.load(arrays)

    def __repr__(self) -> str:
        parts = self._bank._parts.values()
        return f"LinearPredictor({counted(sum(int(n[0]) for _, n in parts), 'observation')})"


def _row(x: Any, a: Any, o: Any) -> tuple[Hashable, int, FloatArray]:
    """Return the key of the regression, p, and the row (1, x, a, o)."""
    z, names, y, none = [1.0], list[Any](), list[float](), list[Any]()
    _take_apart(x, z, names)
    _take_apart(a, z, names)
    _take_apart(o, y, none)
    if none or not y:
        raise BadEvidence(
            f"observation {o!r} is not made of numbers: use KrichevskyTrofimov for names"
        )
    row = np.array(z + y)
    if not (np.abs(row) < 1e100).all():
        raise BadEvidence(
            f"observation {o!r} after action {a!r} in situation {x!r} has a number that is not "
            "finite or above 1e100"
        )
    return (tuple(names), len(z), len(y)), len(z), row


def _take_apart(value: Any, numbers: list[float], names: list[Any]) -> None:
    """Append the numbers in `value` to `numbers`, and everything else to `names`."""
    if value is None:
        return
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        numbers.extend(value.ravel().astype(float).tolist())
    elif isinstance(value, tuple | list | np.ndarray):
        for part in value:
            _take_apart(part, numbers, names)
    elif isinstance(value, int | float | np.number | np.bool_):
        numbers.append(float(value))
    elif isinstance(value, Hashable):
        names.append(value)
    else:
        raise MissingCapability(
            f"{value!r} is neither a number nor a name: use numbers, arrays or tuples, or a "
            "predictor with a key"
        )
