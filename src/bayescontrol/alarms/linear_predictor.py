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
from collections.abc import Hashable, Iterator
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol._arrays import Arrays, FloatArray, IntArray
from bayescontrol._support.saved import (
    Array,
    Field,
    Saved,
    checked_array,
    damaged,
    declare,
    require_arrays,
)
from bayescontrol._support.values import pack, unpack
from bayescontrol.errors import BadEvidence, MissingCapability, counted

#: Types that count as numbers; everything else is a name.
NUMBER: Final = int | float | np.number


class _Regressions(Field):
    """The triangles F and the numbers of rows of all keys; names must be plain values."""

    copied = nested = True

    def names(self, owner: Any) -> tuple[str, ...]:
        """Return the name of the list of keys, which determines the others."""
        return ("keys",)

    def save(self, owner: Any, arrays: Arrays) -> None:
        """Add the keys and their arrays."""
        parts = self.value(owner)
        keys = sorted(parts, key=repr)
        arrays["keys"] = pack(keys, "the names of situations and actions")
        for i, (F, n) in enumerate(parts[key] for key in keys):
            arrays |= {f"factor/{i}": F.copy(), f"rows/{i}": n.copy()}

    def read(self, owner: Any, arrays: Arrays) -> dict[Hashable, tuple[FloatArray, IntArray]]:
        """Return the arrays by key."""
        keys, places = unpack(arrays["keys"]), len(owner._used)
        try:
            sizes = [int(p) + int(d) for _, p, d in keys]
        except (TypeError, ValueError):
            raise damaged(f"the keys are {keys}") from None
        require_arrays(
            arrays, (f"{name}/{i}" for name in ("factor", "rows") for i in range(len(keys)))
        )
        return {
            key: (
                checked_array(arrays, f"factor/{i}", np.float64, (places, size, size)).copy(),
                checked_array(arrays, f"rows/{i}", np.int64, (places,)).copy(),
            )
            for i, (key, size) in enumerate(zip(keys, sizes, strict=True))
        }


class LinearPredictor(Saved):
    """q(o | x, a, past) by Bayesian linear regression of o on (1, x, a); it needs no settings.

    `log_predict` returns None while there is no prediction. Use this predictor for modes that give
    densities. With `starts` above 1 it holds predictors that can be restarted one by one;
    `log_predict` is that of the first place. Only the first place is used until `restart`.

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
        Array("used", "_used", shared=True),
        Array("last", "_last", shape=(None,), shared=True),
        _Regressions("parts", "_parts"),
    )

    def __init__(self, starts: int = 1) -> None:
        self._used: IntArray = np.full(starts, -1)  # 0 for a place that is used, otherwise -1
        self._used[0] = 0
        # (names, p, d) -> the triangles F and the numbers of rows n of all starts.
        self._parts: dict[Hashable, tuple[FloatArray, IntArray]] = {}
        self._last: FloatArray = np.zeros(0)  # the last observation

    def log_predict(self, x: Any, a: Any, o: Any) -> float | None:
        """Return the log-density ln q(o | x, a, past), or None if there is no prediction."""
        log_q = float(self.log_predict_each(x, a, o)[0])
        return None if math.isnan(log_q) else log_q

    def observations_needed(self, x: object, a: object, o: object) -> int:
        """Return p + 2, the number of observations before the first prediction."""
        (_, p, _), _ = _row(o if x is None else x, a, o)
        return p + 2

    def log_predict_each(self, x: Any, a: Any, o: Any) -> FloatArray:
        """Return ln q(o | x, a, past) of every place; NaN where there is no prediction."""
        key, row = _row(self._last if x is None else x, a, o)
        out = np.full(len(self._used), math.nan)
        if key in self._parts:
            kernels.regression.log_student(*self._parts[key], row, key[1], np.empty_like(row), out)
        return out

    def update(self, x: Any, a: Any, o: Any) -> None:
        """Let all starts learn o."""
        key, row = _row(self._last if x is None else x, a, o)
        size = len(row)
        if key not in self._parts:
            self._parts[key] = np.zeros((len(self._used), size, size)), self._used.copy()
        kernels.regression.absorb_rows(*self._parts[key], row, np.empty(size), np.zeros(size))
        self._last = row[key[1] :].copy()

    def restart(self, place: int, used: npt.NDArray[np.bool_]) -> None:
        """Forget what this place has learned; learn only in the starts that are used."""
        self._used = np.where(used, 0, -1)
        for F, n in self._parts.values():
            F[place], n[place] = 0.0, 0
            n[~used] = -1

    def __repr__(self) -> str:
        observations = sum(int(n[0]) for _, n in self._parts.values())
        return f"LinearPredictor({counted(observations, 'observation')})"


def _row(x: Any, a: Any, o: Any) -> tuple[tuple[tuple[Any, ...], int, int], FloatArray]:
    """Return the key (names, p, d) of the regression and the row (1, x, a, o)."""
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
    row = np.array(z + y, np.float64)
    if not (np.abs(row) < 1e100).all():
        raise BadEvidence(
            f"observation {o!r} after action {a!r} in situation {x!r} has a number that is not "
            "finite or above 1e100"
        )
    return (names, len(z), len(y)), row


def _parts_of(value: Any) -> Iterator[Any]:
    """Yield the numbers and names in nested tuples, lists and arrays; None has no parts."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, tuple | list):
        for part in value:
            yield from _parts_of(part)
    elif value is not None:
        yield value
