"""The Gibbs sampler of the MDP agent if the noise of every pair is learned, in reward units.

    r(x,a,y) ~ N(ξ(x,a,y), σ²(x,a))        σ²(x,a) ~ InverseGamma(1, σ²), a variance per pair
    ξ(x,a,y) ~ N(μ0, σ²(x,a)/λ0)           μ0 = m max(0, r̄),   r̄ the mean rewards of transitions

    (σ²(x,a), Q(x,a)) | M, ρ    σ²(x,a) ~ InverseGamma(1 + n/2, σ² + SS/2),  Q ~ N(T̄ - ρ, σ²(x,a)/S)
    T(y) = μ(x,a,y) + M(y)      T̄ = Σ_y λ T/S,   SS = Σ λ (T - T̄)² + Σ n λ0/λ (r̄ - μ0)² + Σ (r - r̄)²

Here λ = λ0 + n and S = Σ_y λ. The shape 1 + n/2 counts observations only. The joint conditional of
a pair with K known successors has 1 + (n + K - 1)/2, so the noise of a pair with more than one
successor is drawn a little too large, and the agent explores it longer. This is intended: with the
shape of the joint conditional it earned less on FrozenLake and Taxi (`docs/gymnasium.md`). An
untried pair has Q(x,a) ~ N(μ0 - ρ + M(x), σ²(x,a)). The level σ² and ρ are drawn
as if all pairs had the variance σ²: σ² ~ InverseGamma(1, FLOOR s²), where s² is
(max(0, r̄) - min(0, r̄))² plus the variance of rewards within transitions. Equal weights of all
observations keep ρ stable. Draws of σ² and σ²(x,a) above s² are set to s²; without this limit the
noise grows with the spread of M, and M with the noise. If all rewards are multiplied by c > 0, then
Q, ρ and σ are too, and the actions do not change.
"""

import math

import numpy as np

from bayescontrol._arrays import UIntArray
from bayescontrol.kernels import gibbs
from bayescontrol.kernels._jit import inlined, leaf
from bayescontrol.kernels.gibbs import Chain, Evidence
from bayescontrol.kernels.random import gamma, normal

#: The least level of the noise, as a variance in units of s².
FLOOR = 1e-4


@leaf
def reward_scale(e: Evidence, c: Chain, states: int) -> tuple[float, float]:
    """Return the largest mean reward of a transition, at least 0, and s², or 1 if s² would be 0.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (3.0, "y"))
    >>> belief.observe("x", 0, (5.0, "y"))
    >>> reward_scale(belief.ledger.evidence, belief.ledger.chain, 2)
    (4.0, 17.0)
    """
    low, high, scatter = 0.0, 0.0, 0.0
    for x in range(np.uint64(states)):
        for a in range(np.uint64(c.Q.shape[1])):
            scatter += e.pairs[x, a, gibbs.SCATTER]
            b, lane = gibbs.block_and_lane(a)
            block = e.blocks[x, b]
            for t in range(block[gibbs.FIRST], block[gibbs.FIRST] + block[gibbs.SIZE]):
                if e.rewards[t, gibbs.TIMES, lane] > 0.0:
                    mean = e.rewards[t, gibbs.TOTAL, lane] / e.rewards[t, gibbs.TIMES, lane]
                    low, high = min(low, mean), max(high, mean)
    square = (high - low) ** 2 + scatter / max(c.scalars[gibbs.COUNT], 1.0)
    return high, square if square > 0.0 else 1.0


@inlined
def pair_target(e: Evidence, c: Chain, x: int, a: int) -> tuple[float, float]:
    """Return T̄ and SS of action a in state x; an untried pair has T̄ = μ0 + M(x) and SS = 0.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief, GibbsPrior
    >>> belief = GibbsBelief(1, GibbsPrior(mu0=1.0, lambda0=1.0))
    >>> belief.observe("x", 0, (3.0, "y"))
    >>> pair_target(belief.ledger.evidence, belief.ledger.chain, 0, 0)
    (2.0, 2.0)
    """
    b, lane = gibbs.block_and_lane(a)
    pair, block = e.pairs[x, a], e.blocks[x, b]
    if pair[gibbs.N] == 0.0:
        return e.prior[gibbs.MU0] + c.M[x], 0.0
    target, squares = pair[gibbs.MU], 0.0
    for t in range(block[gibbs.FIRST], block[gibbs.FIRST] + block[gibbs.SIZE]):
        target += e.share[t, lane] * c.M[e.successor[t]]
    for t in range(block[gibbs.FIRST], block[gibbs.FIRST] + block[gibbs.SIZE]):
        T = e.rewards[t, gibbs.MEAN, lane] + c.M[e.successor[t]]
        squares += e.share[t, lane] * (T - target) ** 2
    return target, pair[gibbs.MISFIT] + pair[gibbs.S] * squares


@inlined
def draw_pair(
    e: Evidence, c: Chain, x: int, a: int, level: float, limit: float, rng_state: UIntArray
) -> float:
    """Draw σ²(x,a), at most `limit`, and return a draw of Q(x,a) + ρ; σ² = `level`.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> from bayescontrol.seeding import Stream
    >>> ledger = GibbsBelief(actions=1, states=["x"]).ledger
    >>> abs(draw_pair(ledger.evidence, ledger.chain, 0, 0, 1e-9, 1.0, Stream(0).state) - 1) < 0.1
    True
    """
    target, ss = pair_target(e, c, x, a)
    pair = e.pairs[x, a]
    variance = min((level + 0.5 * ss) / gamma(rng_state, 1.0 + 0.5 * pair[gibbs.N]), limit)
    # An untried pair has the variance σ²(x,a).
    spread = pair[gibbs.SPREAD] if pair[gibbs.N] > 0.0 else 1.0
    return target + math.sqrt(variance) * spread * normal(rng_state)


@leaf
def sweep(e: Evidence, c: Chain, states: int, optimism: float, rng_state: UIntArray) -> None:
    """Draw σ², ρ, and the pairs of all states in order; `optimism` is m of μ0 = m max(0, r̄).

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> from bayescontrol.seeding import Stream
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "x"))
    >>> sweep(belief.ledger.evidence, belief.ledger.chain, 1, 1.0, Stream(0).state)
    >>> abs(belief.rho - 2.5) < 5
    True
    """
    high, scale = reward_scale(e, c, states)
    if e.prior[gibbs.MU0] != optimism * high:
        e.prior[gibbs.MU0] = optimism * high
        gibbs.prepare(e, c, states)
    gibbs.draw_precision(e, c, states, 1.0, FLOOR * scale, rng_state)
    c.scalars[gibbs.SIGMA] = min(c.scalars[gibbs.SIGMA], math.sqrt(scale))
    gibbs.tally(e, c, states)
    gibbs.draw_rho(e, c, rng_state)
    level = c.scalars[gibbs.SIGMA] ** 2
    for x in range(np.uint64(states)):
        top = -math.inf
        for a in range(np.uint64(c.Q.shape[1])):
            if gibbs.offers(e, x, a):
                c.Q[x, a] = draw_pair(e, c, x, a, level, scale, rng_state) - c.scalars[gibbs.RHO]
                top = max(top, c.Q[x, a])
        c.M[x] = top
    gibbs.recentre(c, states)
