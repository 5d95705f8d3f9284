"""Who runs the replicas: processes of this machine, or a Dask cluster.

Each is a `concurrent.futures.Executor`, and any other will do. What these two can do more, the
runner asks for by type:

    width          how many replicas may run at once
    compiling()    whether a worker has had to compile a kernel

What workers print goes to standard error, Ctrl-C is left to their parent, and they end with it,
however it ends.
"""

import logging
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, nullcontext, redirect_stdout
from multiprocessing.connection import wait
from multiprocessing.synchronize import Event
from pathlib import Path
from types import TracebackType
from typing import Any, Final, ParamSpec, Protocol, TypeVar, runtime_checkable

from bayescontrol.errors import BayesControlError
from bayescontrol.lab.compilation import announced

P = ParamSpec("P")
T = TypeVar("T")

_TOPIC: Final = "bayescontrol-compiling"
_REFRESH: Final = 10.0  # seconds
_ANSWER: Final = 10.0  # seconds in which a scheduler answers
_PATIENCE: Final = 30.0  # seconds in which its first worker comes


class ClusterUnavailable(BayesControlError, RuntimeError):
    """Dask is not installed, no scheduler answers, or it has no workers.

    >>> issubclass(ClusterUnavailable, RuntimeError)
    True
    """


@runtime_checkable
class Wide(Protocol):
    """An executor that knows how many calls it runs at once.

    >>> with Processes(2) as pool:
    ...     isinstance(pool, Wide), pool.width
    (True, 2)
    """

    @property
    def width(self) -> int: ...


@runtime_checkable
class Announcing(Protocol):
    """An executor that knows whether a worker has compiled a kernel.

    >>> with Processes(2) as pool:
    ...     isinstance(pool, Announcing), pool.compiling()
    (True, False)
    """

    def compiling(self) -> bool: ...


def cores() -> int:
    """The number of cores that this process may use.

    >>> cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Processes(ProcessPoolExecutor):
    """Worker processes of this machine, started afresh.

    They import the experiment's module anew: a script that uses them needs the usual
    `if __name__ == "__main__"`. Left by an error or Ctrl-C, they are stopped at once.

    >>> with Processes(1) as pool:
    ...     pool.submit(abs, -3).result()
    3
    """

    def __init__(self, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.width = workers
        self._compiling = context.Event()
        self._others = set(multiprocessing.active_children())
        super().__init__(workers, context, _prepare, (self._compiling,))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedule a call; a process that it starts ignores Ctrl-C from birth."""
        call: Any = _in_process
        with _interrupts_ignored():
            return super().submit(call, fn, *args, **kwargs)

    def compiling(self) -> bool:
        """Whether a worker has compiled a kernel."""
        return self._compiling.is_set()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            for process in set(multiprocessing.active_children()) - self._others:
                process.terminate()
        self.shutdown(cancel_futures=True)


class Dask(Executor):
    """The workers of a Dask cluster: at `address`, or "local" for processes of this machine.

    `files` are modules that the workers cannot import themselves; they are sent to them.

    >>> Dask("tcp://127.0.0.1:1", patience=0.1)
    Traceback (most recent call last):
    bayescontrol.lab.executors.ClusterUnavailable: no Dask scheduler answers at tcp://127.0.0.1:1...
    """

    def __init__(
        self,
        address: str = "local",
        workers: int | None = None,
        files: Sequence[Path] = (),
        patience: float = _PATIENCE,
    ) -> None:
        try:
            import distributed
            from distributed.diagnostics.plugin import UploadFile
        except ImportError as error:
            raise ClusterUnavailable(
                "Dask is not installed: pip install 'bayescontrol[cluster]'"
            ) from error
        self._cluster: Any = None
        self._client: Any = None
        self._compiled = threading.Event()
        self._width, self._asked = 1, -math.inf
        try:
            if address == "local":
                with _interrupts_ignored():
                    self._cluster = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                        n_workers=workers or cores(),
                        threads_per_worker=1,
                        host="127.0.0.1",
                        dashboard_address="127.0.0.1:0",  # any free port, and nothing on it
                        scheduler_kwargs={"dashboard": False},
                        memory_limit=0,  # as with our own processes
                        silence_logs=logging.CRITICAL,  # what goes wrong is told by the runner
                    )
            self._client = distributed.Client(  # type: ignore[no-untyped-call]
                self._cluster or address,
                timeout=min(patience, _ANSWER),
                set_as_default=False,  # a user's own Dask in this process is none of our affair
            )
            self._client.wait_for_workers(1, timeout=patience)
            # To the workers only: a scheduler in this process would load our modules anew. And
            # those of a local cluster find them where we do.
            for file in files if self._cluster is None else ():
                plugin = UploadFile(str(file))
                plugin.name = f"bayescontrol-{file.name}"  # one place for each, not one for all
                self._client.register_plugin(plugin)
            self._client.subscribe_topic(_TOPIC, lambda _: self._compiled.set())
        except (OSError, TimeoutError, ValueError) as error:
            self.shutdown()
            raise ClusterUnavailable(_unavailable(address, error)) from error
        self._executor = self._client.get_executor(pure=False)

    @property
    def width(self) -> int:
        """Threads of all workers; they may come and go, so it is asked for now and then."""
        if time.monotonic() - self._asked > _REFRESH:
            self._width = max(1, sum(self._client.nthreads().values()))
            self._asked = time.monotonic()
        return self._width

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedule a call on some worker."""
        # As bytes: a scheduler that looked into it would need the modules of its workers.
        call = pickle.dumps((fn, args, kwargs))
        scheduled: Future[T] = self._executor.submit(_on_worker, call)
        return scheduled

    def compiling(self) -> bool:
        """Whether a worker has compiled a kernel."""
        return self._compiled.is_set()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; a local one ends."""
        for part in (self._client, self._cluster):
            if part is not None:
                part.close()


def _unavailable(address: str, error: BaseException) -> str:
    if "worker" in str(error):
        return f"the Dask cluster at {address} has no workers: start some, or use --workers"
    return (
        f"no Dask scheduler answers at {address} ({error}): start one with `dask scheduler`, "
        "or use --dask local"
    )


def _on_worker(call: bytes) -> Any:
    from distributed import get_worker

    def tell() -> None:
        get_worker().log_event(_TOPIC, {})

    with redirect_stdout(sys.stderr), announced(tell):
        fn, args, kwargs = pickle.loads(call)  # noqa: S301 - from our own client, never from disk
        return fn(*args, **kwargs)


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
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A parent that is killed cannot stop its workers, and they would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _in_process(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    with announced(_compiling.set) if _compiling else nullcontext():
        return fn(*args, **kwargs)
