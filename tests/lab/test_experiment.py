"""Experiments are validated on construction, and found by name or by file."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayescontrol.lab import conduct
from bayescontrol.lab.discovery import UnknownExperiment, find, from_anywhere, names
from bayescontrol.lab.experiment import (
    Claim,
    Experiment,
    InvalidClaim,
    InvalidExperiment,
    Table,
    all_ours_hold,
)
from bayescontrol.report.tables import summary

Installed = Any  # a callable that installs a package with entry points


@dataclass(frozen=True)
class _NoRuns:
    seed: int = 0


@dataclass
class _Changing:
    seed: int = 0
    runs: int = 1


def test_an_installed_experiment_is_found_by_its_name(installed: Installed) -> None:
    installed({"coin": "coin_study:coin"})
    assert "coin" in names()
    assert find("coin").summary == "how often a biased coin falls on heads"


def test_an_unknown_name_gets_suggestions(installed: Installed) -> None:
    installed({"coin": "coin_study:coin"})
    with pytest.raises(UnknownExperiment, match=r"no experiment is called 'coim'.* coin"):
        find("coim")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_module:coin", r"'coin' \(no_such_module:coin\) cannot be loaded: ModuleNotFound"),
        ("coin_study:not_an_experiment", "holds 3; expected an Experiment called 'coin'"),
        ("coin_study:broken", "holds experiment 'broken'"),
    ],
)
def test_an_invalid_entry_point_is_reported(installed: Installed, value: str, message: str) -> None:
    installed({"coin": value})
    with pytest.raises(UnknownExperiment, match=message):
        find("coin")


def test_one_name_for_two_experiments_is_refused(installed: Installed) -> None:
    installed({"coin": "coin_study:coin"})
    installed({"coin": "coin_study:broken"}, package="other")
    with pytest.raises(UnknownExperiment, match="'coin' is registered more than once"):
        find("coin")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{study}:nothing", "has no experiment 'nothing'; it has: coin, "),
        ("{study}:not_an_experiment", "has no experiment 'not_an_experiment'"),
        ("{study}", r"has \d+ experiments: choose one of .*coin_study.py:coin, "),
        ("{folder}/no_study.py", "has 0 experiments: define an Experiment at the top"),
        ("{folder}/absent.py:coin", "there is no file .*absent.py"),
        ("{folder}/faulty.py:coin", "faulty.py cannot be imported: NameError"),
        ("{folder}/string.py:coin", "hidden by another module named 'string'"),
        ("{folder}/empty_study.py:coin", "it defines no Experiment"),
    ],
)
def test_an_invalid_file_is_reported_with_a_hint(
    study: Path, tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "faulty.py").write_text("coin = coun\n")
    (tmp_path / "string.py").write_text("coin = 1\n")
    (tmp_path / "empty_study.py").write_text("coin = 1\n")
    (tmp_path / "no_study.py").write_text("coin = 1\n")
    with pytest.raises(UnknownExperiment, match=message):
        find(name.format(study=study, folder=tmp_path))


def test_the_attribute_of_the_only_experiment_in_a_file_can_be_left_out(
    study: Path, tmp_path: Path
) -> None:
    find(f"{study}:coin")  # its folder is on the path now
    path = tmp_path / "only_study.py"
    path.write_text("from coin_study import Experiment, coin as only\n")
    assert find(str(path)) is find(f"{path}:only")
    assert from_anywhere(str(path)) == f"{path}:only"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "../coin"}, "it is used as a folder name"),
        ({"settings": _Changing}, "must be a frozen dataclass"),
        ({"settings": dict}, "must be a frozen dataclass"),
        ({"settings": _NoRuns}, "_NoRuns lacks runs"),
        ({"quick": 3}, "quick is 3; it must be a Settings"),
    ],
)
def test_invalid_parts_of_an_experiment_are_refused(
    coin: Experiment[Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidExperiment, match=message):
        replace(coin, **changes)


def test_a_table_with_a_short_row_is_refused() -> None:
    with pytest.raises(InvalidExperiment, match="row 1 has 1 cells; the header has 2"):
        Table("Regret", ("agent", "mean"), (("oracle", 0.0), ("naive",)))


def claim(**changes: object) -> Claim:
    values = {"source": "ours", "expected": 3.0, "ours": 3.1, "error": 0.1, "holds": True}
    if changes.get("source") == "paper":
        values["place"] = "section 6.1"
    return Claim("time", "it takes k steps", **{**values, **changes})  # type: ignore[arg-type]


def test_a_claim_of_ours_that_does_not_hold_fails_and_a_refuted_one_does_not() -> None:
    refuted = claim(source="paper", holds=False, reason="misprint")
    assert (refuted.verdict, refuted.place) == ("refuted", "section 6.1")
    assert all_ours_hold([claim(), refuted])
    assert not all_ours_hold([claim(), claim(holds=False)])


def test_numpy_scalars_become_plain_numbers() -> None:
    created = claim(expected=np.float64(3), ours=np.int64(4), error=np.float64(0), holds=np.True_)
    values = (created.expected, created.ours, created.error, created.holds)
    assert [type(value) for value in values] == [float, int, float, bool]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "theirs"}, "'time' has source='theirs'"),
        ({"error": -0.1}, "'time' has error=-0.1"),
        ({"source": "paper", "place": " "}, "'time' of the paper needs place="),
        ({"source": "paper", "holds": False}, r"'time' of the paper .* gives no reason"),
        ({"source": "paper", "holds": None}, r"'time' of the paper .* gives no reason"),
        ({"holds": None, "reason": "too hard"}, "'time' of ours must hold or fail"),
        ({"undecided": True}, "is undecided and gives no reason"),
        ({"undecided": True, "exact": True, "reason": "few"}, "no number of runs can decide it"),
    ],
)
def test_an_invalid_claim_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidClaim, match=message):
        claim(**changes)


def test_not_comparable_is_neither_held_nor_refuted_and_does_not_fail() -> None:
    lost = claim(source="paper", holds=None, reason="the map is lost")
    assert lost.verdict == "not comparable"
    assert lost.holds is None
    assert all_ours_hold([claim(), lost])
    assert summary([lost]) == {"paper": "1 not comparable", "ours": "none"}


@pytest.mark.parametrize("source", ["paper", "ours"])
@pytest.mark.parametrize("holds", [True, False, None])
def test_an_undecided_claim_neither_holds_nor_fails(source: Any, holds: bool | None) -> None:
    few = claim(source=source, holds=holds, undecided=True, reason="3 of 8 runs")
    assert (few.verdict, few.holds) == ("undecided", None)
    assert few.explanation == "too few runs to decide; 3 of 8 runs"
    assert all_ours_hold([few])


def test_the_quick_size_leaves_out_the_claims_that_it_cannot_decide() -> None:
    coin = find(f"{Path(__file__).parent / 'studies' / 'coin_study.py'}:coin")
    made = {c.name for c in conduct(coin, coin.quick).score.claims}
    first = min(made)
    part = replace(coin, full_only=(first,))
    quick = conduct(part, part.quick).score
    assert ({c.name for c in quick.claims}, quick.left_out) == (made - {first}, (first,))
    other = conduct(part, replace(part.quick, runs=part.quick.runs + 1)).score
    assert ({c.name for c in other.claims}, other.left_out) == (made, ())


def test_claims_of_the_paper_and_checks_of_ours_are_counted_separately() -> None:
    refuted = claim(source="paper", exact=True, holds=False, reason="misprint")
    claims = [claim(), claim(exact=True), claim(exact=True), claim(holds=False), refuted]
    assert summary(claims) == {"paper": "1 refuted", "ours": "3 passed, 1 failed"}
