"""A decision is a value: equal to itself, told apart, and never changed."""

import copy
import pickle

import pytest

from bayescontrol.durable import Decision


def made(**changes: object) -> Decision:
    result = {"id": "2", "action": "red", "probability": 0.5, "situation": None, "basis": 1}
    return Decision(**{**result, "time": 0.0, **changes})  # type: ignore[arg-type]


def test_two_are_equal_if_the_log_says_the_same_of_them() -> None:
    assert made() == made(probabilities={"red": 0.5, "blue": 0.5}, agent="shop")
    assert hash(made()) == hash(made(agent="shop"))
    for other in ({"id": "3"}, {"action": "blue"}, {"situation": 1}, {"time": 1.0}):
        assert made() != made(**other)
    assert made() != "2"


def test_it_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        made().action = "blue"  # type: ignore[misc]


def test_it_can_be_sent_to_another_process() -> None:
    decision = made(probabilities={"red": 0.5, "blue": 0.5})
    for twin in (pickle.loads(pickle.dumps(decision)), copy.deepcopy(decision)):
        assert twin == decision
        assert twin.probabilities == decision.probabilities
