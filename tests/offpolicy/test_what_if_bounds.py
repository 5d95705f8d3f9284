"""Intervals for rewards of a known range: its source, its units, and the probabilities used."""

from typing import Any

import numpy as np
import pytest
from tests.offpolicy.fixed_logs import MEANS, fixed_log

from bayescontrol import BernoulliBandit, GaussianBandit, JointBandit, LogisticBandit
from bayescontrol.durable import named_model, open_agent
from bayescontrol.durable.events import Created, Decided, Event, Observed
from bayescontrol.durable.models import model_of
from bayescontrol.durable.replay import Replayer
from bayescontrol.errors import BadEvidence, InvalidRequest, ModelMismatch
from bayescontrol.finite.tabular import random_modes
from bayescontrol.offpolicy import what_if
from bayescontrol.seeding import Stream

RED = {"red": 0.9, "blue": 0.1}
TRUTH = 0.9 * 0.7 + 0.1 * 0.4


def policy(x: Any) -> dict[str, float]:
    return RED


def bernoulli_log(decisions: int = 40) -> list[Event]:
    with open_agent("sqlite:///:memory:", "s", BernoulliBandit(["red", "blue"]), seed=2) as agent:
        rng = Stream(0)
        for _ in range(decisions):
            d = agent.act()
            agent.observe(d, int(rng.random() < MEANS[d.action]))
        return list(agent.log())


def test_the_range_of_rewards_is_known_for_finitely_many_outcomes() -> None:
    models: list[tuple[Any, Any, Any]] = [
        (BernoulliBandit(2), None, (0.0, 1.0)),
        (JointBandit([[0.9, 0.1], [0.1, 0.9]]), None, (0.0, 1.0)),
        (LogisticBandit(2, 1), [1.0], (0.0, 1.0)),
        (random_modes(2, observations=3, seed=1), None, (0.0, 2.0)),
        (GaussianBandit(2), None, None),
    ]
    for model, x, bounds in models:
        with open_agent("sqlite:///:memory:", "s", model, seed=2) as agent:
            agent.observe(agent.act(x), 1)
            result = what_if(agent, lambda x: {0: 0.5, 1: 0.5})
            assert (result.bounds, result.all_propensities) == (bounds, bounds is not None)
            if bounds is not None:
                assert (
                    bounds[0] <= result.doubly_robust.low <= result.doubly_robust.high <= bounds[1]
                )


def test_intervals_are_in_the_units_of_the_reward() -> None:
    events = bernoulli_log()
    plain, priced = what_if(events, policy), what_if(events, policy, reward=lambda o: 3 * o - 1)
    assert priced.bounds == (-1.0, 2.0)
    for name in ("inverse_propensity", "doubly_robust", "logged"):
        one, other = getattr(plain, name), getattr(priced, name)
        assert other.low == pytest.approx(3 * one.low - 1, abs=1e-9)
        assert other.high == pytest.approx(3 * one.high - 1, abs=1e-9)
    fixed = what_if(events, policy, reward=lambda o: 7.0).doubly_robust
    assert (fixed.low, fixed.high) == (7.0, 7.0)


def test_wider_bounds_give_wider_intervals() -> None:
    events = fixed_log(1, 300)
    narrow = what_if(events, policy, bounds=(0, 1)).inverse_propensity
    wide = what_if(events, policy, bounds=(-1, 3)).inverse_propensity
    assert wide.low < narrow.low < TRUTH < narrow.high < wide.high
    assert (wide.mean, wide.error) == (narrow.mean, narrow.error)


def test_the_interval_of_an_untried_action_is_the_whole_range() -> None:
    result = what_if(fixed_log(1, 100, p_red=1e-9), lambda x: {"red": 1.0}, bounds=(0, 1))
    for one in (result.inverse_propensity, result.doubly_robust):
        assert (one.low, one.high, one.error) == (0.0, 1.0, np.inf)
    assert "puts 100 % of its probability on actions without any observation" in str(result)


def test_a_reward_out_of_bounds_is_refused() -> None:
    with pytest.raises(BadEvidence, match=r"reward 1\.0, outside \(0\.0, 0\.5\)"):
        what_if(fixed_log(1, 10), policy, bounds=(0, 0.5))
    for wrong in ((1, 0), (0, 0), (0, np.inf), (np.nan, 1), 3, "01x", (0, 1, 2)):
        with pytest.raises(InvalidRequest, match="bounds="):
            what_if(fixed_log(1, 10), policy, bounds=wrong)  # type: ignore[arg-type]


def test_replayed_probabilities_equal_those_of_the_log() -> None:
    events = bernoulli_log()
    assert isinstance(events[0], Created)
    distributions = Replayer(model_of(events[0]), events[0])
    for event in events:
        if isinstance(event, Decided):
            probabilities = distributions.take_decision(event)
            assert probabilities is not None
            assert probabilities[event.a] == event.p
            assert sum(probabilities.values()) == pytest.approx(1.0)
        elif isinstance(event, Observed):
            distributions.take(event)
    last = events[-2]
    assert isinstance(last, Decided)
    events[-2] = Decided(seq=last.seq, x=None, a=last.a, p=0.123, key=None, time=0.0)
    with pytest.raises(ModelMismatch, match=r"had probability 0\.123, computed again it has"):
        what_if(events, policy)


def test_the_narrower_interval_of_a_user_model_needs_the_model() -> None:
    mine = named_model("mine", version=1, build=lambda: BernoulliBandit(["red", "blue"]).agent())
    with open_agent("sqlite:///:memory:", "s", mine, seed=2) as agent:
        rng = Stream(0)
        for _ in range(200):
            d = agent.act()
            agent.observe(d, int(rng.random() < MEANS[d.action]))
        with_it = what_if(agent, policy, bounds=(0, 1))
        events = list(agent.log())
    assert with_it.all_propensities
    assert what_if(events, policy, bounds=(0, 1), model=mine) == with_it
    without = what_if(events, policy, bounds=(0, 1))
    assert not without.all_propensities
    assert without.doubly_robust.mean == with_it.doubly_robust.mean
    assert without.doubly_robust.low == without.inverse_propensity.low
    assert without.doubly_robust.high == without.inverse_propensity.high
    assert "pass model=" in str(without)
    assert "pass model=" not in str(with_it)
    with pytest.raises(ModelMismatch, match="version 1, not 2"):
        what_if(events, policy, model=mine._replace(version=2))


def test_a_sequential_agent_has_an_interval_too() -> None:
    """The reward of the other policy at each decision, along the path of the log."""
    with open_agent(
        "sqlite:///:memory:", "s", random_modes(3, situations=2, seed=3), seed=2
    ) as agent:
        for i in range(50):
            agent.observe(agent.act(), i % 2)
        result = what_if(agent, lambda x: {0: 0.5, 1: 0.5})
    assert result.all_propensities
    assert result.doubly_robust.low < result.doubly_robust.high
