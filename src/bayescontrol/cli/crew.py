"""Who runs the replicas of a command: nobody is called before there is something to run."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, Self

import click

from bayescontrol.lab.executors import Dask, Processes
from bayescontrol.lab.registry import study_file


class _Renewed(Exception):
    pass


class Crew:
    """Worker processes or a Dask cluster, started once, for all that a command runs.

    No more processes than `runs` are started; `studies` are the names of the experiments, for
    a cluster that cannot import those in files.

    >>> with Crew(workers=1) as crew:
    ...     crew.executor() is None
    True
    """

    def __init__(
        self,
        workers: int | None = None,
        dask: str | None = None,
        runs: int = 1,
        studies: Sequence[str] = (),
    ) -> None:
        self._dask = dask
        self._workers = workers if dask is not None else min(workers or 1, runs)
        self._files = [file for file in map(study_file, studies) if file is not None]
        self._open = ExitStack()
        self._executor: Executor | None = None

    def executor(self) -> Executor | None:
        """The executor; None for one replica after the other."""
        if self._executor is None and self._dask is not None:
            self._executor = self._open.enter_context(
                Dask(self._dask, self._workers, [file.resolve() for file in self._files])
            )
        elif self._executor is None and self._workers and self._workers > 1:
            self._executor = self._open.enter_context(Processes(self._workers))
        return self._executor

    def renew(self) -> None:
        """After an experiment broke: its workers may be dead, or still at it.

        >>> Crew().renew()
        """
        before, self._open, self._executor = self._open, ExitStack(), None
        with suppress(_Renewed), before:
            raise _Renewed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, trace)


def crew_options(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--workers and --dask, for every command that runs replicas.

    >>> command = crew_options(default="1")(lambda: None)
    >>> [option.name for option in command.__click_params__]
    ['dask', 'workers']
    """
    dask = click.option(
        "--dask",
        metavar="ADDRESS",
        help="A Dask cluster: tcp://HOST:PORT of its scheduler, or local.",
    )
    workers = click.option(
        "--workers",
        type=click.IntRange(min=1),
        help=f"Processes, of this command or of --dask local.  [default: {default}]",
    )
    return lambda command: workers(dask(command))
