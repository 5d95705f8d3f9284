"""Time the exact verdict on 100 modes over 100 situations, compared with building the class.

`python -m benchmarks.convergence` prints the times for three classes: grid-worlds with a hundred
goals, random tables, and the worst case for the search: modes that predict the same observations
and act differently.
"""

import numpy as np
from benchmarks.timing import Timing, take_turns

from bayescontrol.convergence import check
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.mdp.modes import goal_worlds

__all__ = ["verdicts"]

MODES = SITUATIONS = 100


def same_hypothesis_modes() -> TabularModes:
    """A class with one hypothesis and a hundred policies."""
    one = random_modes(MODES, situations=SITUATIONS, actions=4, observations=8, seed=1)
    policy = np.eye(4)[one.policy.argmax(-1)]
    hypothesis = np.repeat(one.hypothesis[:1], MODES, axis=0)
    return TabularModes(policy, hypothesis, one.successor)


def verdicts() -> dict[str, Timing]:
    """Seconds for each class; the reference is building, and thus solving, the grid-worlds."""
    goals = goal_worlds(10, 10)
    tables = random_modes(MODES, situations=SITUATIONS, actions=4, observations=8)
    deadlocked = same_hypothesis_modes()
    return take_turns(
        {
            "solving 100 grid-worlds": lambda: goal_worlds(10, 10),
            "check, 100 grid-worlds": lambda: check(goals),
            "check, random tables": lambda: check(tables),
            "check, 9,900 deadlocks": lambda: check(deadlocked),
        },
        calls=1,
        rounds=3,
    )


if __name__ == "__main__":
    for name, timing in verdicts().items():
        print(f"{name:28} {timing}")
