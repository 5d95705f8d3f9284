"""Text becomes checked settings, or a message that says what would."""

from typing import Any

import pytest

from bayescontrol.lab.experiment import Experiment
from bayescontrol.lab.settings import InvalidSettings, describe, parse


def test_values_are_converted_to_the_type_of_their_field(coin: Experiment[Any]) -> None:
    settings = parse(
        coin.settings, {"seed": "7", "bias": "0.25", "side": "tails", "marks": "1, 2,9"}
    )
    assert settings == coin.settings(seed=7, bias=0.25, side="tails", marks=(1, 2, 9))


@pytest.mark.parametrize("text", ["[3]", "3"])
def test_several_values_may_be_json_or_separated_by_commas(
    coin: Experiment[Any], text: str
) -> None:
    assert parse(coin.settings, {"marks": text}).marks == (3,)


def test_without_values_the_defaults_stand(coin: Experiment[Any]) -> None:
    assert parse(coin.settings, {}) == coin.settings()


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
def test_a_wrong_value_is_named_with_its_field_and_the_allowed_ones(
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
