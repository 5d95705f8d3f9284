"""Bayes-optimal play of Bernoulli arms, compared with exact values and brute force."""

from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

import numpy as np
import pytest

from bayescontrol import BernoulliBandit, Stream, interact
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.bandits.best_arm import beta_best
from bayescontrol.baselines import BanditPlan, BayesOptimalBandit, PlanTooLarge, expected_total
from bayescontrol.errors import (
    BadEvidence,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
    UnknownArm,
)
from bayescontrol.kernels import bandit_plan
from bayescontrol.testing import check_resume, check_same_seed


def rule(posterior: FloatArray) -> FloatArray:
    """The control rule: P(a) = P(arm a is best)."""
    return beta_best(posterior[..., 0], posterior[..., 1])


def rational_value(prior: tuple[tuple[int, int], ...], n: int) -> Fraction:
    """V_n by recursion over posteriors, in rational arithmetic."""

    @cache
    def V(rows: tuple[tuple[int, int], ...], n: int) -> Fraction:
        if n == 0:
            return Fraction(0)
        best = Fraction(0)
        for j, (a, b) in enumerate(rows):
            up, down = ((*rows[:j], new, *rows[j + 1 :]) for new in ((a + 1, b), (a, b + 1)))
            p = Fraction(a, a + b)
            best = max(best, p * (1 + V(up, n - 1)) + (1 - p) * V(down, n - 1))
        return best

    return V(prior, n)


@pytest.mark.parametrize(("n", "exact"), [(2, 1.02777778), (5, 2.71637963)])
def test_the_control_rule_earns_the_known_totals(n: int, exact: float) -> None:
    assert expected_total(rule, 2, n) == pytest.approx(exact, abs=5e-9)


@pytest.mark.parametrize(
    ("prior", "n"),
    [([(1, 1)] * 2, 9), ([(1, 1)] * 3, 5), ([(2, 1), (1, 3)], 8), ([(3, 5)], 4), ([(1, 2)] * 4, 3)],
)
def test_values_agree_with_rational_recursion(prior: Any, n: int) -> None:
    exact = float(rational_value(tuple(prior), n))
    assert BanditPlan(len(prior), n, prior).value() == pytest.approx(exact, rel=1e-14)


def number(k: IntArray) -> int:
    """#k = Σ_{i<d-1} C(s_i + i, i + 1), s_i = k_0 + … + k_i."""
    sums = np.cumsum(k).tolist()[:-1]
    return sum(comb(s + i, i + 1) for i, s in enumerate(sums))


def test_counts_are_stored_at_their_number_and_children_are_found() -> None:
    d, n = 6, 5
    C = np.array([[comb(m, i) for i in range(d)] for m in range(n + d)])
    for t in range(n):
        table = np.empty((comb(t + d - 1, d - 1), d), np.int64)
        bandit_plan.write_counts(t, table)
        assert len(set(map(tuple, table.tolist()))) == len(table)
        assert (table.sum(1) == t).all()
        place = np.empty(d, np.int64)
        for i, k in enumerate(table):
            assert number(k) == i
            bandit_plan.children(k, C, place)
            more = k + np.eye(d, dtype=np.int64)
            assert place.tolist() == [number(row) for row in more]


@pytest.mark.parametrize(("arms", "n"), [(2, 12), (3, 6)])
def test_following_the_plan_earns_its_value(arms: int, n: int) -> None:
    prior = np.array([1.5, 0.5])
    plan = BanditPlan(arms, n, prior)

    def follow(posterior: FloatArray) -> FloatArray:
        return np.eye(arms)[[plan.action(counts) for counts in posterior - prior]]

    assert expected_total(follow, arms, n, prior) == pytest.approx(plan.value(), rel=1e-13)


def test_no_policy_earns_more_and_pulling_one_arm_earns_its_mean() -> None:
    prior = [(1, 1), (2, 3)]
    value = BanditPlan(2, 20, prior).value()
    assert value > expected_total(rule, 2, 20, prior) > 10.0
    one = expected_total(lambda ab: np.tile([0.0, 1.0], (len(ab), 1)), 2, 20, prior)
    assert one == pytest.approx(20 * 2 / 5, rel=1e-14)


def test_a_simulation_agrees_with_the_exact_total() -> None:
    """4,000 runs; |z| < 4 fails by chance for 1 in 16,000 seeds, and the seed is fixed."""
    bandit = BernoulliBandit(2)
    totals = [
        interact(bandit.agent(), bandit.draw(run), 5, seed=7, run=run).observations.sum()
        for run in range(4000)
    ]
    z = (np.mean(totals) - 2.71637963) / (np.std(totals) / np.sqrt(len(totals)))
    assert abs(z) < 4


def test_runs_are_reproducible_and_can_be_resumed() -> None:
    bandit = BernoulliBandit(3)

    def world() -> Any:
        return bandit.environment([0.2, 0.9, 0.5])

    def make() -> BayesOptimalBandit:
        return BayesOptimalBandit(BanditPlan(3, 8))

    check_same_seed(make, world, 30)
    check_resume(make, world, 30, at=13)


def test_it_explores_where_a_greedy_policy_would_not() -> None:
    """Beta(6, 4) has mean .6, Beta(1, 1) only .5 but may be far better: explore with time left."""
    plan = BanditPlan(2, 40, [(6, 4), (1, 1)])
    assert plan.action() == 1
    assert plan.after(np.zeros((2, 2)), horizon=1).action() == 0
    counts, plan = [[1, 0], [0, 1]], BanditPlan(2, 10)
    assert plan.after(counts, 8).action() == plan.action(counts)
    assert plan.after(counts, 8).value() == pytest.approx(plan.value(counts), rel=1e-14)


def test_observations_use_up_the_horizon_and_then_the_agent_plans_again() -> None:
    agent = BayesOptimalBandit(BanditPlan(2, 3))
    assert agent.act(Stream(0)) == agent.act(Stream(0)) == 0
    for left, o in ((3, 1), (2, 1), (1, 0)):
        assert agent.left == left
        agent.observe(agent.act(Stream(0)), o)
    assert agent.left == 0
    assert agent.posterior.sum() == 4 + 3
    assert agent.value() == BanditPlan(2, 3, agent.posterior).value()
    assert agent.left == 3


def test_bad_input_is_refused_and_changes_nothing() -> None:
    agent = BayesOptimalBandit(BanditPlan(2, 6))
    for o in (0.5, 2, -1, float("nan"), "1", None):
        with pytest.raises(BadEvidence):
            agent.observe(0, o)  # type: ignore[arg-type]
    for a in (2, -1, "red", 0.5):
        with pytest.raises(UnknownArm, match="the arms are 0, 1"):
            agent.observe(a, 1)  # type: ignore[arg-type]
    saved = agent.save()
    for bad in (
        BayesOptimalBandit(BanditPlan(3, 6)).save(),
        {"prior": saved["prior"]},
        saved | {"counts": saved["counts"] - 1},
        saved | {"counts": saved["counts"] + 9},
        saved | {"prior": -saved["prior"]},
    ):
        with pytest.raises(IncompatibleState):
            agent.load(bad)
    assert repr(agent).endswith("(BanditPlan(2 arms, horizon=6: 126 counts), 6 pulls to go)")


PLAN = BanditPlan(2, 3)


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: BanditPlan(10, 30), PlanTooLarge, "shorten the horizon, or raise limit="),
        (lambda: expected_total(rule, 4, 50), PlanTooLarge, "shorten the horizon"),
        (lambda: BanditPlan(2, 0), ValueError, "horizon=0"),
        (lambda: BanditPlan(0, 3), InvalidPrior, "arms=0"),
        (lambda: BanditPlan(2, 3, (-1, 1)), InvalidPrior, "alpha = -1"),
        (lambda: PLAN.value([[1, 0]]), InvalidPrior, "rows of whole numbers"),
        (lambda: PLAN.value([[-1, 0], [0, 0]]), InvalidPrior, "rows of whole numbers"),
        (lambda: PLAN.value([[0.5, 0], [0, 0]]), InvalidPrior, "rows of whole numbers"),
        (lambda: PLAN.value([[np.nan, 0], [0, 0]]), InvalidPrior, "rows of whole numbers"),
        (lambda: PLAN.value([[3, 0], [0, 0]]), InvalidPrior, r"plan\.after"),
        (lambda: expected_total(lambda ab: ab, 2, 3), InvalidTable, "after 0 pulls"),
        (lambda: expected_total(lambda ab: rule(ab) - 2.0, 2, 3), InvalidTable, "after 0 pulls"),
        (lambda: expected_total(lambda ab: 0.8 * rule(ab), 2, 3), InvalidTable, "after 0 pulls"),
    ],
)
def test_invalid_plans_are_refused_with_a_hint(wrong: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        wrong()
