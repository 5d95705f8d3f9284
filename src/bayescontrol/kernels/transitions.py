"""What the Gibbs sampler of the MDP agent knows: counts and rewards of each transition.

    λ(x,a,y) = λ0 + p n(x,a,y)            λ μ (x,a,y) = λ0 μ0 + p Σ r(x,a,y)
    prior B    only transitions seen have a prior; an untried pair has one pseudo-transition
               onto its own state
    prior A    every declared state is a successor of every pair: their λ0 enter together, and
               `weight` stands for p n alone

Kept ready for each pair (x,a): S = Σ_y λ, 1/S, 1/√S and Σ_y λ μ; for each state y how much flows
in, Σ_{x,a} λ(x,a,y). Where p is unknown it is taken out, λ = λ0 + n, and waits in the chain.

The chain's own sums, S = Σ λ and Σ λ (μ - Q + M), follow whatever is learnt, so that a partial
sweep need not add up everything to draw ρ.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol.arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import leaf

#: What `learn` says: done, or no room for another transition of that pair and nothing done.
LEARNT, FULL = 0, 1

#: Places in `Evidence.prior`.
MU0, LAMBDA0, UNIT, DECLARED = 0, 1, 2, 3
#: Places in `Chain.scalars`: ρ, σ, where the next partial sweep begins, Σ λ (μ - Q + M), Σ λ,
#: Σ_y M(y), and the number of pairs.
RHO, SIGMA, CURSOR, PULL, TOTAL, LEVEL, PAIRS = 0, 1, 2, 3, 4, 5, 6
# Unsigned places: a signed one might count from the end, and asking at every one is slow.
U0, U1 = np.uint64(0), np.uint64(1)


class Evidence(NamedTuple):
    """What was seen, and what a sweep needs of it. Pair i = x A + a; t is a transition.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "y"))
    >>> e = belief.ledger.evidence
    >>> [float(v) for v in (e.n[0], e.r[0], e.s[0], e.pull[0])]
    [1.0, 2.5, 2.0, 3.5]
    """

    #: [μ0, λ0, weight of an observation, number of declared states (0: prior B)]
    prior: FloatArray
    #: Per pair: n(x,a), Σ r, Σ_y Σ (r - r̄(x,a,y))²; n = -1 for an action that x does not offer.
    n: FloatArray
    r: FloatArray
    scatter: FloatArray
    #: Per pair: S (0 for an action that x does not offer), 1/S, 1/√S and Σ_y λ μ.
    s: FloatArray
    inverse: FloatArray
    spread: FloatArray
    pull: FloatArray
    #: Per pair: its first transition, how many different ones were seen, room for how many.
    first: UIntArray
    known: UIntArray
    room: UIntArray
    #: Per transition: the successor y, λ(x,a,y), n(x,a,y), Σ r.
    successor: UIntArray
    weight: FloatArray
    times: FloatArray
    rewards: FloatArray
    #: Per state: pairs (x,a) with a prior on the way here, and transitions n(·,·,y).
    from_prior: FloatArray
    from_data: FloatArray


class Chain(NamedTuple):
    """The state of the sampler: Q[x,a], M[x] = max_a Q[x,a], and [ρ, σ, …], see `RHO`.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> GibbsBelief(actions=1).ledger.chain.scalars[:2]
    array([0., 1.])
    """

    Q: FloatArray
    M: FloatArray
    scalars: FloatArray


@leaf
def _prepare_pair(e: Evidence, i: int) -> None:
    """S, 1/S, 1/√S and Σ λ μ of pair i, from its sums."""
    if e.n[i] < 0.0:
        e.s[i] = 0.0
        return
    with_prior = e.prior[DECLARED] if e.prior[DECLARED] > 0.0 else max(float(e.known[i]), 1.0)
    s = e.prior[LAMBDA0] * with_prior + e.prior[UNIT] * e.n[i]
    e.s[i] = s
    e.inverse[i] = 1.0 / s
    e.spread[i] = 1.0 / math.sqrt(s)
    e.pull[i] = e.prior[LAMBDA0] * e.prior[MU0] * with_prior + e.prior[UNIT] * e.r[i]


@leaf
def prepare(e: Evidence, states: int, actions: int) -> None:
    """All that is kept ready, from n, Σ r and the transitions of every pair.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "y"))
    >>> e = belief.ledger.evidence
    >>> e.from_data[:] = 0
    >>> prepare(e, 2, 1)
    >>> e.from_data[:2]
    array([0., 1.])
    """
    lambda0 = 0.0 if e.prior[DECLARED] > 0.0 else e.prior[LAMBDA0]
    for x in range(states):
        e.from_prior[x], e.from_data[x] = 0.0, 0.0
    for x in range(states):
        for a in range(actions):
            i = x * actions + a
            _prepare_pair(e, i)
            if lambda0 > 0.0 and e.s[i] > 0.0 and e.known[i] == U0:
                e.from_prior[x] += 1.0
            for t in range(e.first[i], e.first[i] + e.known[i]):
                y = e.successor[t]
                e.weight[t] = lambda0 + e.prior[UNIT] * e.times[t]
                e.from_data[y] += e.times[t]
                if lambda0 > 0.0:
                    e.from_prior[y] += 1.0


@leaf
def add_state(e: Evidence, c: Chain, x: int, level: float) -> None:
    """State x enters, untried; its Q-values stand at `level` until the next sweep draws them.

    Actions that x does not offer are marked by n = -1 beforehand. Declared states enter at 0.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=2)
    >>> belief.observe("x", 0, (2.5, "y"))
    >>> float(belief.ledger.chain.scalars[PAIRS])
    4.0
    """
    actions = c.Q.shape[1]
    e.from_prior[x], e.from_data[x] = 0.0, 0.0
    for a in range(actions):
        i = x * actions + a
        _prepare_pair(e, i)
        c.Q[x, a] = level
        if e.s[i] > 0.0:
            c.scalars[PAIRS] += 1.0
            c.scalars[TOTAL] += e.s[i]
            c.scalars[PULL] += e.pull[i]
            if e.prior[DECLARED] == 0.0:
                e.from_prior[x] += 1.0
    c.M[x] = level
    c.scalars[LEVEL] += level


@leaf
def learn(
    e: Evidence, c: Chain, x: int, i: int, y: int, n: float, total: float, scatter: float
) -> int:
    """Pair i of state x has led to y, n times, and paid Σ r = total, Σ (r - r̄)² = scatter.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "y"))
    >>> e, c = belief.ledger.evidence, belief.ledger.chain
    >>> learn(e, c, 0, 0, 1, 1.0, 3.5, 0.0) == LEARNT
    True
    >>> float(e.times[0]), float(e.rewards[0]), float(e.scatter[0])
    (2.0, 6.0, 0.5)
    """
    here, end = e.first[i], e.first[i] + e.known[i]
    target = np.uint64(y)
    while here < end and e.successor[here] != target:
        here += U1
    lambda0 = 0.0 if e.prior[DECLARED] > 0.0 else e.prior[LAMBDA0]
    inflow = e.prior[UNIT] * n * c.M[y]
    if here == end:
        if e.known[i] == e.room[i]:
            return FULL
        e.successor[here], e.times[here], e.rewards[here] = target, 0.0, 0.0
        if lambda0 > 0.0:
            if e.known[i] == U0:  # the pseudo-transition onto x itself is over
                e.from_prior[x] -= 1.0
                inflow -= lambda0 * c.M[x]
            e.from_prior[y] += 1.0
            inflow += lambda0 * c.M[y]
        e.known[i] += U1
    else:
        gap = total / n - e.rewards[here] / e.times[here]
        scatter += gap * gap * (n * e.times[here] / (n + e.times[here]))
    e.times[here] += n
    e.rewards[here] += total
    e.weight[here] = lambda0 + e.prior[UNIT] * e.times[here]
    e.from_data[y] += n
    e.n[i] += n
    e.r[i] += total
    e.scatter[i] += scatter
    s, pull = e.s[i], e.pull[i]
    _prepare_pair(e, i)
    c.scalars[TOTAL] += e.s[i] - s
    c.scalars[PULL] += e.pull[i] - pull - (e.s[i] - s) * c.Q[x, i - x * c.Q.shape[1]] + inflow
    return LEARNT
