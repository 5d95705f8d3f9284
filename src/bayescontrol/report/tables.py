"""Format numbers, claims and tables as text.

    28.21 ± 0.22      the error to two digits, the value to the same place
    0.5 ± 1e-12       a tolerance far below the value: only its order of magnitude
    0.705970          exact: six significant digits, integers in full
    0.600, 0.616 ± 0.015      an expected value has as many decimals as ours

A claim of the paper is reproduced, refuted, not comparable or undecided. A check of ours has passed
or failed, or is undecided.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple, get_args

from bayescontrol.lab.experiment import Claim, ClaimSource, ClaimVerdict, Score, Table
from bayescontrol.lab.runner import Result
from bayescontrol.lab.settings import Point

#: Words for verdicts that depend on the source; the others are shown as they are.
_WORDS: Final[Mapping[tuple[ClaimSource, ClaimVerdict], str]] = {
    ("paper", "holds"): "reproduced",
    ("ours", "holds"): "passed",
    ("ours", "fails"): "failed",
}
#: Floats that are integers below this size are shown in full, larger ones with an exponent.
_LONG_INTEGER: Final = 1e9
#: An error that is smaller than this share of the value, or of 1, is a tolerance.
_TOLERANCE: Final = 1e-6
#: From this error on, value and error are shown with an exponent.
_HUGE_ERROR: Final = 1e6
#: A column of fractions whose sizes are in this range has a common number of decimals.
_SMALLEST, _LARGEST = 1e-3, 1e6
#: Digits of the largest fraction of such a column.
_COLUMN_DIGITS: Final = 5
#: Points of a sweep in one table on a terminal.
_POINTS: Final = 4
#: A text that is a number, perhaps with its error.
_NUMBER: Final = re.compile(r"[-−]?\d[\d.,]*(e[-+]?\d+)?( ?%| ± .*)?$")
#: Heading of the claims of each source, and the name of the column of expected values.
HEADINGS: Final[Mapping[ClaimSource, tuple[str, str]]] = {
    "paper": ("What the paper says", "paper"),
    "ours": ("Our own checks", "expected"),
}


def number(value: float | str) -> str:
    """Format a value: six significant digits; text and integers in full, floats below 1e9.

    >>> number(2 / 3), number(4095), number(4095.0), number("1/2"), number(math.inf)
    ('0.666667', '4095', '4095', '1/2', 'inf')
    """
    if isinstance(value, str | int) or not math.isfinite(value):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < _LONG_INTEGER else f"{value:.6g}"


def with_error(value: float | str, error: float | None) -> str:
    """Format a value ± its error, both to the second digit of the error.

    If the error is 100 or more, both are rounded to the unit; from 1e6 on, to four and two digits.
    Of an error far below the value only the order of magnitude is shown.

    >>> with_error(28.2093, 0.2187), with_error(4101.7, 63.9), with_error(0.5, 1e-12)
    ('28.21 ± 0.22', '4102 ± 64', '0.5 ± 1e-12')
    >>> with_error(41017.3, 638.9), with_error(4.1017e8, 6.389e6)
    ('41017 ± 639', '4.102e+08 ± 6.4e+06')
    >>> with_error(3.0, None), with_error("all", None)
    ('3', 'all')
    """
    if error is None:
        return number(value)
    if isinstance(value, str) or not (math.isfinite(value) and math.isfinite(error)):
        return f"{number(value)} ± {number(error)}"
    if error <= _TOLERANCE * max(1.0, abs(value)):
        return f"{number(value)} ± {error:.0e}" if error else f"{number(value)} ± 0"
    if error >= _HUGE_ERROR:
        return f"{value:.4g} ± {error:.2g}"
    places = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:.{places}f} ± {error:.{places}f}"


def numbers_of(claim: Claim) -> tuple[str, str, str]:
    """Format the expected, exact and simulated number of a claim; one of the last two is empty.

    The expected number gets as many decimals as ours, unless that would round it to 0. If the claim
    expects a text, our number has four digits.

    >>> claim = Claim("x", "x is 0.6", "paper", 0.6, 0.616, 0.015, True, place="section 1")
    >>> numbers_of(claim)
    ('0.600', '', '0.616 ± 0.015')
    """
    expected, ours = number(claim.expected), with_error(claim.ours, claim.error)
    if isinstance(claim.ours, float) and isinstance(claim.expected, str):
        ours = f"{claim.ours:.4g}" if claim.error is None else ours
    elif claim.expected and _has_decimals(claim.expected) and _has_decimals(claim.ours):
        decimals = _decimals(ours.split(" ± ")[0])
        if claim.error is None:
            decimals = max(decimals, _decimals(expected))
            ours = f"{claim.ours:.{decimals}f}"
        rounded = f"{claim.expected:.{decimals}f}"
        expected = rounded if float(rounded) else expected  # never round a small value to zero
    return (expected, ours, "") if claim.exact else (expected, "", ours)


def _has_decimals(value: float | str) -> bool:
    """Return whether a value is a finite number that is shown without an exponent."""
    return not isinstance(value, str) and math.isfinite(value) and "e" not in number(value)


def _decimals(text: str) -> int:
    """Return the number of digits after the decimal point of a text."""
    return len(text.partition(".")[2])


class ColumnText(NamedTuple):
    """The cells of a column of a table as text, and whether they are numbers."""

    cells: list[str]
    is_numeric: bool


def columns_of(content: Table) -> list[ColumnText]:
    """Format the cells of a table; the fractions of a column have the same number of decimals.

    They keep decimals of their own if one is below 0.001 or above a million in size; 0 stays 0.

    >>> rows = (("rule", 2.75), ("naive", 1 / 3))
    >>> columns_of(Table("Regret", ("agent", "mean"), rows))[1]
    ColumnText(cells=['2.7500', '0.3333'], is_numeric=True)
    """
    found = []
    for values in zip(*content.rows, strict=True) if content.rows else [()] * len(content.header):
        cells = [number(value) for value in values]
        # The finite floats but 0.
        fractions = [v for v in values if isinstance(v, float) and v and math.isfinite(v)]
        sizes = [abs(v) for v in fractions]
        has_fraction = any(not v.is_integer() for v in fractions)
        if has_fraction and _SMALLEST <= min(sizes) <= max(sizes) < _LARGEST:
            digits_before_point = 1 + math.floor(math.log10(max(1.0, *sizes)))
            most = max(0, _COLUMN_DIGITS - digits_before_point)
            decimals = min(most, max(map(_decimals, map(number, fractions))))
            cells = [
                f"{v:.{decimals}f}" if isinstance(v, float) and v else number(v) for v in values
            ]
        is_numeric = any(not isinstance(v, str) or _NUMBER.match(v) for v in values)
        found.append(ColumnText(cells, is_numeric))
    return found


def number_and_verdict(claim: Claim | None) -> str:
    """Format our number of a claim, with the verdict unless it holds; empty without a claim.

    >>> number_and_verdict(Claim("x", "x is 1", "ours", 1.0, 2.0, None, False))
    '2, failed'
    """
    if claim is None:
        return ""
    return with_error(claim.ours, claim.error) + ("" if claim.holds else f", {verdict_of(claim)}")


def verdict_of(claim: Claim) -> str:
    """Return the verdict in the words of reports.

    >>> verdict_of(Claim("x", "x is 1", "ours", 1.0, 1.0, None, True))
    'passed'
    """
    return _WORDS.get((claim.source, claim.verdict), claim.verdict)


def summary(
    claims: Iterable[Claim],
    mark: Callable[[ClaimVerdict, str], str] = lambda _, words: words,
) -> dict[ClaimSource, str]:
    """Count the claims of each source by verdict; `mark` may decorate each count.

    >>> summary([Claim("x", "x is 1", "ours", 1.0, 1.0, None, True)])
    {'paper': 'none', 'ours': '1 passed'}
    """
    counts = Counter((claim.source, claim.verdict) for claim in claims)
    texts: dict[ClaimSource, list[str]] = {source: [] for source in get_args(ClaimSource)}
    for source, verdict in product(get_args(ClaimSource), get_args(ClaimVerdict)):
        if n := counts[source, verdict]:
            texts[source].append(mark(verdict, f"{n} {_WORDS.get((source, verdict), verdict)}"))
    return {source: ", ".join(found) or "none" for source, found in texts.items()}


def left_out(results: Iterable[Result]) -> str:
    """Name the checks that are left out at the quick size, in one line, or return ""."""
    names = "; ".join(
        f"{result.experiment.name}: {', '.join(result.score.left_out)}"
        for result in results
        if result.score.left_out
    )
    return names and f"Left out, because the quick size cannot decide them (use --full): {names}"


def sweep_tables(scores: Sequence[tuple[Point, Score]]) -> list[Table]:
    """Return the numbers of all claims, a column for each point of a sweep, and all tables.

    >>> claim = Claim("x", "x is 1", "ours", 1.0, 1.0, None, True)
    >>> sweep_tables([(Point(None, {"C": 5}, ""), Score((claim,)))])[0].header
    ('claim', 'expected', 'C = 5')
    """
    names = ", ".join(scores[0][0].swept) if scores else ""
    by_name = [{claim.name: claim for claim in score.claims} for _, score in scores]
    expected: dict[str, str] = {}
    for claim in (claim for _, score in scores for claim in score.claims):
        text = number(claim.expected)
        # "varies" unless it is the same at all points.
        expected[claim.name] = text if expected.get(claim.name, text) == text else "varies"
    tables = []
    for start in range(0, len(scores) if expected else 0, _POINTS):
        part = slice(start, start + _POINTS)
        rows = (
            (name, text, *(number_and_verdict(found.get(name)) for found in by_name[part]))
            for name, text in expected.items()
        )
        header = ("claim", "expected", *(point.label for point, _ in scores[part]))
        tables.append(Table(f"Our numbers over {names}", header, tuple(rows)))
    return tables + merged_tables([(point.swept, score) for point, score in scores])


def merged_tables(scores: Iterable[tuple[Mapping[str, object], Score]]) -> list[Table]:
    """Merge equal tables of the points of a sweep; the swept values are the first columns.

    >>> score = Score((), (Table("Regret", ("agent", "mean"), (("rule", 2.0),)),))
    >>> merged_tables([({"k": 1}, score), ({"k": 2}, score)])[0].rows
    ((1, 'rule', 2.0), (2, 'rule', 2.0))
    """
    found: dict[tuple[str, tuple[str, ...]], Table] = {}
    for swept, score in scores:
        values = tuple(v if isinstance(v, int | float) else str(v) for v in swept.values())
        for table in score.tables:
            header = (*swept, *table.header)
            merged = found.setdefault((table.title, header), replace(table, header=header, rows=()))
            rows = (*merged.rows, *((*values, *row) for row in table.rows))
            found[table.title, header] = replace(merged, rows=rows)
    return list(found.values())
