"""The Gibbs sampler of the MDP agent: evidence, sampler and compiled loop.

    λ(x,a,y) = λ0 + p n(x,a,y)            λ μ (x,a,y) = λ0 μ0 + p Σ r(x,a,y)
    prior B    only observed transitions have a prior; an untried pair has one pseudo-transition
               to its own state
    prior A    every declared state is a successor of every pair: their λ0 are summed together, and
               `weight` is p n

Stored for each pair (x,a): S = Σ_y λ, 1/√S, Σ_y λ μ/S and λ/S; for each state y the inflow
Σ_{x,a} λ(x,a,y). If p is unknown, it is factored out, λ = λ0 + n, and sampled in the chain.

The actions of a state often have the same successors. So the actions are divided into blocks of
`LANES`. A block stores each successor once, with the λ/S of all its actions, so that the sums
Σ_y λ(x,a,y) M(y)/S of its actions are computed together. The last block of a state is filled up
with actions that the state does not offer; these have Q = `LOWEST`.

The sum of the chain, Σ λ (μ - Q + M), is updated with the evidence, so that a partial sweep can
draw ρ without summing over all transitions.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import inlined, leaf
from bayescontrol.kernels.mdp import MdpRun, respond
from bayescontrol.kernels.random import gamma, next_normal, normal
from bayescontrol.kernels.td import best_action

#: The number of actions in a block.
LANES = 4
#: Q of an action that its state does not offer: below every other, and its square is finite.
LOWEST = -1e150
#: Indices of `Evidence.prior`.
MU0, LAMBDA0, UNIT, DECLARED = 0, 1, 2, 3
#: Columns of `Evidence.pairs`: n(x,a), or -1 for an action that x does not offer; Σ r;
#: Σ_y Σ (r - r̄(x,a,y))²; the number of known successors; S, 1/√S, Σ_y λ μ/S; and the squares
#: that do not depend on ξ, Σ_y n λ0/λ (r̄ - μ0)² + Σ (r - r̄)².
N, R, SCATTER, KNOWN, S, SPREAD, MU, MISFIT = 0, 1, 2, 3, 4, 5, 6, 7
#: Columns of `Evidence.blocks`: the first transition, how many are known, and the space for them.
FIRST, SIZE, ROOM = 0, 1, 2
#: Rows of `Evidence.rewards[t]`, each with one number per lane: n(x,a,y), Σ r and μ(x,a,y). Here
#: and in `MISFIT` prior A counts as λ0 = 0, since its λ0 are not those of single transitions.
TIMES, TOTAL, MEAN = 0, 1, 2
#: Columns of `Evidence.inflow`: the number of pairs (x,a) with a prior for y, and n(·,·,y).
FROM_PRIOR, FROM_DATA = 0, 1
#: Indices of `Chain.scalars`: ρ, σ, the start of the next partial sweep, Σ λ (μ - Q + M), the
#: number of ξ that have a prior, the number of observations, and Σ_y M(y), which prior A needs.
RHO, SIGMA, CURSOR, BALANCE, TERMS, COUNT, LEVEL = 0, 1, 2, 3, 4, 5, 6
# Unsigned indices: for signed ones Numba tests for negative values, which is slow.
U0, U1, U2, U3, U4 = (np.uint64(n) for n in range(5))


class Evidence(NamedTuple):
    """The observed transitions, and sums for the sweeps.

    Action a is lane a % LANES of block a // LANES. t numbers the transitions of all blocks.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "y"))
    >>> [float(v) for v in belief.ledger.evidence.pairs[0, 0, [N, R, S, MU]]]
    [1.0, 2.5, 2.0, 1.75]
    """

    #: [μ0, λ0, weight of an observation, number of declared states (0: prior B)]
    prior: FloatArray
    #: [x, a, column], see `N`.
    pairs: FloatArray
    #: [x, block, column], see `FIRST`.
    blocks: UIntArray
    #: y[t], λ(x,a,y)/S [t, lane] and [t, row, lane], see `TIMES`.
    successor: UIntArray
    share: FloatArray
    rewards: FloatArray
    #: [y, column], see `FROM_PRIOR`.
    inflow: FloatArray


class Chain(NamedTuple):
    """The state of the sampler: Q[x,a], M[x] = max_a Q[x,a], and [ρ, σ, …], see `RHO`.

    Q has a column for each lane.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> GibbsBelief(actions=1).ledger.chain.scalars[:2]
    array([0., 1.])
    """

    Q: FloatArray
    M: FloatArray
    scalars: FloatArray


@inlined
def offers(e: Evidence, x: int | np.uint64, a: int | np.uint64) -> bool:
    """Return whether state x offers action a."""
    return bool(e.pairs[x, a, N] >= 0.0)


@inlined
def block_and_lane(a: int | np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the block of action a and its lane; unsigned, because signed divisions are slow."""
    return np.uint64(a) // U4, np.uint64(a) % U4


@inlined
def _prior_of_transition(e: Evidence) -> float:
    """Return λ0 of one transition, which prior A does not store with the transitions."""
    return 0.0 if e.prior[DECLARED] > 0.0 else e.prior[LAMBDA0]


@leaf
def _prepare_pair(e: Evidence, x: int, a: int) -> float:
    """Compute what is derived from the sums of a pair; return its number of ξ with a prior.

    All is 0 if x does not offer a.
    """
    b, lane = block_and_lane(a)
    pair, block = e.pairs[x, a], e.blocks[x, b]
    if not offers(e, x, a):
        return 0.0
    terms: float = e.prior[DECLARED] if e.prior[DECLARED] > 0.0 else max(pair[KNOWN], 1.0)
    pair[S] = e.prior[LAMBDA0] * terms + e.prior[UNIT] * pair[N]
    pair[SPREAD] = 1.0 / math.sqrt(pair[S])
    pair[MU] = (e.prior[LAMBDA0] * e.prior[MU0] * terms + e.prior[UNIT] * pair[R]) / pair[S]
    pair[MISFIT] = pair[SCATTER]
    lambda0, mu0, unit = _prior_of_transition(e), e.prior[MU0], e.prior[UNIT]
    for t in range(block[FIRST], block[FIRST] + block[SIZE]):
        n, total = e.rewards[t, TIMES, lane], e.rewards[t, TOTAL, lane]
        if n > 0.0:
            lam = lambda0 + unit * n
            e.share[t, lane] = lam / pair[S]
            e.rewards[t, MEAN, lane] = (lambda0 * mu0 + unit * total) / lam
            pair[MISFIT] += n * lambda0 / lam * (total / n - mu0) ** 2
    return terms


@leaf
def prepare(e: Evidence, c: Chain, states: int) -> None:
    """Compute what is derived from Σ r, the transitions and the offered actions of every pair.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "y"))
    >>> e, c = belief.ledger.evidence, belief.ledger.chain
    >>> e.inflow[:] = 0
    >>> prepare(e, c, 2)
    >>> e.inflow[:2, FROM_DATA]
    array([0., 1.])
    """
    lambda0 = _prior_of_transition(e)
    c.scalars[TERMS], c.scalars[COUNT] = 0.0, 0.0
    e.inflow[:states] = 0.0
    for x in range(states):
        for a in range(c.Q.shape[1]):
            b, lane = block_and_lane(a)
            block = e.blocks[x, b]
            known, count = 0.0, 0.0
            for t in range(block[FIRST], block[FIRST] + block[SIZE]):
                n, y = e.rewards[t, TIMES, lane], e.successor[t]
                if n > 0.0:
                    known += 1.0
                    count += n
                    e.inflow[y, FROM_DATA] += n
                    if lambda0 > 0.0:
                        e.inflow[y, FROM_PRIOR] += 1.0
            if offers(e, x, a):
                e.pairs[x, a, N], e.pairs[x, a, KNOWN] = count, known
                if lambda0 > 0.0 and known == 0.0:  # a pseudo-transition to x itself
                    e.inflow[x, FROM_PRIOR] += 1.0
            c.scalars[COUNT] += count
            c.scalars[TERMS] += _prepare_pair(e, x, a)


@leaf
def add_state(e: Evidence, c: Chain, x: int, level: float) -> None:
    """Add the untried state x; its Q-values are `level` until the next sweep draws them.

    Before the call, set n = -1 for the actions that x does not offer. For declared states pass
    level = 0.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=2)
    >>> belief.observe("x", 0, (2.5, "y"))
    >>> float(belief.ledger.chain.scalars[TERMS])
    4.0
    """
    for a in range(c.Q.shape[1]):
        c.scalars[TERMS] += _prepare_pair(e, x, a)
        c.scalars[BALANCE] += e.pairs[x, a, S] * e.pairs[x, a, MU]
        c.Q[x, a] = level if offers(e, x, a) else LOWEST
        if offers(e, x, a) and e.prior[DECLARED] == 0.0:
            e.inflow[x, FROM_PRIOR] += 1.0
    c.M[x] = level


@inlined
def learn(
    e: Evidence, c: Chain, x: int, a: int, y: int, n: float, total: float, scatter: float
) -> bool:
    """Add n transitions of action a from state x to y: Σ r = total, Σ (r - r̄)² = scatter.

    Return False, with nothing changed, if the arrays have no space for the transition.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "y"))
    >>> e, c = belief.ledger.evidence, belief.ledger.chain
    >>> learn(e, c, 0, 0, 1, 1.0, 3.5, 0.0)
    True
    >>> [float(v) for v in e.pairs[0, 0, [N, R, SCATTER]]]
    [2.0, 6.0, 0.5]
    """
    b, lane = block_and_lane(a)
    pair, block = e.pairs[x, a], e.blocks[x, b]
    t, end = block[FIRST], block[FIRST] + block[SIZE]
    target = np.uint64(y)
    while t < end and e.successor[t] != target:
        t += U1
    if t == end:  # the first transition from this block to y
        if block[SIZE] == block[ROOM]:
            return False
        e.successor[t] = target
        block[SIZE] += U1
    lambda0, known_times = _prior_of_transition(e), e.rewards[t, TIMES, lane]
    future_change = e.prior[UNIT] * n * c.M[y]  # the change of Σ λ M
    if known_times == 0.0:  # the first transition from this pair to y
        if lambda0 > 0.0:
            if pair[KNOWN] == 0.0:  # remove the pseudo-transition to x itself
                e.inflow[x, FROM_PRIOR] -= 1.0
                future_change -= lambda0 * c.M[x]
                c.scalars[TERMS] -= 1.0
            e.inflow[y, FROM_PRIOR] += 1.0
            future_change += lambda0 * c.M[y]
            c.scalars[TERMS] += 1.0
        pair[KNOWN] += 1.0
    else:
        gap = total / n - e.rewards[t, TOTAL, lane] / known_times
        scatter += gap * gap * (n * known_times / (n + known_times))
    e.rewards[t, TIMES, lane] += n
    e.rewards[t, TOTAL, lane] += total
    e.inflow[y, FROM_DATA] += n
    c.scalars[COUNT] += n
    pair[N] += n
    pair[R] += total
    pair[SCATTER] += scatter
    c.scalars[BALANCE] += future_change - pair[S] * (pair[MU] - c.Q[x, a])
    _prepare_pair(e, x, a)
    c.scalars[BALANCE] += pair[S] * (pair[MU] - c.Q[x, a])
    return True


# ------------------------------------------------------------------------------------------------
# The Gibbs sampler of the MDP agent, as the paper's appendix derives it.
#
#     ρ      ~ N( (1/S) Σ λ(x,a,y) (μ(x,a,y) - Q(x,a) + M(y)), σ²/S ),            S = Σ λ(x,a,y)
#     Q(x,a) ~ N( (1/S(x,a)) Σ_y λ(x,a,y) (μ(x,a,y) - ρ + M(y)), σ²/S(x,a) ),  S(x,a) = Σ_y λ(x,a,y)
#     M(x)   = max_a Q(x,a): fixed while Q(x,·) is drawn, then updated;   σ = 1
#
# ρ first, then the states in order: one full sweep. λ and μ: see above.
# ρ's conditional needs no pass over transitions: Σ λ(x,a,y) M(y) = Σ_y M(y) Σ_{x,a} λ(x,a,y).
#
# A partial sweep draws ρ, the next k states in cyclic order and the current state. It updates the
# sum Σ λ (μ - Q + M), which is recomputed once a round.
#
# If the precision p is unknown, σ² = 1/p is drawn at the end of a round (normal-gamma).
#
# ξ is invariant under Q -> Q + c, so the chain drifts along c. A sweep commutes with this shift,
# and `recentre` removes it once a round; actions and ρ do not change.


class GibbsSettings(NamedTuple):
    """The settings of a draw.

    >>> GibbsSettings(sweeps=1, partial=0, recentre=True, a0=1.0, b0=0.0, limit=1.0).partial
    0
    """

    sweeps: int
    #: The number of states in a partial sweep; 0 for all.
    partial: int
    recentre: bool
    #: p ~ Gamma(a0, b0); b0 = 0: p is known.
    a0: float
    b0: float
    #: The largest σ if p is unknown; larger draws are set to it.
    limit: float


@inlined
def _pairs_of_a(e: Evidence, c: Chain) -> float:
    """Return the number of pairs if all states are declared (prior A), and 0 for prior B."""
    return c.scalars[TERMS] / e.prior[DECLARED] if e.prior[DECLARED] > 0.0 else 0.0


@inlined
def _inflow(e: Evidence, c: Chain, x: int | np.uint64) -> float:
    """Return Σ_{x',a} λ(x',a,x)."""
    from_prior = e.prior[LAMBDA0] * (e.inflow[x, FROM_PRIOR] + _pairs_of_a(e, c))
    return float(from_prior + e.prior[UNIT] * e.inflow[x, FROM_DATA])


@leaf
def _balance(e: Evidence, c: Chain, first: int, end: int) -> float:
    """Return the part of Σ λ (μ - Q + M) that has Q(x,·) and M(x), x = `first` … `end` - 1."""
    balance = 0.0
    for x in range(np.uint64(first), np.uint64(end)):
        outflow = 0.0
        for a in range(np.uint64(c.Q.shape[1])):
            outflow += e.pairs[x, a, S] * (c.Q[x, a] - e.pairs[x, a, MU])
        balance += _inflow(e, c, x) * c.M[x] - outflow
    return balance


@leaf
def tally(e: Evidence, c: Chain, states: int) -> None:
    """Recompute Σ λ (μ - Q + M), and for prior A Σ M.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "y"))
    >>> c = belief.ledger.chain
    >>> before = c.scalars.copy()
    >>> tally(belief.ledger.evidence, c, 2)
    >>> bool((before == c.scalars).all())
    True
    """
    c.scalars[BALANCE] = _balance(e, c, 0, states)
    if e.prior[DECLARED] > 0.0:
        c.scalars[LEVEL] = c.M[:states].sum()


@inlined
def draw_rho(e: Evidence, c: Chain, rng_state: UIntArray) -> None:
    """Draw ρ given all Q."""
    total = e.prior[LAMBDA0] * c.scalars[TERMS] + e.prior[UNIT] * c.scalars[COUNT]  # Σ λ
    spread = c.scalars[SIGMA] / math.sqrt(total)
    c.scalars[RHO] = c.scalars[BALANCE] / total + spread * normal(rng_state)


@leaf
def _draw_noise(e: Evidence, c: Chain, first: int, end: int, rng_state: UIntArray) -> None:
    """Set Q(x,a) to what does not depend on the M of other states, for all x of a sweep.

    This is Σ_y λ μ/S - ρ + σ z/√S, z normal, and for an untried pair of prior B also M(x).
    """
    rho, sigma, is_b = c.scalars[RHO], c.scalars[SIGMA], e.prior[DECLARED] == 0.0
    s0, s1, s2, s3 = rng_state[0], rng_state[1], rng_state[2], rng_state[3]
    for x in range(np.uint64(first), np.uint64(end)):
        for a in range(np.uint64(c.Q.shape[1])):
            if offers(e, x, a):
                z, s0, s1, s2, s3 = next_normal(rng_state, s0, s1, s2, s3)
                q = e.pairs[x, a, MU] - rho + sigma * e.pairs[x, a, SPREAD] * z
                if is_b and e.pairs[x, a, N] == 0.0:  # the pseudo-transition to x itself
                    q += c.M[x]
                c.Q[x, a] = q
    rng_state[0], rng_state[1], rng_state[2], rng_state[3] = s0, s1, s2, s3


@leaf
def _draw_values(e: Evidence, c: Chain, first: int, end: int, rng_state: UIntArray) -> float:
    """For each state x from `first` to `end` - 1: draw Q(x,·) given ρ and M, and compute M(x).

    Return the `_balance` of these states.
    """
    _draw_noise(e, c, first, end, rng_state)
    balance, is_a = 0.0, e.prior[DECLARED] > 0.0
    for x in range(np.uint64(first), np.uint64(end)):
        top, outflow = LOWEST, 0.0
        for a in range(U0, np.uint64(c.Q.shape[1]), U4):
            if is_a:  # λ0 of all successors
                for b in range(a, a + U4):
                    c.Q[x, b] += e.prior[LAMBDA0] * c.scalars[LEVEL] * e.pairs[x, b, SPREAD] ** 2
            # Q += Σ_y λ(x,a,y) M(y)/S, for the four actions of a block.
            q0, q1, q2, q3 = c.Q[x, a], c.Q[x, a + U1], c.Q[x, a + U2], c.Q[x, a + U3]
            block = e.blocks[x, a // U4]
            for t in range(block[FIRST], block[FIRST] + block[SIZE]):
                m = c.M[e.successor[t]]
                q0 += e.share[t, 0] * m
                q1 += e.share[t, 1] * m
                q2 += e.share[t, 2] * m
                q3 += e.share[t, 3] * m
            c.Q[x, a], c.Q[x, a + U1], c.Q[x, a + U2], c.Q[x, a + U3] = q0, q1, q2, q3
            top = max(top, max(max(q0, q1), max(q2, q3)))
            for b in range(a, a + U4):
                outflow += e.pairs[x, b, S] * (c.Q[x, b] - e.pairs[x, b, MU])
        if is_a:
            c.scalars[LEVEL] += top - c.M[x]
        c.M[x] = top
        balance += _inflow(e, c, x) * top - outflow
    return balance


@leaf
def _redraw(e: Evidence, c: Chain, first: int, end: int, rng_state: UIntArray) -> None:
    """Draw the values of these states, and update Σ λ (μ - Q + M)."""
    before = _balance(e, c, first, end)
    c.scalars[BALANCE] += _draw_values(e, c, first, end, rng_state) - before


@inlined
def recentre(c: Chain, states: int) -> None:
    """Subtract M(0) from all Q and M, which fixes the free constant of Q.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> c = GibbsBelief(actions=1, states=["x", "y"]).ledger.chain
    >>> c.Q[:2, 0] = c.M[:2] = 3.0, 5.0
    >>> recentre(c, 2)
    >>> c.Q[:2, 0]
    array([0., 2.])
    """
    shift, Q, M = c.M[0], c.Q[:states], c.M[:states]
    Q -= shift
    M -= shift


@leaf
def _prior_squares(e: Evidence, c: Chain, states: int) -> float:
    """Return Σ_{x,a,y} (ξ(x,a,y) - μ0)² of prior A, for N states.

    The sum is computed as Σ_{x,a} [N (Q(x,a) + ρ - μ0 - M̄)² + Σ_y (M(y) - M̄)²].
    """
    mean, scatter = 0.0, 0.0
    for y in range(np.uint64(states)):
        mean += c.M[y] / states
    for y in range(np.uint64(states)):
        scatter += (c.M[y] - mean) ** 2
    squares: float = _pairs_of_a(e, c) * scatter
    for x in range(np.uint64(states)):
        for a in range(np.uint64(c.Q.shape[1])):
            if offers(e, x, a):
                squares += states * (c.Q[x, a] + c.scalars[RHO] - e.prior[MU0] - mean) ** 2
    return squares


@leaf
def draw_precision(
    e: Evidence, c: Chain, states: int, a0: float, b0: float, rng_state: UIntArray
) -> None:
    """Draw p and set σ = 1/√p.

        p ~ Gamma(a0 + ½ (Σ n + #ξ), b0 + ½ Σ (r - ξ)² + ½ λ0 Σ (ξ - μ0)²)

    #ξ is the number of ξ that have a prior: those of observed and pseudo-transitions (prior B), or
    all (prior A). A transition adds λ (ξ - μ)² + n λ0/λ (r̄ - μ0)² + Σ (r - r̄)².

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> from bayescontrol.seeding import Stream
    >>> ledger = GibbsBelief(actions=1, states=["x"]).ledger
    >>> draw_precision(ledger.evidence, ledger.chain, 1, 1e6, 4e6, Stream(0).state)
    >>> round(float(ledger.chain.scalars[SIGMA]), 1)
    2.0
    """
    squares, is_b, rho = 0.0, e.prior[DECLARED] == 0.0, c.scalars[RHO]
    for x in range(np.uint64(states)):
        for a in range(U0, np.uint64(c.Q.shape[1]), U4):
            # Σ_y λ/S (ξ - μ)², for the four actions of a block.
            q0, q1, q2, q3 = c.Q[x, a], c.Q[x, a + U1], c.Q[x, a + U2], c.Q[x, a + U3]
            f0, f1, f2, f3 = 0.0, 0.0, 0.0, 0.0
            block = e.blocks[x, a // U4]
            for t in range(block[FIRST], block[FIRST] + block[SIZE]):
                shift = rho - c.M[e.successor[t]]  # ξ = Q + ρ - M(y)
                f0 += e.share[t, 0] * (q0 + shift - e.rewards[t, MEAN, 0]) ** 2
                f1 += e.share[t, 1] * (q1 + shift - e.rewards[t, MEAN, 1]) ** 2
                f2 += e.share[t, 2] * (q2 + shift - e.rewards[t, MEAN, 2]) ** 2
                f3 += e.share[t, 3] * (q3 + shift - e.rewards[t, MEAN, 3]) ** 2
            for k in range(a, a + U4):
                if is_b and e.pairs[x, k, N] == 0.0:  # the pseudo-transition to x itself
                    f0 = (c.Q[x, k] + rho - c.M[x] - e.pairs[x, k, MU]) ** 2
                squares += e.pairs[x, k, MISFIT] + e.pairs[x, k, S] * f0
                f0, f1, f2 = f1, f2, f3
    if not is_b:
        squares += e.prior[LAMBDA0] * _prior_squares(e, c, states)
    shape = a0 + 0.5 * (c.scalars[COUNT] + c.scalars[TERMS])
    c.scalars[SIGMA] = math.sqrt((b0 + 0.5 * squares) / gamma(rng_state, shape))


@inlined
def draw_mode(
    e: Evidence, c: Chain, settings: GibbsSettings, states: int, x: int, rng_state: UIntArray
) -> None:
    """Draw (Q, ρ) by `settings.sweeps` full or partial sweeps.

    `states` is the number of states. A partial sweep begins at the state at which the last one
    ended, and also draws Q(x,·) of the current state x (-1 for none). After the last state the
    round is complete: draw the precision, recentre, and start the next round at state 0.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> from bayescontrol.seeding import Stream
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "x"))
    >>> e, c = belief.ledger.evidence, belief.ledger.chain
    >>> draw_mode(e, c, belief.draw_settings, 1, -1, Stream(0).state)
    >>> abs(c.scalars[RHO] - 1.75) < 3
    np.True_
    """
    is_full = settings.partial == 0 or settings.partial >= states
    for _ in range(settings.sweeps):
        first = 0 if is_full else int(c.scalars[CURSOR])
        if first == 0 and (not is_full or e.prior[DECLARED] > 0.0):
            tally(e, c, states)
        draw_rho(e, c, rng_state)
        end = states if is_full else min(first + settings.partial, states)
        if is_full:
            c.scalars[BALANCE] = _draw_values(e, c, first, end, rng_state)
        else:
            _redraw(e, c, first, end, rng_state)
            if x >= 0 and not first <= x < end:
                _redraw(e, c, x, x + 1, rng_state)
        c.scalars[CURSOR] = end
        if end == states:
            c.scalars[CURSOR] = 0.0
            if settings.b0 > 0.0:
                draw_precision(e, c, states, settings.a0, settings.b0, rng_state)
                c.scalars[SIGMA] = min(c.scalars[SIGMA], settings.limit)
            if settings.recentre:
                recentre(c, states)


@inlined
def draw_action(
    e: Evidence, c: Chain, settings: GibbsSettings, states: int, x: int, rng_state: UIntArray
) -> int:
    """Draw (Q, ρ) and return arg max_a Q(x,a); -1 if the chain has diverged.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> from bayescontrol.seeding import Stream
    >>> belief = GibbsBelief(actions=1, states=["x"])
    >>> e, c = belief.ledger.evidence, belief.ledger.chain
    >>> draw_action(e, c, belief.draw_settings, 1, 0, Stream(0).state)
    0
    """
    draw_mode(e, c, settings, states, x, rng_state)
    return best_action(c.Q, x) if math.isfinite(c.scalars[RHO]) else -1


# ------------------------------------------------------------------------------------------------
# The loop of the Gibbs agent in an MDP; it only calls other kernels.
#
#     (Q, ρ) ~ one draw      a = arg max_a Q(x,a)      (r, y) ~ P(r, y | x, a)      n(x,a,y) += 1
#
# It equals the readable agent and environment bit for bit, and stops where only the readable code
# can continue.

#: Why the loop ended: all steps are done; the last step was not learned, because of a new state or
#: full arrays; the environment does not offer the action; the chain is not finite.
DONE, NOT_LEARNED, NOT_OFFERED, LOST = 0, 1, 2, 3


@leaf
def interact(
    e: Evidence, c: Chain, settings: GibbsSettings, known_states: int, run: MdpRun, at: int, t: int
) -> tuple[int, int, int]:
    """Fill the columns from step t on; return the steps learned, the final state, and why it ended.

    The agent knows `known_states` states. `at` and the final state are states of the environment.

    >>> from bayescontrol.kernels.mdp import STEP
    >>> from bayescontrol.kernels.random import Streams
    >>> from bayescontrol.mdp import chain_mdp
    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> from bayescontrol.seeding import Stream
    >>> belief = GibbsBelief(2, states=2)
    >>> actions, rows = np.empty(50, np.int64), np.empty(50, STEP)
    >>> e, chain, settings = belief.ledger.evidence, belief.ledger.chain, belief.draw_settings
    >>> streams = Streams(Stream(1).state, Stream(2).state)
    >>> run = MdpRun(chain_mdp(2).tables, np.arange(2), streams, actions, rows)
    >>> interact(e, chain, settings, 2, run, 0, 0)
    (50, 0, 0)
    """
    tables, index_of, (p, q), actions, rows = run
    A = tables.first.size // index_of.size
    for s in range(t, actions.size):
        x = index_of[at]
        a = draw_action(e, c, settings, known_states, x, p)
        if a < 0:
            return s, at, LOST
        actions[s] = a
        if tables.successor[tables.first[at * A + a]] < 0:  # see `mdp.Tables`
            return s, at, NOT_OFFERED
        entry = respond(tables, at, a, A, q)
        at, r = tables.successor[entry], tables.reward[entry]
        rows[s]["reward"], rows[s]["state"] = r, at
        y = index_of[at]  # -1 for a state that is new to the agent
        if y < 0 or not learn(e, c, x, a, y, 1.0, r, 0.0):
            return s, at, NOT_LEARNED
    return actions.size, at, DONE
