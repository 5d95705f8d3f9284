"""The loop of the Gibbs agent in an MDP: no mathematics, only calls of other kernels.

    (Q, ρ) ~ one draw      a = arg max_a Q(x,a)      (r, y) ~ P(r, y | x, a)      n(x,a,y) += 1

Bit for bit what the readable agent and environment do. It stops, and says why, where only the
readable code can go on.
"""

import math

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.gibbs import How, best_action, draw_mode
from bayescontrol.kernels.mdp import Tables, respond
from bayescontrol.kernels.transitions import LEARNT, RHO, Chain, Evidence, learn

#: Why the loop has ended: every step is done; the last step is answered but not learnt, for a new
#: state or want of room; the world does not offer the action; the chain has left the doubles.
DONE, NOT_LEARNT, NOT_OFFERED, LOST = 0, 1, 2, 3


@leaf
def interact(
    e: Evidence,
    c: Chain,
    how: How,
    known: int,
    tables: Tables,
    number: IntArray,
    at: int,
    t: int,
    p: UIntArray,
    q: UIntArray,
    actions: IntArray,
    rewards: FloatArray,
    states: IntArray,
) -> tuple[int, int, int]:
    """Fill the columns from step t on; gives the steps learnt, the world's state and why it ended.

    The agent knows `known` states, and the world's state y as number[y], -1 if not at all.

    >>> import numpy as np
    >>> from bayescontrol.mdp import chain_mdp
    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> from bayescontrol.seeding import Stream
    >>> belief = GibbsBelief(2, states=2)
    >>> actions, rewards, states = np.empty(50, np.int64), np.empty(50), np.empty(50, np.int64)
    >>> interact(belief.ledger.evidence, belief.ledger.chain, belief.how, 2, chain_mdp(2).tables,
    ...          np.arange(2), 0, 0, Stream(1).state, Stream(2).state, actions, rewards, states)
    (50, 0, 0)
    """
    A = c.Q.shape[1]
    for s in range(t, actions.size):
        x = number[at]
        draw_mode(e, c, how, known, x, p)
        if not math.isfinite(c.scalars[RHO]):
            return s, at, LOST
        a = best_action(e, c, x)
        actions[s] = a
        if tables.successor[tables.first[at * A + a]] < 0:
            return s, at, NOT_OFFERED
        entry = respond(tables, at, a, A, q)
        at, r = tables.successor[entry], tables.reward[entry]
        rewards[s], states[s] = r, at
        y = number[at]
        if y < 0 or learn(e, c, x, x * A + a, y, 1.0, r, 0.0) != LEARNT:
            return s, at, NOT_LEARNT
    return actions.size, at, DONE
