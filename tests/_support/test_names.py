"""The names of arms, states and actions."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import BernoulliBandit, interact
from bayescontrol._support.names import Names
from bayescontrol.errors import UnknownArm
from bayescontrol.testing import check_fused


def test_a_number_of_arms_names_them_by_index() -> None:
    labels = Names("arm", np.int64(3))  # type: ignore[arg-type]
    assert list(labels) == [0, 1, 2]
    assert labels.are_numbers
    assert labels.column(np.array([2, 0])).tolist() == [2, 0]


@pytest.mark.parametrize(
    "names",
    [["red", "blue"], [("a", 1), ("a", 2)], [None, 0], [1, 0], [5, 6], (7.5, "x"), range(3, 5)],
)
def test_any_hashable_value_can_be_a_name(names: Any) -> None:
    labels = Names("arm", names)
    assert [labels.place(name) for name in names] == list(range(len(names)))
    assert [labels[j] for j in range(len(labels))] == list(names)
    bandit = BernoulliBandit(names)
    check_fused(bandit.agent, lambda: bandit.environment([0.3, 0.6]), 50)
    assert set(interact(bandit.agent(), bandit.draw(0), 50, seed=0).actions) <= set(names)


@pytest.mark.parametrize("names", [[False, True], [0.0, 1.0]])
def test_names_that_equal_numbers_keep_their_type(names: list[Any]) -> None:
    assert not Names("arm", names).are_numbers
    bandit = BernoulliBandit(names)
    check_fused(bandit.agent, lambda: bandit.environment([0.3, 0.6]), 50)


@pytest.mark.parametrize(
    ("arms", "way_out"),
    [
        (0, "at least one"), (-2, "at least one"), ([], "at least one"), ("red", "a list"),
        (2.0, "a list"), (True, "a list"), (None, "a list"), (["a", "b", "a"], "'a'"),
        ([1, True], "must differ"), ([{}], "hashable"),
    ],
)  # fmt: skip
def test_a_value_without_arms_is_refused_with_a_hint(arms: Any, way_out: str) -> None:
    with pytest.raises(UnknownArm, match=way_out):
        Names("arm", arms)


def test_the_error_for_an_unknown_arm_lists_the_known_ones() -> None:
    with pytest.raises(UnknownArm, match="no arm 'pink': the arms are 'red', 'blue'"):
        Names("arm", ["red", "blue"]).place("pink")
    with pytest.raises(UnknownArm, match="…"):
        Names("arm", 20).place(20)
    unknown_arms: list[Any] = [-1, None, [], {}, "0"]
    for arm in unknown_arms:
        with pytest.raises(UnknownArm):
            Names("arm", 3).place(arm)


def test_labels_are_equal_if_their_names_are() -> None:
    assert Names("arm", 2) == Names("arm", [0, 1])
    assert Names("arm", 2) != Names("arm", [1, 0])
    assert Names("arm", 2) == (0, 1)
    assert Names("arm", ["a"]).with_name("b") == Names("arm", ["a", "b"])
    assert repr(Names("arm", ["a"])) == "('a',)"
