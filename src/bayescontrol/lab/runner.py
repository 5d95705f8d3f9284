"""Run replicas on one core or on many, with the same bytes as result.

    columns[name][i] = run(settings, i)[name],   i = 0 .. runs - 1

Each replica is a pure function of the settings and its number, and results are stacked in the order
of the runs. Therefore the number of workers, the order of arrival and the grouping of runs do not
change the results. With a store, finished groups are written to disk as they arrive, and runs on
disk are not run again.

    group size = target / s,   s the measured seconds per replica,
    target     = 1 s, or 1 % of the elapsed time, up to a minute

The cost of sending and storing a group is then negligible, a kill loses a second or 1 % of the
work, and a long job does not fill a folder with files. A group is also bounded in bytes, grows at
most fourfold at a time, and towards the end leaves runs for every worker.
"""

import math
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

from bayescontrol.errors import BayesControlError
from bayescontrol.lab.columns import RowsInMemory, assemble, stack
from bayescontrol.lab.experiment import Columns, Experiment, ExperimentFailed, Score, failures_of
from bayescontrol.lab.manifest import RunsProvenance
from bayescontrol.lab.parallel import unordered, worker_count
from bayescontrol.lab.progress import Progress, Silent
from bayescontrol.lab.provenance import Provenance, provenance_here
from bayescontrol.lab.settings import InvalidSettings
from bayescontrol.lab.store import ResultStore

S = TypeVar("S")

#: Seconds that a group should take: at least, as a share of the elapsed time, and at most.
_LEAST_SECONDS, _SHARE_OF_TIME, _MOST_SECONDS = 1.0, 0.01, 60.0
#: Limits of a group: its bytes, and its runs as a multiple of the largest group so far.
_MOST_BYTES: Final = 1 << 25
_GROWTH: Final = 4
_CLOCK_STEP: Final = 1e-7  # seconds; used where a coarse clock measures 0


@dataclass(frozen=True)
class Result:
    """An experiment that has been run and scored; `provenance` states which code ran which runs."""

    experiment: Experiment[Any]
    settings: Any
    columns: Columns
    score: Score
    provenance: Sequence[RunsProvenance] = ()


def conduct(
    experiment: Experiment[S],
    settings: S,
    workers: int | None = 1,
    progress: Progress | None = None,
    *,
    store: ResultStore | None = None,
) -> Result:
    """Run all replicas and score them: score(settings, stack_i run(settings, i)).

    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     seed: int = 0
    ...     runs: int = 3
    >>> twice = Experiment(
    ...     "twice", "2 i", Settings, Settings(), Settings(),
    ...     run=lambda settings, i: {"y": np.array(2 * i)},
    ...     score=lambda settings, columns: Score(()),
    ...     figures=lambda settings, columns: {},
    ... )
    >>> conduct(twice, Settings()).columns["y"].tolist()
    [0, 2, 4]
    """
    columns = run_replicas(experiment, settings, workers, progress, store=store)
    return score(experiment, settings, columns)


def score(experiment: Experiment[S], settings: S, columns: Columns) -> Result:
    """Score the columns of an experiment."""
    with failures_of(experiment.name, "score", settings):
        scored = experiment.score(settings, columns)
        if settings == experiment.quick:
            left_out = experiment.full_only
            decided = tuple(claim for claim in scored.claims if claim.name not in left_out)
            scored = replace(scored, claims=decided, left_out=left_out)
    return Result(experiment, settings, columns, scored)


def run_replicas(
    experiment: Experiment[S],
    settings: S,
    workers: int | None = 1,
    progress: Progress | None = None,
    *,
    store: ResultStore | None = None,
) -> Columns:
    """Run all replicas of an experiment and stack them: the first axis of a column is the run.

    Replicas run one after the other, or in `workers` processes. With `workers=None` they run on the
    backend that `joblib.parallel_config` has set, such as Dask. Runs already in the `store` are not
    run again.

    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     seed: int = 0
    ...     runs: int = 3
    >>> squares = Experiment(
    ...     "squares", "i^2", Settings, Settings(), Settings(),
    ...     run=lambda settings, i: {"y": np.array(i * i)},
    ...     score=lambda settings, columns: Score(()),
    ...     figures=lambda settings, columns: {},
    ... )
    >>> run_replicas(squares, Settings())["y"].tolist()
    [0, 1, 4]
    """
    wanted = wanted_runs(experiment, settings)
    if workers is not None and workers < 1:
        raise InvalidSettings(f"workers={workers}: there must be at least one worker")
    job = Job(experiment.name, experiment.run, settings)
    missing = [wanted] if store is None else store.missing(wanted)
    in_memory, sizer, done = list[RowsInMemory](), GroupSizer(), 0
    total = sum(map(len, missing))
    if total:
        display = progress or Silent()
        display.advance(0, total)
        if workers is not None:
            workers = min(workers, total)
        size = partial(sizer.size, workers=worker_count(workers))
        with closing(_run_groups(job, split_runs(missing, size), workers)) as groups:
            for group in groups:
                if group.runs:
                    if store is None:
                        in_memory.append(RowsInMemory(group.runs, group.columns))
                    else:
                        store.put(group.runs, group.columns, group.provenance)
                if group.error is not None:
                    raise group.error from group.cause
                nbytes = sum(array.nbytes for array in group.columns.values())
                sizer.record(len(group.runs), group.seconds, nbytes)
                done += len(group.runs)
                display.advance(done, total)
    return assemble(experiment.name, wanted, in_memory) if store is None else store.finish(wanted)


def wanted_runs(experiment: Experiment[S], settings: S) -> range:
    """Return 0 .. runs - 1; raise if there are none.

    >>> from types import SimpleNamespace as Some
    >>> wanted_runs(Some(name="chain"), Some(runs=10))
    range(0, 10)
    """
    runs = int(getattr(settings, "runs", 0))
    if runs < 1:
        raise InvalidSettings(f"runs={runs}: {experiment.name} needs at least one run")
    return range(runs)


class Group(NamedTuple):
    """Replicas that were run together, the seconds they took, and the error that ended them."""

    runs: range
    columns: Columns
    seconds: float
    provenance: Provenance
    error: BaseException | None = None
    cause: BaseException | None = None


class WorkerTraceback(Exception):
    """The traceback of an error in a worker, as text: other exceptions may not be picklable."""


@dataclass(frozen=True)
class Job(Generic[S]):
    """The part of an experiment that a worker needs; job(runs) runs some replicas.

    >>> job = Job("squares", lambda settings, i: {"y": np.array(i * i)}, None)
    >>> job(range(1, 4)).columns["y"].tolist()
    [1, 4, 9]
    """

    name: str
    run: Callable[[S, int], Columns]
    settings: S

    def __call__(self, runs: range) -> Group:
        """Run some replicas, one after the other; keep those before an error or Ctrl-C."""
        provenance, replicas = provenance_here(self.run), list[Columns]()
        start = time.perf_counter()
        error = cause = None
        try:
            for i in runs:
                replicas.append(self.replica(i))
        except (ExperimentFailed, KeyboardInterrupt) as failure:
            error = failure.with_traceback(None)
            if failure.__cause__ is not None:
                text = "".join(traceback.format_exception(failure.__cause__))
                cause = WorkerTraceback(f"\n{text}")
        runs = runs[: len(replicas)]
        columns = stack(self.name, runs, replicas) if replicas else {}
        return Group(runs, columns, time.perf_counter() - start, provenance, error, cause)

    def replica(self, i: int) -> Columns:
        """Run one replica; errors name the experiment and the run."""
        with failures_of(self.name, f"run {i}", self.settings):
            returned = self.run(self.settings, i)
            columns = {name: np.asarray(value) for name, value in returned.items()}
        for name, array in columns.items():
            if array.dtype.hasobject or array.dtype.names is not None:
                raise ExperimentFailed(
                    f"{self.name}: column {name!r} of run {i} holds "
                    f"{'records' if array.dtype.names else 'Python objects'}; return plain arrays"
                )
        return columns


class GroupSizer:
    """Chooses the size of the next group from the time of earlier ones.

    >>> sizer = GroupSizer(clock=lambda: 0.0)
    >>> sizer.size(left=1000, workers=2)
    1
    >>> sizer.record(runs=1, seconds=0.1, nbytes=80)
    >>> sizer.size(left=1000, workers=2), sizer.size(left=6, workers=2)
    (4, 2)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._start = clock, clock()
        # Of one run: seconds (0 before the first group) and bytes; the most runs in a group so far.
        self._seconds, self._nbytes, self._largest = 0.0, 1.0, 0

    def record(self, runs: int, seconds: float, nbytes: int) -> None:
        """Record the time and the size of a finished group."""
        latest = max(seconds / runs, _CLOCK_STEP)
        # The first replicas load and compile: a geometric mean forgets them quickly.
        self._seconds = math.sqrt(self._seconds * latest) if self._seconds else latest
        self._nbytes = max(nbytes / runs, 1.0)
        self._largest = max(self._largest, runs)

    def size(self, left: int, workers: int) -> int:
        """Return the size of the next group when `left` runs are left; the first has one run."""
        if not self._largest:
            return 1
        by_time, by_size = self.target() / self._seconds, _MOST_BYTES / self._nbytes
        # Leave at least two groups for every worker, so that none is idle for long at the end.
        share = left if workers == 1 else math.ceil(left / (2 * workers))
        return max(1, int(min(by_time, by_size, _GROWTH * self._largest, share)))

    def target(self) -> float:
        """Return the seconds that a group should take now."""
        elapsed = self._clock() - self._start
        return min(max(_LEAST_SECONDS, _SHARE_OF_TIME * elapsed), _MOST_SECONDS)


def split_runs(runs: Sequence[range], size: Callable[[int], int]) -> Iterator[range]:
    """Split runs into groups of size(left); each size is computed when the group is needed.

    >>> list(split_runs([range(3), range(8, 20)], size=lambda left: 2 if left > 10 else 99))
    [range(0, 2), range(2, 3), range(8, 10), range(10, 20)]
    """
    left = sum(map(len, runs))
    for rest in runs:
        while rest:
            group = rest[: size(left)]
            yield group
            rest = rest[len(group) :]
            left -= len(group)


def _run_groups(
    job: Job[S], tasks: Iterator[range], workers: int | None
) -> Generator[Group, None, None]:
    """Run groups of runs; name the experiment in errors of the workers."""
    try:
        yield from unordered(job, tasks, workers)
    except BayesControlError:
        raise
    except Exception as error:  # joblib and its backends may raise anything
        raise ExperimentFailed(
            f"{job.name}: a worker died ({type(error).__name__}: {error}). It was killed, ran out "
            f"of memory, or cannot import {job.run.__module__}; try one worker"
        ) from error
