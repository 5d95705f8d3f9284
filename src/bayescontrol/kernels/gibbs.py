"""The Gibbs sampler of the MDP agent, as the paper's appendix derives it.

    ρ      ~ N( (1/S) Σ λ(x,a,y) (μ(x,a,y) - Q(x,a) + M(y)), σ²/S ),            S = Σ λ(x,a,y)
    Q(x,a) ~ N( (1/S(x,a)) Σ_y λ(x,a,y) (μ(x,a,y) - ρ + M(y)), σ²/S(x,a) ),   S(x,a) = Σ_y λ(x,a,y)
    M(x)   = max_a Q(x,a): held fixed while Q(x,·) is drawn, refreshed after it;   σ = 1

ρ first, then the states in order: one full sweep. λ and μ are those of `kernels.transitions`.
ρ's conditional needs no pass over transitions: Σ λ(x,a,y) M(y) = Σ_y M(y) Σ_{x,a} λ(x,a,y).

A partial sweep draws ρ, the next k states and the state of now; the states go round. Sums are
then kept up to date, and added up anew once a round.

Where the precision p is unknown, σ² = 1/p is drawn at the end of a round (normal-gamma).

ξ does not change under Q -> Q + c, so the chain drifts along c. A sweep commutes with the shift,
and `recentre` takes it out, once a round, without touching actions or ρ.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol.arrays import UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.random import gamma
from bayescontrol.kernels.transitions import (
    CURSOR,
    DECLARED,
    LAMBDA0,
    LEVEL,
    MU0,
    PAIRS,
    PULL,
    RHO,
    SIGMA,
    TOTAL,
    U1,
    UNIT,
    Chain,
    Evidence,
)
from bayescontrol.kernels.ziggurat import normal


class How(NamedTuple):
    """What a draw does.

    >>> How(sweeps=1, partial=0, recentre=True, a0=1.0, b0=0.0).partial
    0
    """

    sweeps: int
    #: States of a partial sweep; 0: all.
    partial: int
    recentre: bool
    #: p ~ Gamma(a0, b0); b0 = 0: p is known.
    a0: float
    b0: float


@leaf
def tally(e: Evidence, c: Chain, states: int) -> None:
    """Σ λ, Σ λ (μ - Q + M), Σ M and the number of pairs, added up anew.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "y"))
    >>> c = belief.ledger.chain
    >>> kept = c.scalars.copy()
    >>> tally(belief.ledger.evidence, c, 2)
    >>> bool((kept == c.scalars).all())
    True
    """
    Q = c.Q.reshape(-1)
    total, pull, pairs = 0.0, 0.0, 0.0
    for i in range(np.uint64(states * c.Q.shape[1])):
        if e.s[i] > 0.0:
            total += e.s[i]
            pull += e.pull[i] - e.s[i] * Q[i]
            pairs += 1.0
    into, level = 0.0, 0.0
    for y in range(np.uint64(states)):
        weight = e.prior[LAMBDA0] * e.from_prior[y] + e.prior[UNIT] * e.from_data[y]
        into += weight * c.M[y]
        level += c.M[y]
    if e.prior[DECLARED] > 0.0:
        into += e.prior[LAMBDA0] * pairs * level
    c.scalars[PULL], c.scalars[TOTAL] = pull + into, total
    c.scalars[LEVEL], c.scalars[PAIRS] = level, pairs


@leaf
def _draw_rho(c: Chain, state: UIntArray) -> None:
    """ρ given all Q."""
    total = c.scalars[TOTAL]
    spread = c.scalars[SIGMA] / math.sqrt(total)
    c.scalars[RHO] = c.scalars[PULL] / total + spread * normal(state)


@leaf
def _draw_state(e: Evidence, c: Chain, x: int, state: UIntArray) -> None:
    """Q(x,·) given ρ and M, then M(x); the sums follow."""
    here, A = np.uint64(x), np.uint64(c.Q.shape[1])
    rho, sigma, lambda0 = c.scalars[RHO], c.scalars[SIGMA], e.prior[LAMBDA0]
    inflow = lambda0 * e.from_prior[here] + e.prior[UNIT] * e.from_data[here]
    from_all, from_itself = 0.0, lambda0 * c.M[here]
    if e.prior[DECLARED] > 0.0:
        from_all, from_itself = lambda0 * c.scalars[LEVEL], 0.0
        inflow += lambda0 * c.scalars[PAIRS]
    top, outflow = -math.inf, 0.0
    i = here * A
    for a in range(A):
        if e.s[i] > 0.0:
            first, end = e.first[i], e.first[i] + e.known[i]
            into = from_all if first < end else from_all + from_itself
            for t in range(first, end):
                into += e.weight[t] * c.M[e.successor[t]]
            q = (e.pull[i] + into) * e.inverse[i] - rho + sigma * e.spread[i] * normal(state)
            outflow += e.s[i] * (q - c.Q[here, a])
            c.Q[here, a] = q
            top = max(top, q)
        i += U1
    rise = top - c.M[here]
    c.M[here] = top
    c.scalars[LEVEL] += rise
    c.scalars[PULL] += inflow * rise - outflow


@leaf
def recentre(c: Chain, states: int) -> None:
    """Q -> Q - M(0): the gauge is taken out.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> c = GibbsBelief(actions=1, states=["x", "y"]).ledger.chain
    >>> c.Q[:2, 0] = c.M[:2] = 3.0, 5.0
    >>> recentre(c, 2)
    >>> c.Q[:2, 0]
    array([0., 2.])
    """
    shift = c.M[0]
    for x in range(np.uint64(states)):
        c.M[x] -= shift
    Q = c.Q.reshape(-1)
    for i in range(np.uint64(states * c.Q.shape[1])):
        Q[i] -= shift
    c.scalars[LEVEL] -= states * shift


@leaf
def _prior_squares(e: Evidence, c: Chain, states: int) -> float:
    """Prior A: Σ_{x,a,y} (ξ(x,a,y) - μ0)² = Σ_{x,a} N (Q(x,a) + ρ - μ0 - M̄)² + Σ_y (M(y) - M̄)²."""
    mean, around = c.scalars[LEVEL] / states, 0.0
    for y in range(np.uint64(states)):
        around += (c.M[y] - mean) ** 2
    squares: float = c.scalars[PAIRS] * around
    Q = c.Q.reshape(-1)
    for i in range(np.uint64(states * c.Q.shape[1])):
        if e.s[i] > 0.0:
            squares += states * (Q[i] + c.scalars[RHO] - e.prior[MU0] - mean) ** 2
    return squares


@leaf
def draw_precision(
    e: Evidence, c: Chain, states: int, a0: float, b0: float, state: UIntArray
) -> None:
    """p ~ Gamma(a0 + ½ (Σ n + #ξ), b0 + ½ Σ (r - ξ)² + ½ λ0 Σ (ξ - μ0)²), σ = 1/√p.

    #ξ counts the ξ that have a prior: of transitions seen and pseudo-transitions, or all.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> from bayescontrol.seeding import Stream
    >>> ledger = GibbsBelief(actions=1, states=["x"]).ledger
    >>> draw_precision(ledger.evidence, ledger.chain, 1, 1e6, 4e6, Stream(0).state)
    >>> round(float(ledger.chain.scalars[SIGMA]), 1)
    2.0
    """
    terms, squares, from_prior = 0.0, 0.0, 0.0
    declared = e.prior[DECLARED]
    i = np.uint64(0)
    for x in range(np.uint64(states)):
        for a in range(np.uint64(c.Q.shape[1])):
            if e.s[i] > 0.0:
                base = c.Q[x, a] + c.scalars[RHO]
                here, end = e.first[i], e.first[i] + e.known[i]
                terms += e.n[i] + (declared if declared > 0.0 else max(float(e.known[i]), 1.0))
                squares += e.scatter[i]
                if here == end:
                    from_prior += (base - c.M[x] - e.prior[MU0]) ** 2
                for t in range(here, end):
                    xi = base - c.M[e.successor[t]]
                    squares += e.times[t] * (e.rewards[t] / e.times[t] - xi) ** 2
                    from_prior += (xi - e.prior[MU0]) ** 2
            i += U1
    if declared > 0.0:
        from_prior = _prior_squares(e, c, states)
    squares += e.prior[LAMBDA0] * from_prior
    c.scalars[SIGMA] = math.sqrt((b0 + 0.5 * squares) / gamma(state, a0 + 0.5 * terms))


@leaf
def best_action(e: Evidence, c: Chain, x: int) -> int:
    """arg max_a Q(x,a) over the actions that x offers.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> ledger = GibbsBelief(actions=3, states=["x"], allowed=lambda x: [0, 2]).ledger
    >>> ledger.chain.Q[0] = 1.0, 9.0, 2.0
    >>> best_action(ledger.evidence, ledger.chain, 0)
    2
    """
    actions = c.Q.shape[1]
    best = -1
    for a in range(actions):
        if e.s[x * actions + a] > 0.0 and (best < 0 or c.Q[x, a] > c.Q[x, best]):
            best = a
    return best


@leaf
def _sweep(e: Evidence, c: Chain, how: How, states: int, x: int, state: UIntArray) -> None:
    """One sweep, full or partial; the last of a round ends with the last state."""
    first = int(c.scalars[CURSOR])
    if first == 0:
        tally(e, c, states)
    _draw_rho(c, state)
    full = how.partial == 0 or how.partial >= states
    end = states if full else min(first + how.partial, states)
    for y in range(first, end):
        _draw_state(e, c, y, state)
    if x >= 0 and not first <= x < end:
        _draw_state(e, c, x, state)
    c.scalars[CURSOR] = end
    if end == states:
        c.scalars[CURSOR] = 0.0
        if how.b0 > 0.0:
            draw_precision(e, c, states, how.a0, how.b0, state)
        if how.recentre:
            recentre(c, states)


@leaf
def draw_mode(e: Evidence, c: Chain, how: How, states: int, x: int, state: UIntArray) -> None:
    """A new (Q, ρ) as `how` says; a partial sweep includes x, the state of now (-1: none).

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> from bayescontrol.seeding import Stream
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "x"))
    >>> e, c = belief.ledger.evidence, belief.ledger.chain
    >>> draw_mode(e, c, belief.how, 1, -1, Stream(0).state)
    >>> abs(c.scalars[RHO] - 1.75) < 3
    np.True_
    """
    for _ in range(how.sweeps):
        _sweep(e, c, how, states, x, state)
