"""The history checker accepts a correct history and detects every planted error."""

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
    assert violations(OPS, EVENTS[:4]) == []  # a call that did not return may not be executed


def decided(seq: int, key: str | None = None) -> Decided:
    return Decided(seq=seq, x=None, a="red", p=0.6, key=key, time=0.0)


def replaced(i: int, **fields: Any) -> list[Op]:
    """The operations, with other fields of operation i."""
    return [replace(op, **fields) if op is OPS[i] else op for op in OPS]


WRONG: dict[str, tuple[list[Op], list[Any]]] = {
    "a lost decision": (
        [*OPS, Op("act", [None], 70, 80, ["decision", "6", "red", 0.5, 5])],
        EVENTS,
    ),
    "a decision for two callers": ([*OPS, replace(OPS[0])], EVENTS),
    "a decision written twice": (OPS, [*EVENTS, decided(6)]),
    "another action": (replaced(0, result=["decision", "2", "blue", 0.5, 1]), EVENTS),
    "a key twice": (OPS, [*EVENTS[:4], decided(5, "k")]),
    "a key never requested": (OPS, [*EVENTS[:4], decided(5, "z")]),
    "a gap": (OPS, EVENTS[:3] + EVENTS[4:]),
    "a lost observation": ([*OPS, Op("observe", [3, 1], 70, 80, ["learned", True])], EVENTS),
    "learned twice": (replaced(4, result=["learned", True]), EVENTS),
    "never learned": (replaced(3, result=["learned", False]), EVENTS),
    "observed twice": (OPS, [*EVENTS, Observed(seq=6, n=2, o=1, time=0.0)]),
    "a false conflict": (replaced(5, args=[2, 1]), EVENTS),
    "out of order": (
        replaced(6, called=5, acked=8, result=["decision", "5", "red", 0.6, 4]),
        EVENTS,
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_history_is_detected(what: str) -> None:
    assert violations(*WRONG[what]) != []
