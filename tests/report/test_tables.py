"""Numbers are printed to the precision of their error, and verdicts unchanged."""

import io
import math
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console, RenderableType

from bayescontrol.cli import screen
from bayescontrol.lab.experiment import Claim, Score, Table
from bayescontrol.lab.runner import Result
from bayescontrol.report import tables

HOLDS = Claim("share", "the share is [red]the bias[/red]", "ours", 0.5, 0.503, 0.0166, True)
REFUTED = Claim(
    "printed", "it is 0.9", "paper", 0.9, 0.503, 0.0166, False, "a [bold]misprint[/bold]",
    place="section [4.2]", threshold_origin="theory: [two] standard errors",
)  # fmt: skip
FAILS = Claim("sum", "it adds up", "ours", 1.0, 2.0, None, False, exact=True)
LOST = Claim(
    "map", "it is 3", "paper", 3.0, 2.0, None, None, "the map is lost", place="section 5.2"
)
FEW = Claim("few", "it is 1", "ours", 1.0, 2.0, 3.0, True, "3 of 8", undecided=True)


def printed(content: RenderableType, width: int = 120) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(content)
    return out.getvalue()


def result(name: str, *claims: Claim) -> Result:
    experiment: Any = SimpleNamespace(name=name)
    return Result(experiment, {}, {}, Score(claims))


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (28.2093, 0.2187, "28.21 ± 0.22"),
        (28.2093, 0.0996, "28.209 ± 0.100"),
        (0.503, 0.0166, "0.503 ± 0.017"),
        (4101.7, 63.9, "4102 ± 64"),
        (15.58, 1.23, "15.6 ± 1.2"),
        (-3.0, 0.5, "-3.00 ± 0.50"),
        (0.5, 1e-12, "0.5 ± 1e-12"),
        (0.5, 0.0, "0.5 ± 0"),
        (3e9, 2e7, "3e+09 ± 2e+07"),
        (0.5, math.inf, "0.5 ± inf"),
        (math.nan, 0.1, "nan ± 0.1"),
        (2 / 3, None, "0.666667"),
        ("1/2", None, "1/2"),
        ("1/2", 0.1, "1/2 ± 0.1"),
    ],
)
def test_a_value_is_shown_as_far_as_its_error_allows(
    value: float | str, error: float | None, text: str
) -> None:
    assert tables.with_error(value, error) == text


def test_integers_are_shown_in_full() -> None:
    assert [tables.number(2**40), tables.number(4095.0), tables.number(1e12)] == [
        "1099511627776",
        "4095",
        "1e+12",
    ]


def test_claims_of_the_paper_come_first_with_place_sentence_and_reason() -> None:
    text = printed(screen.claims_table(result("coin", HOLDS, REFUTED, FAILS)))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert lines[0] == "What the paper says"
    assert re.fullmatch(r"refuted +printed \(section \[4\.2\]\) +0\.900 +0\.503 ± 0\.017", lines[3])
    assert lines[4:6] == ["it is 0.9", "a [bold]misprint[/bold]"]
    ours = lines.index("Our own checks")
    assert re.fullmatch(r"passed +share +0\.500 +0\.503 ± 0\.017", lines[ours + 3])
    assert re.fullmatch(r"failed +sum +1 +2", lines[ours + 4])


def test_the_overview_has_a_line_for_each_result_and_each_claim_that_is_not_confirmed() -> None:
    results = [result("coin", HOLDS, REFUTED, FEW), result("dice", FAILS, LOST, HOLDS)]
    text = printed(screen.overview(results))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "coin 1 refuted 1 passed, 1 undecided" in lines
    assert "dice 1 not comparable 1 passed, 1 failed" in lines
    assert "all 1 refuted, 1 not comparable 2 passed, 1 undecided, 1 failed" in lines
    assert "refuted coin, printed: a [bold]misprint[/bold]" in lines
    assert "undecided coin, few: too few runs to decide; 3 of 8" in lines
    assert "not comparable dice, map: the map is lost" in lines
    assert "failed dice, sum: it adds up" in lines


def test_the_overview_names_the_checks_that_are_left_out_in_one_line() -> None:
    full_only = replace(result("coin", HOLDS), score=Score((HOLDS,), left_out=("few", "rare")))
    text = printed(screen.overview([full_only, result("dice", HOLDS)]), width=200)
    assert text.splitlines()[-1] == (
        "Left out, because the quick size cannot decide them (use --full): coin: few, rare"
    )
    assert "Left out" not in printed(screen.overview([result("dice", HOLDS)]))


def test_a_long_reason_takes_one_line_of_the_overview() -> None:
    wordy = replace(REFUTED, reason="a misprint " * 50)
    text = printed(screen.overview([result("coin", wordy)]), width=80)
    (line,) = [line for line in text.splitlines() if "a misprint" in line]
    assert line.endswith("…")


def test_a_narrow_screen_loses_no_number() -> None:
    text = printed(screen.claims_table(result("coin", HOLDS, REFUTED)), width=60)
    assert "0.017" in text
    assert max(map(len, text.splitlines())) <= 60


@pytest.mark.parametrize(
    ("expected", "ours", "error", "texts"),
    [
        (0.3582, 0.36301, 0.0033, ("0.3582", "0.3630 ± 0.0033")),
        (0.6, 0.616, 0.015, ("0.600", "0.616 ± 0.015")),
        (1023.0, 1013.9, 35.9, ("1023", "1014 ± 36")),
        (0.5, 0.0, None, ("0.5", "0.0")),
        (4096, 4095.0, None, ("4096", "4095")),
        (0.0, 0.00342, 0.00055, ("0", "0.00342 ± 0.00055")),
        (1e-5, 0.01, 0.005, ("1e-05", "0.0100 ± 0.0050")),
        (0.001, 0.2, 0.11, ("0.001", "0.20 ± 0.11")),
        ("< 0.5", 2.367381e-30, None, ("< 0.5", "2.367e-30")),
        ("a b", "a", None, ("a b", "a")),
        (1.0, math.inf, math.nan, ("1", "inf ± nan")),
    ],
)
def test_the_numbers_of_a_claim_have_the_same_number_of_decimals(
    expected: Any, ours: Any, error: float | None, texts: tuple[str, str]
) -> None:
    claim = replace(HOLDS, expected=expected, ours=ours, error=error)
    assert tables.numbers_of(claim) == (texts[0], "", texts[1])
    assert tables.numbers_of(replace(claim, exact=True)) == (texts[0], texts[1], "")


def test_the_fractions_of_a_column_have_the_same_number_of_decimals() -> None:
    rows = (
        (1, 2.75, 1.5e-30, "1 ± 0", "a"), (2, 10.1374, 0.5, "not run", "2 b"),
        (3, 0.0, 0.5, "1", "c"),
    )  # fmt: skip
    columns = tables.columns_of(Table("T", ("k", "mean", "P", "runs", "word"), rows))
    assert [column.cells for column in columns] == [
        ["1", "2", "3"], ["2.750", "10.137", "0"], ["1.5e-30", "0.5", "0.5"],
        ["1 ± 0", "not run", "1"], ["a", "2 b", "c"],
    ]  # fmt: skip
    assert [column.is_numeric for column in columns] == [True, True, True, True, False]


def test_a_table_without_rows_keeps_its_header() -> None:
    assert "agent" in printed(screen.table(Table("Empty", ("agent", "mean"), ())))


def test_a_table_keeps_its_note_and_its_brackets() -> None:
    content = Table("Regret [bits]", ("agent", "mean"), (("rule [1]", 28.2093),), "4,000 runs")
    text = printed(screen.table(content))
    for words in ("Regret [bits]", "rule [1]", "28.209", "4,000 runs"):
        assert words in text
