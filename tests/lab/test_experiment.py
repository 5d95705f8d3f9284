"""Experiments are checked when they are made, and found by name or by file."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bayescontrol.lab.experiment import (
    Experiment,
    InvalidExperiment,
    Table,
    UnknownExperiment,
    find,
    names,
)

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


def test_an_unknown_name_gets_the_near_ones(installed: Installed) -> None:
    installed({"coin": "coin_study:coin"})
    with pytest.raises(UnknownExperiment, match=r"no experiment is called 'coim'.* coin"):
        find("coim")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_module:coin", r"'coin' \(no_such_module:coin\) cannot be loaded: ModuleNotFound"),
        ("coin_study:not_an_experiment", "holds 3, it must hold an Experiment called 'coin'"),
        ("coin_study:broken", "holds experiment 'broken'"),
    ],
)
def test_a_wrong_entry_point_is_named(installed: Installed, value: str, message: str) -> None:
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
        ("{study}", "write .*coin_study.py:ATTRIBUTE"),
        ("{folder}/absent.py:coin", "there is no file .*absent.py"),
        ("{folder}/faulty.py:coin", "faulty.py cannot be imported: NameError"),
        ("{folder}/string.py:coin", "hidden by another module called 'string'"),
        ("{folder}/empty_study.py:coin", "it defines no Experiment at all"),
    ],
)
def test_a_wrong_file_is_named_with_the_way_out(
    study: Path, tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "faulty.py").write_text("coin = coun\n")
    (tmp_path / "string.py").write_text("coin = 1\n")
    (tmp_path / "empty_study.py").write_text("coin = 1\n")
    with pytest.raises(UnknownExperiment, match=message):
        find(name.format(study=study, folder=tmp_path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "../coin"}, "the name becomes a folder"),
        ({"settings": _Changing}, "must be a frozen dataclass"),
        ({"settings": dict}, "must be a frozen dataclass"),
        ({"settings": _NoRuns}, "_NoRuns lacks runs"),
        ({"quick": 3}, "quick is 3, it must be a Settings"),
    ],
)
def test_parts_that_do_not_fit_are_refused(
    coin: Experiment[Any], changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidExperiment, match=message):
        replace(coin, **changes)


def test_a_table_with_a_short_row_is_refused() -> None:
    with pytest.raises(InvalidExperiment, match="row 1 has 1 cells, the header has 2"):
        Table("Regret", ("agent", "mean"), (("oracle", 0.0), ("naive",)))
