"""Replicas, on one core or on many: the same bytes.

    columns[name][i] = run(settings, i)[name],   i = 0 .. runs - 1

Each replica is a pure function of the settings and its number, and results are stacked in
the order of the runs; so neither the workers nor the order of arrival can show, nor how runs
were grouped to travel. With a store, finished groups go to disk as they come, and what is
there already is not run again.
"""

import pickle
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from bayescontrol.lab.assembly import Held, assemble
from bayescontrol.lab.compilation import announced
from bayescontrol.lab.executors import Announcing, Processes, Wide, cores
from bayescontrol.lab.experiment import Columns, Experiment, Score
from bayescontrol.lab.pace import Pace, Todo
from bayescontrol.lab.provenance import Made, made_here
from bayescontrol.lab.replicas import ExperimentFailed, Group, Job, stacked
from bayescontrol.lab.settings import InvalidSettings
from bayescontrol.lab.shards import Shard
from bayescontrol.lab.store import ResultStore

S = TypeVar("S")


class Progress(Protocol):
    """Who wants to know how far the replicas are.

    `advance` is called with (0, total) at the start and as replicas are done; `compiling` once,
    if a kernel has to be compiled. Replicas that a store has are not counted.

    >>> progress: Progress = Silent()
    """

    def advance(self, done: int, total: int, /) -> None: ...
    def compiling(self) -> None: ...


class Silent:
    """Nobody wants to know.

    >>> Silent().advance(1, 10)
    """

    def advance(self, done: int, total: int, /) -> None: ...
    def compiling(self) -> None: ...


@dataclass(frozen=True)
class Result:
    """An experiment that has been run and scored.

    >>> [field for field in Result.__dataclass_fields__]
    ['experiment', 'settings', 'columns', 'score']
    """

    experiment: Experiment[Any]
    settings: Any
    columns: Columns
    score: Score


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

    >>> import numpy as np
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
    """What the columns say: claims and tables.

    >>> from types import SimpleNamespace as Some
    >>> score(Some(score=lambda settings, columns: Score(())), None, {}).score.claims
    ()
    """
    try:
        scored = experiment.score(settings, columns)
    except Exception as error:
        raise ExperimentFailed(
            f"{experiment.name}: score raised {type(error).__name__}: {error}, with {settings}"
        ) from error
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
    """All replicas of an experiment, stacked: the first axis of each column is the run.

    They run one after the other; with `workers` > 1 in as many processes; or on any `executor`,
    which stays open. With a `store`, runs that it has are not run again. A `shard` is a part
    of the runs.

    >>> import numpy as np
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
    sink: _Sink = _Memory(experiment.name) if store is None else store
    todo = Todo(sink.missing(wanted))
    if todo.left:
        told = progress or Silent()
        told.advance(0, todo.left)
        if executor is None and min(workers, todo.left) == 1:
            _serially(job, todo, sink, told)
        else:
            _require_travel(job, executor)
            with nullcontext(executor) if executor else Processes(min(workers, todo.left)) as who:
                _spread(who, job, todo, sink, told)
    return sink.finish(wanted)


def wanted_runs(experiment: Experiment[S], settings: S, shard: Shard | None = None) -> range:
    """0 .. runs - 1, or the shard's part of them.

    >>> from types import SimpleNamespace as Some
    >>> wanted_runs(Some(name="chain"), Some(runs=10), Shard(2, 4))
    range(1, 10, 4)
    """
    runs = int(getattr(settings, "runs", 0))
    if runs < 1:
        raise InvalidSettings(f"runs={runs}: {experiment.name} needs at least one run")
    return range(runs) if shard is None else shard.of(runs)


class _Sink(Protocol):
    def missing(self, wanted: range) -> list[range]: ...
    def put(self, runs: range, columns: Columns, made: Made) -> None: ...
    def finish(self, wanted: range) -> Columns: ...


class _Memory:
    """Where groups wait when there is no store."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._groups: list[Held] = []

    def missing(self, wanted: range) -> list[range]:
        return [wanted]

    def put(self, runs: range, columns: Columns, made: Made) -> None:
        self._groups.append(Held(runs, columns))

    def finish(self, wanted: range) -> Columns:
        return assemble(self._name, wanted, self._groups)


def _serially(job: Job[S], todo: Todo, sink: _Sink, progress: Progress) -> None:
    pace, made, done = Pace(), made_here(job.run), 0
    with announced(progress.compiling):
        while todo.left:
            runs = todo.take(todo.left)
            while runs:
                batch: list[Columns] = []
                nbytes, start = 0, time.perf_counter()
                try:
                    for i in runs:
                        batch.append(job.replica(i))
                        done += 1
                        progress.advance(done, todo.total)
                        nbytes += sum(array.nbytes for array in batch[-1].values())
                        if pace.is_full(time.perf_counter() - start, nbytes):
                            break
                finally:  # after an error or Ctrl-C as well: what is done is kept
                    if batch:
                        group = runs[: len(batch)]
                        sink.put(group, stacked(job.name, group, batch), made)
                runs = runs[len(batch) :]


def _spread(executor: Executor, job: Job[S], todo: Todo, sink: _Sink, progress: Progress) -> None:
    pace, done, told = Pace(), 0, False
    flying: set[Future[Group]] = set()
    try:
        while todo.left or flying:
            with _named(job):
                width = _width(executor)  # a cluster may grow
                while todo.left and len(flying) < 2 * width:  # one in work, one in the hand
                    runs = todo.take(pace.size(todo.left, width))
                    flying.add(executor.submit(job, runs))
            ready, flying = wait(flying, timeout=0.2, return_when=FIRST_COMPLETED)
            if not told and isinstance(executor, Announcing) and executor.compiling():
                told = True
                progress.compiling()
            for future in sorted(ready, key=_has_failed):  # what is done is kept
                with _named(job):
                    group = future.result()
                sink.put(group.runs, group.columns, group.made)
                pace.learn(len(group.runs), group.seconds, group.nbytes)
                done += len(group.runs)
                progress.advance(done, todo.total)
    finally:
        # Processes have begun what they were given, and a cancelled future trips their clean-up.
        for future in flying if not isinstance(executor, Processes) else ():
            future.cancel()


def _has_failed(future: Future[Group]) -> bool:
    return future.cancelled() or future.exception() is not None


def _width(executor: Executor) -> int:
    return executor.width if isinstance(executor, Wide) else cores()


@contextmanager
def _named(job: Job[S]) -> Iterator[None]:
    """Say of which experiment it was that a worker or an executor failed."""
    try:
        yield
    except ExperimentFailed:
        raise
    except BrokenExecutor as error:
        raise ExperimentFailed(
            f"{job.name}: a worker process died: killed, out of memory, or "
            f"unable to import {job.run.__module__}; try one worker"
        ) from error
    except Exception as error:  # whatever an executor may raise
        raise ExperimentFailed(
            f"{job.name}: the executor failed with {type(error).__name__}: {error}; "
            f"its workers must be able to import {job.run.__module__}"
        ) from error


def _require_travel(job: Job[S], executor: Executor | None) -> None:
    if executor is not None and not isinstance(executor, Wide):
        return  # threads, say, need nothing to travel
    try:
        pickle.dumps(job)
    except Exception as error:  # pickle raises AttributeError and TypeError as well as its own
        raise ExperimentFailed(
            f"{job.name}: run or settings cannot be sent to another process ({error}); "
            "define them at the top of a module, or use one worker"
        ) from error
