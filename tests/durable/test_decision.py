"""A decision is an immutable value with equality."""

import copy
import pickle

import pytest

from bayescontrol.durable import Decision


def decision(**changes: object) -> Decision:
    result = {"id": "2", "action": "red", "probability": 0.5, "situation": None, "basis": 1}
    return Decision(**{**result, "time": 0.0, **changes})  # type: ignore[arg-type]


def test_decisions_are_equal_if_their_logged_fields_are() -> None:
    assert decision() == decision(probabilities={"red": 0.5, "blue": 0.5}, agent="shop")
    assert hash(decision()) == hash(decision(agent="shop"))
    for other in ({"id": "3"}, {"action": "blue"}, {"situation": 1}, {"time": 1.0}):
        assert decision() != decision(**other)
    assert decision() != "2"


def test_a_decision_is_immutable() -> None:
    with pytest.raises(AttributeError):
        decision().action = "blue"  # type: ignore[misc]


def test_a_decision_can_be_pickled_and_copied() -> None:
    original = decision(probabilities={"red": 0.5, "blue": 0.5})
    for twin in (pickle.loads(pickle.dumps(original)), copy.deepcopy(original)):
        assert twin == original
        assert twin.probabilities == original.probabilities
