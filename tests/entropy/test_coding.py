"""Code lengths of whole interactions, and what learning costs."""

import math
from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, FiniteBelief, NaiveMixture, Record, interact
from bayescontrol.baselines import UniformSystem
from bayescontrol.entropy import code_length, learning_cost
from bayescontrol.problems.tabular import TabularModes, random_modes
from bayescontrol.systems import AgentSystem

T = 3


def test_the_code_of_a_uniform_agent_counts_symbols() -> None:
    record = Record([0, 1, 2, 3], [0, 1, 0, 1])
    bits = code_length(UniformSystem(range(4), range(2)), record)
    assert bits.actions.tolist() == [2.0, 4.0, 6.0, 8.0]
    assert bits.observations.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert bits.total.tolist() == [3.0, 6.0, 9.0, 12.0]


def test_the_code_of_nothing_is_empty() -> None:
    assert len(code_length(UniformSystem(range(4), range(2)), []).total) == 0


def test_the_code_is_minus_log_probability_of_the_whole_string(case: Any) -> None:
    for m, system in enumerate(case.modes):
        for h in list(case.strings(T))[::5]:
            bits = code_length(system, h).total
            expected = [-math.log2(case.probability(m, h[:t], None)) for t in (1, 2, 3)]
            np.testing.assert_allclose(bits, expected, rtol=0.0, atol=1e-12)


def test_the_mean_cost_of_learning_is_D_at_every_horizon(case: Any) -> None:
    for agent in (case.naive(), case.rule()):
        mean = np.zeros((2, T))
        for m, p in enumerate(case.prior):
            for h in case.strings(T):
                cost = learning_cost(agent, case.modes[m], h)
                weight = float(p * case.probability(m, h, None))
                mean += weight * np.array([cost.actions, cost.observations])
        bits = case.D(agent, T)
        np.testing.assert_allclose(mean, [bits.actions, bits.observations], rtol=0.0, atol=1e-12)


def test_no_string_costs_the_naive_mixture_more_than_the_improbability_of_its_mode(
    case: Any,
) -> None:
    naive = case.naive()
    for m, p in enumerate(case.prior):
        for h in case.strings(T):
            assert learning_cost(naive, case.modes[m], h).total.max() <= -math.log2(p) + 1e-12


def test_no_interaction_costs_the_rule_more_for_observations_than_that() -> None:
    """Whoever chose the actions, and at every step of 200; the naive agent has no such bound."""
    modes, prior = random_modes(3, situations=3, seed=5), [0.5, 0.3, 0.2]
    worst = -math.inf
    for m in range(3):
        for run in range(4):
            record = interact(modes.agent(prior), modes.environment(m), 200, seed=1, run=run)
            expert = modes.systems()[m]
            cost = learning_cost(AgentSystem(modes.agent(prior)), expert, record)
            assert cost.observations.max() <= -math.log2(prior[m]) + 1e-9
            naive = AgentSystem(modes.agent(prior, kind=NaiveMixture))
            paid = learning_cost(naive, expert, record).observations
            worst = max(worst, float(paid.max() + math.log2(prior[m])))
    assert worst > 1.0


def test_the_code_of_the_observations_is_the_one_that_the_belief_counts() -> None:
    modes = random_modes(3, situations=2, seed=6)
    belief = FiniteBelief(modes)
    agent = ControlRule(belief, modes.start, modes.advance)
    record = interact(agent, modes.environment(0), 100)
    bits = code_length(AgentSystem(modes.agent()), record)
    assert bits.observations[-1] == pytest.approx(belief.code_length(), abs=1e-9)


def test_an_action_that_the_expert_would_never_take_has_no_finite_code() -> None:
    left, right = UniformSystem(["left"], [0]), UniformSystem(["right"], [0])
    either = UniformSystem(["left", "right"], [0])
    record = [("left", 0), ("right", 0)]
    assert code_length(left, record).actions.tolist() == [0.0, math.inf]
    cost = learning_cost(either, left, record)
    assert cost.actions.tolist() == [1.0, -math.inf]
    assert cost.observations.tolist() == [0.0, 0.0]
    assert np.isnan(learning_cost(right, right, record).actions).all()


def test_an_observation_that_the_system_rules_out_ends_its_code() -> None:
    system = UniformSystem(["go"], [0])
    bits = code_length(system, [("go", 0), ("go", 1), ("go", 0)])
    assert bits.actions.tolist() == [0.0, 0.0, math.inf]
    assert bits.observations.tolist() == [0.0, math.inf, math.inf]


def test_experts_that_never_err_still_bound_what_the_rule_pays_for_observations() -> None:
    """Lever m pays best under mode m, whose expert pulls no other; the rule pulls both."""
    hypothesis = [[[[0.4, 0.6], [0.6, 0.4]]], [[[0.6, 0.4], [0.4, 0.6]]]]
    modes = TabularModes([[[1, 0]], [[0, 1]]], hypothesis)
    record = interact(modes.agent(), modes.environment(1), 60, seed=3)
    assert set(record.actions.tolist()) == {0, 1}
    cost = learning_cost(AgentSystem(modes.agent()), modes.systems()[1], record)
    assert cost.actions[-1] == -math.inf
    assert cost.observations.max() <= 1.0 + 1e-12


def test_a_uniform_system_needs_symbols_and_each_of_them_once() -> None:
    with pytest.raises(ValueError, match="observations=\\[\\]"):
        UniformSystem([0], [])
    with pytest.raises(ValueError, match="actions=\\[0, 0\\]"):
        UniformSystem([0, 0], [0])
