"""The belief over context trees equals enumeration of all trees in exact fractions."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.trees import enumeration
from tests.trees.worlds import TIGER, Corridor, Tiger, learned, random_cycles, small

from bayescontrol import MISSING, Stream
from bayescontrol.errors import (
    BadEvidence,
    BadSituation,
    IncompatibleState,
    InvalidTable,
    UnknownAction,
)
from bayescontrol.testing import (
    check_acting,
    check_bad_evidence,
    check_deterministic,
    check_resume,
    check_same_seed,
    check_save,
)
from bayescontrol.trees import ContextTreeBelief, ContextTrees

ONE_FIELD = ContextTrees(2, {"reward": [0.0, 1.0]}, depth=3)


def exact_evidence(problem: ContextTrees, cycles: list[list[int]]) -> Fraction:
    """P(percepts | actions), by enumeration of the trees of every field."""
    sizes = problem.alphabet.layout(1).size.tolist()
    total = Fraction(1)
    for slot in range(1, len(sizes)):
        widths = enumeration.branches(sizes, slot, problem.depth)
        data = enumeration.samples(cycles, slot, problem.depth)
        total *= sum(enumeration.joint(data, widths, sizes[slot]).values())
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
    """The recursion over all contexts, also those of single visits, in exact fractions."""
    problem = small(8)
    cycles = random_cycles(problem, 60, seed)
    exact, sizes = Fraction(1), problem.alphabet.layout(1).size.tolist()
    for slot in (1, 2):
        widths = enumeration.branches(sizes, slot, 8)
        data = enumeration.samples(cycles, slot, 8)
        exact *= enumeration.weighted(data, widths, sizes[slot])
    belief = learned(problem, cycles)
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
    data = enumeration.samples(cycles, 1, 6)
    widths = enumeration.branches([1, 2], 1, 6)
    exact = enumeration.weighted(data, widths, 2)
    assert learned(problem, cycles).log_evidence == pytest.approx(math.log(exact), rel=1e-12)


def internal_contexts(belief: ContextTreeBelief, slot: int) -> set[tuple[int, ...]]:
    """Return the contexts of the nodes that have children in memory."""
    nodes, size = belief._nodes, belief.layout.size
    found = set[tuple[int, ...]]()
    queue: list[tuple[int, tuple[int, ...]]] = [(slot - 1, ())]
    while queue:
        node, context = queue.pop()
        first = int(nodes.child[node])
        if first:
            found.add(context)
            m = int(size[(slot - 1 - len(context)) % len(size)])
            queue += [(first + k, (*context, k)) for k in range(m)]
    return found


@pytest.mark.parametrize("max_nodes", [2, 9, 30, 31, 32, 33, 80])
def test_with_full_memory_the_belief_is_exact_for_the_trees_cut_there(max_nodes: int) -> None:
    problem = small(5, max_nodes=max_nodes)
    cycles = random_cycles(problem, 90, seed=1)
    belief = problem.belief()
    sizes, filled_at = belief.layout.size.tolist(), None
    for t, (a, *percept) in enumerate(cycles):
        belief.observe(None, a, problem.alphabet.observation(percept))
        if belief.is_full and filled_at is None:
            filled_at, shape = t, [internal_contexts(belief, slot) for slot in (1, 2)]
    assert filled_at is not None
    assert filled_at < 60
    assert belief.nodes <= max_nodes
    assert shape == [internal_contexts(belief, slot) for slot in (1, 2)]
    exact = Fraction(1)
    for slot, contexts in zip((1, 2), shape, strict=True):
        widths = enumeration.branches(sizes, slot, 5)
        data = enumeration.samples(cycles, slot, 5)
        exact *= enumeration.weighted(data, widths, sizes[slot], contexts.__contains__)
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


def test_the_first_contexts_read_zeros_before_the_start() -> None:
    padded, plain = ONE_FIELD.belief(), ONE_FIELD.belief()
    padded.observe(None, 0, (0.0,))
    padded.observe(None, 0, (0.0,))
    assert plain.log_predictive(None, 1, (1.0,)) == pytest.approx(math.log(0.5))
    data = enumeration.samples([[0, 0]], 1, 3)
    assert data == [((0, 0, 0), 0)]


# -- laws and state --------------------------------------------------------------------------------

HISTORY: list[tuple[Any, Any, Any]] = [
    (None, cycle[0], small(3).alphabet.observation(cycle[1:]))
    for cycle in random_cycles(small(3), 40, seed=6)
]


@pytest.mark.parametrize("problem", [small(3), small(3, max_nodes=20)])
def test_the_laws_of_beliefs_hold(problem: ContextTrees) -> None:
    check_deterministic(problem.belief, HISTORY)
    check_save(problem.belief, HISTORY)
    bad = [
        (None, 0, (2.0, 0)),
        (None, 0, (0.0, 2)),
        (None, 0, (float("nan"), 0)),
        (None, 0, (0.0,)),
        (None, 0, 0.0),
        (None, 0, (None, 0)),
        (None, 0, ([1.0], 0)),
        (None, 2, (0.0, 0)),
        ("here", 0, (0.0, 0)),
    ]
    check_bad_evidence(problem.belief, HISTORY, bad)


def test_the_laws_of_agents_hold() -> None:
    corridor = ContextTrees(2, {"field": 1, "reward": [0.0, 1.0]}, depth=8)
    check_acting(corridor.agent, Corridor)
    check_same_seed(TIGER.agent, Tiger)
    check_resume(TIGER.agent, Tiger, 300)
    check_resume(corridor.agent, Corridor, 200, at=77)


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


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("history", lambda v: v[:3]),
        ("history", lambda v: v[:-30]),
        ("history", lambda v: np.full_like(v, 9)),
        ("child", lambda v: v + 1),
        ("child", lambda v: np.where(v > 0, v[::-1].max(), 0).astype(v.dtype)),
        ("visit", lambda v: v - 10_000),
        ("counts", lambda v: -v),
        ("counts", lambda v: v[:, :1]),
        ("odds", lambda v: v * np.nan),
        ("drawn", lambda v: v[:-1]),
        ("drawn", lambda v: v + 0.5),
    ],
)
def test_damaged_states_are_refused_and_change_nothing(name: str, change: Any) -> None:
    problem = small(4)
    belief = learned(problem, random_cycles(problem, 60, seed=8))
    belief.sample(Stream(0))
    arrays = belief.save()
    arrays[name] = change(arrays[name])
    other = problem.belief()
    with pytest.raises(IncompatibleState):
        other.load(arrays)
    assert other.steps == 0
    assert other.nodes == 2


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


@pytest.mark.parametrize(
    ("x", "a", "o", "error", "message"),
    [
        (None, "wait", (0.0, 1), UnknownAction, "no action 'wait'"),
        (None, 0, (0.5, 1), BadEvidence, "reward of .0.5, 1. after action 0: no symbol 0.5"),
        (None, 0, (0.0, 7), BadEvidence, "field of .0.0, 7. after action 0: no symbol 7"),
        (None, 0, 3, BadEvidence, r"observation 3 after action 0: expected \(reward, field\)"),
        ("x", 0, (0.0, 1), BadSituation, "pass None"),
    ],
)
def test_an_invalid_step_names_the_value(
    x: Any, a: Any, o: Any, error: type[Exception], message: str
) -> None:
    belief = small(3).belief()
    for call in (belief.observe, belief.log_predictive):
        with pytest.raises(error, match=message):
            call(x, a, o)


def test_a_missing_observation_is_refused_and_changes_nothing() -> None:
    agent: Any = small(3).agent()
    agent.observe(agent.act(Stream(0)), (1.0, 0))
    before = agent.save()
    with pytest.raises(BadEvidence, match="add a symbol for that to a field"):
        agent.observe(0, MISSING)
    after = agent.save()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert not agent.accepts_late_feedback
