"""bayesianbandits: an `Agent` of arms with Dirichlet learners over the rewards 0 and 1."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from bayesianbandits import (  # type: ignore[import-not-found] # in a separate environment
    Agent,
    Arm,
    DirichletClassifier,
    ThompsonSampling,
)
from benchmarks.peers.worker import LEVERS, STEPS, serve


def probability_of_one(p: Any) -> Any:
    """The expected reward of a sampled distribution over 0 and 1."""
    return p[..., 1]


def play(biases: Sequence[float], run: int) -> float:
    """Play one run; return its total reward."""
    world, total = random.Random(run), 0
    arms = [
        Arm(a, probability_of_one, DirichletClassifier({0: 1.0, 1: 1.0})) for a in range(LEVERS)
    ]
    agent = Agent(arms, ThompsonSampling(), random_seed=run)
    for _ in range(STEPS):
        (a,) = agent.pull()
        r = int(world.random() < biases[a])
        agent.update(np.array([float(r)]))
        total += r
    return total


if __name__ == "__main__":
    serve(play)
