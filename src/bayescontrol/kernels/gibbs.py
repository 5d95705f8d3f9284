"""The Gibbs sampler of the MDP agent: evidence, sampler and compiled loop.

    λ(x,a,y) = λ0 + p n(x,a,y)            λ μ (x,a,y) = λ0 μ0 + p Σ r(x,a,y)
    prior B    only observed transitions have a prior; an untried pair has one pseudo-transition
               to its own state
    prior A    every declared state is a successor of every pair: their λ0 are summed together, and
               `weight` is p n

Stored for each pair (x,a): S = Σ_y λ, 1/S, 1/√S and Σ_y λ μ; for each state y the inflow
Σ_{x,a} λ(x,a,y). If p is unknown, it is factored out, λ = λ0 + n, and sampled in the chain.

The sums of the chain, S = Σ λ and Σ λ (μ - Q + M), are updated with the evidence, so that a partial
sweep can draw ρ without summing over all transitions.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import inlined, leaf
from bayescontrol.kernels.mdp import MdpRun, respond
from bayescontrol.kernels.random import gamma, normal

#: Results of `learn`: done; or unchanged, because the arrays have no space for the transition.
LEARNED, FULL = 0, 1

#: Indices of `Evidence.prior`.
MU0, LAMBDA0, UNIT, DECLARED = 0, 1, 2, 3
#: Indices of `Chain.scalars`: ρ, σ, the start of the next partial sweep, Σ λ (μ - Q + M), Σ λ,
#: Σ_y M(y), and the number of pairs.
RHO, SIGMA, CURSOR, PULL, TOTAL, LEVEL, PAIRS = 0, 1, 2, 3, 4, 5, 6
# Unsigned indices: for signed ones Numba tests for negative values, which is slow.
U0, U1 = np.uint64(0), np.uint64(1)


class Evidence(NamedTuple):
    """The observed transitions, and sums for the sweeps.

    Pair i is x A + a for A actions; t numbers the transitions.

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
    #: Per pair: its first transition, how many distinct transitions are known, and the space.
    first: UIntArray
    known: UIntArray
    room: UIntArray
    #: Per transition: the successor y, λ(x,a,y), n(x,a,y), Σ r.
    successor: UIntArray
    weight: FloatArray
    times: FloatArray
    rewards: FloatArray
    #: Per state y: the number of pairs (x,a) with a prior for y, and of transitions n(·,·,y).
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


@inlined
def offers(e: Evidence, i: int | np.uint64) -> bool:
    """Return whether the state of pair i offers its action; S = 0 marks an action it does not."""
    return bool(e.s[i] > 0.0)


@leaf
def _prepare_pair(e: Evidence, i: int) -> None:
    """Compute S, 1/S, 1/√S and Σ_y λ μ of pair i from its sums; S = 0 if x does not offer a."""
    if e.n[i] < 0.0:
        e.s[i] = 0.0
        return
    prior_terms = e.prior[DECLARED] if e.prior[DECLARED] > 0.0 else max(float(e.known[i]), 1.0)
    s = e.prior[LAMBDA0] * prior_terms + e.prior[UNIT] * e.n[i]
    e.s[i] = s
    e.inverse[i] = 1.0 / s
    e.spread[i] = 1.0 / math.sqrt(s)
    e.pull[i] = e.prior[LAMBDA0] * e.prior[MU0] * prior_terms + e.prior[UNIT] * e.r[i]


@leaf
def prepare(e: Evidence, states: int, actions: int) -> None:
    """Compute the stored sums from n, Σ r and the transitions of every pair.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "y"))
    >>> e = belief.ledger.evidence
    >>> e.from_data[:] = 0
    >>> prepare(e, 2, 1)
    >>> e.from_data[:2]
    array([0., 1.])
    """
    # λ0 of one transition; prior A does not store it with the transitions.
    lambda0 = 0.0 if e.prior[DECLARED] > 0.0 else e.prior[LAMBDA0]
    for x in range(states):
        e.from_prior[x], e.from_data[x] = 0.0, 0.0
    for x in range(states):
        for a in range(actions):
            i = x * actions + a
            _prepare_pair(e, i)
            if lambda0 > 0.0 and offers(e, i) and e.known[i] == U0:
                e.from_prior[x] += 1.0
            for t in range(e.first[i], e.first[i] + e.known[i]):
                y = e.successor[t]
                e.weight[t] = lambda0 + e.prior[UNIT] * e.times[t]
                e.from_data[y] += e.times[t]
                if lambda0 > 0.0:
                    e.from_prior[y] += 1.0


@leaf
def add_state(e: Evidence, c: Chain, x: int, level: float) -> None:
    """Add the untried state x; its Q-values are `level` until the next sweep draws them.

    Before the call, set n = -1 for the actions that x does not offer. For declared states pass
    level = 0.

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
        if offers(e, i):
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
    """Add n transitions of pair i from state x to y, with Σ r = total and Σ (r - r̄)² = scatter.

    Return LEARNED, or FULL with nothing changed.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "y"))
    >>> e, c = belief.ledger.evidence, belief.ledger.chain
    >>> learn(e, c, 0, 0, 1, 1.0, 3.5, 0.0) == LEARNED
    True
    >>> float(e.times[0]), float(e.rewards[0]), float(e.scatter[0])
    (2.0, 6.0, 0.5)
    """
    t, end = e.first[i], e.first[i] + e.known[i]
    target = np.uint64(y)
    while t < end and e.successor[t] != target:
        t += U1
    lambda0 = 0.0 if e.prior[DECLARED] > 0.0 else e.prior[LAMBDA0]  # as in `prepare`
    future_change = e.prior[UNIT] * n * c.M[y]  # the change of Σ λ M
    if t == end:  # the first transition from this pair to y
        if e.known[i] == e.room[i]:
            return FULL
        e.successor[t], e.times[t], e.rewards[t] = target, 0.0, 0.0
        if lambda0 > 0.0:
            if e.known[i] == U0:  # remove the pseudo-transition to x itself
                e.from_prior[x] -= 1.0
                future_change -= lambda0 * c.M[x]
            e.from_prior[y] += 1.0
            future_change += lambda0 * c.M[y]
        e.known[i] += U1
    else:
        gap = total / n - e.rewards[t] / e.times[t]
        scatter += gap * gap * (n * e.times[t] / (n + e.times[t]))
    e.times[t] += n
    e.rewards[t] += total
    e.weight[t] = lambda0 + e.prior[UNIT] * e.times[t]
    e.from_data[y] += n
    e.n[i] += n
    e.r[i] += total
    e.scatter[i] += scatter
    s_before, pull_before = e.s[i], e.pull[i]
    _prepare_pair(e, i)
    s_change, pull_change = e.s[i] - s_before, e.pull[i] - pull_before
    a = i - x * c.Q.shape[1]
    c.scalars[TOTAL] += s_change
    c.scalars[PULL] += pull_change - s_change * c.Q[x, a] + future_change
    return LEARNED


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
# sums, which are recomputed once a round.
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


@leaf
def tally(e: Evidence, c: Chain, states: int) -> None:
    """Recompute Σ λ, Σ λ (μ - Q + M), Σ M and the number of pairs.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> belief = GibbsBelief(actions=1)
    >>> belief.observe("x", 0, (2.5, "y"))
    >>> c = belief.ledger.chain
    >>> before = c.scalars.copy()
    >>> tally(belief.ledger.evidence, c, 2)
    >>> bool((before == c.scalars).all())
    True
    """
    Q = c.Q.reshape(-1)
    total, pull, pairs = 0.0, 0.0, 0.0
    for i in range(np.uint64(states * c.Q.shape[1])):
        if offers(e, i):
            total += e.s[i]
            pull += e.pull[i] - e.s[i] * Q[i]
            pairs += 1.0
    future, level = 0.0, 0.0  # Σ λ M and Σ M
    for y in range(np.uint64(states)):
        inflow = e.prior[LAMBDA0] * e.from_prior[y] + e.prior[UNIT] * e.from_data[y]
        future += inflow * c.M[y]
        level += c.M[y]
    if e.prior[DECLARED] > 0.0:
        future += e.prior[LAMBDA0] * pairs * level
    c.scalars[PULL], c.scalars[TOTAL] = pull + future, total
    c.scalars[LEVEL], c.scalars[PAIRS] = level, pairs


@leaf
def draw_rho(c: Chain, rng_state: UIntArray) -> None:
    """Draw ρ given all Q."""
    total = c.scalars[TOTAL]
    spread = c.scalars[SIGMA] / math.sqrt(total)
    c.scalars[RHO] = c.scalars[PULL] / total + spread * normal(rng_state)


@leaf
def _draw_values(e: Evidence, c: Chain, first: int, end: int, rng_state: UIntArray) -> None:
    """For each state x from `first` to `end` - 1: draw Q(x,·) given ρ and M, and compute M(x).

    Updates the sums.
    """
    rho, sigma, lambda0 = c.scalars[RHO], c.scalars[SIGMA], e.prior[LAMBDA0]
    A = np.uint64(c.Q.shape[1])  # unsigned, see U0
    i = np.uint64(first) * A
    for x in range(np.uint64(first), np.uint64(end)):
        inflow = lambda0 * e.from_prior[x] + e.prior[UNIT] * e.from_data[x]
        # The prior's part of Σ_y λ(x,a,y) M(y), of every pair and of an untried one.
        from_all, from_itself = 0.0, lambda0 * c.M[x]
        if e.prior[DECLARED] > 0.0:
            from_all, from_itself = lambda0 * c.scalars[LEVEL], 0.0
            inflow += lambda0 * c.scalars[PAIRS]
        top, outflow = -math.inf, 0.0  # `outflow` is the change of Σ_a S(x,a) Q(x,a)
        for a in range(A):
            if offers(e, i):
                t, after = e.first[i], e.first[i] + e.known[i]
                future = from_all  # Σ_y λ(x,a,y) M(y)
                if t == after:  # an untried pair has a pseudo-transition to x itself
                    future += from_itself
                while t != after:
                    future += e.weight[t] * c.M[e.successor[t]]
                    t += U1
                noise = sigma * e.spread[i] * normal(rng_state)
                q = (e.pull[i] + future) * e.inverse[i] - rho + noise
                outflow += e.s[i] * (q - c.Q[x, a])
                c.Q[x, a] = q
                top = max(top, q)
            i += U1
        rise = top - c.M[x]
        c.M[x] = top
        c.scalars[LEVEL] += rise
        c.scalars[PULL] += inflow * rise - outflow


@leaf
def recentre(c: Chain, states: int) -> None:
    """Subtract M(0) from all Q and M, which fixes the free constant of Q.

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
    """Return Σ_{x,a,y} (ξ(x,a,y) - μ0)² of prior A, for N states.

    The sum is computed as Σ_{x,a} [N (Q(x,a) + ρ - μ0 - M̄)² + Σ_y (M(y) - M̄)²].
    """
    mean, scatter = c.scalars[LEVEL] / states, 0.0
    for y in range(np.uint64(states)):
        scatter += (c.M[y] - mean) ** 2
    squares: float = c.scalars[PAIRS] * scatter
    Q = c.Q.reshape(-1)
    for i in range(np.uint64(states * c.Q.shape[1])):
        if offers(e, i):
            squares += states * (Q[i] + c.scalars[RHO] - e.prior[MU0] - mean) ** 2
    return squares


@leaf
def draw_precision(
    e: Evidence, c: Chain, states: int, a0: float, b0: float, rng_state: UIntArray
) -> None:
    """Draw p and set σ = 1/√p.

        p ~ Gamma(a0 + ½ (Σ n + #ξ), b0 + ½ Σ (r - ξ)² + ½ λ0 Σ (ξ - μ0)²)

    #ξ is the number of ξ that have a prior: those of observed and pseudo-transitions (prior B), or
    all (prior A).

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> from bayescontrol.seeding import Stream
    >>> ledger = GibbsBelief(actions=1, states=["x"]).ledger
    >>> draw_precision(ledger.evidence, ledger.chain, 1, 1e6, 4e6, Stream(0).state)
    >>> round(float(ledger.chain.scalars[SIGMA]), 1)
    2.0
    """
    terms, squares, prior_squares = 0.0, 0.0, 0.0
    declared_states = e.prior[DECLARED]  # 0 for prior B
    i = np.uint64(0)
    for x in range(np.uint64(states)):
        for a in range(np.uint64(c.Q.shape[1])):
            if offers(e, i):
                base = c.Q[x, a] + c.scalars[RHO]
                first, end = e.first[i], e.first[i] + e.known[i]
                with_prior = max(float(e.known[i]), 1.0)  # of an untried pair: x -> x alone
                terms += e.n[i] + (declared_states if declared_states > 0.0 else with_prior)
                squares += e.scatter[i]
                if first == end:
                    prior_squares += (base - c.M[x] - e.prior[MU0]) ** 2
                for t in range(first, end):
                    xi = base - c.M[e.successor[t]]
                    squares += e.times[t] * (e.rewards[t] / e.times[t] - xi) ** 2
                    prior_squares += (xi - e.prior[MU0]) ** 2
            i += U1
    if declared_states > 0.0:
        prior_squares = _prior_squares(e, c, states)
    squares += e.prior[LAMBDA0] * prior_squares
    c.scalars[SIGMA] = math.sqrt((b0 + 0.5 * squares) / gamma(rng_state, a0 + 0.5 * terms))


@leaf
def best_action(e: Evidence, c: Chain, x: int) -> int:
    """Return arg max_a Q(x,a) over the actions that x offers; the first one in case of a tie.

    >>> from bayescontrol.mdp.gibbs import GibbsBelief
    >>> ledger = GibbsBelief(actions=3, states=["x"], allowed=lambda x: [0, 2]).ledger
    >>> ledger.chain.Q[0] = 1.0, 9.0, 2.0
    >>> best_action(ledger.evidence, ledger.chain, 0)
    2
    """
    actions = c.Q.shape[1]
    best = -1
    for a in range(actions):
        if offers(e, x * actions + a) and (best < 0 or c.Q[x, a] > c.Q[x, best]):
            best = a
    return best


@leaf
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
        first = int(c.scalars[CURSOR])
        if first == 0:
            tally(e, c, states)
        draw_rho(c, rng_state)
        end = states if is_full else min(first + settings.partial, states)
        _draw_values(e, c, first, end, rng_state)
        if x >= 0 and not first <= x < end:
            _draw_values(e, c, x, x + 1, rng_state)
        c.scalars[CURSOR] = end
        if end == states:
            c.scalars[CURSOR] = 0.0
            if settings.b0 > 0.0:
                draw_precision(e, c, states, settings.a0, settings.b0, rng_state)
                c.scalars[SIGMA] = min(c.scalars[SIGMA], settings.limit)
            if settings.recentre:
                recentre(c, states)


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

    >>> import numpy as np
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
    A = c.Q.shape[1]
    for s in range(t, actions.size):
        x = index_of[at]
        draw_mode(e, c, settings, known_states, x, p)
        if not math.isfinite(c.scalars[RHO]):
            return s, at, LOST
        a = best_action(e, c, x)
        actions[s] = a
        if tables.successor[tables.first[at * A + a]] < 0:  # see `mdp.Tables`
            return s, at, NOT_OFFERED
        entry = respond(tables, at, a, A, q)
        at, r = tables.successor[entry], tables.reward[entry]
        rows[s]["reward"], rows[s]["state"] = r, at
        y = index_of[at]  # -1 for a state that is new to the agent
        if y < 0 or learn(e, c, x, x * A + a, y, 1.0, r, 0.0) != LEARNED:
            return s, at, NOT_LEARNED
    return actions.size, at, DONE
