"""Unresolved modes of finite classes: those that predict as well, but would act otherwise."""

from typing import Any

import numpy as np
import pytest
from tests.exploration.motor import motor, motor_belief

from bayescontrol import ControlRule, FiniteBelief, Stream, SwitchingBelief, TabularModes, interact
from bayescontrol.errors import MissingCapability
from bayescontrol.finite.chain import chain
from bayescontrol.finite.tabular import random_modes


@pytest.mark.parametrize("k", [2, 5, 20])
def test_all_modes_of_the_chain_are_unresolved_until_one_is_identified(k: int) -> None:
    """The rule that draws at every step, with equal actions only at the end."""
    agent = chain(k).agent()
    for t in range(3 * k):
        agent.observe(t % 2 if k > 1 else 0, 0)
        found = agent.unresolved()
        assert found.share == 1.0
        assert [mode.name for mode in found.modes] == ["A", "B"]
    last = (3 * k - 1) % 2
    for _ in range(k):  # no reward: the other mode is right
        agent.observe(1 - last, 0)
    assert agent.belief.posterior().max() == 1.0
    assert agent.unresolved() == (0.0, ())


def test_losses_and_distances_equal_their_definitions() -> None:
    modes = random_modes(5, situations=3, seed=3)
    agent = modes.agent()
    log_p, log_mix, visited = np.zeros(5), 0.0, [agent.x]
    record = interact(agent.copy(), modes.environment(2), 12, seed=0)
    for a, o in record:
        belief, x = agent.belief, agent.x
        log_p += belief.log_likelihoods(x, a, o)
        log_mix += belief.log_predictive(x, a, o)
        agent.observe(a, o)
        visited.append(agent.x)
    d = (log_mix - log_p) / 12
    D = np.zeros(5)
    for x in visited:
        policies = np.array([[m.action_probabilities(x).get(a, 0.0) for a in range(2)]
                             for m in (modes[i] for i in range(5))])  # fmt: skip
        D += 0.5 * np.abs(policies - agent.belief.posterior() @ policies).sum(1) / len(visited)
    for nats in d[d >= 0.0] + 1e-9:
        for distance in np.clip(np.sort(D) - 1e-9, 0.0, 1.0):
            found = agent.unresolved(nats=float(nats), distance=float(distance))
            expected = np.flatnonzero((d <= nats) & (distance <= D))
            assert sorted(mode.m for mode in found.modes) == expected.tolist()
            assert found.share == pytest.approx(len(expected) / 5)


def test_lists_and_arrays_of_modes_agree_at_any_temperature() -> None:
    modes = random_modes(4, situations=2, seed=8)
    for temperature in (1.0, 0.2, 5.0):
        agents = [
            ControlRule(FiniteBelief(these), 0, modes.advance) for these in (modes, list(modes))
        ]
        for agent in agents:
            agent.belief.temperature = temperature
            for a, o in [(0, 1), (1, 1), (1, 0)]:
                agent.observe(a, o)
        first, second = (agent.unresolved(nats=1.0, distance=0.2) for agent in agents)
        assert first.share == pytest.approx(second.share)
        assert [m.m for m in first.modes] == [m.m for m in second.modes]


def two_boxes() -> TabularModes:
    """Action 0 tells the modes apart a little, action 1 does not."""
    policy = [[[0.0, 1.0]], [[1.0, 0.0]]]
    hypothesis = [[[[0.6, 0.4], [0.5, 0.5]]], [[[0.4, 0.6], [0.5, 0.5]]]]
    return TabularModes(policy, hypothesis)


def test_a_mode_that_was_refuted_early_stays_resolved_in_a_long_run() -> None:
    belief = two_boxes().agent().belief
    for _ in range(20):  # 8.1 nats for mode 0
        belief.observe(0, 0, 0)
    for _ in range(12_000):  # less than 1e-3 nats a step
        belief.observe(0, 1, 0)
    assert belief.unresolved(0).share == 0.0
    assert belief.draw_unresolved(0, Stream(0)) is None


def test_unresolved_modes_are_drawn_from_the_prior_and_held() -> None:
    """4,000 draws; false alarms below 1e-6 (5 standard deviations)."""
    belief = FiniteBelief(chain(30), [0.3, 0.7])
    assert belief.unresolved(0).modes[0].name == "B"
    rng, drawn = Stream(2), []
    for _ in range(4000):
        mode: Any = belief.draw_unresolved(0, rng)
        assert belief.drawn == mode.m
        assert belief.last() is not None
        drawn.append(mode.m)
    assert abs(np.mean(drawn) - 0.7) < 5 * np.sqrt(0.21 / 4000)


def test_modes_that_were_retired_or_ruled_out_are_not_unresolved() -> None:
    belief = FiniteBelief([*chain(30), *chain(30)])
    belief.retire(0)
    found = belief.unresolved(0)
    assert found.share == pytest.approx(1.0)
    assert [mode.m for mode in found.modes] == [1, 0, 1]
    before = belief.save()
    belief.unresolved(0)
    assert all((belief.save()[name] == v).all() for name, v in before.items())


def test_private_states_of_a_motor_take_the_place_of_situations() -> None:
    agent = ControlRule(motor_belief(6))
    assert agent.unresolved().share == 1.0
    world, rng = motor(6), Stream(0)
    for _ in range(12):
        agent.observe("plus", world.respond("plus", rng))
    assert agent.belief.posterior()[1] > 0.999
    assert agent.unresolved() == (0.0, ())


def test_situations_of_other_runs_and_of_compiled_loops_do_not_count() -> None:
    modes = random_modes(3, situations=3, seed=1)
    agent = modes.agent()
    for a, o in [(0, 1), (1, 0)]:
        agent.observe(a, o)
    saved = agent.save()
    assert len(agent.belief.recent) == 2
    interact(agent, modes.environment(0), 50, seed=0)
    assert not agent.belief.recent
    agent.observe(0, 0)
    agent.load(saved)
    assert not agent.belief.recent


def test_a_belief_about_changing_modes_has_no_unresolved_modes() -> None:
    agent = ControlRule(SwitchingBelief(list(chain(3)), hazard=0.1), 0, chain(3).advance)
    with pytest.raises(MissingCapability, match="unresolved"):
        agent.unresolved()


@pytest.mark.parametrize("bad", [{"nats": -1.0}, {"distance": 1.5}, {"distance": float("nan")}])
def test_invalid_thresholds_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        chain(3).agent().unresolved(**bad)
    with pytest.raises(ValueError, match=next(iter(bad))):
        chain(3).agent().belief.unresolved(0, **bad)
