"""The worker processes or the Dask cluster of a command, started on first use."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import click

from bayescontrol.lab.executors import Dask, Processes
from bayescontrol.lab.registry import study_file


class WorkerPool(AbstractContextManager["WorkerPool"]):
    """Worker processes or a Dask cluster, shared by all experiments of a command.

    At most `runs` processes are started. `studies` are the names of the experiments. Those that
    are defined in a file (file.py:attribute) are sent to the cluster, which cannot import the file.
    """

    def __init__(
        self, workers: int | None, dask: str | None, runs: int, studies: Sequence[str]
    ) -> None:
        self._dask = dask
        self._workers = workers if dask is not None else min(workers or 1, runs)
        self._files = [file.resolve() for file in map(study_file, studies) if file is not None]
        self._open = ExitStack()
        self._executor: Executor | None = None

    def executor(self) -> Executor | None:
        """Return the executor, which is started now if necessary; None to run in this process."""
        if self._executor is None and self._dask is not None:
            self._executor = self._open.enter_context(Dask(self._dask, self._workers, self._files))
        elif self._executor is None and self._workers and self._workers > 1:
            self._executor = self._open.enter_context(Processes(self._workers))
        return self._executor

    def renew(self) -> None:
        """Restart the workers after a failed experiment: they may be dead or busy."""
        old, self._open, self._executor = self._open, ExitStack(), None
        failure = RuntimeError("the experiment failed")  # with an error, workers end at once
        old.__exit__(type(failure), failure, None)

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)


def worker_options(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options --workers and --dask to a command."""
    dask = click.option(
        "--dask", metavar="ADDRESS", help="Dask scheduler: tcp://HOST:PORT, or local."
    )
    workers = click.option(
        "--workers",
        type=click.IntRange(min=1),
        help=f"Number of worker processes.  [default: {default}]",
    )
    return lambda command: workers(dask(command))
