"""MABWiser: learning policies with default settings, fitted with one decision at a time."""

import random
from typing import Any

from benchmarks.peers.bandit_worlds import Facts, Make, preparer
from benchmarks.peers.worker import serve
from mabwiser.mab import (  # type: ignore[import-not-found] # in a separate environment
    MAB,
    LearningPolicy,
)


class Policy:
    """A `MAB` with one learning policy. It cannot predict before its first fit: then at random."""

    def __init__(self, policy: Any, facts: Facts, seed: int) -> None:
        self.mab = MAB(list(range(facts.arms)), policy, seed=seed)
        self.random, self.arms, self.is_fitted = random.Random(seed), facts.arms, False

    def decide(self, x: Any) -> int:
        """Choose an arm."""
        if not self.is_fitted:
            return self.random.randrange(self.arms)
        return int(self.mab.predict() if x is None else self.mab.predict([x]))

    def learn(self, x: Any, a: int, r: float) -> None:
        """Learn the reward of an arm."""
        contexts = None if x is None else [x]
        self.is_fitted = True
        self.mab.partial_fit([a], [r], contexts)


PLAYERS: dict[str, Make] = {
    "Thompson": lambda facts, seed: Policy(LearningPolicy.ThompsonSampling(), facts, seed),
    "UCB1": lambda facts, seed: Policy(LearningPolicy.UCB1(), facts, seed),
    "epsilon-greedy": lambda facts, seed: Policy(LearningPolicy.EpsilonGreedy(), facts, seed),
    "LinTS": lambda facts, seed: Policy(LearningPolicy.LinTS(), facts, seed),
    "LinUCB": lambda facts, seed: Policy(LearningPolicy.LinUCB(), facts, seed),
}

if __name__ == "__main__":
    serve(preparer(PLAYERS), "mabwiser")
