"""Learners, and problems to test them on."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from benchmarks.arena import BayesianQ

from bayescontrol.baselines import QLearning, RLearning
from bayescontrol.mdp import MDP, Maze, random_mdp

#: Learners: the class, and settings that reach every branch of its kernels.
LEARNERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "R": (RLearning, {"C": 5.0}),
    "R greedy": (RLearning, {"p_exp": 0.6, "greedy_only": True}),
    "R random": (RLearning, {"p_exp": 0.6, "otherwise": "random"}),
    "Q": (QLearning, {"gamma": 0.9, "epsilon": 0.3, "decay": 0.999}),
    "Q optimistic": (QLearning, {"gamma": 0.9, "epsilon": 0.0, "initial": 30.0}),
    "Bayes sampling": (BayesianQ, {"gamma": 0.9, "mu0": 2.0}),
    "Bayes vpi": (BayesianQ, {"gamma": 0.9, "selection": "vpi", "beta0": 10.0}),
}


@pytest.fixture(params=LEARNERS)
def learner(request: pytest.FixtureRequest) -> Callable[..., Any]:
    kind, settings = LEARNERS[request.param]

    def make(*arguments: Any, **changes: Any) -> Any:
        if arguments and isinstance(arguments[0], MDP):
            return kind.on(*arguments, **settings, **changes)
        return kind(*arguments, **settings, **changes)

    return make


def with_masks() -> MDP:
    """Five named states and three named actions; some states do not offer all actions."""
    full = random_mdp(5, 3, seed=3)
    allowed = np.ones((5, 3), bool)
    allowed[0, 0] = allowed[2, 1] = allowed[2, 2] = allowed[4, 2] = False
    return MDP(
        full.transition, full.reward, allowed=allowed,
        states=["a", "b", "c", "d", (0, 1)], actions=["left", "stay", "right"],
    )  # fmt: skip


WORLDS: dict[str, Callable[[], MDP]] = {
    "numbers": lambda: random_mdp(6, 3, seed=2),
    "names": lambda: Maze("three-cups").mdp(named=True),
    "masks": with_masks,
}


@pytest.fixture(params=WORLDS)
def mdp(request: pytest.FixtureRequest) -> MDP:
    return WORLDS[request.param]()
