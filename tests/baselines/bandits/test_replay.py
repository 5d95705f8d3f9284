"""Whole runs, compared with the papers' pseudo-code in plain Python."""

import math
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
from benchmarks.arena import MOSS, BayesUCB, KnowledgeGradient, UCBTuned
from scipy import special  # type: ignore[import-untyped]

from bayescontrol.baselines import KLUCB, UCB1
from bayescontrol.interaction import play
from bayescontrol.seeding import Stream

ARMS, STEPS = 3, 120


class Fractions:
    """An environment with Beta distributed rewards in [0, 1]."""

    def respond(self, a: int, rng: Stream) -> float:
        return rng.beta(1.0 + a, 2.0)


class Coins:
    """An environment with rewards 0 and 1."""

    def respond(self, a: int, rng: Stream) -> float:
        return float(rng.random() < 0.4 + 0.1 * a)


Index = Callable[[list[float], list[list[float]]], float]


def ucb1(mine: list[float], all_: list[list[float]]) -> float:
    t = sum(map(len, all_))
    return sum(mine) / len(mine) + math.sqrt(2 * math.log(t) / len(mine))


def ucb_tuned(mine: list[float], all_: list[list[float]]) -> float:
    t, n = sum(map(len, all_)), len(mine)
    mean = sum(mine) / n
    V = sum(r * r for r in mine) / n - mean**2 + math.sqrt(2 * math.log(t) / n)
    return mean + math.sqrt(math.log(t) / n * min(0.25, V))


def moss(mine: list[float], all_: list[list[float]]) -> float:
    n = len(mine)
    return sum(mine) / n + math.sqrt(max(math.log(STEPS / (ARMS * n)), 0.0) / n)


def kl_ucb(mine: list[float], all_: list[list[float]]) -> float:
    t, n = sum(map(len, all_)) + 1, len(mine)
    p = sum(mine) / n

    def kl(q: float) -> float:
        up = p * math.log(p / q) if p > 0 else 0.0
        return up + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)

    low, high = p, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        inside = middle < 1.0 and n * kl(middle) <= math.log(t)
        low, high = (middle, high) if inside else (low, middle)
    return low


def bayes_ucb(mine: list[float], all_: list[list[float]]) -> float:
    t, wins = sum(map(len, all_)) + 1, sum(mine)
    return float(special.betaincinv(1 + wins, 1 + len(mine) - wins, 1 - 1 / t))


def mean(rewards: list[float]) -> float:
    return (1 + sum(rewards)) / (2 + len(rewards))


def gradient(mine: list[float], all_: list[list[float]]) -> float:
    j = next(j for j, rewards in enumerate(all_) if rewards is mine)
    left = STEPS - sum(map(len, all_)) - 1

    def top(more: float) -> float:
        return max(mean([*r, more]) if i == j else mean(r) for i, r in enumerate(all_))

    m = mean(mine)
    return m + left * (m * top(1.0) + (1 - m) * top(0.0) - max(map(mean, all_)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("agent", "world", "index", "each_once"),
    [
        (UCB1, Fractions, ucb1, True),
        (UCBTuned, Fractions, ucb_tuned, True),
        (lambda arms: MOSS(arms, horizon=STEPS), Fractions, moss, True),
        (KLUCB, Fractions, kl_ucb, True),
        (KLUCB, Coins, kl_ucb, True),
        (BayesUCB, Coins, bayes_ucb, False),
        (lambda arms: KnowledgeGradient(arms, horizon=STEPS), Coins, gradient, False),
    ],
)
def test_every_action_has_the_largest_index(
    agent: Any, world: Any, index: Index, each_once: bool, seed: int
) -> None:
    observed: list[list[float]] = [[] for _ in range(ARMS)]
    for a, o in islice(play(agent(ARMS), world(), seed=seed), STEPS):
        if each_once and not all(observed):
            assert not observed[a]
        else:
            indices = [index(rewards, observed) for rewards in observed]
            assert indices[a] == pytest.approx(max(indices), abs=1e-10)
        observed[a].append(o)
