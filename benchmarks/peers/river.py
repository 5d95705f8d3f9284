"""River: `bandit.ThompsonSampling` with Beta rewards."""

import random
from collections.abc import Sequence

from benchmarks.peers.worker import LEVERS, STEPS, serve
from river import bandit, proba  # type: ignore[import-not-found] # in a separate environment


def play(biases: Sequence[float], run: int) -> float:
    """Play one run; return its total reward."""
    world, levers, total = random.Random(run), range(LEVERS), 0
    policy = bandit.ThompsonSampling(reward_obj=proba.Beta(1, 1), seed=run)
    for _ in range(STEPS):
        a = policy.pull(levers)
        r = int(world.random() < biases[a])
        policy.update(a, r)
        total += r
    return total


if __name__ == "__main__":
    serve(play)
