"""Claims and tables for the terminal.

    28.21 ± 0.22      the error to two digits, the value to the same place
    0.5 ± 1e-12       a tolerance far below the value: its order alone
    0.705970          exact: six significant digits, integers in full

A refuted claim of the paper is shown as refuted, with its reason below the table. Claims by
simulation and exact ones are counted apart.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from bayescontrol.errors import counted
from bayescontrol.lab.claims import Claim, ClaimVerdict, tally
from bayescontrol.lab.experiment import Table
from bayescontrol.lab.runner import Result

_STYLES: Final[dict[ClaimVerdict, str]] = {
    "holds": "green",
    "refuted": "yellow",
    "not comparable": "dim",
    "fails": "bold red",
}
_VERBS: Final[Mapping[ClaimVerdict, str]] = {
    "holds": "",
    "refuted": " is refuted",
    "not comparable": " is not comparable",
    "fails": " fails",
}
_COUNTED: Final[Mapping[ClaimVerdict, str]] = {
    "holds": "held",
    "refuted": "of the paper refuted",
    "not comparable": "of the paper not comparable",
    "fails": "of ours failed",
}


def number(value: float | str) -> str:
    """A value without an error: six significant digits, integers and text in full.

    >>> number(2 / 3), number(4095), number(4095.0), number("1/2"), number(math.inf)
    ('0.666667', '4095', '4095', '1/2', 'inf')
    """
    if isinstance(value, str | int) or not math.isfinite(value):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e9 else f"{value:.6g}"


def with_error(value: float | str, error: float | None) -> str:
    """The value ± its error, both to the second digit of the error.

    >>> with_error(28.2093, 0.2187), with_error(4101.7, 63.9), with_error(0.5, 1e-12)
    ('28.21 ± 0.22', '4102 ± 64', '0.5 ± 1e-12')
    >>> with_error(3.0, None), with_error("all", None)
    ('3', 'all')
    """
    if error is None:
        return number(value)
    if isinstance(value, str) or not (math.isfinite(value) and math.isfinite(error)):
        return f"{number(value)} ± {number(error)}"
    if error <= 1e-6 * max(1.0, abs(value)):
        return f"{number(value)} ± {error:.0e}" if error else f"{number(value)} ± 0"
    if error >= 1e6:
        return f"{value:.4g} ± {error:.2g}"
    places = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{places}f} ± {error:.{places}f}"


def claims_table(results: Sequence[Result], title: str = "Claims") -> RenderableType:
    """Every claim with what was expected, our number and the verdict; remarks; a summary.

    >>> isinstance(claims_table([]), Group)
    True
    """
    grid = _grid(title)
    several = len(results) > 1
    if several:
        grid.add_column("experiment", overflow="fold")
    grid.add_column("claim", overflow="fold", ratio=1)
    grid.add_column("source")
    grid.add_column("expected", justify="right", overflow="fold")
    grid.add_column("ours", justify="right", overflow="fold")
    grid.add_column("verdict", max_width=10)
    for result in results:
        for position, claim in enumerate(result.score.claims):
            first = (Text("" if position else result.experiment.name),) if several else ()
            grid.add_row(*first, *_cells(claim), end_section=_is_last(position, result))
    claims = [claim for result in results for claim in result.score.claims]
    return Group(grid, *remarks(claims), Text(f"\n{summary(claims, noun='claim')}"))


def summary(
    claims: Iterable[Claim],
    noun: str = "",
    mark: Callable[[ClaimVerdict, str], str] = lambda _, words: words,
) -> str:
    """How many claims have which verdict, exact ones apart; `mark` may decorate each count.

    `noun` follows the first number, in the plural if need be.

    >>> exact = Claim("x", "x is 1", "ours", 1.0, 1.0, None, True, exact=True)
    >>> summary([exact, Claim("y", "y is 1", "ours", 1.0, 1.1, 0.1, True)], noun="claim")
    '1 claim by simulation: 1 held; 1 exact: 1 held'
    """
    parts = []
    for kind, counts in tally(claims).items():
        words = ", ".join(
            mark(verdict, f"{counts.get(verdict, 0)} {_COUNTED[verdict]}")
            for verdict in _COUNTED
            if verdict in counts or verdict == "holds"
        )
        n = sum(counts.values())
        parts.append((f"{counted(n, noun) if noun else n} {kind}: {words}", bool(counts)))
        noun = ""
    return "; ".join(part for part, shown in parts if shown) or parts[0][0]


def remarks(claims: Iterable[Claim]) -> list[Text]:
    """One line for each claim: its place in the paper, its reason, the origin of its threshold.

    >>> claim = Claim("x", "x is 1", "paper", 1.0, 2.0, 0.1, False, "a misprint", place="section 1")
    >>> [line.plain for line in remarks([claim])]
    ['  x (section 1) is refuted: a misprint']
    """
    lines = []
    for claim in claims:
        origin = f"threshold: {claim.threshold_origin}" if claim.threshold_origin else ""
        place = f" ({claim.place})" if claim.place else ""
        reason = claim.reason.removesuffix(".") if origin else claim.reason
        words = "; ".join(filter(None, (reason, origin)))
        if place or words:
            head = f"{place}{_VERBS[claim.verdict]}" + (": " if words else "")
            lines.append(Text.assemble((f"  {claim.name}", "bold"), head, words))
    return lines


def table(content: Table) -> RenderableType:
    """A table of an experiment, numbers to the right.

    >>> isinstance(table(Table("Regret", ("agent", "mean"), (("oracle", 0.0),))), Group)
    True
    """
    grid = _grid(content.title)
    for column, name in enumerate(content.header):
        numeric = any(not isinstance(row[column], str) for row in content.rows)
        grid.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in content.rows:
        grid.add_row(*(Text(number(cell)) for cell in row))
    return Group(grid, *([Text("  " + content.note, style="dim")] if content.note else []))


def _grid(title: str) -> Grid:
    return Grid(title=Text(title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD)


def _is_last(position: int, result: Result) -> bool:
    return position == len(result.score.claims) - 1


def _cells(claim: Claim) -> tuple[Text, ...]:
    return (
        Text.assemble((claim.name, "bold"), f"\n{claim.claim}"),
        Text(claim.source),
        Text(number(claim.expected)),
        Text(with_error(claim.ours, claim.error)),
        Text.assemble((claim.verdict, _STYLES[claim.verdict]), ", exact" if claim.exact else ""),
    )
