"""Parallel runs with joblib: worker processes of this machine (loky), or a Dask cluster.

    workers = 1       this process
    workers = n       n processes of this machine
    workers = None    the backend that `joblib.parallel_config` or `dask_cluster` has set

The output of workers goes to standard error. Workers ignore Ctrl-C, which their parent handles, and
end with their parent.
"""

import copyreg
import logging
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from bayescontrol.errors import BayesControlError, MissingCapability, needs_extra

A = TypeVar("A")
T = TypeVar("T")

#: In seconds: the longest wait for a Dask scheduler and for its first worker, and how often a
#: worker checks whether its parent is alive.
_SCHEDULER_TIMEOUT: Final = 10.0
_WORKER_TIMEOUT: Final = 30.0
_PARENT_POLL: Final = 0.5
#: Seconds that a new worker needs to start, and a thread of loky to queue the first tasks.
_START: Final = 0.1

#: Whether this process, a worker, has run `_settle`.
_settled = False

# The settings of an experiment that is defined in a script are sent to workers with their types.
copyreg.pickle(msgspec.Meta, lambda meta: (partial(msgspec.Meta, **dict(meta.__rich_repr__())), ()))


class ClusterUnavailable(BayesControlError, RuntimeError):
    """No Dask scheduler answers, or the scheduler has no workers."""


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worker_count(workers: int | None) -> int:
    """Return how many tasks run at once; None stands for the active joblib backend."""
    return workers or int(_joblib().effective_n_jobs(None))


def unordered(
    function: Callable[[A], T], tasks: Iterable[A], workers: int | None = None
) -> Generator[T, None, None]:
    """Yield function(task) for all tasks, as soon as each is ready.

    Tasks are taken from the iterable while others run. If the loop over the results ends early, by
    an error or by Ctrl-C, worker processes are stopped at once.

    >>> sorted(unordered(abs, [-1, 2, -3], workers=1))
    [1, 2, 3]
    """
    if workers == 1:
        yield from map(function, tasks)
        return
    joblib = _joblib()
    # As bytes: a Dask scheduler may be unable to import the modules of the function.
    try:
        pickled = pickle.dumps(joblib.wrap_non_picklable_objects(function))  # lambdas, too
    except Exception as error:  # pickle raises AttributeError and TypeError as well as its own
        raise MissingCapability(
            f"{function!r} cannot be sent to another process ({error}): define what it uses at the "
            "top of a module, or use one worker"
        ) from error
    call = partial(_call_in_worker, pickled, os.getpid())
    # Workers are reused; if the path has changed, new ones are started.
    options: dict[str, Any] = {} if workers is None else {
        "n_jobs": workers, "backend": "loky", "batch_size": 1,
        "initializer": _prepare_process, "initargs": (os.getpid(), tuple(sys.path)),
    }  # fmt: skip
    parallel = joblib.Parallel(return_as="generator_unordered", **{"batch_size": 1, **options})
    calls = (joblib.delayed(call)(task) for task in tasks)
    results: Any = None
    try:
        try:
            with _interrupts_delayed():  # raises a delayed Ctrl-C at the end of this block
                if workers is not None:  # loky prints errors if workers are killed at their start
                    joblib.Parallel(**options)(joblib.delayed(_settle)() for _ in range(workers))
                results = parallel(calls)
        except KeyboardInterrupt:
            time.sleep(_START)  # a thread of loky is queueing the first tasks
            raise
        for result in results:  # noqa: UP028 - `yield from` would close `results` first
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns if results are not used
            if results is not None:
                results.close()


def _settle() -> None:
    """Wait in a new process, so that each of them gets such a task and has started."""
    global _settled
    if not _settled:
        time.sleep(_START)
        _settled = True


def _joblib() -> Any:
    """Import joblib; raise an error that names the extra if it is missing."""
    with needs_extra("workers > 1", "joblib", "lab"):
        import joblib  # type: ignore[import-untyped]
    return joblib


@contextmanager
def dask_cluster(
    address: str = "local",
    workers: int | None = None,
    files: Sequence[Path] = (),
    patience: float = _WORKER_TIMEOUT,
) -> Iterator[None]:
    """Use the Dask cluster at `address`, or "local" for processes of this machine, in the block.

    `files` are modules that the workers cannot import; they are sent to the workers. `patience` is
    the longest wait for the first worker, in seconds.

    >>> with dask_cluster("tcp://127.0.0.1:1", patience=0.1):
    ...     pass
    Traceback (most recent call last):
    bayescontrol.lab.parallel.ClusterUnavailable: no Dask scheduler answers at tcp://127.0.0.1:1...
    """
    with needs_extra("--dask", "distributed", "cluster"):
        import distributed
        from distributed.diagnostics.plugin import UploadFile
    parallel_config = _joblib().parallel_config
    with ExitStack() as stack:
        try:
            if address == "local":
                with _interrupts_delayed():
                    cluster: Any = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                        n_workers=workers or available_cores(),
                        threads_per_worker=1,
                        host="127.0.0.1",
                        dashboard_address="127.0.0.1:0",  # any free port
                        scheduler_kwargs={"dashboard": False},
                        memory_limit=0,  # no limit, as for processes of loky
                        silence_logs=logging.CRITICAL,  # the runner reports errors
                    )
                stack.callback(cluster.close)
            client: Any = distributed.Client(  # type: ignore[no-untyped-call]
                cluster if address == "local" else address,
                timeout=min(patience, _SCHEDULER_TIMEOUT),
                set_as_default=False,  # leave a user's own client in this process alone
            )
            stack.callback(client.close)
            client.wait_for_workers(1, timeout=patience)
            # Send files to workers only: a scheduler in this process would import our modules
            # again. Local workers can import them already.
            for file in files if address != "local" else ():
                plugin = UploadFile(str(file))
                # Plugins of equal name replace each other.
                plugin.name = f"bayescontrol-{file.name}"
                client.register_plugin(plugin)
        except (OSError, TimeoutError, ValueError) as error:
            if "worker" in str(error):
                raise ClusterUnavailable(
                    f"the Dask cluster at {address} has no workers: start some, or use --workers"
                ) from error
            raise ClusterUnavailable(
                f"no Dask scheduler answers at {address} ({error}): start one with "
                "`dask scheduler`, or use --dask local"
            ) from error
        stack.enter_context(parallel_config(backend=_dask_backend(client)))
        yield


def _dask_backend(client: Any) -> Any:
    """Return joblib's Dask backend without two of its faults."""
    from joblib._dask import DaskDistributedBackend  # type: ignore[import-untyped]

    class DaskBackend(DaskDistributedBackend):  # type: ignore[misc] # untyped
        """The backend of joblib, with its two faults corrected."""

        def effective_n_jobs(self, n_jobs: int) -> int:
            """Return at least 2: with 1, joblib would run the tasks in this process."""
            return max(2, int(super().effective_n_jobs(n_jobs)))

        def submit(self, func: Any, callback: Any = None) -> Any:
            """Report also tasks whose worker has died; joblib would wait for them for ever."""
            future = super().submit(func, callback)  # which calls back for successful tasks only
            future.add_done_callback(lambda done: callback(done) if done.exception() else None)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            """Return the result of a task, or raise the error of a task that failed."""
            if isinstance(out, Future):
                return out.result()
            return super().retrieve_result_callback(out)

    return DaskBackend(client=client)


_load: Final = lru_cache(maxsize=1)(pickle.loads)


def _call_in_worker(function: bytes, parent: int, task: Any) -> Any:
    """Call a pickled function; in another process, its output goes to standard error."""
    if os.getpid() == parent:  # a backend with threads
        return _load(function)(task)
    with redirect_stdout(sys.stderr):  # the parent may write JSON to standard output
        return _load(function)(task)


def _prepare_process(parent: int, path: Sequence[str]) -> None:
    """Initialise a process of loky; `path` is the parent's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.path[:] = path
    # Functions of the parent's script belong to __main__, but their file is not that of loky.
    vars(sys.modules["__main__"]).pop("__file__", None)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()


def _end_with_parent(parent: int) -> None:
    """Exit when the parent ends: a killed parent cannot stop its workers."""
    while os.getppid() == parent:
        time.sleep(_PARENT_POLL)
    os._exit(1)


@contextmanager
def _interrupts_delayed() -> Iterator[None]:
    """Delay Ctrl-C to the end of the block; processes that are started in it never receive it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its start, in the block, would unblock the signal
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
