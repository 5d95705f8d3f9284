"""Vowpal Wabbit: contextual bandits of a fixed number of actions (`--cb_explore`)."""

from collections import deque
from typing import Any

import numpy as np
import vowpalwabbit  # type: ignore[import-not-found] # in a separate environment
from benchmarks.peers.bandit_worlds import Facts, Make, preparer
from benchmarks.peers.worker import serve


class Exploring:
    """A workspace that predicts action probabilities; the action is drawn from them."""

    def __init__(self, facts: Facts, seed: int, options: str) -> None:
        self.workspace = vowpalwabbit.Workspace(f"--cb_explore {facts.arms} {options} --quiet")
        self.rng = np.random.default_rng(seed)
        self.pending: deque[tuple[str, float]] = deque()  # decisions whose rewards are not known

    def decide(self, x: Any) -> int:
        """Draw an action from the predicted probabilities."""
        features = "| constant"
        if x is not None:
            features = "| " + " ".join(f"{i}:{v:.6g}" for i, v in enumerate(x.tolist()))
        p = np.array(self.workspace.predict(features))
        a = int(self.rng.choice(len(p), p=p / p.sum()))
        self.pending.append((features, float(p[a])))
        return a

    def learn(self, x: Any, a: int, r: float) -> None:
        """Learn from the oldest decision; a cost is a negative reward, and actions start at 1."""
        features, p = self.pending.popleft()
        self.workspace.learn(f"{a + 1}:{-r}:{p} {features}")


PLAYERS: dict[str, Make] = {
    "epsilon-greedy": lambda facts, seed: Exploring(facts, seed, ""),
    "SquareCB": lambda facts, seed: Exploring(facts, seed, "--squarecb"),
}

if __name__ == "__main__":
    serve(preparer(PLAYERS), "vowpalwabbit")
