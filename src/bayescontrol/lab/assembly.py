"""Columns out of pieces, in the order of the runs.

    columns[name][j] = the row of run wanted[j],   wanted an arithmetic progression

One column at a time, a block of rows at a time, into arrays made once: the peak of memory is
the result and a block. A column of strings is as wide as its longest, however it was cut.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bayescontrol.errors import BayesControlError
from bayescontrol.lab.experiment import Columns
from bayescontrol.lab.pieces import Layout, layout_of
from bayescontrol.lab.replicas import require_same


class Incomplete(BayesControlError, LookupError):
    """Runs are wanted that no piece has.

    >>> issubclass(Incomplete, LookupError)
    True
    """


class RowSource(Protocol):
    """Where rows come from: memory or a file.

    >>> source: RowSource = Held(range(2), {"y": np.arange(2)})
    """

    runs: range

    def layout(self) -> Layout: ...
    def blocks(self, name: str) -> Iterator[tuple[range, npt.NDArray[Any]]]: ...


class Held:
    """Rows in memory. Each column is given away once, so that it does not exist twice.

    >>> held = Held(range(2), {"y": np.arange(2)})
    >>> [block.tolist() for _, block in held.blocks("y")], list(held.layout())
    ([[0, 1]], [])
    """

    def __init__(self, runs: range, columns: Columns) -> None:
        self.runs, self._columns = runs, dict(columns)

    def layout(self) -> Layout:
        """Names, types and shapes of the columns that are left."""
        return layout_of(self._columns)

    def blocks(self, name: str) -> Iterator[tuple[range, npt.NDArray[Any]]]:
        """All rows of a column, for the last time."""
        yield self.runs, self._columns.pop(name)


def assemble(experiment: str, wanted: range, sources: Sequence[RowSource]) -> Columns:
    """The columns of the wanted runs; where sources overlap, the last one counts.

    >>> even, odd = Held(range(0, 4, 2), {"y": np.array([0, 4])}), Held(range(1, 4, 2), {
    ...     "y": np.array([1, 9])})
    >>> assemble("squares", range(4), [odd, even])["y"].tolist()
    [0, 1, 4, 9]
    """
    gaps = missing(wanted, sources)
    if gaps:
        raise Incomplete(f"{experiment}: {sum(map(len, gaps))} runs are missing, from {gaps[0][0]}")
    ordered = sorted(sources, key=lambda source: source.runs.start)
    layouts = [source.layout() for source in ordered]
    first = ordered[0].runs.start
    for source, layout in zip(ordered[1:], layouts[1:], strict=True):
        require_same(experiment, (first, layouts[0]), (source.runs.start, layout))
    columns: dict[str, npt.NDArray[Any]] = {}
    for name, (_, shape) in layouts[0].items():
        widest = max((layout[name][0] for layout in layouts), key=lambda dtype: dtype.itemsize)
        column = np.empty((len(wanted), *shape), widest)
        for source in sources:
            for runs, block in source.blocks(name):
                inside, rows = places(wanted, runs)
                column[rows] = block[inside]
        columns[name] = _as_wide_as_needed(column)
    return columns


def places(wanted: range, runs: range) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Which of `runs` are wanted, and the row of each that is.

    >>> inside, rows = places(range(0, 10, 2), range(3, 7))
    >>> inside.tolist(), rows.tolist()
    ([False, True, False, True], [2, 3])
    """
    number = np.arange(runs.start, runs.stop, runs.step)
    offset = number - wanted.start
    inside = (offset >= 0) & (number < wanted.stop) & (offset % wanted.step == 0)
    return inside, offset[inside] // wanted.step


def missing(wanted: range, sources: Iterable[RowSource]) -> list[range]:
    """The wanted runs that no source has.

    >>> missing(range(10), [Held(range(0, 10, 2), {}), Held(range(3), {})])
    [range(3, 10, 2)]
    """
    there = np.zeros(len(wanted), dtype=np.bool_)
    for source in sources:
        there[places(wanted, source.runs)[1]] = True
    return progressions([wanted[row] for row in np.flatnonzero(~there).tolist()])


def progressions(runs: Sequence[int]) -> list[range]:
    """Increasing numbers as few arithmetic progressions.

    >>> progressions([0, 1, 2, 5, 7, 9, 20])
    [range(0, 3), range(5, 10, 2), range(20, 21)]
    """
    found: list[range] = []
    start = 0
    while start < len(runs):
        step = runs[start + 1] - runs[start] if start + 1 < len(runs) else 1
        end = start + 1
        while end < len(runs) and runs[end] - runs[end - 1] == step:
            end += 1
        if end == start + 1:
            step = 1
        found.append(range(runs[start], runs[end - 1] + 1, step))
        start = end
    return found


def span(runs: range) -> tuple[int, int, int]:
    """A progression as (first, last + 1, step), the same for equal ones.

    >>> span(range(0, 9, 2)) == span(range(0, 10, 2)) == (0, 9, 2)
    True
    """
    return (runs[0], runs[-1] + 1, runs.step if len(runs) > 1 else 1)


def _as_wide_as_needed(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if column.dtype.kind not in "US":
        return column
    width = max(1, int(np.char.str_len(column).max(initial=0)))
    return column.astype(f"{column.dtype.kind}{width}")
