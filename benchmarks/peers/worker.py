"""One contestant in a process of its own, asked over a pipe to play so many runs.

    request   {"runs": k, "first": i}
    answer    {"seconds": ..., "regrets": [...]}     the time of k runs, and what each one lost:
                                                     max_j m_j · steps - Σ_t r_t

Standard library only: this module is imported within the peers' environments. Every contestant
plays the same biases in run i; slow ones play fewer runs.
"""

import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence

__all__ = ["LEVERS", "STEPS", "serve"]

LEVERS, STEPS = 10, 1_000


def serve(play: Callable[[Sequence[float], int], float]) -> None:
    """Answer until the pipe closes; `play(biases, run)` is one run and gives its total reward."""
    # Some peers print when they are imported or used: what they say goes to the errors.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    play(_biases(0), 0)
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        asked = json.loads(line)
        runs = range(asked["first"], asked["first"] + asked["runs"])
        biases = [_biases(run) for run in runs]
        rewards = []
        start = time.perf_counter()
        for run, m in zip(runs, biases, strict=True):
            rewards.append(play(m, run))
        seconds = time.perf_counter() - start
        regrets = [max(m) * STEPS - float(r) for m, r in zip(biases, rewards, strict=True)]
        answers.write(json.dumps({"seconds": seconds, "regrets": regrets}) + "\n")
        answers.flush()


def _biases(run: int) -> list[float]:
    rng = random.Random(run)
    return [rng.random() for _ in range(LEVERS)]
