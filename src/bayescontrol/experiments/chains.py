"""A policy makes a Markov chain of a world, and the chain selects a subset of the states.

    P(s' | m, s) = Σ_{ao: T(s, ao) = s'} P(a | m, s) P(o | m*, s, a)
    μ P = μ                     the share of the time that is spent in each state, in the long run
    subset = {s: μ(s) > 0}      where the policy stays for ever

The situations of a class are the states of the diagram.
"""

import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.convergence.worlds import World
from bayescontrol.mdp import MDP, stationary_distribution
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.record import Record


def acting(modes: TabularModes, policy: FloatArray, start: int | None = None) -> TabularModes:
    """The same hypotheses, all with one policy[x, a]: an agent that acts by it and learns.

    A policy[m, x, a] is one for each mode.

    >>> from bayescontrol.problems.diagrams import core_diagram
    >>> modes = core_diagram()
    >>> acting(modes, modes.policy[1]).agent().action_probabilities()
    {0: 0.0, 1: 1.0}
    """
    return TabularModes(
        np.broadcast_to(policy, modes.policy.shape),
        modes.hypothesis,
        modes.successor,
        start=modes.start if start is None else start,
        names=modes.names,
        prior=modes.prior,
        labels=modes.labels,
    )


def chain(modes: TabularModes, policy: FloatArray, true: int) -> FloatArray:
    """P(s' | s) when policy[x, a] acts in the world of mode `true`, as an array [s, s'].

    >>> from bayescontrol.problems.diagrams import policy_diagram
    >>> modes = policy_diagram()
    >>> chain(modes, modes.policy[0], 0)[0].tolist()
    [0.0, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    return np.asarray(np.einsum("xa,xay->xy", policy, World(modes, true).transitions))


def shares(P: FloatArray) -> FloatArray:
    """μ with μ P = μ, for a chain that ends up in one class of states.

    >>> shares(np.array([[0.0, 1.0], [0.5, 0.5]])).round(6)
    array([0.333333, 0.666667])
    """
    still = np.zeros((len(P), 1))
    (only,) = stationary_distribution(MDP(P[:, None], still), np.zeros(len(P), np.int64))
    return only.probability


def path(modes: TabularModes, record: Record, start: int | None = None) -> IntArray:
    """The situations of a record: before the first step, and after each.

    >>> from bayescontrol.problems.diagrams import core_diagram
    >>> path(core_diagram(), Record([0, 0, 0], [1, 1, 0]))
    array([0, 1, 2, 4])
    """
    successor, x = modes.successor.tolist(), modes.start if start is None else start
    seen = [x]
    for a, o in zip(record.actions.tolist(), record.observations.tolist(), strict=True):
        x = successor[x][a][o]
        seen.append(x)
    return np.array(seen, np.int64)
