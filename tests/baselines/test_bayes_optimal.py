"""Planning over beliefs, compared with brute force, known exact values and the control rule."""

from fractions import Fraction
from functools import cache
from math import comb
from typing import Any

import numpy as np
import pytest
from tests.utilities import best_utility, expected_utility

from bayescontrol import BernoulliBandit, Stream, interact
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.bandits.best_arm import beta_best
from bayescontrol.baselines import (
    BanditPlan,
    BayesOptimal,
    BayesOptimalBandit,
    BayesPlan,
    PlanTooLarge,
    expected_total,
)
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
    UnknownArm,
)
from bayescontrol.finite.chain import GrowingChain, chain
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.kernels import bandit_plan
from bayescontrol.record import posterior
from bayescontrol.systems import AgentSystem
from bayescontrol.testing import check_resume, check_same_seed


def reward(a: int, o: int) -> float:
    return o - 0.25 * a


def paid(a: int, o: int) -> float:
    return o


def uniform_levers(nodes: int) -> TabularModes:
    """Two Bernoulli levers with a finite prior that has the moments of the uniform prior.

    Gauss-Legendre nodes match all moments up to 2 · nodes - 1, and a plan over n pulls depends
    on the first n only, so the values are those of the continuous prior.
    """
    x = (np.polynomial.legendre.leggauss(nodes)[0] + 1) / 2
    biases = [(p, q) for p in x for q in x]
    return TabularModes(
        [[np.eye(2)[int(q > p)]] for p, q in biases],
        [[[[1 - p, p], [1 - q, q]]] for p, q in biases],
    )


def uniform_prior(nodes: int) -> Any:
    w = np.polynomial.legendre.leggauss(nodes)[1] / 2
    return np.outer(w, w).ravel()


def value_of_following(plan: BayesPlan[Any, Any, Any], prior: Any) -> float:
    """The exact expected reward of following the plan, over all histories."""

    def follow(history: tuple[tuple[int, int], ...]) -> float:
        if len(history) == plan.horizon:
            return 0.0
        agent = BayesOptimal(plan, prior)
        for a, o in history:
            assert agent.act(Stream(0)) == a
            agent.observe(a, o)
        a = agent.act(Stream(0))
        return sum(
            p * (plan.reward(a, o) + follow((*history, (a, o))))
            for o, p in agent.predictive(a).items()
            if p > 0.0
        )

    return follow(())


@pytest.mark.parametrize("seed", range(6))
def test_the_value_agrees_with_brute_force_over_all_policies(seed: int) -> None:
    modes = random_modes(3, situations=2, actions=2, observations=2, seed=seed)
    prior = [0.5, 0.2, 0.3]
    for horizon in (1, 2, 4):
        brute = best_utility(AgentSystem(modes.agent(prior)), modes.actions, reward, horizon)
        assert BayesOptimal(BayesPlan(modes, reward, horizon), prior).value() == pytest.approx(
            brute, rel=1e-10
        )


@pytest.mark.parametrize("seed", range(3))
def test_following_the_plan_earns_its_value_and_no_less_than_the_rule(seed: int) -> None:
    modes = random_modes(3, situations=2, seed=seed, concentration=0.3)
    prior = [0.4, 0.4, 0.2]
    plan = BayesPlan(modes, reward, 5)
    value = plan.value(modes.start, prior)
    assert value_of_following(plan, prior) == pytest.approx(value, rel=1e-9)
    assert value >= expected_utility(AgentSystem(modes.agent(prior)), reward, 5) - 1e-9


@pytest.mark.parametrize(("pulls", "value"), [(2, 13 / 12), (5, 26 / 9)])
def test_two_levers_with_uniform_biases_earn_the_known_exact_values(
    pulls: int, value: float
) -> None:
    plan = BayesPlan(uniform_levers(3), paid, pulls)
    assert plan.value(0, uniform_prior(3)) == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("k", range(1, 13))
@pytest.mark.parametrize("right", [0, 1])
def test_it_identifies_a_chain_in_exactly_k_actions_in_both_environments(
    k: int, right: int
) -> None:
    agent = BayesOptimal(BayesPlan(chain(k), paid, 2 * k))
    assert (
        agent.value() == 1.5
    )  # both rewards if the first guess is right, the second if it is wrong
    record = interact(agent, chain(k).environment(right), 4 * k, probes={"v": posterior}, seed=0)
    sure = record["v"].min(axis=1) == 0.0
    assert sure.tolist() == [False] * (k - 1) + [True] * (3 * k + 1)
    assert set(record.actions[k:].tolist()) == {right}


@pytest.mark.parametrize("right", [0, 1])
def test_it_identifies_the_growing_chain_at_the_square_of_the_scale(right: int) -> None:
    growing = GrowingChain(4)
    agent = BayesOptimal(BayesPlan(growing, paid, 20))
    assert agent.value() == 2.5  # steps 16 to 20 pay, in one of two environments
    record = interact(agent, growing.environment(right), 20, probes={"v": posterior}, seed=0)
    assert np.flatnonzero(record["v"].min(axis=1) == 0.0)[0] + 1 == 16


def test_the_policies_of_the_modes_do_not_matter() -> None:
    modes = random_modes(3, situations=2, seed=5)
    other = TabularModes(np.roll(modes.policy, 1, 0), modes.hypothesis, modes.successor)
    prior = np.full(3, 1 / 3)
    ours, theirs = (BayesPlan(m, reward, 4).action_values(0, prior) for m in (modes, other))
    assert ours == theirs


def test_histories_with_the_same_belief_share_a_node() -> None:
    # Pulls of two levers are exchangeable: nodes are counts (s, f) of both, not 4^n histories.
    plan = BayesPlan(uniform_levers(3), paid, 9)
    plan.value(0, uniform_prior(3))
    beliefs = int(repr(plan).split(": ")[1].split()[0])
    counts = sum((n + 1) * (n + 2) * (n + 3) // 6 for n in range(9))
    assert counts == 495
    assert beliefs <= counts * 1.1  # a few beliefs differ after rounding to twelve digits


def test_it_plans_again_after_the_horizon() -> None:
    agent = BayesOptimal(BayesPlan(chain(2), paid, 2))
    record = interact(agent, chain(2).environment(1), 8, seed=0)
    # Two wrong actions, then only right ones.
    assert record.actions.tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    assert agent.left == 2


def test_a_belief_outside_the_plan_is_planned_on_demand() -> None:
    modes = random_modes(2, seed=1)
    plan = BayesPlan(modes, paid, 3)
    plan.value(0, [0.5, 0.5])
    direct = BayesPlan(modes, paid, 3).action_values(0, [0.123, 0.877], left=2)
    assert plan.action_values(0, [0.123, 0.877], left=2) == direct


def test_a_long_horizon_needs_no_deep_recursion() -> None:
    plan = BayesPlan(chain(3), paid, 3000)
    assert plan.value(0, [0.5, 0.5]) == pytest.approx(1000 - 0.5)


def test_an_impossible_observation_raises_and_changes_nothing() -> None:
    agent = BayesOptimal(BayesPlan(chain(3), paid, 6))
    with pytest.raises(ImpossibleObservation):
        agent.observe(0, 1)
    assert agent.x == 0
    assert agent.belief.posterior().tolist() == [0.5, 0.5]


# -- Bernoulli arms -------------------------------------------------------------------------------


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
    with pytest.raises(IncompatibleState, match=r"9 pulls.* create it with the `horizon`"):
        agent.load(saved | {"counts": np.array([[9, 0], [0, 0]])})
    assert repr(agent).endswith("(BanditPlan(2 arms, horizon=6: 126 counts), 6 pulls to go)")


PLAN: Any = BanditPlan(2, 3)
MODES, THIRDS = random_modes(3, seed=0), [1 / 3] * 3


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: BayesPlan(MODES, paid, 0), ValueError, "horizon=0"),
        (lambda: BayesPlan(MODES, paid, 3).value(0, THIRDS, left=4), ValueError, "from 1 to the"),
        (lambda: BayesPlan(MODES, paid, 3).value(0, [0.2, 0.3, 0.6]), InvalidPrior, "sum"),
        (lambda: BayesPlan(MODES, paid, 8, limit=50).value(0, THIRDS), PlanTooLarge, "shorten the"),
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
