"""Progress is a bar on a terminal and a few plain lines elsewhere."""

import io
from collections.abc import Iterable

from rich.console import Console

from bayescontrol.lab.progress import Lines, live


def printed(times: Iterable[float], done: Iterable[int], total: int) -> list[str]:
    """Return the lines about `total` runs, of which so many were done at these times."""
    out = io.StringIO()
    lines = Lines("coin", out, clock=iter(times).__next__)
    for count in done:
        lines.advance(count, total)
    return out.getvalue().splitlines()


def test_lines_are_printed_every_few_seconds_and_at_the_end() -> None:
    assert printed((0.1 * i for i in range(101)), range(101), 100) == [
        "coin: 100 runs to do",
        "coin: 30/100 runs, 10 a second, 7 s left",
        "coin: 60/100 runs, 10 a second, 4 s left",
        "coin: 90/100 runs, 10 a second, 1 s left",
        "coin: 100/100 runs, 10 a second, in 10.0 s",
    ]


def test_long_waits_are_shown_in_minutes_and_hours() -> None:
    *_, second, third = printed([0.0, 60.0, 120.0, 180.0], (0, 1, 2, 13), 1000)
    assert second.endswith("0.0167 a second, 16 h 38 min left")
    assert third.endswith("0.1 a second, 2 h 44 min left")


def test_the_first_batch_gives_no_estimate_of_the_remaining_time() -> None:
    _, *lines = printed([0.0, 60.0, 64.0], (0, 1, 5), 9)
    assert lines == ["coin: 1/9 runs", "coin: 5/9 runs, 1 a second, 4 s left"]


def test_a_pipe_gets_lines_without_control_characters() -> None:
    out = io.StringIO()
    with live("coin", Console(file=out)) as progress:
        progress.advance(0, 5)
        progress.advance(5, 5)
    assert "\x1b" not in out.getvalue()
    assert out.getvalue().startswith("coin: 5 runs to do\ncoin: 5/5 runs, ")


def test_a_terminal_gets_a_bar_with_rate_and_counts() -> None:
    out = io.StringIO()
    screen = Console(file=out, force_terminal=True, force_interactive=True, width=100)
    with live("coin", screen) as progress:
        progress.advance(0, 5)
        progress.advance(5, 5)
    assert "5/5" in out.getvalue()
    assert "\x1b" in out.getvalue()
