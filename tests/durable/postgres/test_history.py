"""The history checker accepts a correct history and detects every planted error."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.durable.postgres.history import Op, violations

from bayescontrol.durable import Created, Decided, Observed

EVENTS: list[Any] = [
    Created(seq=1, format=1, model="m", version=1, settings={}, seed=1, time=0.0),
    Decided(seq=2, x=None, a="red", p=0.5, key=None, time=0.0),
    Decided(seq=3, x=None, a="blue", p=0.5, key="k", time=0.0),
    Observed(seq=4, n=2, o=1, time=0.0),
    Decided(seq=5, x=None, a="red", p=0.6, key=None, time=0.0),
]
OPS = [
    Op("act", [None], 10, 20, ["decision", "2", "red", 0.5, 1]),
    Op("act", ["k"], 12, 30, ["decision", "3", "blue", 0.5, 2]),
    Op("act", ["k"], 14, 28, ["decision", "3", "blue", 0.5, 2]),
    Op("observe", [2, 1], 31, 40, ["learned", True]),
    Op("observe", [2, 1], 32, 50, ["learned", False]),
    Op("observe", [2, 0], 33, 51, ["error", "ConflictingFeedback"]),
    Op("act", [None], 60, None, None),
]


def test_a_correct_history_passes() -> None:
    assert violations(OPS, EVENTS) == []
    assert (
        violations(OPS, EVENTS[:4]) == []
    )  # a call that did not return may not have been executed


def _lost(ops: list[Op], events: list[Any]) -> None:
    ops.append(Op("act", [None], 70, 80, ["decision", "6", "red", 0.5, 5]))


def _duplicated(ops: list[Op], events: list[Any]) -> None:
    ops.append(replace(ops[0]))


def _written_twice(ops: list[Op], events: list[Any]) -> None:
    events.append(Decided(seq=6, x=None, a="red", p=0.6, key=None, time=0.0))


def _another_action(ops: list[Op], events: list[Any]) -> None:
    ops[0] = replace(ops[0], result=["decision", "2", "blue", 0.5, 1])


def _key_twice(ops: list[Op], events: list[Any]) -> None:
    events[4] = Decided(seq=5, x=None, a="red", p=0.6, key="k", time=0.0)


def _never_requested(ops: list[Op], events: list[Any]) -> None:
    events[4] = Decided(seq=5, x=None, a="red", p=0.6, key="z", time=0.0)


def _gap(ops: list[Op], events: list[Any]) -> None:
    del events[3]


def _lost_observation(ops: list[Op], events: list[Any]) -> None:
    ops.append(Op("observe", [3, 1], 70, 80, ["learned", True]))


def _learned_twice(ops: list[Op], events: list[Any]) -> None:
    ops[4] = replace(ops[4], result=["learned", True])


def _never_learned(ops: list[Op], events: list[Any]) -> None:
    ops[3] = replace(ops[3], result=["learned", False])


def _observed_twice(ops: list[Op], events: list[Any]) -> None:
    events.append(Observed(seq=6, n=2, o=1, time=0.0))


def _false_conflict(ops: list[Op], events: list[Any]) -> None:
    ops[5] = replace(ops[5], args=[2, 1])


def _out_of_order(ops: list[Op], events: list[Any]) -> None:
    ops[6] = Op("act", [None], 5, 8, ["decision", "5", "red", 0.6, 4])


@pytest.mark.parametrize(
    "spoil",
    [
        _lost, _duplicated, _written_twice, _another_action, _key_twice, _never_requested, _gap,
        _lost_observation, _learned_twice, _never_learned, _observed_twice, _false_conflict,
        _out_of_order,
    ],
)  # fmt: skip
def test_a_wrong_history_is_detected(spoil: Callable[[list[Op], list[Any]], None]) -> None:
    ops, events = list(OPS), list(EVENTS)
    spoil(ops, events)
    assert violations(ops, events) != []
