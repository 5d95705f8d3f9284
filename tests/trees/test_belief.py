"""The belief over context trees equals enumeration of all trees in exact fractions."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.trees import enumeration
from tests.trees.worlds import TIGER, Tiger, by_field, learned, random_cycles, small, tree_of

from bayescontrol import Stream
from bayescontrol.errors import (
    BadEvidence,
    BadSituation,
    IncompatibleState,
    InvalidTable,
    UnknownAction,
)
from bayescontrol.testing import check_bad_evidence, check_deterministic, check_save
from bayescontrol.trees import ContextTreeBelief, ContextTrees
from bayescontrol.trees.belief import MOST_STEPS


def exact_evidence(problem: ContextTrees, cycles: list[list[int]]) -> Fraction:
    """P(percepts | actions), by enumeration of the trees of every field."""
    total = Fraction(1)
    for _, data, widths, E in by_field(problem, cycles):
        total *= sum(enumeration.joint(data, widths, E).values())
    return total


def recursive_evidence(
    problem: ContextTrees, cycles: list[list[int]], inside: dict[int, Any] | None = None
) -> Fraction:
    """The same by recursion over all contexts, or those in the trees `inside` of each slot."""
    total = Fraction(1)
    for slot, data, widths, E in by_field(problem, cycles):
        opened = None if inside is None else set(enumeration.internal(inside[slot]))
        total *= enumeration.weighted(data, widths, E, opened)
    return total


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_equals_enumeration_of_all_trees(depth: int, seed: int) -> None:
    for problem in (small(depth), ContextTrees(2, {"reward": [0.0, 1.0]}, depth=depth)):
        cycles = random_cycles(problem, 12, seed)
        exact = math.log(exact_evidence(problem, cycles))
        assert learned(problem, cycles).log_evidence == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("steps", [0, 1, 2, 9])
def test_predictions_are_ratios_of_evidence_and_do_not_learn(steps: int) -> None:
    problem = small(3)
    cycles = random_cycles(problem, steps, seed=4)
    belief, before = learned(problem, cycles), exact_evidence(problem, cycles)
    state = belief.save()
    found = belief.predictive(None, 1)
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)
    for percept in problem.alphabet.percepts():
        o = problem.alphabet.observation(percept)
        exact = float(exact_evidence(problem, [*cycles, [1, *percept]]) / before)
        assert found[o] == pytest.approx(exact, rel=1e-12)
        assert belief.log_predictive(None, 1, o) == pytest.approx(math.log(exact), abs=1e-12)
    after = belief.save()
    assert all(np.array_equal(state[name], after[name]) for name in state)


def test_a_prediction_is_what_the_next_step_adds_to_the_evidence() -> None:
    belief, rng, world = TIGER.belief(), Stream(3), Tiger()
    for _ in range(400):
        a = rng.choice(list(TIGER.alphabet.actions))
        o = world.respond(a, rng)
        before, predicted = belief.log_evidence, belief.log_predictive(None, a, o)
        belief.observe(None, a, o)
        assert belief.log_evidence - before == pytest.approx(predicted, abs=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_expanding_nodes_at_the_second_visit_loses_nothing(seed: int) -> None:
    problem = small(8)
    cycles = random_cycles(problem, 60, seed)
    belief, exact = learned(problem, cycles), recursive_evidence(problem, cycles)
    assert belief.log_evidence == pytest.approx(math.log(exact), rel=1e-12)
    contexts = sum(
        len({context[:level] for context, _ in enumeration.samples(cycles, slot, 8)})
        for slot in (1, 2)
        for level in range(9)
    )
    assert belief.nodes < contexts  # although it has the siblings of each context too


def test_a_repeated_history_is_expanded_to_the_full_depth() -> None:
    problem = ContextTrees(1, {"reward": [0.0, 1.0]}, depth=6)
    cycles = [[0, 1]] * 12
    exact = recursive_evidence(problem, cycles)
    assert learned(problem, cycles).log_evidence == pytest.approx(math.log(exact), rel=1e-12)


def trees_in_memory(belief: ContextTreeBelief) -> dict[int, Any]:
    """Return the tree of each slot of `small`, with the nodes that have children in memory."""
    return {slot: tree_of(belief, belief._nodes.child, slot)[0] for slot in (1, 2)}


@pytest.mark.parametrize("max_nodes", [2, 9, 30, 31, 32, 33, 80])
def test_with_full_memory_the_belief_is_exact_for_the_trees_cut_there(max_nodes: int) -> None:
    problem = small(5, max_nodes=max_nodes)
    cycles = random_cycles(problem, 90, seed=1)
    belief, filled_at = problem.belief(), None
    for t, (a, *percept) in enumerate(cycles):
        belief.observe(None, a, problem.alphabet.observation(percept))
        if belief.is_full and filled_at is None:
            filled_at, shape = t, trees_in_memory(belief)
    assert filled_at is not None
    assert filled_at < 60
    assert belief.nodes <= max_nodes
    assert shape == trees_in_memory(belief)
    exact = recursive_evidence(problem, cycles, shape)
    assert belief.log_evidence == pytest.approx(math.log(exact), rel=1e-12)


def test_with_full_memory_only_the_latest_context_is_stored() -> None:
    problem = small(4, max_nodes=40)
    cycles = random_cycles(problem, 3_000, seed=2)
    belief, whole = problem.belief(), small(4, max_nodes=40).belief()
    whole.history.symbols = np.zeros(20_000, np.uint8)  # room for the whole history
    for a, *percept in cycles:
        o = problem.alphabet.observation(percept)
        assert belief.log_predictive(None, a, o) == whole.log_predictive(None, a, o)
        for each in (belief, whole):
            each.observe(None, a, o)
    assert belief.history.symbols.size < 2_000 < whole.history.end
    assert belief.log_evidence == whole.log_evidence
    assert belief.predictive(None, 0) == whole.predictive(None, 0)


def test_memory_grows_without_an_effect_on_the_evidence() -> None:
    problem = small(12)
    cycles = random_cycles(problem, 1_500, seed=3)
    belief, roomy = learned(problem, cycles), problem.belief()
    roomy._nodes = roomy._new_pool(100_000)
    for a, *percept in cycles:
        roomy.observe(None, a, problem.alphabet.observation(percept))
    assert belief.nodes == roomy.nodes > 4 * 1024
    assert belief.log_evidence == roomy.log_evidence


def test_many_branches_and_a_deep_first_step_fit_into_memory() -> None:
    problem = ContextTrees(2, {"field": 200, "reward": [0.0, 1.0]}, depth=60)
    belief = problem.belief()
    for t in range(20):
        belief.observe(None, 0, (1.0, t % 2))
    assert not belief.is_full


def test_a_field_with_one_symbol_adds_nothing() -> None:
    with_field = ContextTrees(2, {"field": 1, "reward": [0.0, 1.0]}, depth=4)
    without = ContextTrees(2, {"reward": [0.0, 1.0]}, depth=4)
    first, second, rng = with_field.belief(), without.belief(), Stream(2)
    for _ in range(50):
        a, r = int(rng.integers(2)), float(rng.integers(2))
        first.observe(None, a, (r, 0))
        second.observe(None, a, (r,))
    assert first.log_evidence == second.log_evidence
    assert list(first.predictive(None, 0)) == [(0.0, 0), (1.0, 0)]


# -- laws and state --------------------------------------------------------------------------------

INVALID: list[tuple[Any, Any, Any, type[Exception], str]] = [
    (None, 0, (0.5, 1), BadEvidence, "reward of .0.5, 1. after action 0: no symbol 0.5"),
    (None, 0, (0.0, 7), BadEvidence, "field of .0.0, 7. after action 0: no symbol 7"),
    (None, 0, (math.nan, 0), BadEvidence, "no symbol nan"),
    (None, 0, ([1.0], 0), BadEvidence, r"no symbol \[1.0\]"),
    (None, 0, (None, 0), BadEvidence, r"expected \(reward, field\)"),
    (None, 0, (0.0,), BadEvidence, r"expected \(reward, field\)"),
    (None, 0, 3, BadEvidence, r"observation 3 after action 0: expected \(reward, field\)"),
    (None, 2, (0.0, 0), UnknownAction, "no action 2"),
    ("here", 0, (0.0, 0), BadSituation, "pass None"),
]
HISTORY: list[tuple[Any, Any, Any]] = [
    (None, cycle[0], small(3).alphabet.observation(cycle[1:]))
    for cycle in random_cycles(small(3), 40, seed=6)
]


@pytest.mark.parametrize("problem", [small(3), small(3, max_nodes=20)])
def test_the_laws_of_beliefs_hold(problem: ContextTrees) -> None:
    check_deterministic(problem.belief, HISTORY)
    check_save(problem.belief, HISTORY)
    check_bad_evidence(problem.belief, HISTORY, [step[:3] for step in INVALID])


@pytest.mark.parametrize(("x", "a", "o", "error", "message"), INVALID)
def test_an_invalid_step_names_the_value(
    x: Any, a: Any, o: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        small(3).belief().log_predictive(x, a, o)


def test_a_loaded_belief_continues_with_the_trees_drawn_last() -> None:
    for max_nodes in (1_000_000, 120):
        problem = small(5, max_nodes=max_nodes)
        belief = learned(problem, random_cycles(problem, 200, seed=7))
        m = belief.sample(Stream(1))
        restored = problem.belief()
        restored.load(belief.save())
        again = restored.last()
        assert again is not None
        assert again.gain == m.gain
        assert again.observation_probabilities(None, 1) == m.observation_probabilities(None, 1)
        for each in (belief, restored):
            each.observe(None, 0, (4.0, 1))
        assert again.state == m.state
        assert belief.sample(Stream(2)).gain == restored.sample(Stream(2)).gain


@pytest.mark.parametrize("max_states", [2, 5, 20])
def test_a_belief_whose_drawn_trees_were_cut_can_be_loaded(max_states: int) -> None:
    problem, cut = small(9, max_states=max_states), 0
    belief = learned(problem, random_cycles(problem, 300, seed=3))
    for seed in range(20):
        m, restored = belief.sample(Stream(seed)), problem.belief()
        restored.load(belief.save())
        again = restored.last()
        assert again is not None
        assert (again.gain, again.state) == (m.gain, m.state)
        assert again.observation_probabilities(None, 1) == m.observation_probabilities(None, 1)
        cut += m.plan.limit < 9
    assert cut >= 5


def test_the_fields_besides_the_reward_may_be_one_tuple() -> None:
    problem = ContextTrees(2, {"at": 3, "light": 2, "reward": [0.0, 1.0]}, depth=5)
    flat, nested = problem.belief(), problem.belief()
    for at, light, r in [(0, 1, 0.0), (2, 0, 1.0), (1, 1, 1.0)]:
        flat.observe(None, 0, (r, at, light))
        nested.observe(None, 0, (r, (at, light)))
    assert nested.log_evidence == flat.log_evidence
    for bad in (
        (1.0, (0, 1, 1)),
        (1.0, (0,)),
        (1.0, 0),
        {"reward": 1.0, "at": 0, "light": 0},
        "12",
    ):
        with pytest.raises(BadEvidence, match=r"expected \(reward, at, light\)"):
            nested.observe(None, 0, bad)
    assert nested.steps == 3


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("history", lambda v: v[:3]),
        ("history", lambda v: v[:-1]),
        ("history", lambda v: v[:-3]),
        ("history", lambda v: np.full_like(v, 9)),
        ("child", lambda v: v + 1),
        ("child", lambda v: np.where(v > 0, v[::-1].max(), 0).astype(v.dtype)),
        ("child", np.zeros_like),
        ("visit", lambda v: v - 10_000),
        ("visit", lambda v: v - 1),
        ("counts", lambda v: -v),
        ("counts", lambda v: v[:, :1]),
        ("steps", lambda v: v + 1),
        ("odds", lambda v: v * np.nan),
        ("drawn", lambda v: v[:-1]),
        ("drawn", lambda v: v + 0.5),
        ("drawn", lambda v: np.concatenate([v[:1] + 0.5, v[1:]])),
        ("drawn", lambda v: 0.5 * v),
        ("drawn", lambda v: np.concatenate([v[:1], [1e300], v[2:]])),
        ("full", lambda v: v + 2),
        ("drawn", lambda v: np.array([4.0, 0.0, 1.0, 0.0, 0.0])),  # one leaf for two fields
    ],
)
def test_damaged_states_are_refused_and_change_nothing(name: str, change: Any) -> None:
    problem = small(7)
    belief = learned(problem, random_cycles(problem, 60, seed=8))
    belief.sample(Stream(0))
    arrays = belief.save()
    arrays[name] = change(arrays[name])
    other = problem.belief()
    with pytest.raises(IncompatibleState):
        other.load(arrays)
    assert other.steps == 0
    assert other.nodes == 2


def test_with_full_memory_a_history_that_ends_within_a_cycle_is_refused() -> None:
    problem = small(5, max_nodes=30)
    for steps in (20, 300):
        belief, restored = learned(problem, random_cycles(problem, steps, seed=1)), problem.belief()
        assert belief.is_full
        arrays = belief.save()
        restored.load(arrays)
        with pytest.raises(IncompatibleState, match="the nodes are not those of context trees"):
            restored.load(arrays | {"history": arrays["history"][:-1]})


def test_more_steps_than_a_node_can_count_are_refused() -> None:
    belief = small(2).belief()
    belief.observe(None, 0, (0.0, 1))
    belief._nodes.counts[:2] *= MOST_STEPS  # as after so many equal steps
    belief._nodes.n[:2] = belief.steps = MOST_STEPS
    assert belief.log_predictive(None, 0, (0.0, 1)) < 0.0
    before = belief.save()
    with pytest.raises(BadEvidence, match="at most 2147483647 steps"):
        belief.observe(None, 0, (0.0, 1))
    assert all(np.array_equal(belief.save()[name], v) for name, v in before.items())


# -- refusals --------------------------------------------------------------------------------------

REWARD = {"reward": [0.0, 1.0]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, {"reward": [0.0, 1.0], "field": 2}), "last of which is called"),
        ((2, [0.0, 1.0]), "expected a dict of named fields"),
        ((2, {1: 2, "reward": [0.0, 1.0]}), "expected a dict of named fields"),
        ((2, {"reward": ["low", "high"]}), "reward 'low': expected a finite number"),
        ((2, {"reward": [0.0, math.inf]}), "reward inf: expected a finite number"),
        ((2, {"reward": [1.0]}), "the only reward is 1.0"),
        ((2, {"reward": [1.0, 1]}), "two symbols are called 1"),
        ((2, {"field": 300, **REWARD}), "at most 256"),
        ((2, {"field": [], **REWARD}), "at least one symbol"),
        ((0, REWARD), "at least one action"),
    ],
)
def test_invalid_alphabets_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidTable, match=message):
        ContextTrees(*arguments)


@pytest.mark.parametrize("setting", ["depth", "max_nodes", "max_states"])
def test_invalid_settings_are_refused(setting: str) -> None:
    invalid: tuple[Any, ...] = (0, -1, 1.5, "many", True)
    for value in invalid:
        with pytest.raises(InvalidTable, match=f"{setting}={value!r}"):
            ContextTrees(2, REWARD, **{setting: value})
