"""The k-step chain and the growing chain, compared with their definitions on short histories.

Exact identification times, compared with linear algebra, enumeration and simulated agents.
"""

import itertools
import math
from collections.abc import Iterator
from decimal import Decimal, getcontext
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol import Stream, interact, play
from bayescontrol.errors import InvalidTable, MissingCapability, UnknownMode
from bayescontrol.finite.chain import (
    GrowingChain,
    chain,
    first_reward_time,
    first_run,
    identification_probabilities,
    identification_time,
    tail_bound,
)
from bayescontrol.record import posterior
from bayescontrol.schedules import (
    Every,
    Geometric,
    MinimumDwell,
    Schedule,
    doubling,
    every_step,
)

ACTIONS = (0, 1)


def rewards_by_definition(actions: tuple[int, ...], right: int, k: int) -> list[int]:
    """Rewards of a walk along the hidden states 0 … k-1, as defined in the paper."""
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
def test_the_chain_pays_as_defined_on_every_history(k: int, right: int) -> None:
    rng = Stream(0)
    for actions in itertools.product(ACTIONS, repeat=9):
        world = chain(k).environment(right)
        paid = [world.respond(a, rng) for a in actions]
        assert paid == rewards_by_definition(actions, right, k)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("right", ACTIONS)
def test_the_posterior_is_uniform_until_the_first_run_of_k_and_then_certain(
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


def test_the_compiled_loop_identifies_when_the_posterior_becomes_degenerate() -> None:
    k = 6
    for run in range(20):
        fast = interact(chain(k).agent(), chain(k).environment(0), 400, run=run, seed=0)
        slow = interact(
            chain(k).agent(), chain(k).environment(0), 400, run=run, probes={"v": posterior}, seed=0
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


def test_errors_name_invalid_lengths_and_modes() -> None:
    with pytest.raises(InvalidTable, match="k=0: expected an integer of at least 1"):
        chain(0)
    with pytest.raises(InvalidTable, match="scale=0: expected"):
        GrowingChain(0)
    with pytest.raises(UnknownMode, match="no mode 2"):
        GrowingChain().environment(2)


def mean_by_elimination(k: int, j: int, p: Fraction) -> Fraction:
    """E T of the Markov chain on (run, age of the mode); draw at age j, or with probability p.

    Solved backward in rational numbers: h[n, g] = α + β h[1, 1], since a run that breaks
    starts again at run 1 with a fresh mode.
    """
    alpha: dict[tuple[int, int], Fraction] = {}
    beta: dict[tuple[int, int], Fraction] = {}
    zero, one = Fraction(0), Fraction(1)
    for n in range(k - 1, 0, -1):
        for g in range(1, j + 1):
            draw = one if g >= j else p
            on = [(one - draw, (n + 1, g + 1)), (draw / 2, (n + 1, 1))]
            alpha[n, g] = one + sum((q * alpha.get(s, zero) for q, s in on if q), zero)
            beta[n, g] = draw / 2 + sum((q * beta.get(s, zero) for q, s in on if q), zero)
    if k == 1:
        return one
    return 1 + alpha[1, 1] / (1 - beta[1, 1])


@pytest.mark.parametrize("k", range(1, 9))
@pytest.mark.parametrize("j", range(1, 10))
def test_holding_for_j_steps_agrees_with_closed_form_and_rational_value(k: int, j: int) -> None:
    r = -(-k // j)
    assert identification_time(k, Every(j)).mean == (2**r - 1) * j - (r * j - k)
    assert identification_time(k, Every(j)).mean == mean_by_elimination(k, j, Fraction(0))


@pytest.mark.parametrize("k", range(1, 31))
def test_the_rule_takes_2_to_the_k_minus_1_steps_and_longer_to_a_reward(k: int) -> None:
    assert identification_time(k).mean == 2**k - 1
    assert first_reward_time(k).mean == 2**k - 1 + k / 2
    assert identification_time(k, Geometric(1.0)) == identification_time(k)
    assert identification_time(k, Every(k)) == (k, 0.0)


@pytest.mark.parametrize("k", [1, 2, 5, 9])
@pytest.mark.parametrize("p", [Fraction(1, 9), Fraction(1, 2), Fraction(1, 10**9)])
def test_geometric_holding_takes_a_sum_of_powers(k: int, p: Fraction) -> None:
    # A huge j is never reached, so that only the coin triggers draws.
    s = 1 - p / 2
    exact = sum((s**-i for i in range(k)), Fraction(0))
    assert mean_by_elimination(k, 10**3 if k > 1 else 1, p) == exact
    ours = identification_time(k, Geometric(float(p)))
    assert ours.mean == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("schedule", [every_step, Every(2), Every(3), Geometric(0.3), doubling])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 6])
def test_mean_and_deviation_agree_with_the_distribution(schedule: Schedule, k: int) -> None:
    probabilities = identification_probabilities(lambda _t: k, schedule, 4000)
    t = np.arange(1, 4001)
    mean, sd = identification_time(k, schedule)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert t @ probabilities == pytest.approx(mean, rel=1e-10)
    variance = float((t - mean) ** 2 @ probabilities)
    assert math.sqrt(variance) == pytest.approx(sd, rel=1e-8, abs=1e-9)


def draws_of(schedule: Any, steps: int) -> list[bool]:
    """The steps at which a mode is drawn, from the definitions of the schedules."""
    if schedule is every_step:
        return [True] * steps
    if schedule is doubling:
        return [t == 0 or (t & (t - 1)) == 0 for t in range(steps)]
    return [t % schedule.k == 0 for t in range(steps)]


def histories(draws: list[bool]) -> Iterator[list[int]]:
    """All equally likely action sequences for fair draws."""
    for coins in itertools.product((0, 1), repeat=sum(draws)):
        drawn = iter(coins)
        actions: list[int] = []
        for new in draws:
            actions.append(next(drawn) if new else actions[-1])
        yield actions


@pytest.mark.parametrize("schedule", [every_step, Every(3), doubling])
def test_the_growing_chain_agrees_with_enumeration_of_all_histories(schedule: Schedule) -> None:
    growing, steps = GrowingChain(2), 12
    draws = draws_of(schedule, steps)
    count = np.zeros(steps)
    for actions in histories(draws):
        for t in range(1, steps + 1):
            k = growing.required(t)
            if t >= k and len(set(actions[t - k : t])) == 1:
                count[t - 1] += 1
                break
    probabilities = identification_probabilities(growing.required, schedule, steps)
    assert probabilities.tolist() == (count / 2 ** sum(draws)).tolist()


def test_doubling_always_identifies_within_three_times_k() -> None:
    for k in range(1, 70):
        assert identification_probabilities(lambda _t, k=k: k, doubling, 3 * k).sum() == 1.0  # type: ignore[misc]


def test_on_the_growing_chain_the_rule_never_identifies_and_doubling_does_by_step_474() -> None:
    growing = GrowingChain(10)
    rule = identification_probabilities(growing.required, every_step, 2000)
    # The first opportunity, 100 equal actions out of 100, has two thirds of the total probability.
    assert rule[99] == 2.0**-99
    assert rule.sum() + tail_bound(growing, every_step, 2000) < 3e-30
    probabilities = identification_probabilities(growing.required, doubling, 512)
    assert probabilities.sum() == 1.0
    assert np.flatnonzero(probabilities)[[0, -1]].tolist() == [99, 473]


@pytest.mark.parametrize("schedule", [every_step, Every(2), Every(3), Geometric(0.3)])
def test_the_tail_bound_is_above_the_exact_tail(schedule: Schedule) -> None:
    growing = GrowingChain(2)
    probabilities = identification_probabilities(growing.required, schedule, 4000)
    for steps in (4, 10, 50, 200):
        tail = probabilities[steps:].sum()
        assert 0.0 < tail <= tail_bound(growing, schedule, steps)


@pytest.mark.parametrize("schedule", [every_step, Every(2), Every(3), Geometric(0.25), doubling])
def test_simulated_agents_agree_with_the_exact_time(
    schedule: Schedule,
) -> None:
    """Within 5 standard errors of 800 runs: false-alarm rate about 1e-6 a schedule.

    The planted bug, a chain longer by two, is rejected by the same test.
    """
    k, runs = 5, 800
    times = np.empty(runs)
    for run in range(runs):
        agent: Any = chain(k).agent(schedule=schedule)
        history = play(agent, chain(k).environment(run % 2), seed=11, run=run)
        actions = []
        for t, (a, _) in enumerate(islice(history, 10_000), start=1):
            actions.append(a)
            if agent.belief.posterior().min() == 0.0:
                times[run] = t
                break
        assert times[run] == first_run(actions, k)
    mean, sd = identification_time(k, schedule)
    allowed = 5 * sd / math.sqrt(runs)
    assert abs(times.mean() - mean) <= allowed
    assert abs(times.mean() - identification_time(k + 2, schedule).mean) > allowed


def test_a_schedule_without_exact_probabilities_is_refused() -> None:
    with pytest.raises(MissingCapability, match="simulate it"):
        identification_time(3, MinimumDwell(2))
    with pytest.raises(MissingCapability, match="identification_probabilities"):
        tail_bound(GrowingChain(), doubling, 100)
