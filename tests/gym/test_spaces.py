"""Elements of Gymnasium's spaces convert to plain names and back."""

from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol.errors import InvalidTable, MissingCapability, UnknownAction
from bayescontrol.gym import BoxSpace, FiniteSpace, as_space

SPACES = [
    Discrete(5),
    Discrete(3, start=-1),
    MultiDiscrete([2, 3]),
    MultiDiscrete(np.array([[2, 1], [3, 2]]), start=np.array([[0, 4], [-1, 0]])),
    MultiBinary(3),
    Tuple((Discrete(2), MultiDiscrete([2, 2]))),
    Dict(b=Discrete(2), a=Tuple((MultiBinary([1, 2]), Discrete(2, start=7)))),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_names_and_elements_convert_to_each_other(space: Any) -> None:
    finite = FiniteSpace(space)
    names = finite.names()
    assert len(set(names)) == len(names) == finite.size
    for name in names:
        element = finite.element(name)
        assert space.contains(element)
        assert finite.name(element) == name


@given(st.sampled_from(SPACES), st.integers(0, 2**31))
def test_samples_of_a_space_have_plain_names(space: Any, seed: int) -> None:
    space.seed(seed)
    name = FiniteSpace(space).name(space.sample())
    assert name in FiniteSpace(space).names()
    assert {type(i) for i in np.atleast_1d(np.array(name, object))} == {int}


@pytest.mark.parametrize("wrong", [5, -1, 1.5, "a", None, (1,), [1, 2], np.nan])
def test_an_unknown_name_is_refused(wrong: Any) -> None:
    with pytest.raises(UnknownAction, match="is not the name of an element"):
        FiniteSpace(Discrete(5)).element(wrong)
    with pytest.raises(UnknownAction, match="is not the name of an element"):
        FiniteSpace(MultiDiscrete([2, 2, 2])).element(wrong)


def test_elements_of_a_space_too_large_to_list_have_names() -> None:
    space = FiniteSpace(MultiBinary(40))
    assert space.name(np.ones(40, np.int8)) == (1,) * 40
    with pytest.raises(InvalidTable, match="too many to list"):
        space.names()


def test_an_array_is_copied_and_an_action_is_cast_and_checked() -> None:
    space = as_space(Box(-2.0, 2.0, (1,)))
    assert isinstance(space, BoxSpace)
    room = np.zeros(1, np.float32)
    named = space.name(room)
    room[0] = 1.0
    assert named[0] == 0.0
    assert space.element(1.0).dtype == np.float32
    for wrong in (2.5, np.nan, [1.0, 2.0], "up", None):
        with pytest.raises(UnknownAction):
            space.element(wrong)


@pytest.mark.parametrize("space", [Text(4), Tuple((Discrete(2), Box(0.0, 1.0)))], ids=str)
def test_other_spaces_are_refused_with_a_hint(space: Any) -> None:
    with pytest.raises(MissingCapability, match="FlattenObservation"):
        as_space(space)
