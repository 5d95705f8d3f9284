"""bayesianbandits: Thompson sampling with learners that fit the rewards, at default settings."""

from collections.abc import Callable
from typing import Any

import numpy as np
from bayesianbandits import (  # type: ignore[import-not-found] # in a separate environment
    Agent,
    Arm,
    BayesianGLM,
    ContextualAgent,
    DirichletClassifier,
    EmpiricalBayesGLM,
    EmpiricalBayesNormalRegressor,
    NormalInverseGammaRegressor,
    ThompsonSampling,
)
from benchmarks.peers.bandit_worlds import Facts, Make, preparer
from benchmarks.peers.worker import serve


def probability_of_one(p: Any) -> Any:
    """The expected reward of a sampled distribution over 0 and 1."""
    return p[..., 1]


class Arms:
    """An `Agent` of arms without contexts; `decay_rate` makes it forget at every step."""

    def __init__(self, facts: Facts, seed: int, decay_rate: float | None = None) -> None:
        arms = [_arm(a, facts.is_binary) for a in range(facts.arms)]
        self.agent = Agent(arms, ThompsonSampling(), random_seed=seed)
        self.decay_rate = decay_rate

    def decide(self, x: Any) -> int:
        """Choose an arm."""
        (a,) = self.agent.pull()
        return int(a)

    def learn(self, x: Any, a: int, r: float) -> None:
        """Learn the reward of an arm."""
        self.agent.select_for_update(a).update(np.array([r]))
        if self.decay_rate is not None:
            self.agent.decay(decay_rate=self.decay_rate)


def _arm(a: int, is_binary: bool) -> Any:
    if is_binary:
        return Arm(a, probability_of_one, DirichletClassifier({0: 1.0, 1: 1.0}))
    return Arm(a, learner=NormalInverseGammaRegressor())


class WithContexts:
    """A `ContextualAgent` with a learner for each arm."""

    def __init__(self, facts: Facts, seed: int, learner: Callable[[], Any]) -> None:
        arms = [Arm(a, learner=learner()) for a in range(facts.arms)]
        self.agent = ContextualAgent(arms, ThompsonSampling(), random_seed=seed)

    def decide(self, x: Any) -> int:
        """Choose an arm in the context x."""
        (a,) = self.agent.pull(x[None, :])
        return int(a)

    def learn(self, x: Any, a: int, r: float) -> None:
        """Learn the reward of an arm in the context x."""
        self.agent.select_for_update(a).update(x[None, :], np.array([r]))


PLAYERS: dict[str, Make] = {
    "Thompson": Arms,
    "Thompson, decay 0.99": lambda facts, seed: Arms(facts, seed, 0.99),
    "normal": lambda facts, seed: WithContexts(facts, seed, NormalInverseGammaRegressor),
    "empirical normal": lambda facts, seed: WithContexts(
        facts, seed, EmpiricalBayesNormalRegressor
    ),
    "GLM": lambda facts, seed: WithContexts(facts, seed, BayesianGLM),
    "empirical GLM": lambda facts, seed: WithContexts(facts, seed, EmpiricalBayesGLM),
}

if __name__ == "__main__":
    serve(preparer(PLAYERS), "bayesianbandits")
