"""The states of drawn trees are sufficient and as few as possible, and the plan is optimal."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.trees import enumeration
from tests.trees.worlds import TIGER, Corridor, learned, random_cycles, small, tree_of

from bayescontrol import Stream, interact
from bayescontrol.mdp import MDP, policy_iteration
from bayescontrol.schedules import Every
from bayescontrol.trees import ContextTreeBelief, ContextTrees, DrawnTrees
from bayescontrol.trees.history import History

ONE_FIELD = ContextTrees(2, {"reward": [0.0, 1.0]}, depth=6)


def all_histories(problem: ContextTrees, number: int) -> Iterator[History]:
    """Yield all histories of this number of cycles."""
    size = problem.alphabet.layout(1).size
    for cycles in product(product(*map(range, size)), repeat=number):
        history = History(size, problem.depth)
        for cycle in cycles:
            history.write(list(cycle))
            history.end += len(cycle)
        yield history


@pytest.mark.parametrize(("problem", "cycles"), [(small(5), 2), (ONE_FIELD, 4)])
@pytest.mark.parametrize("seed", range(4))
def test_histories_in_the_same_state_have_the_same_predictions_and_next_states(
    problem: ContextTrees, cycles: int, seed: int
) -> None:
    """By brute force over all histories; with few data, drawn trees are larger."""
    belief = learned(problem, random_cycles(problem, 3, seed))
    rng = Stream(seed)
    plan = max(
        (belief.draw(rng).plan for _ in range(20)),
        key=lambda p: len(p.policy),
    )
    assert 4 < len(plan.policy) <= problem.max_states
    A, found = len(problem.alphabet.actions), defaultdict[int, list[Any]](list)
    for history in all_histories(problem, cycles):
        m = DrawnTrees(problem.alphabet, history, plan)
        outcomes = []
        for a in range(A):
            p = m.observation_probabilities(None, a)
            follow = {}
            for o in p:
                after = history.copy()
                after.write(problem.alphabet.cycle(a, o))
                after.end += len(problem.alphabet.cycle(a, o))
                follow[o] = DrawnTrees(problem.alphabet, after, plan).state
            outcomes.append((p, follow))
        found[m.state].append(outcomes)
    assert len(found) == len(plan.policy)
    for state, cases in found.items():
        assert all(case == cases[0] for case in cases)
        for a, (p, follow) in enumerate(cases[0]):
            row = np.zeros(len(plan.policy))
            for o in p:
                row[follow[o]] += p[o]
            assert plan.P[state, a] == pytest.approx(row, abs=1e-12)
            assert plan.r[state, a] == pytest.approx(sum(p[o] * o[0] for o in p), abs=1e-12)


def number_of_states(belief: ContextTreeBelief, trees: Any, limit: int) -> int:
    """Return the number of leaves of I, closed naively, for trees of `small` cut to `limit`."""
    inside, size = set[tuple[int, ...]](), -1
    for slot in (1, 2):
        shape, _ = tree_of(belief, trees.child, slot)
        inside |= {c[slot:] for c in enumeration.internal(shape) if slot <= len(c) < slot + limit}
    while len(inside) > size:
        size = len(inside)
        inside |= {c[3:] for c in inside if len(c) >= 3} | {c[:-1] for c in inside if c}
    return 1 + sum([2, 1, 1][len(c) % 3] for c in inside)  # m - 1 of reward, field, action


@pytest.mark.parametrize("seed", range(6))
def test_there_are_as_few_states_as_possible(seed: int) -> None:
    problem = small(7)
    belief = learned(problem, random_cycles(problem, 3, seed))
    rng = Stream(seed)
    for _ in range(30):
        plan = belief.draw(rng).plan
        if plan.limit < problem.depth:
            continue
        assert len(plan.policy) == number_of_states(belief, plan.trees, 7)


@pytest.mark.parametrize("seed", range(6))
def test_the_policy_of_a_draw_is_optimal_in_its_mdp(seed: int) -> None:
    problem = [small(5), ONE_FIELD, TIGER][seed % 3]
    belief = learned(problem, random_cycles(problem, 300, seed))
    m = belief.sample(Stream(seed))
    exact = policy_iteration(MDP(m.plan.P / m.plan.P.sum(2, keepdims=True), m.plan.r))
    assert m.gain == pytest.approx(exact.gain, abs=1e-3 * np.ptp(problem.alphabet.rewards))


def test_trees_with_too_many_states_are_cut_to_the_longest_contexts_that_fit() -> None:
    roomy, tight = small(9), small(9, max_states=12)
    cycles = random_cycles(roomy, 3, seed=2)
    large, cut = learned(roomy, cycles), learned(tight, cycles)
    was_cut = 0
    for seed in range(40):
        whole, plan = (b.draw(Stream(seed)).plan for b in (large, cut))
        fitting = [k for k in range(10) if number_of_states(large, whole.trees, k) <= 12]
        assert plan.limit == max(fitting)
        assert len(plan.policy) == number_of_states(large, whole.trees, plan.limit)
        assert len(plan.policy) == number_of_states(cut, plan.trees, 9)
        was_cut += plan.limit < 9
    assert 5 < was_cut < 40
    assert cut.cut_draws == 0  # `draw` leaves no trace


def test_with_one_action_the_trees_may_have_all_states_as_well() -> None:
    """The action, of which there is only one, adds nodes but no states."""
    roomy, tight = (
        ContextTrees(1, {"reward": [0.0, 1.0]}, depth=12, max_states=most) for most in (500, 16)
    )
    cycles = random_cycles(roomy, 3, seed=1)
    large, small_plans = learned(roomy, cycles), learned(tight, cycles)
    for seed in range(100):
        m = large.draw(Stream(seed))
        if 8 < len(m) <= 16:
            assert len(small_plans.draw(Stream(seed))) == len(m)
            return
    pytest.fail("no draw has 9 to 16 states")


def test_leaves_of_cut_trees_are_drawn_from_the_counts_of_their_context() -> None:
    problem = ContextTrees(2, {"reward": [0.0, 1.0]}, depth=4, max_states=1)
    belief = problem.belief()
    for t in range(400):  # the reward is the previous action: only the memoryless tree fits
        belief.observe(None, (t // 2) % 2, (float(((t - 1) // 2) % 2),))
    m = belief.sample(Stream(1))
    assert belief.cut_draws == 1
    assert len(m) == 1
    assert m.observation_probabilities(None, 0)[(1.0,)] == pytest.approx(0.5, abs=0.2)


def test_a_mode_acts_and_predicts_in_the_current_context() -> None:
    """The reward is 1 if the action differs from the previous one."""
    problem = ContextTrees(2, {"reward": [0.0, 1.0]}, depth=4)
    agent = problem.agent(schedule=Every(50), exploration=None)

    class Alternation:
        last = 0

        def respond(self, a: int, rng: Stream) -> tuple[float]:
            r, self.last = float(a != self.last), a
            return (r,)

    record = interact(agent, Alternation(), 1_000, seed=3)
    assert (np.diff(record.actions[-100:]) != 0).all()
    m, last = agent.belief.last(), int(record.actions[-1])
    assert m is not None
    assert m.action_probabilities(None) == {1 - last: 1.0}
    assert np.exp(m.log_likelihood(None, 1 - last, (1.0,))) > 0.9
    assert m.gain == pytest.approx(1.0, abs=0.05)


def test_a_probability_that_underflows_is_an_impossible_observation_of_the_mode() -> None:
    belief = ONE_FIELD.belief()
    m = belief.sample(Stream(0))
    m.plan.trees.p[:] = [1.0, 0.0]
    assert m.log_likelihood(None, 0, (1.0,)) == -np.inf
    assert m.observation_probabilities(None, 0) == {(0.0,): 1.0}


def test_the_corridor_is_learned() -> None:
    """The best average reward is .5; with these seeds the last thousand steps earn .45 or more.

    The average of 1,000 steps of the best policy has a standard deviation below .01.
    """
    problem = ContextTrees(2, {"field": 1, "reward": [0.0, 1.0]}, depth=16)
    for seed in range(3):
        record = interact(problem.agent(), Corridor(), 3_000, seed=seed)
        assert np.mean([o[0] for o in record.observations[-1_000:]]) > 0.45
