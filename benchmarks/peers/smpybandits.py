"""SMPyBandits: Thompson sampling, KL-UCB and UCB, and its policies for changing arms."""

import random
from typing import Any

import numpy as np
from benchmarks.peers.bandit_worlds import Facts, Make, preparer
from benchmarks.peers.worker import serve


class Policy:
    """A policy of the library, by name, with its default settings."""

    def __init__(self, name: str, facts: Facts, seed: int, **settings: Any) -> None:
        # It prints when it is imported, so import it after `serve` has redirected standard output.
        from SMPyBandits import Policies  # type: ignore[import-not-found] # separate environment

        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - the policies use the global generators
        self.policy = getattr(Policies, name)(facts.arms, **settings)
        self.policy.startGame()

    def decide(self, x: Any) -> int:
        """Choose an arm."""
        return int(self.policy.choice())

    def learn(self, x: Any, a: int, r: float) -> None:
        """Learn the reward of an arm."""
        self.policy.getReward(a, r)


def thompson(facts: Facts, seed: int) -> Policy:
    """`Thompson`, with Beta posteriors, or Gaussian ones for other rewards."""
    if facts.is_binary:
        return Policy("Thompson", facts, seed)
    from SMPyBandits.Policies.Posterior import Gauss  # type: ignore[import-not-found]

    return Policy("Thompson", facts, seed, posterior=Gauss)


def kl_ucb(facts: Facts, seed: int) -> Policy:
    """`klUCB`, with the divergence that fits the rewards."""
    if facts.is_binary:
        return Policy("klUCB", facts, seed)
    from SMPyBandits.Policies import klucbGauss  # type: ignore[import-not-found]

    return Policy("klUCB", facts, seed, klucb=klucbGauss)


def ucb(facts: Facts, seed: int) -> Policy:
    """`UCB`."""
    return Policy("UCB", facts, seed)


def discounted_thompson(facts: Facts, seed: int) -> Policy:
    """`DiscountedThompson`, discount 0.95."""
    return Policy("DiscountedThompson", facts, seed)


def sliding_window(facts: Facts, seed: int) -> Policy:
    """`SWklUCB`, a window of 1,000 steps."""
    return Policy("SWklUCB", facts, seed)


PLAYERS: dict[str, Make] = {
    "Thompson": thompson,
    "klUCB": kl_ucb,
    "UCB": ucb,
    "DiscountedThompson": discounted_thompson,
    "SWklUCB": sliding_window,
}

if __name__ == "__main__":
    serve(preparer(PLAYERS), "SMPyBandits")
