"""Code lengths of whole interactions, and the cost of learning."""

import math
from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, FiniteBelief, NaiveMixture, Record, interact
from bayescontrol.baselines import UniformSystem
from bayescontrol.entropy import code_length, learning_cost
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.systems import AgentSystem

T = 3


def test_the_code_of_a_uniform_agent_counts_symbols() -> None:
    record = Record([0, 1, 2, 3], [0, 1, 0, 1])
    bits = code_length(UniformSystem(range(4), range(2)), record)
    assert bits.actions.tolist() == [2.0, 4.0, 6.0, 8.0]
    assert bits.observations.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert bits.total.tolist() == [3.0, 6.0, 9.0, 12.0]


def test_the_code_length_is_minus_the_log_probability(case: Any) -> None:
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


def test_the_cost_of_the_naive_mixture_is_at_most_minus_log_prior(
    case: Any,
) -> None:
    naive = case.naive()
    for m, p in enumerate(case.prior):
        for h in case.strings(T):
            assert learning_cost(naive, case.modes[m], h).total.max() <= -math.log2(p) + 1e-12


def test_the_rules_cost_for_observations_is_at_most_minus_log_prior() -> None:
    """For all actions and at each of 200 steps; the naive agent has no such bound."""
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


def test_the_code_of_observations_equals_the_code_length_of_the_belief() -> None:
    modes = random_modes(3, situations=2, seed=6)
    belief = FiniteBelief(modes)
    agent = ControlRule(belief, modes.start, modes.advance)
    record = interact(agent, modes.environment(0), 100, seed=0)
    bits = code_length(AgentSystem(modes.agent()), record)
    assert bits.observations[-1] == pytest.approx(belief.code_length(), abs=1e-9)


def test_an_action_that_the_expert_never_takes_has_an_infinite_code() -> None:
    left, right = UniformSystem(["left"], [0]), UniformSystem(["right"], [0])
    either = UniformSystem(["left", "right"], [0])
    record = [("left", 0), ("right", 0)]
    assert code_length(left, record).actions.tolist() == [0.0, math.inf]
    cost = learning_cost(either, left, record)
    assert cost.actions.tolist() == [1.0, -math.inf]
    assert cost.observations.tolist() == [0.0, 0.0]
    assert np.isnan(learning_cost(right, right, record).actions).all()


def test_after_an_impossible_observation_the_code_is_infinite() -> None:
    system = UniformSystem(["go"], [0])
    bits = code_length(system, [("go", 0), ("go", 1), ("go", 0)])
    assert bits.actions.tolist() == [0.0, 0.0, math.inf]
    assert bits.observations.tolist() == [0.0, math.inf, math.inf]


def test_the_bound_for_observations_holds_for_deterministic_experts() -> None:
    """Under mode m lever m pays best, and its expert pulls only that; the rule pulls both."""
    hypothesis = [[[[0.4, 0.6], [0.6, 0.4]]], [[[0.6, 0.4], [0.4, 0.6]]]]
    modes = TabularModes([[[1, 0]], [[0, 1]]], hypothesis)
    record = interact(modes.agent(), modes.environment(1), 60, seed=3)
    assert set(record.actions.tolist()) == {0, 1}
    cost = learning_cost(AgentSystem(modes.agent()), modes.systems()[1], record)
    assert cost.actions[-1] == -math.inf
    assert cost.observations.max() <= 1.0 + 1e-12


def test_a_uniform_system_needs_distinct_symbols() -> None:
    with pytest.raises(ValueError, match="observations=\\[\\]"):
        UniformSystem([0], [])
    with pytest.raises(ValueError, match="actions=\\[0, 0\\]"):
        UniformSystem([0, 0], [0])
