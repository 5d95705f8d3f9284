"""One contestant in a separate process, which plays runs on request over a pipe.

    request   {"runs": k, "first": i}
    answer    {"seconds": ..., "regrets": [...]}     the time of k runs, and the regret of each:
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
    """Answer until the pipe closes; `play(biases, run)` plays one run, returns its total reward."""
    # Some peers print when they are imported or used: send their output to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    play(_biases(0), 0)
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        runs = range(request["first"], request["first"] + request["runs"])
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
