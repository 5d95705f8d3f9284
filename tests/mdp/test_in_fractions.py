"""Structure, evaluation and planning, compared with small MDPs solved in fractions."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescontrol.errors import NotCommunicating
from bayescontrol.mdp import MDP, gain_and_bias, policy_iteration
from bayescontrol.mdp.planning import (
    closed_classes,
    closed_sets,
    gain_bounds,
    induced,
    require_weakly_communicating,
)

#: weights[x][a][y], not all zero, and rewards[x][a]: small integers.
Weights = list[list[list[int]]]
Rewards = list[list[int]]


@st.composite
def problems(draw: st.DrawFn) -> tuple[Weights, Rewards]:
    """MDPs with up to four states and two actions, often sparse."""
    X, A = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    row = st.lists(st.sampled_from([0, 0, 1, 3]), min_size=X, max_size=X)
    weights = [[draw(row) for _ in range(A)] for _ in range(X)]
    for x, rows in enumerate(weights):
        for a, values in enumerate(rows):
            if not any(values):
                values[(x + a) % X] = 1
    rewards = [[draw(st.integers(-3, 3)) for _ in range(A)] for _ in range(X)]
    return weights, rewards


def mdp_of(weights: Weights, rewards: Rewards) -> MDP:
    return MDP([[[w / sum(row) for w in row] for row in rows] for rows in weights], rewards)


def policies(weights: Weights) -> list[tuple[int, ...]]:
    return list(product(range(len(weights[0])), repeat=len(weights)))


def reach(edges: list[set[int]], x: int) -> set[int]:
    observed, new = {x}, [x]
    while new:
        for y in edges[new.pop()] - observed:
            observed.add(y)
            new.append(y)
    return observed


def closed(edges: list[set[int]]) -> list[list[int]]:
    """Return the closed communicating classes of states."""
    reached = [reach(edges, x) for x in range(len(edges))]
    found = {frozenset(r) for r in reached if all(reached[y] == r for y in r)}
    return sorted(sorted(c) for c in found)


def edges_under(weights: Weights, policy: tuple[int, ...]) -> list[set[int]]:
    return [{y for y, w in enumerate(weights[x][a]) if w} for x, a in enumerate(policy)]


def union_edges(weights: Weights) -> list[set[int]]:
    return [{y for row in rows for y, w in enumerate(row) if w} for rows in weights]


def solve(matrix: list[list[Fraction]], b: list[Fraction]) -> list[Fraction]:
    """Gaussian elimination in fractions."""
    n = len(b)
    rows = [[*row, value] for row, value in zip(matrix, b, strict=True)]
    for i in range(n):
        pivot = next(k for k in range(i, n) if rows[k][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for k in range(n):
            if k != i and rows[k][i]:
                rows[k] = [v - rows[k][i] * w for v, w in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def class_gain(
    weights: Weights, rewards: Rewards, policy: tuple[int, ...], states: list[int]
) -> Fraction:
    """Σ d(x) r(x), with d the stationary distribution on a recurrent class."""
    P = {
        (x, y): Fraction(weights[x][policy[x]][y], sum(weights[x][policy[x]]))
        for x in states
        for y in states
    }
    balance = [[P[x, y] - (x == y) for x in states] for y in states[1:]]
    ones = [Fraction(1)] * len(states)
    d = solve([*balance, ones], [Fraction(0)] * (len(states) - 1) + [Fraction(1)])
    return sum((p * rewards[x][policy[x]] for p, x in zip(d, states, strict=True)), Fraction(0))


def best_gain(weights: Weights, rewards: Rewards) -> Fraction:
    """The best gain over all policies and all their recurrent classes."""
    return max(
        class_gain(weights, rewards, policy, states)
        for policy in policies(weights)
        for states in closed(edges_under(weights, policy))
    )


# -- structure ----------------------------------------------------------------------------


@given(problems())
def test_the_classes_agree_with_graph_search(problem: tuple[Weights, Rewards]) -> None:
    weights, _ = problem
    mdp = mdp_of(*problem)
    assert [c.tolist() for c in closed_classes(mdp)] == closed(union_edges(weights))
    for policy in policies(weights):
        classes = closed(edges_under(weights, policy))
        assert [c.tolist() for c in closed_sets(induced(mdp, policy)[0])] == classes


def weakly_communicating(weights: Weights) -> bool:
    """By definition, every recurrent class of every policy lies in the single closed class."""
    sets = closed(union_edges(weights))
    return len(sets) == 1 and all(
        set(states) <= set(sets[0])
        for policy in policies(weights)
        for states in closed(edges_under(weights, policy))
    )


@given(problems())
def test_weakly_communicating_agrees_with_its_definition(problem: tuple[Weights, Rewards]) -> None:
    mdp = mdp_of(*problem)
    if weakly_communicating(problem[0]):
        require_weakly_communicating(mdp)
    else:
        with pytest.raises(NotCommunicating):
            require_weakly_communicating(mdp)


# -- evaluation ---------------------------------------------------------------------------


@given(problems())
def test_gain_and_bias_solve_their_equations_and_match_fractions(
    problem: tuple[Weights, Rewards],
) -> None:
    weights, rewards = problem
    mdp = mdp_of(weights, rewards)
    for policy in policies(weights):
        rho, h, classes = gain_and_bias(mdp, policy)
        x = np.arange(len(weights))
        P, r = mdp.transition[x, policy], mdp.reward[x, policy]
        assert np.allclose(P @ rho, rho, atol=1e-12)
        assert np.allclose(r - rho + P @ h, h, atol=1e-10)
        for found, states in zip(classes, closed(edges_under(weights, policy)), strict=True):
            exact = class_gain(weights, rewards, policy, states)
            assert found.gain == pytest.approx(float(exact), abs=1e-13)
            assert np.allclose(found.probability @ P, found.probability, atol=1e-14)
            assert found.probability @ h == pytest.approx(0.0, abs=1e-10)
            assert np.flatnonzero(found.probability).tolist() == states == found.states.tolist()


# -- planning -----------------------------------------------------------------------------


@settings(max_examples=60)
@given(problems(), st.lists(st.integers(-5, 5), min_size=4, max_size=4))
def test_the_bounds_hold_in_fractions_for_any_h_and_for_a_plan(
    problem: tuple[Weights, Rewards], h: list[int]
) -> None:
    weights, _ = problem
    mdp = mdp_of(*problem)
    if not weakly_communicating(weights):
        with pytest.raises(NotCommunicating, match="best average reward"):
            policy_iteration(mdp)
        return
    exact = best_gain(*problem)
    lower, upper = gain_bounds(mdp, h[: len(weights)])
    assert Fraction(lower) <= exact <= Fraction(upper)
    plan = policy_iteration(mdp)
    assert Fraction(plan.lower) <= exact <= Fraction(plan.upper)
    assert plan.upper - plan.lower < 1e-11
    assert plan.gain == pytest.approx(float(exact), abs=1e-12)
    earned = gain_and_bias(mdp, plan.policy).gain
    assert (earned >= plan.lower - 1e-12).all()
