"""MABWiser: `LearningPolicy.ThompsonSampling`, fitted with one decision at a time."""

import random
from collections.abc import Sequence

from benchmarks.peers.worker import LEVERS, STEPS, serve
from mabwiser.mab import (  # type: ignore[import-not-found] # in a separate environment
    MAB,
    LearningPolicy,
)


def play(biases: Sequence[float], run: int) -> float:
    """Play one run; return its total reward."""
    world, total = random.Random(run), 0
    policy = MAB(list(range(LEVERS)), LearningPolicy.ThompsonSampling(), seed=run)
    a = world.randrange(LEVERS)  # it cannot predict before its first fit
    for _ in range(STEPS):
        r = int(world.random() < biases[a])
        policy.partial_fit([a], [r])
        total += r
        a = policy.predict()
    return total


if __name__ == "__main__":
    serve(play)
