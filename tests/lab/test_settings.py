"""Text is parsed into validated settings, or a helpful error is raised."""

import json
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from bayescontrol.lab.experiment import Experiment
from bayescontrol.lab.settings import (
    InvalidSettings,
    axes,
    describe,
    key,
    parse,
    plain,
    points,
    restore,
    values_of,
)


@dataclass(frozen=True)
class _Odd:
    low: float = 0.0
    high: float = 0.0


def test_values_are_converted_to_the_type_of_their_field(coin: Experiment[Any]) -> None:
    settings = parse(
        coin.settings, {"seed": "7", "bias": "0.25", "side": "tails", "marks": "1, 2,9"}
    )
    assert settings == coin.settings(seed=7, bias=0.25, side="tails", marks=(1, 2, 9))
    assert parse(coin.settings, {}) == coin.settings()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("marks", "[3]", (3,)), ("marks", "3", (3,)),
        ("bias", ".5", 0.5), ("bias", "1e-2", 0.01), ("bias", "1", 1.0),
    ],
)  # fmt: skip
def test_lists_and_numbers_can_be_written_in_common_notations(
    coin: Experiment[Any], name: str, text: str, value: Any
) -> None:
    assert getattr(parse(coin.settings, {name: text}), name) == value


def test_stored_settings_round_trip(coin: Experiment[Any]) -> None:
    settings = coin.settings(seed=3, bias=0.125, marks=(2, 4), side="tails")
    written = json.loads(json.dumps(plain(settings), allow_nan=False))
    assert restore(coin.settings, written) == settings
    assert restore(_Odd, plain(_Odd(math.inf, -math.inf))) == _Odd(math.inf, -math.inf)
    assert math.isnan(restore(_Odd, plain(_Odd(math.nan, 0.0))).low)


def test_settings_of_another_version_are_reported(coin: Experiment[Any]) -> None:
    with pytest.raises(InvalidSettings, match="another version of the experiment"):
        restore(coin.settings, {"bias": "much"})


def test_the_key_depends_on_every_setting_except_the_number_of_runs(coin: Experiment[Any]) -> None:
    one = coin.settings()
    assert key("coin", one) == key("coin", replace(one, runs=7))
    others = [replace(one, **change) for change in ({"seed": 1}, {"bias": 0.4}, {"marks": (1,)})]
    assert len({key("coin", settings) for settings in (one, *others)} | {key("x", one)}) == 5


def test_the_key_does_not_change_from_version_to_version() -> None:
    """Stored results must be found by later versions."""
    settings = {"seed": 1, "runs": 9, "C": 2.5, "depths": (1, 2), "eps": math.inf, "on": True}
    assert key("maze", settings).startswith("a4eb7a6c7ffaf52b64e1b42179e65199")


def test_settings_that_cannot_be_stored_are_refused() -> None:
    with pytest.raises(InvalidSettings, match=r"maze: .* cannot be stored"):
        key("maze", {"table": np.zeros(3)})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"runs": "0"}, r"runs=0: expected `int` >= 1 \(runs, int ≥ 1: number of replicas\)"),
        ({"steps": "many"}, r"steps=many: expected `int` \(steps, int ≥ 1: throws in a replica\)"),
        ({"bias": "1.5"}, r"bias=1.5: .* \(bias, float ≥ 0, ≤ 1: probability of heads\)"),
        ({"side": "edge"}, r"side=edge: .* \(side, heads | tails\)"),
        ({"bais": "1"}, "bais=1: there is no setting 'bais', did you mean bias?"),
        ({"zzz": "1"}, r"there is no setting 'zzz'\."),
        ({"marks": "99"}, "marks=99: a mark at 99 lies beyond steps=25"),
    ],
)
def test_an_invalid_value_is_reported_with_its_field_and_the_allowed_ones(
    coin: Experiment[Any], values: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidSettings, match=message) as caught:
        parse(coin.settings, values)
    assert str(caught.value).endswith("Allowed settings: seed, runs, steps, bias, side, marks")


def test_a_field_is_described_by_its_type_bounds_default_and_meaning(
    coin: Experiment[Any],
) -> None:
    fields = {field.name: field for field in describe(coin.settings)}
    assert list(fields) == ["seed", "runs", "steps", "bias", "side", "marks"]
    assert fields["bias"].type == "float ≥ 0, ≤ 1"
    assert fields["bias"].description == "probability of heads"
    assert fields["side"].type == "heads | tails"
    assert fields["marks"].type == "tuple[int, ...]"
    assert fields["marks"].default == (1, 5)


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


def test_the_number_of_runs_can_be_swept_although_the_key_omits_it(
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
def test_an_impossible_sweep_is_refused_with_a_hint(
    paced: Experiment[Any], sweeps: list[str], fixed: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidSettings) as caught:
        points(paced, fixed, values_of(sweeps))
    assert message in str(caught.value)
