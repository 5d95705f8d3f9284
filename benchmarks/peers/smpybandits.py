"""SMPyBandits: the policy `Thompson`, Beta posteriors by default."""

import random
from collections.abc import Sequence

from benchmarks.peers.worker import LEVERS, STEPS, serve


def play(biases: Sequence[float], run: int) -> float:
    """Play one run; return its total reward."""
    # It prints when it is imported, so import it after `serve` has redirected standard output.
    from SMPyBandits.Policies import (  # type: ignore[import-not-found] # separate environment
        Thompson,
    )

    world, total = random.Random(run), 0
    policy = Thompson(LEVERS)
    policy.startGame()
    for _ in range(STEPS):
        a = policy.choice()
        r = int(world.random() < biases[a])
        policy.getReward(a, r)
        total += r
    return total


if __name__ == "__main__":
    serve(play)
