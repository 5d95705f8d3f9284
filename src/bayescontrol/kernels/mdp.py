"""Simulate a step of a Markov decision problem.

    entry i of pair (x, a):  successor y_i, reward r_i, F_i = p_0 + … + p_i,   p_0 ≥ p_1 ≥ …
    drawn: the first i with u < F_i, u uniform

Pairs are numbered x A + a. The most likely transition is first, so most draws end there. Decreasing
p make F concave, F_i ≥ (i + 1)/n, so that the entry is at most ⌊u n⌋: that one is tested next, and
is the result if all p are equal.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import inlined, leaf
from bayescontrol.kernels.random import Streams, uniform

#: What a loop records of a step, besides the action: r, and the number of the next state.
STEP = np.dtype([("reward", np.float64), ("state", np.int64)])
StepArray: TypeAlias = npt.NDArray[np.void]


class Tables(NamedTuple):
    """The transitions of an MDP, ordered by pair.

    A pair that does not exist has one entry with reward NaN and successor -1. The last F of a pair
    is 1, so no scan leaves its pair.

    >>> from bayescontrol.mdp import chain_mdp
    >>> tables = chain_mdp(2).tables
    >>> tables.successor[tables.first], tables.reward[tables.first]
    (array([1, 0, 0, 0]), array([0., 0., 1., 0.]))
    """

    #: Per pair x A + a: its first entry, and the number of its entries.
    first: IntArray
    size: IntArray
    #: Per entry: y, F and r.
    successor: IntArray
    cumulative: FloatArray
    reward: FloatArray


class MdpRun(NamedTuple):
    """What the compiled loop of an agent in an MDP reads, and the columns that it fills."""

    tables: Tables
    #: The agent's index of each state of the environment; -1 if the agent does not know the state.
    index_of: IntArray
    streams: Streams
    actions: IntArray
    rows: StepArray


@leaf
def _search(cumulative: FloatArray, first: int, size: int, u: float) -> int:
    """Return the first entry after `first` with u < F, given F_first ≤ u."""
    high = first + min(max(int(u * size), 1), size - 1)  # u · size can round to below 1
    if u >= cumulative[high - 1]:
        return high
    low = first + 1
    high -= 1
    while low < high:
        middle = (low + high) >> 1
        if u < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def respond(tables: Tables, x: int, a: int, A: int, rng_state: UIntArray) -> int:
    """Draw a transition of action a in state x with one uniform number; return its entry.

    A is the number of actions.

    >>> from bayescontrol.mdp import chain_mdp
    >>> from bayescontrol.seeding import Stream
    >>> tables = chain_mdp(2).tables
    >>> entry = respond(tables, 1, 0, 2, Stream(1).state)
    >>> int(tables.successor[entry]), float(tables.reward[entry])
    (0, 1.0)
    """
    pair = x * A + a
    first: int = tables.first[pair]
    u = uniform(rng_state)
    if u < tables.cumulative[first]:
        return first
    return _search(tables.cumulative, first, tables.size[pair], u)
