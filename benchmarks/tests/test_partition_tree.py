"""Partition tree weighting compared with a sum over all binary partitions, and its behaviour."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.arena import PartitionTree

from bayescontrol import BernoulliBandit, Stream, interact, metrics
from bayescontrol.errors import BadEvidence, InvalidPrior, UnknownArm

Partition = tuple[tuple[int, int], ...]


def partitions(first: int, depth: int) -> list[tuple[Partition, Fraction]]:
    """All binary partitions of 2^depth steps from `first`, with their prior probabilities."""
    whole: Partition = ((first, first + 2**depth),)
    if depth == 0:
        return [(whole, Fraction(1))]
    left, right = partitions(first, depth - 1), partitions(first + 2 ** (depth - 1), depth - 1)
    split = [(a + b, p * q / 2) for (a, p), (b, q) in itertools.product(left, right)]
    return [(whole, Fraction(1, 2)), *split]


def segment_probability(events: list[tuple[int, int]], a: float, b: float) -> float:
    """P(rewards | one segment), for independent arms."""
    total = 1.0
    for arm in {arm for arm, _ in events}:
        rewards = [r for j, r in events if j == arm]
        s, f = sum(rewards), len(rewards) - sum(rewards)
        logs = [math.lgamma(x) for x in (a + s, b + f, a + b, a + b + s + f, a, b)]
        total *= math.exp(logs[0] + logs[1] + logs[2] - logs[3] - logs[4] - logs[5])
    return total


def test_there_are_as_many_partitions_as_binary_trees_of_that_depth() -> None:
    counts = [len(partitions(0, depth)) for depth in range(4)]
    assert counts == [1, 2, 5, 26]
    assert sum(p for _, p in partitions(0, 3)) == 1


@pytest.mark.parametrize("prior", [(0.5, 0.5), (1.0, 2.0)])
def test_probability_and_segments_equal_the_sum_over_all_partitions(
    prior: tuple[float, float],
) -> None:
    """Exact up to rounding, after each of eight steps, for 40 random sequences of three arms."""
    stream, every = Stream(3), partitions(0, 3)
    for _ in range(40):
        agent, events = PartitionTree(3, 8, prior=prior), list[tuple[int, int]]()
        for t in range(8):
            weights = dict[int, float]()
            for parts, p in every:
                likelihood = float(p)
                for low, high in parts:
                    likelihood *= segment_probability(events[low:high], *prior)
                start = next(low for low, high in parts if low <= t < high)
                weights[start] = weights.get(start, 0.0) + likelihood
            total = sum(weights.values())
            assert agent.log_probability() == pytest.approx(math.log(total), abs=1e-12)
            found = agent.starts()
            assert set(found) == set(weights)
            for start, weight in weights.items():
                assert found[start] == pytest.approx(weight / total, abs=1e-12)
            events.append((stream.integers(3), stream.integers(2)))
            agent.observe(*events[-1])
        total = sum(
            float(p) * math.prod(segment_probability(events[i:j], *prior) for i, j in parts)
            for parts, p in every
        )
        assert agent.log_probability() == pytest.approx(math.log(total), abs=1e-12)


def test_predictions_of_both_rewards_add_up_to_one() -> None:
    """Along a sequence of 300 steps: P(o = 0 | past) + P(o = 1 | past) = 1."""
    rewards = Stream(1).integers(2, size=300)

    def log_probability(last: int) -> float:
        agent = PartitionTree(1, 512)
        for r in rewards[: t + 1]:
            agent.observe(0, int(r))
        agent.observe(0, last)
        return agent.log_probability()

    for t in (0, 31, 127, 254, 298):
        agent = PartitionTree(1, 512)
        for r in rewards[: t + 1]:
            agent.observe(0, int(r))
        both = np.logaddexp(log_probability(0), log_probability(1))
        assert both == pytest.approx(agent.log_probability(), abs=1e-10)


def test_actions_have_the_probabilities_of_the_mixture_of_segments() -> None:
    """Two arms: P(arm 1) is a sum over segments; within four standard errors of 20,000 draws."""
    agent = PartitionTree(2, 64)
    for t in range(48):
        agent.observe(t % 2, int((t < 32) == (t % 2 == 0)))
    # After the change at 32, arm 1 pays and arm 0 does not.
    stream = Stream(5)
    drawn = np.mean([agent.act(stream) for _ in range(20_000)])
    chance = np.random.default_rng(0)
    expected, rows = 0.0, agent._counts
    agent.log_probability()
    weights = np.exp(agent._scratch - agent._scratch.max())
    for w, row in zip(weights / weights.sum(), rows, strict=False):
        m = chance.beta(row[:, 0], row[:, 1], size=(100_000, 2))
        expected += w * float((m[:, 1] > m[:, 0]).mean())
    assert drawn == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 20_000) + 0.005)
    assert drawn > 0.7


def test_it_follows_a_change_that_the_static_rule_misses() -> None:
    """The best of three arms collapses at step 500 of 1,000.

    Pilot on seeds 1000 to 1019: regret below 60 in every run, at least 120 for the static rule.
    """
    bandit = BernoulliBandit(3)
    for run in range(3):
        lost = []
        for agent in (PartitionTree(3, 1000), bandit.agent()):
            world = bandit.changing().environment([0.9, 0.6, 0.5], changes={500: [0.1, 0.6, 0.5]})
            record = interact(agent, world, 1000, seed=run)
            lost.append(float(metrics.regret(record, world)[-1]))
        assert lost[0] < 0.6 * lost[1]


def test_bad_input_raises_and_changes_nothing() -> None:
    agent = PartitionTree(2, 2)
    for a, o, error in ((0, 0.5, BadEvidence), (0, float("nan"), BadEvidence), (7, 1, UnknownArm)):
        with pytest.raises(error):
            agent.observe(a, o)
    assert (agent.t, agent.log_probability()) == (0, 0.0)
    agent.observe(0, 1)
    agent.observe(1, 0)
    before = agent.log_probability()
    with pytest.raises(BadEvidence, match="horizon"):
        agent.observe(0, 1)
    assert agent.log_probability() == before
    with pytest.raises(InvalidPrior, match="horizon=0"):
        PartitionTree(2, 0)
    with pytest.raises(ValueError, match="prior"):
        PartitionTree(2, 8, prior=(0.0, 1.0))
