"""Columns by name, and series over the runs: medians with a band, shares with an interval."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from bayescontrol._arrays import FloatArray
from bayescontrol.lab import wilson
from bayescontrol.plot.chart import Marker, Panel, Series


def by_name(names: Iterable[str], column: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    """Split column[run, k, …] along k: return a dict from names[k] to column[:, k, …].

    >>> by_name(["a", "b"], np.array([[1, 2], [3, 4]]))["b"]
    array([2, 4])
    """
    return dict(zip(names, np.moveaxis(column, 1, 0), strict=True))


def by_names(
    outer: Iterable[str], inner: Collection[str], column: npt.NDArray[Any]
) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """Split column[run, j, k, …] along j and k; the result has the keys outer[j], then inner[k]."""
    return {name: by_name(inner, part) for name, part in by_name(outer, column).items()}


def without_nan(column: FloatArray) -> FloatArray:
    """Return the runs in which the column was measured."""
    return np.asarray(column[~np.isnan(column).any(axis=tuple(range(1, column.ndim)))])


def window_means(runs: FloatArray, width: int) -> FloatArray:
    """Return the means of runs[run, t] over windows of `width` steps; the rest is left out.

    >>> window_means(np.array([[1, 3, 5, 7, 9]]), 2)
    array([[2., 6.]])
    """
    whole = runs.shape[1] // width * width
    return np.asarray(runs[:, :whole].reshape(len(runs), -1, width).mean(axis=2))


def spread_of_runs(
    label: str, x: Any, runs: FloatArray, share: float = 0.9, **style: Any
) -> Series:
    """Make a series of the median over the runs, with a band that contains a share of them."""
    levels = ((1.0 - share) / 2.0, 0.5, (1.0 + share) / 2.0)
    low, middle, high = np.quantile(runs, levels, axis=0, method="inverted_cdf")
    return Series(label, x, middle, low, high, **style)


def share_of_runs(label: str, x: Any, hits: Any, z: float = 2.0, **style: Any) -> Series:
    """Make a series of the share of the runs in which hits[run, x] is true, with Wilson's interval.

    >>> share_of_runs("found", np.arange(2), np.array([[True, False], [True, True]])).y.tolist()
    [1.0, 0.5]
    """
    count = hits.sum(axis=0)
    low, high = wilson(count, len(hits), z=z)
    return Series(label, x, count / len(hits), low, high, **style)


def mean_of_runs(
    label: str, x: Any, runs: FloatArray, method: Literal["linear", "inverted_cdf"], **style: Any
) -> Series:
    """Make a series of the mean over the runs, with a band that contains 90 % of them."""
    low, high = np.quantile(runs, (0.05, 0.95), axis=0, method=method)
    return Series(label, x, runs.mean(axis=0), low, high, **style)


def sorted_runs(values: Mapping[str, FloatArray], title: str, ylabel: str, **axes: Any) -> Panel:
    """Draw the values of each agent in increasing order, against the share of runs."""
    series = [
        Series(a, (np.arange(v.size) + 0.5) / v.size, np.sort(v), marker=marker)
        for (a, v), marker in zip(values.items(), get_args(Marker), strict=False)
    ]
    xlabel = "share of runs with a lower value"
    return Panel(title, xlabel, ylabel, series, xlim=(0.0, 1.0), legend="below", **axes)
