"""Planning over beliefs, compared with brute force, known exact values and the control rule."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import Stream, interact
from bayescontrol.baselines import BayesOptimal, BayesPlan, PlanTooLarge
from bayescontrol.errors import ImpossibleObservation, InvalidPrior
from bayescontrol.finite.chain import GrowingChain, chain
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.record import posterior
from bayescontrol.systems import AgentSystem, best_utility, expected_utility


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


def test_invalid_plans_are_refused_with_a_hint() -> None:
    modes = random_modes(3, seed=0)
    with pytest.raises(ValueError, match="horizon=0"):
        BayesPlan(modes, paid, 0)
    with pytest.raises(ValueError, match="left=4: must be from 1 to the horizon 3"):
        BayesPlan(modes, paid, 3).value(0, [0.2, 0.3, 0.5], left=4)
    with pytest.raises(InvalidPrior):
        BayesPlan(modes, paid, 3).value(0, [0.2, 0.3, 0.6])
    with pytest.raises(PlanTooLarge, match="shorten the horizon"):
        BayesPlan(modes, paid, 8, limit=50).value(0, [0.2, 0.3, 0.5])
