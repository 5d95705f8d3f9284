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
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from bayescontrol.lab.columns import RowsInMemory, assemble, stack
from bayescontrol.lab.executors import Dask, Processes, available_cores, notify_compilation
from bayescontrol.lab.experiment import Columns, Experiment, ExperimentFailed, Score, failures_of
from bayescontrol.lab.manifest import RunsProvenance
from bayescontrol.lab.provenance import Provenance, provenance_here
from bayescontrol.lab.settings import InvalidSettings
from bayescontrol.lab.store import ResultStore, Shard

S = TypeVar("S")

#: Seconds that a group should take: at least, as a share of the elapsed time, and at most.
_LEAST_SECONDS, _SHARE_OF_TIME, _MOST_SECONDS = 1.0, 0.01, 60.0
_MOST_BYTES: Final = 1 << 25
_GROWTH: Final = 4
#: Our own executors: they know their width and report compilation.
_OUR_KINDS: Final = (Processes, Dask)
_CLOCK_STEP: Final = 1e-7  # seconds; used where a coarse clock measures 0


class Progress(Protocol):
    """Receives the progress of replicas.

    `advance` is called with (0, total) at the start and whenever replicas are done; `compiling` is
    called once if a kernel has to be compiled. Replicas already in a store are not counted.
    """

    def advance(self, done: int, total: int, /) -> None: ...
    def compiling(self) -> None: ...


class Silent:
    """Ignores the progress."""

    def advance(self, done: int, total: int, /) -> None: ...
    def compiling(self) -> None: ...


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
    workers: int = 1,
    progress: Progress | None = None,
    *,
    executor: Executor | None = None,
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
    columns = run_replicas(experiment, settings, workers, progress, executor=executor, store=store)
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
    workers: int = 1,
    progress: Progress | None = None,
    *,
    executor: Executor | None = None,
    store: ResultStore | None = None,
    shard: Shard | None = None,
) -> Columns:
    """Run all replicas of an experiment and stack them: the first axis of a column is the run.

    Replicas run one after the other, or in parallel: in `workers` processes if `workers` > 1, or
    on any `executor`, which stays open. Runs already in the `store` are not run again. With a
    `shard`, only its part of the runs is run.

    >>> from concurrent.futures import ThreadPoolExecutor
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
    >>> with ThreadPoolExecutor() as threads:
    ...     run_replicas(squares, Settings(), executor=threads)["y"].tolist()
    [0, 1, 4]
    """
    wanted = wanted_runs(experiment, settings, shard)
    if workers < 1:
        raise InvalidSettings(f"workers={workers}: there must be at least one worker")
    job = Job(experiment.name, experiment.run, settings)
    sink = _Memory(experiment.name) if store is None else store
    queue = RunQueue(sink.missing(wanted))
    if queue.left:
        display = progress or Silent()
        display.advance(0, queue.left)
        if executor is None and min(workers, queue.left) == 1:
            _run_serially(job, queue, sink, display)
        else:
            _require_picklable(job, executor)
            pool = nullcontext(executor) if executor else Processes(min(workers, queue.left))
            with pool as active_executor:
                _run_on_executor(active_executor, job, queue, sink, display)
    return sink.finish(wanted)


def wanted_runs(experiment: Experiment[S], settings: S, shard: Shard | None = None) -> range:
    """Return 0 .. runs - 1, or the shard's part of them.

    >>> from types import SimpleNamespace as Some
    >>> wanted_runs(Some(name="chain"), Some(runs=10), Shard(2, 4))
    range(1, 10, 4)
    """
    runs = int(getattr(settings, "runs", 0))
    if runs < 1:
        raise InvalidSettings(f"runs={runs}: {experiment.name} needs at least one run")
    return range(runs) if shard is None else shard.of(runs)


class Group(NamedTuple):
    """Replicas that were run together, and the seconds they took."""

    runs: range
    columns: Columns
    seconds: float
    provenance: Provenance


@dataclass(frozen=True)
class Job(Generic[S]):
    """The part of an experiment that a worker needs; job(runs) runs some replicas.

    >>> job = Job("squares", lambda settings, i: {"y": np.array(i * i)}, None)
    >>> job(range(1, 6, 2)).columns["y"].tolist()
    [1, 9, 25]
    """

    name: str
    run: Callable[[S, int], Columns]
    settings: S

    def __call__(self, runs: range) -> Group:
        """Run some replicas, one after the other."""
        provenance = provenance_here(self.run)
        start = time.perf_counter()
        columns = stack(self.name, runs, [self.replica(i) for i in runs])
        return Group(runs, columns, time.perf_counter() - start, provenance)

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
        self._seconds, self._nbytes, self._largest = 0.0, 1.0, 0

    def record(self, runs: int, seconds: float, nbytes: int) -> None:
        """Record the time and the size of a finished group."""
        latest = max(seconds / runs, _CLOCK_STEP)
        # The first replicas load and compile: a geometric mean forgets them quickly.
        self._seconds = math.sqrt(self._seconds * latest) if self._seconds else latest
        self._nbytes = max(nbytes / runs, 1.0)
        self._largest = max(self._largest, runs)

    def size(self, left: int, workers: int) -> int:
        """Return the size of the next group when `left` runs are left."""
        if not self._largest:
            return 1
        by_time, by_size = self.target() / self._seconds, _MOST_BYTES / self._nbytes
        largest = min(by_time, by_size, _GROWTH * self._largest, math.ceil(left / (2 * workers)))
        return max(1, int(largest))

    def target(self) -> float:
        """Return the seconds that a group should take now."""
        elapsed = self._clock() - self._start
        return min(max(_LEAST_SECONDS, _SHARE_OF_TIME * elapsed), _MOST_SECONDS)

    def is_full(self, seconds: float, nbytes: int) -> bool:
        """Return whether a group of this duration and size is large enough."""
        return seconds >= self.target() or nbytes >= _MOST_BYTES


class RunQueue:
    """Runs that have not been started.

    >>> queue = RunQueue([range(3), range(8, 20, 4)])
    >>> queue.take(2), queue.take(2), queue.take(9), queue.left, queue.total
    (range(0, 2), range(2, 3), range(8, 20, 4), 0, 6)
    """

    def __init__(self, runs: Sequence[range]) -> None:
        self._runs = list(reversed(runs))
        self.left = self.total = sum(map(len, runs))

    def take(self, count: int) -> range:
        """Remove and return at most `count` runs, as one progression."""
        first = self._runs.pop()
        if len(first) > count:
            self._runs.append(first[count:])
        self.left -= len(first[:count])
        return first[:count]


class _Memory:
    """Collects groups in memory; used instead of a store."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._groups: list[RowsInMemory] = []

    def missing(self, wanted: range) -> list[range]:
        return [wanted]

    def put(self, runs: range, columns: Columns, provenance: Provenance) -> None:
        self._groups.append(RowsInMemory(runs, columns))

    def finish(self, wanted: range) -> Columns:
        return assemble(self._name, wanted, self._groups)


_Sink: TypeAlias = _Memory | ResultStore


def _run_serially(job: Job[S], queue: RunQueue, sink: _Sink, progress: Progress) -> None:
    """Run all queued runs one after the other, and put them into `sink` in groups."""
    sizer, provenance, done = GroupSizer(), provenance_here(job.run), 0
    with notify_compilation(progress.compiling):
        while queue.left:
            runs = queue.take(queue.left)
            while runs:
                batch: list[Columns] = []
                nbytes, start = 0, time.perf_counter()
                try:
                    for i in runs:
                        batch.append(job.replica(i))
                        done += 1
                        progress.advance(done, queue.total)
                        nbytes += _nbytes(batch[-1])
                        if sizer.is_full(time.perf_counter() - start, nbytes):
                            break
                finally:  # keep finished replicas also after an error or Ctrl-C
                    if batch:
                        group = runs[: len(batch)]
                        sink.put(group, stack(job.name, group, batch), provenance)
                runs = runs[len(batch) :]


def _run_on_executor(
    executor: Executor, job: Job[S], queue: RunQueue, sink: _Sink, progress: Progress
) -> None:
    """Run all queued runs in groups on an executor, and put the results into `sink`."""
    sizer, done, is_announced = GroupSizer(), 0, False
    running: set[Future[Group]] = set()
    try:
        while queue.left or running:
            with _named_errors(job):
                # A cluster may grow, so the width is read each time.
                width = executor.width if isinstance(executor, _OUR_KINDS) else available_cores()
                while queue.left and len(running) < 2 * width:  # queue two groups per worker
                    runs = queue.take(sizer.size(queue.left, width))
                    running.add(executor.submit(job, runs))
            ready, running = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
            if not is_announced and isinstance(executor, _OUR_KINDS) and executor.compiling():
                is_announced = True
                progress.compiling()
            # Store finished groups before an error ends the loop.
            for future in sorted(ready, key=lambda f: f.cancelled() or f.exception() is not None):
                with _named_errors(job):
                    group = future.result()
                sink.put(group.runs, group.columns, group.provenance)
                sizer.record(len(group.runs), group.seconds, _nbytes(group.columns))
                done += len(group.runs)
                progress.advance(done, queue.total)
    finally:
        # `Processes` has already queued every group; cancelling would break its shutdown.
        if not isinstance(executor, Processes):
            for future in running:
                future.cancel()


def _nbytes(columns: Columns) -> int:
    return sum(array.nbytes for array in columns.values())


@contextmanager
def _named_errors(job: Job[S]) -> Iterator[None]:
    """Name the experiment in errors of workers and executors."""
    try:
        yield
    except ExperimentFailed:
        raise
    except BrokenExecutor as error:
        raise ExperimentFailed(
            f"{job.name}: a worker process died: killed, out of memory, or "
            f"unable to import {job.run.__module__}; try one worker"
        ) from error
    except Exception as error:  # an executor may raise anything
        raise ExperimentFailed(
            f"{job.name}: the executor failed with {type(error).__name__}: {error}; "
            f"its workers must be able to import {job.run.__module__}"
        ) from error


def _require_picklable(job: Job[S], executor: Executor | None) -> None:
    if executor is not None and not isinstance(executor, _OUR_KINDS):
        return  # other executors, such as threads, may not need to pickle
    try:
        pickle.dumps(job)
    except Exception as error:  # pickle raises AttributeError and TypeError as well as its own
        raise ExperimentFailed(
            f"{job.name}: run or settings cannot be sent to another process ({error}); "
            "define them at the top of a module, or use one worker"
        ) from error
