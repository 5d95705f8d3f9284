"""Replicas, on one core or on many: the same bytes.

    columns[name][i] = run(settings, i)[name],   i = 0 .. runs - 1

Each replica is a pure function of the settings and its number, and results are stacked in
the order of the runs; so neither the number of workers nor the order of arrival can show.
Runs travel in groups, some sixteen for each worker: few enough that the cost of sending
vanishes, enough that workers finish together.
"""

import multiprocessing
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from bayescontrol.errors import BayesControlError
from bayescontrol.lab.compilation import announced
from bayescontrol.lab.experiment import Columns, Experiment, Outcome
from bayescontrol.lab.settings import InvalidSettings

__all__ = ["ExperimentFailed", "Progress", "Result", "Silent", "conduct", "run_replicas"]

S = TypeVar("S")
_GROUPS_PER_WORKER: Final = 16


class ExperimentFailed(BayesControlError, RuntimeError):
    """A replica or a score raised, or a worker died; the original error is its cause.

    >>> issubclass(ExperimentFailed, RuntimeError)
    True
    """


class Progress(Protocol):
    """Who wants to know how far the replicas are.

    `advance` is called with (0, total) at the start and as replicas are done; `compiling` once,
    if a kernel has to be compiled.

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
    ['experiment', 'settings', 'columns', 'outcome']
    """

    experiment: Experiment[Any]
    settings: Any
    columns: Columns
    outcome: Outcome


def conduct(
    experiment: Experiment[S], settings: S, workers: int = 1, progress: Progress | None = None
) -> Result:
    """Run and score: outcome = score(settings, stack_i run(settings, i)).

    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     seed: int = 0
    ...     runs: int = 3
    >>> twice = Experiment(
    ...     "twice", "2 i", Settings, Settings(), Settings(),
    ...     run=lambda settings, i: {"y": np.array(2 * i)},
    ...     score=lambda settings, columns: Outcome(()),
    ...     figures=lambda settings, columns: {},
    ... )
    >>> conduct(twice, Settings()).columns["y"].tolist()
    [0, 2, 4]
    """
    columns = run_replicas(experiment, settings, workers, progress)
    try:
        outcome = experiment.score(settings, columns)
    except Exception as error:
        raise ExperimentFailed(
            f"{experiment.name}: score raised {type(error).__name__}: {error}, with {settings}"
        ) from error
    return Result(experiment, settings, columns, outcome)


def run_replicas(
    experiment: Experiment[S], settings: S, workers: int = 1, progress: Progress | None = None
) -> Columns:
    """All replicas of an experiment, stacked: the first axis of each column is the run.

    With `workers` > 1 they run in as many processes, which import the experiment's module
    anew: a script that calls this needs the usual `if __name__ == "__main__"`.

    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     seed: int = 0
    ...     runs: int = 3
    >>> squares = Experiment(
    ...     "squares", "i^2", Settings, Settings(), Settings(),
    ...     run=lambda settings, i: {"y": np.array(i * i)},
    ...     score=lambda settings, columns: Outcome(()),
    ...     figures=lambda settings, columns: {},
    ... )
    >>> run_replicas(squares, Settings())["y"].tolist()
    [0, 1, 4]
    """
    runs = int(getattr(settings, "runs", 0))
    if runs < 1:
        raise InvalidSettings(f"runs={runs}: {experiment.name} needs at least one run")
    if workers < 1:
        raise InvalidSettings(f"workers={workers}: there must be at least one worker")
    told = progress or Silent()
    told.advance(0, runs)
    if min(workers, runs) == 1:
        replicas = _serially(experiment, settings, runs, told)
    else:
        replicas = _in_processes(experiment, settings, runs, min(workers, runs), told)
    return _stack(experiment.name, replicas)


def _replica(name: str, run: Callable[[S, int], Columns], settings: S, i: int) -> Columns:
    try:
        columns = {key: np.asarray(value) for key, value in run(settings, i).items()}
    except Exception as error:
        raise ExperimentFailed(
            f"{name}: run {i} raised {type(error).__name__}: {error}, with {settings}"
        ) from error
    for key, array in columns.items():
        if array.dtype.hasobject:
            raise ExperimentFailed(
                f"{name}: column {key!r} of run {i} holds Python objects; return plain arrays"
            )
    return columns


def _serially(
    experiment: Experiment[S], settings: S, runs: int, progress: Progress
) -> list[Columns]:
    replicas = []
    with announced(progress.compiling):
        for i in range(runs):
            replicas.append(_replica(experiment.name, experiment.run, settings, i))
            progress.advance(i + 1, runs)
    return replicas


def _in_processes(
    experiment: Experiment[S], settings: S, runs: int, workers: int, progress: Progress
) -> list[Columns]:
    try:
        pickle.dumps((experiment.run, settings))
    except Exception as error:  # pickle raises AttributeError and TypeError as well as its own
        raise ExperimentFailed(
            f"{experiment.name}: run or settings cannot be sent to another process ({error}); "
            "define them at the top of a module, or use one worker"
        ) from error
    size = -(-runs // (workers * _GROUPS_PER_WORKER))
    groups = [range(start, min(start + size, runs)) for start in range(0, runs, size)]
    context = multiprocessing.get_context("spawn")
    compiling = context.Event()
    with _pool(ProcessPoolExecutor(workers, context, _prepare, (compiling,))) as pool:
        with _interrupts_ignored():
            order = {
                pool.submit(_group, experiment.name, experiment.run, settings, group): group
                for group in groups
            }
        replicas: dict[int, Columns] = {}
        waiting, told = set(order), False
        while waiting:
            done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
            if compiling.is_set() and not told:
                told = True
                progress.compiling()
            for future in done:
                try:
                    replicas.update(zip(order[future], future.result(), strict=True))
                except BrokenProcessPool as error:
                    raise ExperimentFailed(
                        f"{experiment.name}: a worker process died: killed, out of memory, or "
                        f"unable to import {experiment.run.__module__}; try one worker"
                    ) from error
                progress.advance(len(replicas), runs)
    return [replicas[i] for i in range(runs)]


@contextmanager
def _pool(pool: ProcessPoolExecutor) -> Iterator[ProcessPoolExecutor]:
    """Wait for the workers at the end, but not after an error or Ctrl-C."""
    others = set(multiprocessing.active_children())
    try:
        yield pool
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Processes started here ignore Ctrl-C from birth: their parent stops them, quietly."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_compiling: Event | None = None


def _prepare(compiling: Event) -> None:
    global _compiling  # an initializer has no other way to leave something behind
    _compiling = compiling
    sys.stdout = sys.stderr  # standard output belongs to the parent, for its JSON


def _group(name: str, run: Callable[[S, int], Columns], settings: S, group: range) -> list[Columns]:
    with announced(_compiling.set) if _compiling else nullcontext():
        return [_replica(name, run, settings, i) for i in group]


def _stack(name: str, replicas: Sequence[Columns]) -> Columns:
    shapes = {key: array.shape for key, array in replicas[0].items()}
    for i, columns in enumerate(replicas):
        found = {key: array.shape for key, array in columns.items()}
        if found != shapes:
            raise ExperimentFailed(
                f"{name}: run {i} has columns {found}, run 0 has {shapes}; "
                "every run must return the same names and shapes"
            )
    return {key: np.stack([columns[key] for columns in replicas]) for key in shapes}
