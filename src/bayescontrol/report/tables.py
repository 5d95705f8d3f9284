"""Format numbers, claims and tables; print claims and tables on a terminal.

    28.21 ± 0.22      the error to two digits, the value to the same place
    0.5 ± 1e-12       a tolerance far below the value: only its order of magnitude
    0.705970          exact: six significant digits, integers in full

A refuted claim of the paper is shown as refuted, with its reason below the table. Simulated and
exact claims are counted separately. rich is imported when a table is printed.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bayescontrol.errors import MissingExtra, counted
from bayescontrol.lab.experiment import Claim, ClaimVerdict, Table, tally
from bayescontrol.lab.runner import Result

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

#: For each verdict its style on a terminal, the verb of a remark, and the words of a count.
_VERDICTS: Final[Mapping[ClaimVerdict, tuple[str, str, str]]] = {
    "holds": ("green", "", "held"),
    "refuted": ("yellow", " is refuted", "of the paper refuted"),
    "not comparable": ("dim", " is not comparable", "of the paper not comparable"),
    "fails": ("bold red", " fails", "of ours failed"),
}


def number(value: float | str) -> str:
    """Format a value: six significant digits; integers and text in full.

    >>> number(2 / 3), number(4095), number(4095.0), number("1/2"), number(math.inf)
    ('0.666667', '4095', '4095', '1/2', 'inf')
    """
    if isinstance(value, str | int) or not math.isfinite(value):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e9 else f"{value:.6g}"


def with_error(value: float | str, error: float | None) -> str:
    """Format a value ± its error, both to the second digit of the error.

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


def claims_table(results: Sequence[Result], title: str = "Claims") -> "RenderableType":
    """Return a table of all claims, followed by remarks and a summary."""
    rich = _rich()
    grid = _grid(title)
    has_several = len(results) > 1
    if has_several:
        grid.add_column("experiment", overflow="fold")
    grid.add_column("claim", overflow="fold", ratio=1)
    grid.add_column("source")
    grid.add_column("expected", justify="right", overflow="fold")
    grid.add_column("ours", justify="right", overflow="fold")
    grid.add_column("verdict", max_width=10)
    for result in results:
        for position, claim in enumerate(result.score.claims):
            name = "" if position else result.experiment.name
            name_cell = (rich.text.Text(name),) if has_several else ()
            is_last = position == len(result.score.claims) - 1
            grid.add_row(*name_cell, *_cells(claim), end_section=is_last)
    claims = [claim for result in results for claim in result.score.claims]
    counts = rich.text.Text(f"\n{summary(claims, noun='claim')}")
    return rich.console.Group(grid, *remarks(claims), counts)  # type: ignore[no-any-return]


def summary(
    claims: Iterable[Claim],
    noun: str = "",
    mark: Callable[[ClaimVerdict, str], str] = lambda _, words: words,
) -> str:
    """Count claims by verdict, exact ones separately; `mark` may decorate each count.

    `noun` follows the first number, in the plural if necessary.

    >>> exact = Claim("x", "x is 1", "ours", 1.0, 1.0, None, True, exact=True)
    >>> summary([exact, Claim("y", "y is 1", "ours", 1.0, 1.1, 0.1, True)], noun="claim")
    '1 claim by simulation: 1 held; 1 exact: 1 held'
    """
    parts = []
    for kind, counts in tally(claims).items():
        words = ", ".join(
            mark(verdict, f"{counts.get(verdict, 0)} {counted_as}")
            for verdict, (_, _, counted_as) in _VERDICTS.items()
            if verdict in counts or verdict == "holds"
        )
        n = sum(counts.values())
        parts.append((f"{counted(n, noun) if noun else n} {kind}: {words}", bool(counts)))
        noun = ""
    return "; ".join(part for part, shown in parts if shown) or parts[0][0]


def remarks(claims: Iterable[Claim]) -> "list[Text]":
    """Return a line with a claim's place in the paper, reason and origin of the threshold.

    Claims that have none of the three get no line.

    >>> claim = Claim("x", "x is 1", "paper", 1.0, 2.0, 0.1, False, "a misprint", place="section 1")
    >>> [line.plain for line in remarks([claim])]
    ['  x (section 1) is refuted: a misprint']
    """
    text, lines = _rich().text.Text, []
    for claim in claims:
        origin = f"threshold: {claim.threshold_origin}" if claim.threshold_origin else ""
        place = f" ({claim.place})" if claim.place else ""
        reason = claim.reason.removesuffix(".") if origin else claim.reason
        words = "; ".join(filter(None, (reason, origin)))
        if place or words:
            head = f"{place}{_VERDICTS[claim.verdict][1]}" + (": " if words else "")
            lines.append(text.assemble((f"  {claim.name}", "bold"), head, words))
    return lines


def table(content: Table) -> "RenderableType":
    """Return a table of an experiment, with numbers aligned to the right."""
    rich = _rich()
    text, grid = rich.text.Text, _grid(content.title)
    for column, name in enumerate(content.header):
        is_numeric = any(not isinstance(row[column], str) for row in content.rows)
        grid.add_column(text(name), justify="right" if is_numeric else "left", overflow="fold")
    for row in content.rows:
        grid.add_row(*(text(number(cell)) for cell in row))
    notes = [text("  " + content.note, style="dim")] if content.note else []
    return rich.console.Group(grid, *notes)  # type: ignore[no-any-return]


def _rich() -> Any:
    try:
        import rich.box
        import rich.console
        import rich.table
        import rich.text
    except ModuleNotFoundError as error:
        raise MissingExtra.of("printing tables", "rich", "lab") from error
    return rich


def _grid(title: str) -> Any:
    rich = _rich()
    heading = rich.text.Text(title, style="bold")
    return rich.table.Table(title=heading, title_justify="left", box=rich.box.SIMPLE_HEAD)


def _cells(claim: Claim) -> "tuple[Text, ...]":
    text, (style, _, _) = _rich().text.Text, _VERDICTS[claim.verdict]
    return (
        text.assemble((claim.name, "bold"), f"\n{claim.claim}"),
        text(claim.source),
        text(number(claim.expected)),
        text(with_error(claim.ours, claim.error)),
        text.assemble((claim.verdict, style), ", exact" if claim.exact else ""),
    )
