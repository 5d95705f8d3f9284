"""contextualbandits: LinUCB, LinTS, and bootstrapped logistic regressions, fitted step by step."""

from typing import Any

import numpy as np
from benchmarks.peers.bandit_worlds import Facts, Make, preparer
from benchmarks.peers.worker import serve
from contextualbandits.online import (  # type: ignore[import-not-found] # separate environment
    BootstrappedTS,
    LinTS,
    LinUCB,
)
from sklearn.linear_model import SGDClassifier  # type: ignore[import-untyped]


class Policy:
    """A policy with `partial_fit`."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy

    def decide(self, x: Any) -> int:
        """Choose an arm in the context x."""
        return int(self.policy.predict(x[None, :])[0])

    def learn(self, x: Any, a: int, r: float) -> None:
        """Learn the reward of an arm in the context x."""
        self.policy.partial_fit(x[None, :], np.array([a]), np.array([r]))


def lin_ucb(facts: Facts, seed: int) -> Policy:
    """`LinUCB`."""
    return Policy(LinUCB(facts.arms, random_state=seed))


def lin_ts(facts: Facts, seed: int) -> Policy:
    """`LinTS`."""
    return Policy(LinTS(facts.arms, random_state=seed))


def bootstrapped_ts(facts: Facts, seed: int) -> Policy:
    """`BootstrappedTS` with stochastic gradient descent, as in its example of streaming data."""
    base = SGDClassifier(loss="log_loss", random_state=seed % 2**31)
    return Policy(
        BootstrappedTS(base, facts.arms, batch_train=True, random_state=seed, njobs_arms=1)
    )


PLAYERS: dict[str, Make] = {
    "LinUCB": lin_ucb,
    "LinTS": lin_ts,
    "BootstrappedTS": bootstrapped_ts,
}

if __name__ == "__main__":
    serve(preparer(PLAYERS), "contextualbandits")
