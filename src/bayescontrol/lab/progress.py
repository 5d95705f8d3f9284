"""How far the replicas are, on standard error.

    rate = (done - first) / (now - then)          time left = (total - done) / rate

`first` replicas were done `then`, when the first of them came in: starting processes and
compiling kernels is over, and says nothing about the rest.

A bar on a terminal; elsewhere plain lines, one every few seconds at most, so that a log
stays short. Standard output is left alone.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from bayescontrol.lab.runner import Progress

_EYE: Final = 0.05  # seconds; a bar that moves faster costs time and shows nothing
_COMPILING: Final = "compiling kernels for the first time; later runs find them on disk"


@contextmanager
def live(label: str, console: Console | None = None) -> Iterator[Progress]:
    """A progress for `run_replicas`: a bar on a terminal, lines elsewhere.

    >>> import sys
    >>> with live("chain", Console(file=sys.stdout, width=80)) as progress:
    ...     progress.advance(0, 40)
    ...     progress.advance(40, 40)
    chain: 40 runs to do
    chain: 40/40 runs, ... a second, in ... s
    """
    screen = console or Console(stderr=True)
    if not screen.is_interactive:
        yield Lines(label, screen)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Bars(*columns, console=screen) as bars:
        yield _Bar(bars, bars.add_task(label, total=None))


class Lines:
    """Plain lines: done, rate and time left, at most one every `every` seconds, and the last.

    >>> import sys
    >>> clock = iter((0, 4, 8, 12)).__next__
    >>> lines = Lines("chain", Console(file=sys.stdout, width=80), clock=clock)
    >>> for done in (0, 10, 20, 40):
    ...     lines.advance(done, 40)
    chain: 40 runs to do
    chain: 10/40 runs
    chain: 20/40 runs, 2.5 a second, 8 s left
    chain: 40/40 runs, 3.33 a second, in 12.0 s
    """

    def __init__(
        self,
        label: str,
        console: Console,
        every: float = 3.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label, self._console, self._every, self._clock = label, console, every, clock
        self._started = self._told = 0.0
        self._first: tuple[int, float] | None = None

    def advance(self, done: int, total: int, /) -> None:
        """Say how far the replicas are, if it is time."""
        now = self._clock()
        if done == 0:
            self._started = self._told = now
            self._first = None
            self._say(f"{total} runs to do")
            return
        first, then = self._first = self._first or (done, now)
        if done < total and now - self._told < self._every:
            return
        self._told = now
        if done == total:
            elapsed = max(now - self._started, 1e-9)
            end = f", {_number(done / elapsed)} a second, in {elapsed:.1f} s"
        elif done > first and now > then:
            rate = (done - first) / (now - then)
            end = f", {_number(rate)} a second, {_span((total - done) / rate)} left"
        else:
            end = ""
        self._say(f"{done}/{total} runs{end}")

    def compiling(self) -> None:
        """Say why nothing moves yet."""
        self._say(_COMPILING)

    def _say(self, words: str) -> None:
        self._console.out(f"{self._label}: {words}", highlight=False)


class _Bar:
    def __init__(self, bars: Bars, task: TaskID) -> None:
        self._bars, self._task, self._told = bars, task, -math.inf

    def advance(self, done: int, total: int, /) -> None:
        now = time.monotonic()
        if done < total and now - self._told < _EYE:
            return
        self._told = now
        self._bars.update(self._task, completed=done, total=total)

    def compiling(self) -> None:
        self._bars.console.print(_COMPILING, style="dim", highlight=False)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{_number(speed)} a second")


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.3g}"


def _span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
