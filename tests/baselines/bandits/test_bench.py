"""The paper's benchmark: 10 levers with uniform biases, 1,000 steps."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from benchmarks.arena import MOSS, BayesUCB, InformationDirected, KnowledgeGradient, UCBTuned

from bayescontrol._arrays import FloatArray
from bayescontrol.bandits import BernoulliBandit
from bayescontrol.baselines import (
    KLUCB,
    UCB1,
    EpsilonGreedy,
    Oracle,
    UniformLevers,
)
from bayescontrol.interaction import both_streams, interact
from bayescontrol.seeding import Stream

BANDIT = BernoulliBandit(10)
STEPS, LATE = 1000, 100


class Scores(NamedTuple):
    """Late reward, late share of the best lever, and regret; one number per run."""

    reward: FloatArray
    best: FloatArray
    regret: FloatArray


def bench(make: Callable[[Any], Any], runs: int, seed: int = 0) -> Scores:
    rows = []
    for run in range(runs):
        world = BANDIT.draw(Stream.named(seed, run, "world"))
        agent = make(world)
        record = interact(agent, world, STEPS, streams=both_streams(seed, run))
        means = world.means()
        rows.append(
            (
                record.observations[-LATE:].mean(),
                (record.actions[-LATE:] == world.best()).mean(),
                STEPS * means.max() - means[record.actions].sum(),
            )
        )
    return Scores(*np.array(rows).T)


def assert_published(scores: Scores, reward: float, best: float, regret: float) -> None:
    """Compare with published means of 4,000 runs, within four standard errors of the difference.

    False alarms: 6e-5 for each of the three. The published digits are rounded to half a unit.
    """
    for column, value, digit in zip(scores, (reward, best, regret), (1e-3, 1e-3, 0.1), strict=True):
        error = column.std() * math.sqrt(1.0 / column.size + 1.0 / 4000)
        assert abs(column.mean() - value) <= 4.0 * error + 0.5 * digit


def decaying(_world: Any) -> EpsilonGreedy:
    return EpsilonGreedy(10, epsilon=0.1, decay=0.99)


def test_epsilon_greedy_agrees_with_the_published_results() -> None:
    assert_published(bench(decaying, 1000), 0.870, 0.614, 51.0)


@pytest.mark.slow
def test_epsilon_greedy_agrees_with_the_published_results_at_full_size() -> None:
    assert_published(bench(decaying, 4000, seed=1), 0.870, 0.614, 51.0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda _world: EpsilonGreedy(10, epsilon=0.1),  # no decay
        lambda _world: EpsilonGreedy(10, epsilon=0.1, decay=0.9),  # too much decay
        lambda _world: EpsilonGreedy(10, epsilon=0.5, decay=0.99),
    ],
)
def test_another_epsilon_is_detected(wrong: Any) -> None:
    with pytest.raises(AssertionError):
        assert_published(bench(wrong, 1000), 0.870, 0.614, 51.0)


def test_the_oracle_earns_ten_elevenths_and_has_no_regret() -> None:
    """Five standard errors: a false alarm in 6e-7 of the seeds."""
    scores = bench(lambda world: Oracle(10, biases=world.means()), 1000)
    error = scores.reward.std() / math.sqrt(1000)
    assert abs(scores.reward.mean() - 10 / 11) < 5 * error
    assert scores.regret.max() < 1e-9
    assert scores.best.min() == 1.0


def test_uniform_play_has_a_regret_of_9_22_per_step() -> None:
    """E max - E mean = 10/11 - 1/2; five standard errors, a false alarm in 6e-7 of the seeds."""
    scores = bench(lambda _world: UniformLevers(10), 1000)
    error = scores.regret.std() / math.sqrt(1000)
    assert abs(scores.regret.mean() - STEPS * 9 / 22) < 5 * error


def assert_less(one: Callable[[Any], Any], other: Callable[[Any], Any], runs: int) -> None:
    """`one` has less regret on the same worlds, by four standard errors: false alarm 3e-5."""
    gap = bench(other, runs).regret - bench(one, runs).regret
    assert gap.mean() > 4.0 * gap.std() / math.sqrt(runs)


def test_agents_have_the_order_reported_in_their_papers() -> None:
    assert_less(lambda _world: MOSS(10, horizon=STEPS), lambda _world: UCB1(10), 100)
    assert_less(lambda _world: UCBTuned(10), lambda _world: MOSS(10, horizon=STEPS), 100)
    assert_less(lambda _world: BayesUCB(10), lambda _world: KLUCB(10), 100)


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        lambda _world: BayesUCB(10),
        lambda _world: KnowledgeGradient(10, horizon=STEPS),
        lambda _world: UCBTuned(10),
    ],
)
def test_information_directed_sampling_has_the_least_regret(other: Any) -> None:
    assert_less(lambda _world: InformationDirected(10), other, 300)
