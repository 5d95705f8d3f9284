"""Small Markov decision problems by name.

chain     k states; A goes on, B goes back to the start; the k-th A pays 1: ρ* = 1/k
random    P(· | x, a) ~ Dirichlet(c, …, c), r(x, a) uniform in [0, 1)
"""

import numpy as np

from bayescontrol.errors import InvalidTable
from bayescontrol.mdp.table import MDP
from bayescontrol.seeding import Stream, as_stream


def chain_mdp(k: int, pays: int = 0) -> MDP:
    """The paper's k-state problem: only k equal actions in a row reach the reward.

    State x is the number of right actions in a row; action `pays` (0 for A, 1 for B) is the
    right one, the other leads back to the start, and so does the reward.

    >>> chain_mdp(3).outcomes(2, 0), chain_mdp(3, pays=1).outcomes(2, 0)
    ({Step(reward=1.0, state=0): 1.0}, {Step(reward=0.0, state=0): 1.0})
    """
    if k < 1 or pays not in (0, 1):
        raise InvalidTable(f"chain_mdp(k={k}, pays={pays}): k is at least 1, pays is 0 or 1")
    x = np.arange(k)
    right, wrong = np.full(k, pays), np.full(k, 1 - pays)
    zero = np.zeros(k)
    return MDP.from_transitions(
        np.concatenate([x, x]),
        np.concatenate([right, wrong]),
        np.concatenate([(x + 1) % k, np.zeros(k, np.int64)]),
        np.ones(2 * k),
        np.concatenate([zero + (x == k - 1), zero]),
        states=k,
        actions=2,
    )


def random_mdp(
    states: int, actions: int, *, concentration: float = 1.0, seed: int | Stream = 0
) -> MDP:
    """A problem drawn at random; every transition is possible, so it is communicating.

    >>> random_mdp(5, 2, seed=1)
    MDP(5 states, 2 actions, 50 transitions)
    """
    rng = as_stream(seed)
    # The floor keeps every probability positive where tiny gammas underflow.
    g = np.maximum(np.asarray(rng.gamma(concentration, size=(states, actions, states))), 1e-12)
    return MDP(g / g.sum(-1, keepdims=True), np.asarray(rng.random(size=(states, actions))))
