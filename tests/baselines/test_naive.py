"""The naive mixture has the interface of the rule and violates each of its identities."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, NaiveMixture, Stream, interact
from bayescontrol._arrays import FloatArray
from bayescontrol.finite.examples import THREE_MODES_PRIOR, three_modes
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.record import posterior

PRIOR = np.array(THREE_MODES_PRIOR)


def posterior_of(agent: Any) -> FloatArray:
    return np.asarray(agent.belief.posterior())


def walk(agent: Any, history: Any) -> FloatArray:
    for a, o in history:
        agent.issue(a)
        agent.observe(a, o)
    return posterior_of(agent)


def histories(length: int) -> Any:
    return product(product((0, 1), (0, 1)), repeat=length)


def joint(kind: type[Any], history: Any) -> FloatArray:
    """P(m*, ao_≤t) for each m*, with the agent in the environment of m*."""
    modes, p = three_modes(), PRIOR.copy()
    agent = modes.agent(PRIOR, kind=kind)
    for a, o in history:
        p *= agent.action_probabilities()[a] * modes.hypothesis[:, 0, a, o]
        agent.issue(a)
        agent.observe(a, o)
    return np.asarray(p)


def test_weights_follow_bayes_rule_on_actions_and_observations() -> None:
    modes = random_modes(3, situations=2, actions=2, observations=2, seed=5)
    history = [(0, 1), (1, 1), (1, 0), (0, 0), (1, 1)]
    weights = [Fraction(1, 3)] * 3
    x = modes.start
    for a, o in history:
        for m in range(3):
            weights[m] *= Fraction(float(modes.policy[m, x, a]))
            weights[m] *= Fraction(float(modes.hypothesis[m, x, a, o]))
        x = modes.advance(x, a, o)
    expected = [float(w / sum(weights)) for w in weights]
    assert walk(modes.agent(kind=NaiveMixture), history) == pytest.approx(expected, rel=1e-12)


def test_it_equals_the_rule_that_witnesses_its_own_actions() -> None:
    naive = three_modes().agent(PRIOR, kind=NaiveMixture)
    rule = three_modes().agent(PRIOR)
    for a, o in [(0, 1), (0, 0), (1, 1)]:
        naive.issue(a)
        rule.witness(rule.x, a)
        for agent in (naive, rule):
            agent.observe(a, o)
        assert posterior_of(naive).tobytes() == posterior_of(rule).tobytes()


def test_acting_changes_the_belief_before_any_observation() -> None:
    naive, causal = three_modes().agent(PRIOR, kind=NaiveMixture), three_modes().agent(PRIOR)
    a = naive.act(Stream(0))
    causal.act(Stream(0))
    policy = three_modes().policy[:, 0, a]
    assert posterior_of(naive) == pytest.approx(PRIOR * policy / (PRIOR @ policy))
    assert posterior_of(causal).tolist() == PRIOR.tolist()


def test_it_violates_the_intervention_law_that_the_rule_satisfies() -> None:
    modes = random_modes(3, situations=2, actions=2, observations=2, seed=8)
    others = TabularModes(
        random_modes(3, situations=2, actions=2, seed=9).policy, modes.hypothesis, modes.successor
    )
    rng = Stream(2)
    for _ in range(20):
        history = [(rng.integers(2), rng.integers(2)) for _ in range(15)]
        bits = {
            kind: [walk(c.agent(kind=kind), history).tobytes() for c in (modes, others)]
            for kind in (ControlRule, NaiveMixture)
        }
        assert bits[ControlRule][0] == bits[ControlRule][1]
        assert bits[NaiveMixture][0] != bits[NaiveMixture][1]


@pytest.mark.parametrize("kind", [ControlRule, NaiveMixture])
def test_the_identities_of_the_rule_fail_for_the_naive_mixture(kind: type[Any]) -> None:
    """Exact sums over all 256 histories of four steps: the mean posterior, the probability that a
    drawn mode is the true one, and the probability that the true mode loses its weight. After four
    steps the naive mixture already exceeds Ville's bound for all times.
    """
    mean, match, squares, lost, delta = np.zeros(3), 0.0, 0.0, 0.0, 0.05
    for h in histories(4):
        p, v = joint(kind, h), walk(three_modes().agent(PRIOR, kind=kind), h)
        mean += p.sum() * v
        match += float(p @ v)
        squares += float(p.sum() * (v @ v))
        lost += float(p[v < delta * PRIOR].sum())
    if kind is ControlRule:
        assert mean == pytest.approx(PRIOR, abs=1e-12)
        assert abs(squares - match) < 1e-12
        assert lost <= delta
    else:
        assert np.abs(mean - PRIOR).max() > 0.05
        assert squares - match > 0.2
        assert lost > 4 * delta


def test_rule_and_naive_mixture_agree_for_a_passive_observer_bit_for_bit() -> None:
    modes = random_modes(4, situations=3, actions=1, observations=3, seed=3)
    probes = {"v": posterior}
    records = [
        interact(modes.agent(kind=kind), modes.environment(2), 200, seed=6, probes=probes)
        for kind in (ControlRule, NaiveMixture)
    ]
    assert records[0] == records[1]
