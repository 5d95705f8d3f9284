"""The k-step chain and the growing chain against their definitions, on every short history."""

import itertools
import math
from decimal import Decimal, getcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol import Stream, interact
from bayescontrol.errors import InvalidTable, UnknownMode
from bayescontrol.problems.chain import GrowingChain, chain, first_run
from bayescontrol.record import posterior

ACTIONS = (0, 1)


def rewards_by_definition(actions: tuple[int, ...], right: int, k: int) -> list[int]:
    """A walk along the hidden states 0 … k-1, as the paper tells it."""
    state, rewards = 0, []
    for a in actions:
        state = state + 1 if a == right else 0
        rewards.append(int(state == k))
        state %= k
    return rewards


def first_run_by_definition(actions: list[int], k: int) -> int | None:
    for t in range(k, len(actions) + 1):
        if len(set(actions[t - k : t])) == 1:
            return t
    return None


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("right", ACTIONS)
def test_the_chain_pays_as_the_hidden_states_say_on_every_history(k: int, right: int) -> None:
    rng = Stream(0)
    for actions in itertools.product(ACTIONS, repeat=9):
        world = chain(k).environment(right)
        paid = [world.respond(a, rng) for a in actions]
        assert paid == rewards_by_definition(actions, right, k)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("right", ACTIONS)
def test_the_posterior_stays_uniform_until_the_first_run_of_k_and_is_sure_from_then_on(
    k: int, right: int
) -> None:
    rng = Stream(0)
    for actions in itertools.product(ACTIONS, repeat=7):
        world = chain(k).environment(right)
        agent: Any = chain(k).agent()
        identified = first_run(actions, k) or math.inf
        for t, a in enumerate(actions, start=1):
            agent.observe(a, world.respond(a, rng))
            v = agent.belief.posterior()
            assert v[right] == (1.0 if t >= identified else 0.5)
            assert v.sum() == 1.0


def test_k_wrong_actions_refute_an_environment_without_any_reward() -> None:
    agent: Any = chain(5).agent()
    for _ in range(5):
        agent.observe(1, 0)
    assert agent.belief.posterior().tolist() == [1.0, 0.0]


def test_each_mode_always_chooses_its_own_action() -> None:
    modes = chain(3)
    for m in ACTIONS:
        assert all(modes[m].action_probabilities(x) == {m: 1.0} for x in range(5))


def test_the_compiled_loop_identifies_where_the_probed_posterior_becomes_degenerate() -> None:
    k = 6
    for run in range(20):
        fast = interact(chain(k).agent(), chain(k).environment(0), 400, run=run)
        slow = interact(
            chain(k).agent(), chain(k).environment(0), 400, run=run, probes={"v": posterior}
        )
        assert np.array_equal(fast.actions, slow.actions)
        sure = np.flatnonzero(slow["v"].min(axis=1) == 0.0)
        assert first_run(fast.actions, k) == (int(sure[0]) + 1 if sure.size else None)


@given(st.lists(st.sampled_from(ACTIONS), max_size=30), st.integers(1, 6))
def test_the_first_run_is_the_first_window_of_k_equal_actions(actions: list[int], k: int) -> None:
    assert first_run(actions, k) == first_run_by_definition(actions, k)


def test_the_required_run_grows_like_the_root_of_time_without_rounding_errors() -> None:
    getcontext().prec = 60
    for scale in (1, 3, 10):
        growing = GrowingChain(scale)
        for t in (*range(1, 2000), 10**12, 10**12 + 1):
            exact = (scale * Decimal(t).sqrt()).to_integral_value(rounding="ROUND_CEILING")
            assert growing.required(t) == int(exact)


@pytest.mark.parametrize("right", ACTIONS)
def test_the_growing_chain_pays_and_identifies_by_definition_on_every_history(right: int) -> None:
    growing, rng = GrowingChain(2), Stream(0)
    for actions in itertools.product(ACTIONS, repeat=10):
        world, agent = growing.environment(right), growing.agent()
        belief: Any = agent.belief
        sure = False
        for t, a in enumerate(actions, start=1):
            k = math.ceil(2 * math.sqrt(t))
            last = actions[max(0, t - k) : t]
            long = t >= k and len(set(last)) == 1
            o = world.respond(a, rng)
            assert o == (long and a == right)
            agent.observe(a, o)
            sure = sure or long
            assert belief.posterior().min() == (0.0 if sure else 0.5)


def test_all_equal_actions_are_first_paid_at_the_square_of_the_scale() -> None:
    world, rng = GrowingChain(10).environment(0), Stream(0)
    assert [world.respond(0, rng) for _ in range(105)] == [0] * 99 + [1] * 6


def test_the_growing_chain_tells_the_rule_its_probabilities() -> None:
    agent = GrowingChain(2).agent()
    assert agent.action_probabilities() == {0: 0.5, 1: 0.5}
    for _ in range(3):
        agent.observe(0, 0)
    assert agent.predictive(0) == {0: 0.5, 1: 0.5}
    assert agent.predictive(1) == {0: 1.0, 1: 0.0}


def test_bad_lengths_and_modes_are_named() -> None:
    with pytest.raises(InvalidTable, match=r"chain\(k=0\): k is at least 1"):
        chain(0)
    with pytest.raises(InvalidTable, match=r"GrowingChain\(scale=0\)"):
        GrowingChain(0)
    with pytest.raises(UnknownMode, match="no mode 2"):
        GrowingChain().environment(2)
