"""Assemble columns from several sources, in the order of the runs.

    columns[name][j] = the row of run wanted[j],   wanted an arithmetic progression

Columns are copied one block of rows at a time to arrays that are allocated once: the peak of memory
is the result and one block. A column of strings is as wide as its longest string.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol.errors import BayesControlError
from bayescontrol.lab.experiment import Columns, ExperimentFailed
from bayescontrol.lab.sealed_npz import Layout, SealedFile, layout_of


class Incomplete(BayesControlError, LookupError):
    """No source has some of the requested runs."""


class RowsInMemory:
    """Rows in memory. `blocks` drops the column that it yields, to save memory.

    >>> rows = RowsInMemory(range(2), {"y": np.arange(2)})
    >>> [block.tolist() for _, block in rows.blocks("y")], list(rows.layout())
    ([[0, 1]], [])
    """

    def __init__(self, runs: range, columns: Columns) -> None:
        self.runs, self._columns = runs, dict(columns)

    def layout(self) -> Layout:
        """Return names, types and shapes of the remaining columns."""
        return layout_of(self._columns)

    def blocks(self, name: str) -> Iterator[tuple[range, npt.NDArray[Any]]]:
        """Yield all rows of a column and drop them."""
        yield self.runs, self._columns.pop(name)


RowSource: TypeAlias = RowsInMemory | SealedFile


def assemble(
    experiment: str, wanted: range, sources: Sequence[RowSource], only: str | None = None
) -> Columns:
    """Return the columns of the wanted runs; where sources overlap, the last one is used.

    With `only`, just the column of this name is read.

    >>> even = RowsInMemory(range(0, 4, 2), {"y": np.array([0, 4])})
    >>> odd = RowsInMemory(range(1, 4, 2), {"y": np.array([1, 9])})
    >>> assemble("squares", range(4), [odd, even])["y"].tolist()
    [0, 1, 4, 9]
    """
    gaps = missing(wanted, sources)
    if gaps:
        count = sum(map(len, gaps))
        raise Incomplete(f"{experiment}: {count} runs are missing, first run {gaps[0][0]}")
    ordered = sorted(sources, key=lambda source: source.runs.start)
    layouts = [(source.runs.start, source.layout()) for source in ordered]
    for other in layouts[1:]:
        require_same(experiment, layouts[0], other)
    columns: dict[str, npt.NDArray[Any]] = {}
    for name, (_, shape) in layouts[0][1].items():
        if only is not None and name != only:
            continue
        widest = max((layout[name][0] for _, layout in layouts), key=lambda dtype: dtype.itemsize)
        column = np.empty((len(wanted), *shape), widest)
        for source in sources:
            for runs, block in source.blocks(name):
                is_wanted, rows = places(wanted, runs)
                column[rows] = block[is_wanted]
        if column.dtype.kind in "US":
            width = max(1, int(np.char.str_len(column).max(initial=0)))
            column = column.astype(f"{column.dtype.kind}{width}")
        columns[name] = column
    return columns


def stack(name: str, runs: Sequence[int], replicas: Sequence[Columns]) -> Columns:
    """Stack the replicas of an experiment; raise if their columns differ.

    >>> stack("squares", range(2), [{"y": np.array(0)}, {"y": np.array(1)}])["y"].tolist()
    [0, 1]
    """
    layouts = [{key: (array.dtype, array.shape) for key, array in r.items()} for r in replicas]
    for i, layout in zip(runs[1:], layouts[1:], strict=True):
        require_same(name, (runs[0], layouts[0]), (i, layout))
    return {key: np.stack([columns[key] for columns in replicas]) for key in layouts[0]}


def require_same(name: str, first: tuple[int, Layout], second: tuple[int, Layout]) -> None:
    """Raise unless two runs have the same columns; strings may differ in length.

    >>> number, text = np.dtype(float), np.dtype("U3")
    >>> require_same("coin", (0, {"y": (number, ())}), (1, {"y": (text, ())}))
    Traceback (most recent call last):
    bayescontrol.lab.experiment.ExperimentFailed: coin: run 1 has columns {'y': '<U3 ()'}, run 0 ...
    """
    if comparable(first[1]) != comparable(second[1]):
        layout_1, layout_2 = (
            {name: f"{dtype} {shape}" for name, (dtype, shape) in layout.items()}
            for _, layout in (first, second)
        )
        raise ExperimentFailed(
            f"{name}: run {second[0]} has columns {layout_2}, run {first[0]} has {layout_1}; "
            "every run must return the same names, shapes and types"
        )


def comparable(layout: Layout) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return types and shapes as text and tuples, with one type for strings of any length."""
    kinds = {"U": "text", "S": "bytes"}
    return {name: (kinds.get(t.kind, str(t)), shape) for name, (t, shape) in layout.items()}


def places(wanted: range, runs: range) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Return a mask of the wanted `runs`, and the row of each wanted run in the result.

    >>> inside, rows = places(range(0, 10, 2), range(3, 7))
    >>> inside.tolist(), rows.tolist()
    ([False, True, False, True], [2, 3])
    """
    numbers = np.arange(runs.start, runs.stop, runs.step)
    offsets = numbers - wanted.start
    is_wanted = (offsets >= 0) & (numbers < wanted.stop) & (offsets % wanted.step == 0)
    return is_wanted, offsets[is_wanted] // wanted.step


def missing(wanted: range, sources: Iterable[RowSource]) -> list[range]:
    """Return the wanted runs that no source has.

    >>> missing(range(10), [RowsInMemory(range(0, 10, 2), {}), RowsInMemory(range(3), {})])
    [range(3, 10, 2)]
    """
    found = np.zeros(len(wanted), dtype=np.bool_)
    for source in sources:
        found[places(wanted, source.runs)[1]] = True
    return progressions([wanted[row] for row in np.flatnonzero(~found).tolist()])


def progressions(runs: Sequence[int]) -> list[range]:
    """Split increasing numbers into few arithmetic progressions.

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
        found.append(range(runs[start], runs[end - 1] + 1, step))
        start = end
    return found


def format_runs(parts: Iterable[range]) -> str:
    """Format progressions of run numbers.

    >>> format_runs([range(10), range(12, 21, 2), range(30, 31)])
    '0 to 9, 12 to 20 by 2, 30'
    """
    texts = []
    for runs in parts:
        step = f" by {runs.step}" if runs.step > 1 else ""
        texts.append(f"{runs[0]} to {runs[-1]}{step}" if len(runs) > 1 else f"{runs[0]}")
    return ", ".join(texts)


def span(runs: range) -> tuple[int, int, int]:
    """Return a progression as (first, last + 1, step), the same for equal progressions.

    >>> span(range(0, 9, 2)) == span(range(0, 10, 2)) == (0, 9, 2)
    True
    """
    return (runs[0], runs[-1] + 1, runs.step if len(runs) > 1 else 1)
