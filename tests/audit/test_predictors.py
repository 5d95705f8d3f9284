"""Adaptors give equal audits for equal probabilities; failures name the world and the history."""

import sys
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier  # type: ignore[import-untyped]
from tests.audit import enumeration

from bayescontrol import BayesControlError, ControlRule
from bayescontrol._arrays import FloatArray
from bayescontrol.audit import (
    WORLDS,
    AgentPredictor,
    Batched,
    Classifier,
    Event,
    PredictorFailed,
    Stateful,
    Transcript,
    World,
    audit,
    did,
    saw,
    shown,
)
from bayescontrol.audit.predictors import predict
from bayescontrol.errors import MissingCapability
from bayescontrol.schedules import Every

LETTERS = WORLDS["two-hypotheses"]
LIAR = WORLDS["liar"]
DOCTOR = WORLDS["doctor"]
Answer = dict[str, float]


# -- one predictor in all shapes -------------------------------------------------------------------


def share_of_a(symbols: tuple[str, ...]) -> Answer:
    """P(A) = (number of A + 1) / (number of symbols + 2)."""
    p = (symbols.count("A") + 1) / (len(symbols) + 2)
    return {"A": p, "B": 1.0 - p}


def as_function(history: Transcript) -> Answer:
    return share_of_a(history.symbols)


class AsObject:
    def probabilities(self, history: Transcript) -> Answer:
        return as_function(history)


def as_batched(histories: Sequence[Transcript]) -> list[Answer]:
    return [as_function(history) for history in histories]


def as_stateful() -> Stateful:
    def probabilities(state: tuple[int, int]) -> Answer:
        p = (state[0] + 1) / (state[1] + 2)
        return {"A": p, "B": 1.0 - p}

    return Stateful(
        lambda world: (0, 0), lambda s, e: (s[0] + (e.symbol == "A"), s[1] + 1), probabilities
    )


class CountsModel:
    """A classifier that needs no training: the features are both counts."""

    classes_ = np.array(["B", "other", "A"])

    def predict_proba(self, counts: FloatArray) -> FloatArray:
        p = (counts[:, 0] + 1) / (counts.sum(1) + 2)
        return np.column_stack([(1 - p) / 2, np.full(len(p), 0.5), p / 2])


def count(histories: Sequence[Transcript]) -> FloatArray:
    return np.array([[h.symbols.count("A"), h.symbols.count("B")] for h in histories], np.float64)


SHAPES: dict[str, Callable[[], Any]] = {
    "object": AsObject,
    "batched": lambda: Batched(as_batched),
    "stateful": as_stateful,
    "classifier": lambda: Classifier(CountsModel(), count),
    "mapping": lambda: {"two-hypotheses": as_function, "liar": None},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_all_shapes_of_a_predictor_give_the_same_audit(shape: str) -> None:
    expected = audit(as_function, LETTERS, steps=4, runs=80)
    for one, other in zip(audit(SHAPES[shape](), LETTERS, steps=4, runs=80).rows,
                          expected.rows, strict=True):  # fmt: skip
        for name, number in other.as_object().items():
            assert one.as_object()[name] == pytest.approx(number, abs=1e-12)


def test_a_trained_classifier_of_scikit_learn_is_audited_as_the_function_that_it_learned() -> None:
    """The tree is trained on all histories of two steps, weighted by exact probabilities."""
    features, labels, weights = [], [], []
    exact: dict[tuple[str, ...], Answer] = {}

    def encode(histories: Sequence[Transcript]) -> FloatArray:
        numbers = {"points left": 1, "left": 1, "frog, points left": 1, "frog, points right": 2,
                   "prize, points left": 3, "prize, points right": 4, "right": 2}  # fmt: skip
        return np.array(
            [[len(h), *(numbers[s] for s in h.symbols), *[0] * (3 - len(h))] for h in histories]
        )

    for node in enumeration.nodes(LIAR, 2):
        exact[node.history.symbols] = enumeration.answers(LIAR, node.naive, node.a)
        for symbol, p in exact[node.history.symbols].items():
            features.append(encode([node.history])[0])
            labels.append(symbol)
            weights.append(p)
    model = DecisionTreeClassifier(random_state=0).fit(features, labels, sample_weight=weights)
    learned = audit(Classifier(model, encode), LIAR, steps=2, runs=100)
    for one, other in zip(
        learned.rows, audit(lambda h: exact[h.symbols], LIAR, steps=2, runs=100).rows, strict=True
    ):
        assert one.index == pytest.approx(other.index, abs=1e-9) == pytest.approx(1.0, abs=1e-9)
        assert one.regret == (None if other.regret is None else pytest.approx(other.regret))


@pytest.mark.parametrize("world", [LIAR, DOCTOR], ids=repr)
def test_an_agent_predicts_as_enumeration(world: World) -> None:
    predictor = AgentPredictor(world.agent(), world)
    for node in enumeration.nodes(world, 2):
        symbols = world.actions if node.a is None else world.observations
        found = predict(predictor, [node.history], symbols)
        np.testing.assert_allclose(found[0], node.rule, atol=1e-12)


def test_an_agent_and_a_function_with_its_probabilities_give_the_same_audit() -> None:
    exact = {
        node.history.symbols: enumeration.answers(LIAR, node.rule, node.a)
        for node in enumeration.nodes(LIAR, 2)
    }
    rows = [
        audit(predictor, LIAR, steps=2, runs=60).rows
        for predictor in (AgentPredictor(LIAR.agent(), LIAR), lambda h: exact[h.symbols])
    ]
    for one, other in zip(*rows, strict=True):
        for name in ("ed", "dd", "ee", "loss_rule", "loss_naive"):
            found, expected = getattr(one.sums, name), getattr(other.sums, name)
            np.testing.assert_allclose(found, expected, atol=1e-12)
        assert one.regret == pytest.approx(other.regret, abs=1e-12)


def test_an_agent_learns_from_actions_that_it_is_shown() -> None:
    history = Transcript([shown("left"), saw("frog, points right"), did("right")], "liar")
    v, _, x = enumeration.posteriors(LIAR, history.events)
    predictor = AgentPredictor(LIAR.agent(), LIAR)
    expected = (v / v.sum()) @ LIAR.modes.hypothesis[:, x, 1]
    np.testing.assert_allclose(predict(predictor, [history], LIAR.observations)[0], expected)


def test_an_agent_that_holds_modes_is_refused_and_the_given_agent_never_changes() -> None:
    with pytest.raises(MissingCapability, match="draws a mode at every step"):
        AgentPredictor(LIAR.agent(schedule=Every(3)), LIAR)
    agent = LIAR.agent(kind=ControlRule)
    before = agent.save()
    audit(AgentPredictor(agent, LIAR), LIAR, steps=2, runs=10)
    assert all(np.array_equal(before[name], array) for name, array in agent.save().items())


# -- states ----------------------------------------------------------------------------------------


def test_states_equal_a_replay_of_every_history_and_each_event_is_advanced_once() -> None:
    advanced = 0

    def advance(state: tuple[Event, ...], event: Event) -> tuple[Event, ...]:
        nonlocal advanced
        advanced += 1
        return (*state, event)

    states: list[tuple[Event, ...]] = []

    def probabilities(state: tuple[Event, ...]) -> Answer:
        states.append(state)
        return share_of_a(tuple(event.symbol for event in state))

    stateful = audit(Stateful(lambda _: (), advance, probabilities), LETTERS, steps=3, runs=50)
    assert stateful == audit(as_function, LETTERS, steps=3, runs=50)
    assert advanced == sum(1 for state in states if state)


def test_a_state_starts_with_the_name_of_the_world_and_answers_repeated_long_histories() -> None:
    names: list[str] = []

    def start(world: str) -> int:
        names.append(world)
        return 0

    predictor = Stateful(start, lambda n, _: n + 1, lambda n: {"A": n, "B": 0.0})
    long = Transcript([did("A"), saw("B")] * sys.getrecursionlimit(), "letters")
    found = predictor.answers([long, Transcript((), "letters"), long], ["A", "B"])
    assert [answer["A"] for answer in found] == [len(long), 0, len(long)]
    assert set(names) == {"letters"}


def test_memory_of_states_does_not_grow_with_the_length_of_the_history() -> None:
    def peak(steps: int) -> tuple[int, int]:
        predictor = Stateful(
            lambda _: np.zeros(20_000), lambda s, _: s + 1.0, lambda s: {"A": 0.5, "B": 0.5}
        )
        tracemalloc.start()
        audit(predictor, LETTERS, steps=steps, runs=20)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most, len(predictor._states)

    short, long = peak(6), peak(24)
    assert long[0] < 1.5 * short[0]  # of states of 160 kB, 20 or 40 at a time
    assert long[1] <= 20


# -- failures --------------------------------------------------------------------------------------

MALFORMED: list[tuple[Any, str]] = [
    ({"A": 0.5, "B": 0.4}, r"sum to 0\.9, expected 1"),
    ({"A": 0.5, "B": 0.5 + 1e-4}, r"sum to 1\.0001, expected 1"),
    ({}, "sum to 0, expected 1"),
    ({"A": 0.5, "C": 0.5}, "'C' cannot come next, expected one of 'A', 'B'"),
    ({"A": 1.5, "B": -0.5}, "must be numbers from 0 to 1"),
    ({"A": np.nan, "B": 1.0}, "must be numbers from 0 to 1"),
    ({"A": np.inf, "B": 1.0}, "sum to inf, expected 1"),
    ({"A": "much"}, "ValueError: could not convert"),
    ({"A": None}, "TypeError"),
    ([0.5, 0.5], r"it returned \[0.5, 0.5\], expected {symbol: probability}"),
    (None, "it returned None"),
]


@pytest.mark.parametrize(("answer", "words"), MALFORMED)
@pytest.mark.parametrize("batched", [False, True], ids=["one by one", "batched"])
def test_an_answer_that_is_no_distribution_names_the_world_and_the_history(
    answer: Any, words: str, batched: bool
) -> None:
    def wrong_after(history: Transcript) -> Any:
        return answer if history.symbols == ("A", "B") else {"A": 0.5, "B": 0.5}

    given = Batched(lambda hs: [wrong_after(h) for h in hs]) if batched else wrong_after
    with pytest.raises(PredictorFailed, match=words) as failure:
        audit(given, LETTERS, steps=2, runs=50)
    message = str(failure.value)
    assert "in the world 'two-hypotheses' after did 'A', saw 'B': " in message
    assert (failure.value.__cause__ is None) == ("Error" not in words)
    assert isinstance(failure.value, BayesControlError)


def test_probabilities_may_be_off_by_the_rounding_of_a_network_and_leave_out_symbols() -> None:
    row = audit(lambda _: {"A": np.float32(1 + 9e-6)}, LETTERS, steps=1, runs=5).rows[0]
    assert row.sums.ee[0, 0] == pytest.approx(2 * (1 - 0.655) ** 2, rel=1e-3)


@pytest.mark.parametrize("batched", [False, True], ids=["one by one", "batched"])
def test_a_crash_half_way_names_the_history_and_chains_the_cause(batched: bool) -> None:
    def crash(history: Transcript) -> Answer:
        if history.symbols[-2:] == ("A", "A"):
            raise ZeroDivisionError("no more letters")
        return {"A": 0.5, "B": 0.5}

    given = Batched(lambda hs: [crash(h) for h in hs]) if batched else crash
    with pytest.raises(PredictorFailed, match="ZeroDivisionError: no more letters") as failure:
        audit(given, LETTERS, steps=3, runs=50)
    assert "in the world 'two-hypotheses' after did 'A', saw 'A': Zero" in str(failure.value)
    assert isinstance(failure.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda hs: [{"A": 0.5, "B": 0.5}] * (len(hs) // 2), "0 answers for 1 histories"),
        (lambda hs: [{"A": 0.5, "B": 0.5}] * 3, "3 answers for 1 histories"),
        (lambda hs: None, "TypeError"),
        (lambda hs: {"A": 0.5, "B": 0.5}, "2 answers for 1 histories"),
    ],
)
def test_a_wrong_number_of_answers_is_refused(function: Any, words: str) -> None:
    with pytest.raises(PredictorFailed, match=words):
        audit(Batched(function), LETTERS, steps=1, runs=20)


def test_a_batch_that_fails_only_as_a_whole_names_its_first_history() -> None:
    def too_large(histories: Sequence[Transcript]) -> list[Answer]:
        if len(histories) > 1:
            raise MemoryError("2 histories are too many")
        return [{"A": 0.5, "B": 0.5}]

    with pytest.raises(PredictorFailed, match="after did 'A' and others: MemoryError: 2 his"):
        audit(Batched(too_large), LETTERS, steps=1, runs=20)


def test_a_classifier_without_any_class_that_can_come_next_is_refused() -> None:
    class Other(CountsModel):
        classes_ = np.array(["x", "y", "z"])

    with pytest.raises(PredictorFailed, match=r"after the empty history: .* from 0 to 1"):
        audit(Classifier(Other(), count), LETTERS, steps=1, runs=5)


def test_an_interrupt_by_the_user_is_not_a_failure_of_the_predictor() -> None:
    def interrupted(history: Transcript) -> Answer:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(interrupted, LETTERS, runs=5)
