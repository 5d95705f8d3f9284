"""Show the progress of replicas on standard error.

    rate = (done - first_done) / (now - first_time)          time left = (total - done) / rate

`first_done` replicas were done at `first_time`, when the first group arrived: the time for
starting processes and compiling kernels does not count.

A terminal shows a bar; elsewhere plain lines are written, one every few seconds at most, so that a
log stays short. Standard output is not used.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from rich.console import Console

#: Least number of seconds between two lines.
_LINE_INTERVAL: Final = 3.0


class Progress(Protocol):
    """Receives the progress of replicas.

    `advance` is called with (0, total) at the start and whenever replicas are done. Replicas
    already in a store are not counted.
    """

    def advance(self, done: int, total: int, /) -> None: ...


class Silent:
    """Ignores the progress."""

    def advance(self, done: int, total: int, /) -> None: ...


@contextmanager
def live(label: str, console: "Console | None" = None) -> Iterator[Progress]:
    """Yield a progress display for `run_replicas`: a bar on a terminal, lines elsewhere.

    >>> import sys
    >>> from rich.console import Console
    >>> with live("chain", Console(file=sys.stdout, width=80)) as progress:
    ...     progress.advance(0, 40)
    ...     progress.advance(40, 40)
    chain: 40 runs to do
    chain: 40/40 runs, ... a second, in ... s
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars
    except ModuleNotFoundError:
        yield Lines(label, sys.stderr)
        return
    screen = console or Console(stderr=True)
    if not screen.is_interactive:
        yield Lines(label, screen.file)
        return
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(), TextColumn("left"),
    )  # fmt: skip
    with Bars(*columns, console=screen) as bars:
        yield _Bar(bars, bars.add_task(label, total=None, rate=""))


class Lines:
    """Write plain lines with done, rate and time left, at most one every three seconds.

    >>> import sys
    >>> lines = Lines("chain", sys.stdout, clock=iter((0, 4, 8, 12)).__next__)
    >>> for done in (0, 10, 20, 40):
    ...     lines.advance(done, 40)
    chain: 40 runs to do
    chain: 10/40 runs
    chain: 20/40 runs, 2.5 a second, 8 s left
    chain: 40/40 runs, 3.33 a second, in 12.0 s
    """

    def __init__(
        self, label: str, file: IO[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._label, self._file, self._clock = label, file, clock
        self._started = self._written = 0.0
        self._first_group: tuple[int, float] | None = None

    def advance(self, done: int, total: int, /) -> None:
        """Write a line if enough time has passed."""
        now = self._clock()
        if done == 0:
            self._started = self._written = now
            self._first_group = None
            self._write(f"{total} runs to do")
            return
        first_done, first_time = self._first_group = self._first_group or (done, now)
        if done < total and now - self._written < _LINE_INTERVAL:
            return
        self._written = now
        if done == total:
            elapsed = max(now - self._started, 1e-9)
            suffix = f", {_format_rate(done / elapsed)} a second, in {elapsed:.1f} s"
        elif done > first_done and now > first_time:
            rate = (done - first_done) / (now - first_time)
            time_left = _format_duration((total - done) / rate)
            suffix = f", {_format_rate(rate)} a second, {time_left} left"
        else:
            suffix = ""
        self._write(f"{done}/{total} runs{suffix}")

    def _write(self, text: str) -> None:
        """Write a line that begins with the label."""
        print(f"{self._label}: {text}", file=self._file, flush=True)


class _Bar:
    """Show progress as a bar of the rich library."""

    def __init__(self, bars: Any, task: Any) -> None:
        self._bars, self._task = bars, task

    def advance(self, done: int, total: int, /) -> None:
        """Move the bar, and show the rate once it is known."""
        self._bars.update(self._task, completed=done, total=total)
        task = self._bars.tasks[self._task]
        speed = task.finished_speed or task.speed
        rate = "" if speed is None else f"{_format_rate(speed)} a second"
        self._bars.update(self._task, rate=rate)


def _format_rate(rate: float) -> str:
    """Format a rate: three digits, or a whole number from 1000 on."""
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.3g}"


def _format_duration(seconds: float) -> str:
    """Format a time: seconds below 100 s, then minutes, or hours and minutes."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
