"""The supermartingale behind the intervals, by enumeration of every history.

Two arms and six decisions; the rewards and both policies depend on the history. There are 4^6
histories, each with its exact probability. Nothing here is random, so there are no false alarms.
"""

from collections.abc import Callable, Iterator
from statistics import NormalDist, fmean
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.offpolicy.fixed_logs import fixed_log

from bayescontrol._arrays import FloatArray
from bayescontrol.durable.events import Decided, Observed
from bayescontrol.offpolicy import what_if
from bayescontrol.offpolicy.estimators import (
    CAP,
    LAM,
    RHO,
    RewardEstimate,
    RewardInterval,
    guess,
    lower_bound,
)

HORIZON = 6
History = tuple[tuple[int, int], ...]
Logging = Callable[[History], float]


class Node(NamedTuple):
    """A history with its probability, the interval so far, and Σ v."""

    history: History
    probability: float
    interval: RewardInterval
    value: float
    #: Whether an interval on the way, this one included, missed the mean of v.
    missed: bool


def eager(history: History) -> float:
    """P(arm 1) of the logging agent, which follows success."""
    wins = sum(r if a else 1 - r for a, r in history)
    return (0.2 + wins) / (1.0 + len(history))


def shy(history: History) -> float:
    """The same, but it never tries arm 1 after two failures in a row."""
    return 0.0 if len(history) > 1 and not any(r for _, r in history[-2:]) else eager(history)


def other(history: History) -> float:
    """P(arm 1) of the evaluated policy, which learns too."""
    return 0.9 if not history or history[-1][1] else 0.5


def mean(history: History, a: int) -> float:
    """E[r | a, history]: it drifts, differently for each arm."""
    return 0.8 - 0.1 * len(history) if a else 0.2 + 0.1 * sum(r for _, r in history)


def guessed(history: History) -> list[float]:
    """r̂: the mean of each arm so far."""
    return [
        sum(r for b, r in history if b == a) / max(1, sum(b == a for b, _ in history))
        for a in (0, 1)
    ]


def enumerate_histories(
    logging: Logging, robust: bool, level: float = 0.5, logged: Logging | None = None
) -> list[Node]:
    """All histories of HORIZON decisions; `logged` is the probability in the log, if wrong."""
    nodes = [Node((), 1.0, RewardInterval(), 0.0, False)]
    for _ in range(HORIZON):
        nodes = [c for n in nodes for c in children(n, logging, robust, level, logged or logging)]
    return nodes


def children(
    node: Node, logging: Logging, robust: bool, level: float, logged: Logging
) -> Iterator[Node]:
    true, p_1, pi_1 = logging(node.history), logged(node.history), other(node.history)
    pi, p = [1 - pi_1, pi_1], [1 - p_1, p_1]
    value = node.value + sum(pi[a] * mean(node.history, a) for a in (0, 1))
    for a in (0, 1):
        for r in (0, 1):
            mu = mean(node.history, a)
            chance = (true if a else 1 - true) * (mu if r else 1 - mu)
            if not chance:
                continue
            interval = RewardInterval()
            interval.growth = node.interval.growth.copy()
            interval.m, interval.decisions = node.interval.m.copy(), node.interval.decisions
            r_hat = guessed(node.history)
            interval.take(guess(pi, p if robust else None, r_hat, a, pi[a] / p[a]), r)
            low, high = interval.at(level)
            missed = not low <= value / interval.decisions <= high
            yield Node(
                (*node.history, (a, r)), node.probability * chance, interval, value,
                node.missed or missed,
            )  # fmt: skip


def expected_wealth(nodes: list[Node]) -> np.ndarray:
    """E[M_n(λ_j)], of both sides."""
    total = np.zeros((2, len(LAM)))
    for node in nodes:
        values = np.array([[node.value], [HORIZON - node.value]])
        total += node.probability * np.exp(node.interval.growth - LAM * (values - node.interval.m))
    return total


both = pytest.mark.parametrize("robust", [False, True], ids=["inverse", "robust"])


@both
@pytest.mark.parametrize("logging", [eager, shy])
def test_no_bet_is_expected_to_win(logging: Logging, robust: bool) -> None:
    nodes = enumerate_histories(logging, robust)
    assert sum(node.probability for node in nodes) == pytest.approx(1.0)
    wealth = expected_wealth(nodes)
    assert np.all(wealth <= 1.0 + 1e-12)
    if logging is eager:  # a small bet loses only O(λ²): the inequality is tight
        assert np.all(1.0 - wealth <= 10 * LAM**2)


@both
def test_a_bet_wins_if_the_probabilities_in_the_log_are_wrong(robust: bool) -> None:
    """The planted bug: the test above can fail."""
    nodes = enumerate_histories(eager, robust, logged=lambda history: eager(history) / 1.1)
    assert expected_wealth(nodes).max() > 1.0001


@both
@pytest.mark.parametrize("logging", [eager, shy])
@pytest.mark.parametrize("level", [0.1, 0.5])
def test_intervals_hold_at_their_level_at_all_times_together(
    logging: Logging, robust: bool, level: float
) -> None:
    missed = sum(
        node.probability for node in enumerate_histories(logging, robust, level) if node.missed
    )
    assert 0.0 < missed <= 1.0 - level


def test_no_factor_is_less_than_a_quarter() -> None:
    """The worst case: the largest guesses, the least reward, any weight."""
    assert pytest.approx(1.0) == RHO.sum()
    assert np.allclose(LAM * (CAP + 1), 0.75)
    for p in (1e-12, 0.01, 0.5, 1.0):
        interval = RewardInterval()
        interval.take(guess([0.5, 0.5], [p, 1 - p], [1.0, 1.0], 0, 0.5 / p), 0.0)
        assert interval.growth[0].min() >= np.log(0.25) - 1e-12


@given(arrays(float, len(LAM), elements=st.floats(-1e3, 1e3)), st.floats(1e-6, 0.5))
def test_the_bound_is_where_the_mixture_reaches_its_limit(growth: np.ndarray, alpha: float) -> None:
    z = np.log(RHO) + growth - LAM * lower_bound(growth, alpha)
    assert np.logaddexp.reduce(z) == pytest.approx(-np.log(alpha), abs=1e-6)


# -- two sides of one level --------------------------------------------------------------------

levels = pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99])


def wealth(r: FloatArray, w: FloatArray, m: FloatArray, v: float) -> float:
    """Σ_j ρ_j Π_t (1 + λ_j (w_t r_t - m_t)) exp(-λ_j (v - m_t)): the wealth of bets against v."""
    factors = (1.0 + LAM[:, None] * (w * r - m)) * np.exp(-LAM[:, None] * (v - m))
    return float(RHO @ factors.prod(1))


def assert_both_ends_have_half(
    ends: tuple[float, float], level: float, r: FloatArray, w: FloatArray, m: FloatArray
) -> None:
    """By Ville each end misses with probability 1 / wealth: (1 - level) / 2, both 1 - level."""
    low, high = ends
    assert 0.0 < low < high < 1.0
    assert 1.0 / wealth(r, w, m, low) == pytest.approx((1.0 - level) / 2, rel=1e-6)
    assert 1.0 / wealth(1.0 - r, w, 1.0 - m, 1.0 - high) == pytest.approx(
        (1.0 - level) / 2, rel=1e-6
    )


@levels
def test_each_end_of_an_interval_has_half_of_the_error(level: float) -> None:
    rng = np.random.default_rng(0)
    r, w = rng.integers(0, 2, 400).astype(float), rng.choice([0.0, 0.5, 2.0], 400)
    m = rng.uniform(0.2, 0.8, 400)
    interval = RewardInterval()
    for r_t, w_t, m_t in zip(r, w, m, strict=True):
        interval.take(guess([1.0], None, [m_t], 0, w_t), r_t)
    assert_both_ends_have_half(interval.at(level), level, r, w, m)


@levels
def test_the_intervals_of_a_log_have_the_requested_level(level: float) -> None:
    """The same from the log alone, for the log itself and for the policy that always takes red."""
    events = fixed_log(1, 600, p_red=0.5)
    result = what_if(events, lambda x: {"red": 1.0}, bounds=(0, 1), level=level)
    a = [e.a == "red" for e in events if isinstance(e, Decided)]
    r = np.array([e.o for e in events if isinstance(e, Observed)], float)
    so_far = [fmean(r[:t]) if t else 0.5 for t in range(600)]
    reds = [r[:t][a[:t]] for t in range(600)]
    red = [fmean(reds[t]) if len(reds[t]) else so_far[t] for t in range(600)]
    logged, ips = result.logged, result.inverse_propensity
    ones, w = np.ones(600), np.where(a, 2.0, 0.0)
    assert_both_ends_have_half((logged.low, logged.high), level, r, ones, np.array(so_far))
    assert_both_ends_have_half((ips.low, ips.high), level, r, w, np.array(red))


@levels
def test_a_normal_interval_is_two_sided(level: float) -> None:
    e = RewardEstimate.of([0.0, 1.0, 0.0, 0.0, 1.0], level)
    below, above = (NormalDist(e.mean, e.error).cdf(end) for end in (e.low, e.high))
    assert below == pytest.approx((1.0 - level) / 2, rel=1e-9)
    assert 1.0 - above == pytest.approx((1.0 - level) / 2, rel=1e-9)


def test_the_order_of_observations_does_not_matter() -> None:
    guesses = [guess([0.3, 0.7], [0.6, 0.4], [0.2, 0.4], a, (0.5, 1.75)[a]) for a in (0, 1, 1, 0)]
    ends = []
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        interval = RewardInterval()
        for i in order:
            interval.take(guesses[i], i % 2)
        ends.append(interval.at(0.9))
    assert ends[0] == pytest.approx(ends[1], abs=1e-12)


def test_bounds_that_cross_are_returned_as_an_ordered_interval() -> None:
    interval = RewardInterval()
    interval.growth[:], interval.decisions = 100.0, 10
    low, high = interval.at(0.95)
    assert 0.0 <= low <= high <= 1.0
