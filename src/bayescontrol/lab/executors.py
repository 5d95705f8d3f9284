"""Executors for replicas: processes of this machine, or a Dask cluster.

The runner accepts any `concurrent.futures.Executor`. These two also tell it

    width          how many replicas may run at once
    compiling()    whether a worker has compiled a kernel

The output of workers goes to standard error. Workers ignore Ctrl-C, which their parent handles, and
end with their parent.
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
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from bayescontrol import kernels
from bayescontrol.errors import BayesControlError, needs_extra

P = ParamSpec("P")
T = TypeVar("T")

_TOPIC: Final = "bayescontrol-compiling"
#: In seconds: the time between two requests for the width, and the longest wait for the scheduler
#: and for a first worker.
_REFRESH: Final = 10.0
_SCHEDULER_TIMEOUT: Final = 10.0
_WORKER_TIMEOUT: Final = 30.0
_POLL_INTERVAL: Final = 0.01  # seconds; loading Numba takes a few hundred milliseconds


class ClusterUnavailable(BayesControlError, RuntimeError):
    """No Dask scheduler answers, or the scheduler has no workers."""


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Processes(ProcessPoolExecutor):
    """Worker processes of this machine, started with the spawn method.

    The workers import the experiment's module, so a script that starts them needs the usual
    `if __name__ == "__main__"`. After an error or Ctrl-C the workers are terminated at once.

    >>> with Processes(1) as pool:
    ...     pool.submit(abs, -3).result()
    3
    """

    def __init__(self, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.width = workers
        self._compiling = context.Event()
        self._earlier_children = set(multiprocessing.active_children())
        super().__init__(workers, context, _prepare_process, (self._compiling,))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedule a call. Worker processes that start for this call ignore Ctrl-C."""
        call: Any = _call_in_process
        with _interrupts_ignored():
            return super().submit(call, fn, *args, **kwargs)

    def compiling(self) -> bool:
        """Whether a worker has compiled a kernel."""
        return self._compiling.is_set()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for process in set(multiprocessing.active_children()) - self._earlier_children:
                process.terminate()
        self.shutdown(cancel_futures=True)


class Dask(Executor):
    """The workers of a Dask cluster at `address`, or "local" for processes of this machine.

    `files` are modules that the workers cannot import; they are sent to the workers.

    >>> Dask("tcp://127.0.0.1:1", patience=0.1)
    Traceback (most recent call last):
    bayescontrol.lab.executors.ClusterUnavailable: no Dask scheduler answers at tcp://127.0.0.1:1...
    """

    def __init__(
        self,
        address: str = "local",
        workers: int | None = None,
        files: Sequence[Path] = (),
        patience: float = _WORKER_TIMEOUT,
    ) -> None:
        with needs_extra("--dask", "distributed", "cluster"):
            import distributed
            from distributed.diagnostics.plugin import UploadFile
        self._cluster: Any = None
        self._client: Any = None
        self._compiled = threading.Event()
        self._width, self._refreshed = 1, -math.inf
        try:
            if address == "local":
                with _interrupts_ignored():
                    self._cluster = distributed.LocalCluster(  # type: ignore[no-untyped-call]
                        n_workers=workers or available_cores(),
                        threads_per_worker=1,
                        host="127.0.0.1",
                        dashboard_address="127.0.0.1:0",  # any free port
                        scheduler_kwargs={"dashboard": False},
                        memory_limit=0,  # no limit, as for our own processes
                        silence_logs=logging.CRITICAL,  # the runner reports errors
                    )
            self._client = distributed.Client(  # type: ignore[no-untyped-call]
                self._cluster or address,
                timeout=min(patience, _SCHEDULER_TIMEOUT),
                set_as_default=False,  # leave a user's own client in this process alone
            )
            self._client.wait_for_workers(1, timeout=patience)
            # Send files to workers only: a scheduler in this process would import our modules
            # again. Local workers can import them already.
            for file in files if self._cluster is None else ():
                plugin = UploadFile(str(file))
                # Plugins of equal name replace each other.
                plugin.name = f"bayescontrol-{file.name}"
                self._client.register_plugin(plugin)
            self._client.subscribe_topic(_TOPIC, lambda _: self._compiled.set())
        except (OSError, TimeoutError, ValueError) as error:
            self.shutdown()
            raise ClusterUnavailable(_unavailable_message(address, error)) from error
        self._executor = self._client.get_executor(pure=False)

    @property
    def width(self) -> int:
        """The number of threads of all workers, refreshed from time to time."""
        if time.monotonic() - self._refreshed > _REFRESH:
            self._width = max(1, sum(self._client.nthreads().values()))
            self._refreshed = time.monotonic()
        return self._width

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedule a call on some worker."""
        # As bytes: the scheduler may be unable to import the modules of the workers.
        call = pickle.dumps((fn, args, kwargs))
        return self._executor.submit(_call_on_worker, call)  # type: ignore[no-any-return]

    def compiling(self) -> bool:
        """Whether a worker has compiled a kernel."""
        return self._compiled.is_set()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Disconnect from the cluster; stop a local cluster."""
        for part in (self._client, self._cluster):
            if part is not None:
                part.close()


def _unavailable_message(address: str, error: BaseException) -> str:
    if "worker" in str(error):
        return f"the Dask cluster at {address} has no workers: start some, or use --workers"
    hint = "start one with `dask scheduler`, or use --dask local"
    return f"no Dask scheduler answers at {address} ({error}): {hint}"


def _call_on_worker(call: bytes) -> Any:
    """Run a pickled call on a Dask worker, and tell the client if a kernel is compiled."""
    from distributed import get_worker

    log_event = partial(get_worker().log_event, _TOPIC, {})
    with redirect_stdout(sys.stderr), notify_compilation(log_event):
        fn, args, kwargs = pickle.loads(call)  # noqa: S301 - from our own client, never from disk
        return fn(*args, **kwargs)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Make processes that are started inside the block ignore Ctrl-C; their parent stops them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous_handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)


_compiling: Event | None = None


def _prepare_process(compiling: Event) -> None:
    """Initialise a worker process; `compiling` is set when a kernel is compiled."""
    global _compiling  # the initializer of a process has no other way to pass an object on
    _compiling = compiling
    sys.stdout = sys.stderr  # the parent writes JSON to standard output
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Exit when the parent ends: a killed parent cannot stop its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _call_in_process(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a call in a worker process, and tell the parent if a kernel is compiled."""
    with notify_compilation(_compiling.set) if _compiling else nullcontext():
        return fn(*args, **kwargs)


@contextmanager
def notify_compilation(notify: Callable[[], None]) -> Iterator[None]:
    """Call `notify` once, when the first kernel is compiled inside the block.

    Numba informs its listeners about each compilation, but not if a kernel comes from the cache on
    disk. Numba is loaded late, by the first replica that needs it; so a thread waits for it and
    then installs a listener. A run that needs no Numba never loads it.
    """
    previous, kernels.announce_compilation = kernels.announce_compilation, False
    with ExitStack() as stack:
        stack.callback(setattr, kernels, "announce_compilation", previous)
        if _numba_has_events():
            stack.enter_context(_listening(notify))
        else:
            ended = threading.Event()
            watcher = threading.Thread(target=_wait_for_numba, args=(notify, ended), daemon=True)
            watcher.start()
            stack.callback(watcher.join)
            stack.callback(ended.set)  # called before the other callbacks
        yield


def _numba_has_events() -> bool:
    # The module may be half loaded: this is the last name that `_listening` needs.
    return hasattr(sys.modules.get("numba.core.event"), "install_listener")


def _wait_for_numba(notify: Callable[[], None], block_ended: threading.Event) -> None:
    """Install the listener once Numba is loaded; return when `block_ended` is set."""
    while not block_ended.wait(_POLL_INTERVAL):
        if _numba_has_events():
            with _listening(notify):
                block_ended.wait()


@contextmanager
def _listening(notify: Callable[[], None]) -> Iterator[None]:
    """Listen to Numba's compilations inside the block; call `notify` at the first one."""
    events: Any = sys.modules["numba.core.event"]

    class Listener(events.Listener):  # type: ignore[misc] # untyped, and not imported here
        is_notified = False

        def on_start(self, _: object) -> None:
            if not self.is_notified:
                self.is_notified = True
                notify()

        def on_end(self, _: object) -> None: ...

    with events.install_listener("numba:compile", Listener()):
        yield
