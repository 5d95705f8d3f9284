"""Constructors of all bandit agents, and the biases of a test environment."""

from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.arena import MOSS, BayesUCB, InformationDirected, KnowledgeGradient, UCBTuned

from bayescontrol.baselines import (
    KLUCB,
    UCB1,
    EpsilonGreedy,
    Oracle,
    Softmax,
    UniformLevers,
)

BIASES = [0.2, 0.7, 0.5, 0.65]

MAKERS: dict[str, Callable[..., Any]] = {
    "uniform": UniformLevers,
    "oracle": lambda arms: Oracle(arms, biases=BIASES),
    "epsilon-greedy": EpsilonGreedy,
    "epsilon-greedy, decaying": lambda arms: EpsilonGreedy(arms, epsilon=0.5, decay=0.99),
    "softmax": Softmax,
    "softmax, decaying": lambda arms: Softmax(arms, temperature=0.5, decay=0.99),
    "UCB1": UCB1,
    "UCB-tuned": UCBTuned,
    "MOSS": lambda arms: MOSS(arms, horizon=300),
    "KL-UCB": KLUCB,
    "KL-UCB, c = 3": lambda arms: KLUCB(arms, c=3),
    "Bayes-UCB": BayesUCB,
    "Bayes-UCB, c = 5": lambda arms: BayesUCB(arms, c=5, horizon=300, prior=(0.5, 0.5)),
    "KG, horizon": lambda arms: KnowledgeGradient(arms, horizon=300),
    "KG, discount": lambda arms: KnowledgeGradient(arms, discount=0.99, prior=(2, 2)),
    "IDS": InformationDirected,
}


@pytest.fixture(params=MAKERS.values(), ids=list(MAKERS))
def make(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """A constructor of an agent that takes the arms."""
    maker: Callable[..., Any] = request.param
    return maker
