"""A sweep is the product of its values, each checked, each in a folder of its own."""

from pathlib import Path
from typing import Any

import pytest

from bayescontrol.lab.experiment import Experiment, find
from bayescontrol.lab.settings import InvalidSettings, key
from bayescontrol.lab.sweep import axes, points, values_of


@pytest.fixture
def paced(study: Path) -> Experiment[Any]:
    return find(f"{study.with_name('paced_study.py')}:paced")


def test_the_last_setting_varies_fastest_and_values_are_typed(paced: Experiment[Any]) -> None:
    chosen = points(paced, {"runs": "3"}, values_of(["scale=1,2.5", "steps=5,6"]))
    assert [point.swept for point in chosen] == [
        {"scale": 1.0, "steps": 5},
        {"scale": 1.0, "steps": 6},
        {"scale": 2.5, "steps": 5},
        {"scale": 2.5, "steps": 6},
    ]
    assert {point.settings.runs for point in chosen} == {3}
    assert axes(chosen) == {"scale": [1.0, 2.5], "steps": [5, 6]}
    assert len({point.folder for point in chosen}) == 4
    assert chosen[0].folder == key("paced", chosen[0].settings)[:16]


def test_lists_of_lists_are_written_as_json(paced: Experiment[Any]) -> None:
    chosen = points(paced, {}, values_of(['words=[["a"],["b","c"]]']))
    assert [point.settings.words for point in chosen] == [("a",), ("b", "c")]


def test_the_number_of_runs_can_be_swept_though_the_key_does_not_know_it(
    paced: Experiment[Any],
) -> None:
    ten, twenty = points(paced, {}, values_of(["runs=10,20"]))
    assert ten.folder.rpartition("-")[0] == twenty.folder.rpartition("-")[0]
    assert (ten.folder[-3:], twenty.folder[-3:]) == ("-10", "-20")


@pytest.mark.parametrize(
    ("sweeps", "fixed", "message"),
    [
        (["scale"], {}, "--sweep scale: write --sweep KEY=VALUE,VALUE,..."),
        (["scale="], {}, "write --sweep KEY=VALUE,VALUE,..."),
        (["scale=1", "scale=2"], {}, "scale is swept twice"),
        (["scale=1,1"], {}, "1 is listed twice"),
        (["scale=1,1.0"], {}, "scale = 1.0 is listed twice"),
        (["scale=1,2"], {"scale": "3"}, "scale is both swept and set to 3"),
        (["scale=1,much"], {}, "scale=much: expected `float`"),
        (["scales=1,2"], {}, "there is no setting 'scales', did you mean scale?"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused_with_the_way_out(
    paced: Experiment[Any], sweeps: list[str], fixed: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidSettings) as caught:
        points(paced, fixed, values_of(sweeps))
    assert message in str(caught.value)
