"""Beliefs over three arms of every kind, with some evidence, for tests of what all can do."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bayescontrol import (
    BernoulliBandit,
    CategoricalBandit,
    ExponentialBandit,
    GaussianBandit,
    GeometricBandit,
    JointBandit,
    LinearBandit,
    LogisticBandit,
    PoissonBandit,
)
from bayescontrol.bandits import LogitNormalBandit, SharedLinearBandit
from bayescontrol.finite.tabular import random_modes

ARMS = ["red", "blue", "green"]
X = [1.0, 0.5]
#: Rewards of 0 and 1, and other rewards, by step.
BITS = [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]
NUMBERS = [0.0, 1.5, 3.0, 1.0, 2.0, 0.5, 1.0, 2.5, 0.0]
COUNTS = [0.0, 1.0, 3.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0]


def phi(x: Any, a: Any) -> list[float]:
    return [x[0], x[1] * (a == "red")]


CASES: dict[str, tuple[Callable[[], Any], Any, list[float]]] = {
    "bernoulli": (BernoulliBandit(ARMS).belief, None, BITS),
    "bernoulli, halves": (BernoulliBandit(ARMS, prior=(0.5, 0.5)).belief, None, BITS),
    "bernoulli, learned": (BernoulliBandit(ARMS, prior="learned").belief, None, BITS),
    "bernoulli, pooled": (BernoulliBandit(ARMS).pooled().belief, "de", BITS),
    "poisson": (PoissonBandit(ARMS).belief, None, COUNTS),
    "poisson, learned": (PoissonBandit(ARMS, prior="learned").belief, None, COUNTS),
    "exponential": (ExponentialBandit(ARMS).belief, None, NUMBERS),
    "geometric": (GeometricBandit(ARMS).belief, None, COUNTS),
    "gaussian, known noise": (GaussianBandit(ARMS, sd=1, prior=(1, 1)).belief, None, NUMBERS),
    "gaussian, own noise": (
        GaussianBandit(ARMS, sd=None, prior=(1, 1, 2, 1)).belief, None, NUMBERS,
    ),
    "gaussian, learned": (GaussianBandit(ARMS).belief, None, NUMBERS),
    "gaussian, pooled": (GaussianBandit(ARMS).pooled().belief, "de", NUMBERS),
    "categorical": (CategoricalBandit(ARMS, values=[0, 1]).belief, None, BITS),
    "linear": (LinearBandit(ARMS, features=2, sd=1, prior=(0, 1)).belief, X, NUMBERS),
    "linear, learned": (LinearBandit(ARMS, features=2).belief, X, NUMBERS),
    "linear, shared": (SharedLinearBandit(ARMS, phi, 2, sd=1, prior=(0, 1)).belief, X, NUMBERS),
    "logistic": (LogisticBandit(ARMS, features=2, prior=(0, 1)).belief, X, BITS),
    "logistic, learned": (LogisticBandit(ARMS, features=2).belief, X, BITS),
    "changing": (BernoulliBandit(ARMS).changing().belief, None, BITS),
    "changing, learned": (GaussianBandit(ARMS).changing(starts=8).belief, None, NUMBERS),
    "changing per arm": (BernoulliBandit(ARMS).changing(per_arm=True).belief, None, BITS),
    "changing per arm, learned": (
        GaussianBandit(ARMS).changing(per_arm=True, starts=8).belief, None, NUMBERS,
    ),
    "changing, contexts": (
        LogisticBandit(ARMS, features=2, prior=(0, 1)).changing().belief, X, BITS,
    ),
    "changing per arm, contexts": (
        LogisticBandit(ARMS, features=2, prior=(0, 1)).changing(per_arm=True).belief, X, BITS,
    ),
    "draws": (
        lambda: BernoulliBandit(ARMS)
        .agent(draws=np.random.default_rng(0).beta(2, 2, (300, 3))).belief,
        None, BITS,
    ),
    "joint": (
        JointBandit(np.random.default_rng(0).beta(2, 2, (60, 3))).agent().copy, 0, BITS,
    ),
    "tabular": (random_modes(6, actions=3, seed=2).agent().copy, 0, BITS),
    "logit-normal": (
        LogitNormalBandit([0, 0, 0], np.eye(3) + 0.5, particles=200).belief, None, BITS,
    ),
}  # fmt: skip


def make(name: str) -> tuple[Any, Any, list[Any]]:
    """A belief with some evidence, the situation, and its arms."""
    build, x, rewards = CASES[name]
    belief = build()
    belief = getattr(belief, "belief", belief)  # of a copied agent
    numbers = name in ("joint", "tabular", "logit-normal")
    arms: list[Any] = [0, 1, 2] if numbers else ARMS
    for t, r in enumerate(rewards):
        belief.observe(x, arms[t % 3], int(r) if rewards is BITS else r)
    return belief, x, arms
