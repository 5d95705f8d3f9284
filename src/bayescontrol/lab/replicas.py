"""One replica, and a group of them: what travels to a worker and what comes back.

    group(runs) = stack_{i in runs} run(settings, i)

Grouping cannot show in the results: every replica must return the same names, shapes and types
(strings may differ in length), so that stacking groups is stacking replicas.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from bayescontrol.errors import BayesControlError
from bayescontrol.lab.experiment import Columns
from bayescontrol.lab.pieces import Layout
from bayescontrol.lab.provenance import Made, made_here

S = TypeVar("S")


class ExperimentFailed(BayesControlError, RuntimeError):
    """A replica or a score raised, or a worker died; the original error is its cause.

    >>> issubclass(ExperimentFailed, RuntimeError)
    True
    """


@dataclass(frozen=True)
class Group:
    """Replicas that were run together, and how long they took.

    >>> Group(range(2), {"y": np.arange(2)}, 0.1, Made({}, {}, "")).nbytes
    16
    """

    runs: range
    columns: Columns
    seconds: float
    made: Made

    @property
    def nbytes(self) -> int:
        """The size of the columns."""
        return sum(array.nbytes for array in self.columns.values())


@dataclass(frozen=True)
class Job(Generic[S]):
    """What a worker needs: job(runs) runs them, job.replica(i) one of them.

    >>> job = Job("squares", lambda settings, i: {"y": np.array(i * i)}, None)
    >>> job(range(1, 6, 2)).columns["y"].tolist()
    [1, 9, 25]
    """

    name: str
    run: Callable[[S, int], Columns]
    settings: S

    def __call__(self, runs: range) -> Group:
        """Run some replicas, one after the other."""
        start = time.perf_counter()
        columns = stacked(self.name, runs, [self.replica(i) for i in runs])
        return Group(runs, columns, time.perf_counter() - start, made_here(self.run))

    def replica(self, i: int) -> Columns:
        """Run one replica; what goes wrong in it is named."""
        try:
            columns = {
                name: np.asarray(value) for name, value in self.run(self.settings, i).items()
            }
        except Exception as error:
            raise ExperimentFailed(
                f"{self.name}: run {i} raised {type(error).__name__}: {error}, with {self.settings}"
            ) from error
        for name, array in columns.items():
            if array.dtype.hasobject or array.dtype.names is not None:
                raise ExperimentFailed(
                    f"{self.name}: column {name!r} of run {i} holds "
                    f"{'records' if array.dtype.names else 'Python objects'}; return plain arrays"
                )
        return columns


def stacked(name: str, runs: Sequence[int], replicas: Sequence[Columns]) -> Columns:
    """The replicas of an experiment on top of one another, once they are known to fit.

    >>> stacked("squares", range(2), [{"y": np.array(0)}, {"y": np.array(1)}])["y"].tolist()
    [0, 1]
    """
    layouts = [{key: (array.dtype, array.shape) for key, array in r.items()} for r in replicas]
    for i, layout in zip(runs[1:], layouts[1:], strict=True):
        require_same(name, (runs[0], layouts[0]), (i, layout))
    return {key: np.stack([columns[key] for columns in replicas]) for key in layouts[0]}


def require_same(name: str, one: tuple[int, Layout], other: tuple[int, Layout]) -> None:
    """Raise unless two runs have the same columns; strings may differ in length.

    >>> number, text = np.dtype(float), np.dtype("U3")
    >>> require_same("coin", (0, {"y": (number, ())}), (1, {"y": (text, ())}))
    Traceback (most recent call last):
    bayescontrol.lab.replicas.ExperimentFailed: coin: run 1 has columns {'y': '<U3 ()'}, run 0 ...
    """
    if _comparable(one[1]) != _comparable(other[1]):
        (i, first), (j, second) = one, other
        raise ExperimentFailed(
            f"{name}: run {j} has columns {_shown(second)}, run {i} has {_shown(first)}; "
            "every run must return the same names, shapes and types"
        )


def _comparable(layout: Layout) -> dict[str, Any]:
    return {
        name: (dtype.kind if dtype.kind in "US" else dtype, shape)
        for name, (dtype, shape) in layout.items()
    }


def _shown(layout: Layout) -> dict[str, str]:
    return {name: f"{dtype} {shape}" for name, (dtype, shape) in layout.items()}
