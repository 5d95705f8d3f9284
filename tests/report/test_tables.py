"""Numbers are printed to the precision of their error, and verdicts unchanged."""

import io
import math
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console, RenderableType

from bayescontrol.lab.experiment import Claim, Score, Table
from bayescontrol.lab.runner import Result
from bayescontrol.report.tables import claims_table, number, table, with_error

HOLDS = Claim("share", "the share is [red]the bias[/red]", "ours", 0.5, 0.503, 0.0166, True)
REFUTED = Claim(
    "printed", "it is 0.9", "paper", 0.9, 0.503, 0.0166, False, "a [bold]misprint[/bold]",
    place="section [4.2]", threshold_origin="theory: [two] standard errors",
)  # fmt: skip
FAILS = Claim("sum", "it adds up", "ours", 1.0, 2.0, None, False, exact=True)
LOST = Claim(
    "map", "it is 3", "paper", 3.0, 2.0, None, None, "the map is lost", place="section 5.2"
)


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
    assert with_error(value, error) == text


def test_integers_are_shown_in_full() -> None:
    assert [number(2**40), number(4095.0), number(1e12)] == ["1099511627776", "4095", "1e+12"]


def test_a_refuted_claim_is_shown_as_refuted_with_its_reason() -> None:
    text = printed(claims_table([result("coin", HOLDS, REFUTED, FAILS)]))
    rows = {line.split()[0]: line.split()[-1] for line in text.splitlines() if line.strip()}
    assert (rows["share"], rows["sum"]) == ("holds", "fails,")
    assert any(line.rstrip().endswith("refuted") for line in text.splitlines())
    assert "printed (section [4.2]) is refuted: a [bold]misprint[/bold]; threshold:" in text
    assert "the share is [red]the bias[/red]" in text
    assert "experiment" not in text


def test_the_place_in_the_paper_and_the_origin_of_the_threshold_are_shown() -> None:
    text = printed(claims_table([result("coin", HOLDS, REFUTED)]))
    assert "printed (section [4.2]) is refuted" in text
    assert "; threshold: theory: [two] standard errors" in text


def test_exact_claims_are_counted_separately_and_incomparable_ones_are_not_refuted() -> None:
    text = printed(claims_table([result("coin", HOLDS, REFUTED, FAILS, LOST)]))
    assert "map (section 5.2) is not comparable: the map is lost" in text
    summary = (
        "3 claims by simulation: 1 held, 1 of the paper refuted, 1 of the paper not comparable; "
        "1 exact: 0 held, 1 of ours failed"
    )
    assert summary in text
    one = printed(claims_table([result("coin", HOLDS)]))
    assert "exact" not in one
    assert "1 claim by simulation: 1 held" in one


def test_several_experiments_share_one_table() -> None:
    text = printed(claims_table([result("coin", HOLDS, REFUTED), result("dice", FAILS)]))
    assert text.count("verdict") == 1
    assert [text.count("coin"), text.count("dice")] == [1, 1]


def test_a_narrow_screen_loses_no_number() -> None:
    text = printed(claims_table([result("coin", HOLDS, REFUTED)]), width=60)
    assert "0.017" in text
    assert max(map(len, text.splitlines())) <= 60


def test_a_table_keeps_its_note_and_its_brackets() -> None:
    content = Table("Regret [bits]", ("agent", "mean"), (("rule [1]", 28.2093),), "4,000 runs")
    text = printed(table(content))
    for words in ("Regret [bits]", "rule [1]", "28.2093", "4,000 runs"):
        assert words in text
