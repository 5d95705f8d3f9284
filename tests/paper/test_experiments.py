"""Every experiment at a small size: claims hold, and fail for planted errors; figures, tables."""

from dataclasses import replace
from typing import Any

import pytest
from tests.paper.cases import CASES, claims, columns, settings

from bayescontrol.lab import conduct
from bayescontrol.lab.discovery import find, names
from bayescontrol.lab.settings import InvalidSettings, parse
from bayescontrol.report.build import as_object

JUDGED = [name for name, case in CASES.items() if case.claims]
#: The experiments that make no claims from fewer runs, with their limits.
FEWEST = {
    "consistency": 20, "convergence": 100, "core": 300, "divergence": 50, "lower-bound": 200,
    "misspecified": 100, "policy-diagram": 20, "vanishing": 100,
}  # fmt: skip


def test_every_experiment_is_covered() -> None:
    assert set(CASES) == set(names())


@pytest.mark.parametrize("name", JUDGED)
def test_every_claim_holds(name: str) -> None:
    found = {name: claim.verdict for name, claim in claims(name, columns(name)).items()}
    assert found
    expected = dict.fromkeys(found, "holds") | CASES[name].others
    assert {k: v for k, v in found.items() if v not in ("holds", expected[k])} == {}


@pytest.mark.parametrize("name", [name for name in JUDGED if CASES[name].planted])
def test_planted_errors_make_their_claims_fail(name: str) -> None:
    right = claims(name, columns(name))
    for broken, tamper in CASES[name].planted:
        wrong: dict[str, Any] = {key: column.copy() for key, column in columns(name).items()}
        tamper(wrong)
        found = claims(name, wrong)
        for claim in broken.split():
            assert right[claim].holds, claim
            assert found[claim].verdict in ("fails", "refuted", "undecided"), claim
            assert not found[claim].holds, claim


@pytest.mark.parametrize("name", CASES)
def test_a_replica_is_a_function_of_the_settings_and_its_number(name: str) -> None:
    run, size = find(name).run, settings(name)
    again, other = run(replace(size, runs=9), 1), run(replace(size, seed=7), 1)
    for key, column in columns(name).items():
        assert again[key].tobytes() == column[1].tobytes(), key
    assert any(again[key].tobytes() != other[key].tobytes() for key in again)


@pytest.mark.parametrize("name", CASES)
def test_one_run_is_enough_for_tables_figures_and_json(name: str) -> None:
    result = conduct(find(name), settings(name, runs=1))
    if name in FEWEST:
        assert result.score.claims == ()
    ours = [claim for claim in result.score.claims if claim.source == "ours"]
    assert [claim.name for claim in ours if claim.verdict == "fails"] == []
    charts = find(name).figures(result.settings, result.columns)
    assert list(charts) == CASES[name].figures.split()
    assert all(len(chart.how_to_read) > 80 for chart in charts.values())
    assert all("{" not in f"{table.title}{table.note}" for table in result.score.tables)
    assert as_object(result)["experiment"] == name


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        *((name, {"runs": str(n - 1)}, rf"runs={n - 1}: .*>= {n}.* explain every claim")
          for name, n in FEWEST.items()),
        ("delusion", {"reliability": "0.5"}, "reliability=0.5"),
        ("delusion", {"reliability": "1"}, "reliability=1"),
        ("delusion", {"reliability": "nan"}, "reliability=nan"),
        ("divergence", {"steps": "50"}, "steps=50"),
    ],
)  # fmt: skip
def test_sizes_that_decide_nothing_are_refused(
    name: str, values: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidSettings, match=message):
        parse(find(name).settings, values)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("divergence", {"runs": 50, "steps": 200}),
        ("lower-bound", {"runs": 200, "steps": 10, "seed": 4}),
        ("vanishing", {"steps": 200, "long_steps": 500}),
        ("delusion", {"runs": 1, "steps": 1}),
        ("delusion", {"runs": 2, "steps": 9, "seed": 5}),
        ("consistency", {"weight": 0.1}),
        ("consistency", {"weight": 0.9}),
    ],
)
def test_every_claim_holds_at_the_smallest_size_and_under_another_prior(
    name: str, size: dict[str, Any]
) -> None:
    result = conduct(find(name), settings(name, **size))
    assert {claim.verdict for claim in result.score.claims} == {"holds"}


@pytest.mark.parametrize("name", CASES)
def test_notes_explain_the_tables(name: str) -> None:
    tables = find(name).score(settings(name), columns(name)).tables
    silent = [table.title for table in tables if not table.note]
    assert len(silent) == (2 if name == "delusion" else 0), silent
    assert all(table.rows for table in tables)
