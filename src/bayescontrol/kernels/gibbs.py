"""The Gibbs sampler of the MDP agent, as the paper's appendix derives it.

    ρ      ~ N( (1/S) Σ λ(x,a,y) (μ(x,a,y) - Q(x,a) + M(y)), σ²/S ),            S = Σ λ(x,a,y)
    Q(x,a) ~ N( (1/S(x,a)) Σ_y λ(x,a,y) (μ(x,a,y) - ρ + M(y)), σ²/S(x,a) ),   S(x,a) = Σ_y λ(x,a,y)
    M(x)   = max_a Q(x,a): held fixed while Q(x,·) is drawn, refreshed after it
    λ(x,a,y) = λ0 + p n(x,a,y)            λ μ (x,a,y) = λ0 μ0 + p Σ r(x,a,y)            σ = 1

ρ first, then the states in order. Kept ready for each pair (x,a): 1/S, 1/√S and Σ_y λ μ; for each
transition seen: λ, beside its successor. ρ's conditional needs no pass over transitions, since
Σ λ(x,a,y) M(y) = Σ_y M(y) Σ_{x,a} λ(x,a,y): what flows into each state is counted.

    prior B    only transitions seen have a prior; an untried pair has one pseudo-transition
               onto its own state
    prior A    every declared state is a successor of every pair: their λ0 enter together, as
               λ0 Σ_y M(y), and λ stands for p n alone

Where the precision is unknown, λ = λ0 + n and σ² = 1/p is drawn too (normal-gamma).

ξ does not change under Q -> Q + c, so the chain drifts along c. A sweep commutes with the shift,
and `recentre` takes it out without touching actions or ρ.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol.arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.random import gamma, normal

__all__ = [
    "FULL",
    "LEARNT",
    "Chain",
    "Evidence",
    "add_state",
    "best_action",
    "draw_mode",
    "draw_precision",
    "learn",
    "prepare_pair",
    "recentre",
    "sweep",
]

#: What `learn` says: done, or no room for another transition of that pair.
LEARNT, FULL = 0, 1


class Evidence(NamedTuple):
    """What was seen, and what a sweep needs of it. Pair i = x A + a; t is a transition."""

    #: [μ0, λ0, weight of an observation, number of declared states (0: prior B)]
    prior: FloatArray
    #: Per pair: transitions n(x,a), Σ r and Σ r²; n = -1 for an action that x has not.
    n: FloatArray
    r: FloatArray
    r2: FloatArray
    #: Per pair: S (0 for an action that x has not), 1/S, 1/√S and Σ_y λ μ.
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
    count: FloatArray
    rewards: FloatArray
    #: Per state: pairs (x,a) with a prior on the way here, and transitions n(·,·,y).
    from_prior: FloatArray
    from_data: FloatArray


class Chain(NamedTuple):
    """The state of the sampler: Q[x,a], M[x] = max_a Q[x,a], and [ρ, σ]."""

    Q: FloatArray
    M: FloatArray
    scalars: FloatArray


MU0, LAMBDA0, UNIT, DECLARED = 0, 1, 2, 3
RHO, SIGMA = 0, 1
# Unsigned places: a signed one might count from the end, and asking costs a third of a sweep.
U0, U1 = np.uint64(0), np.uint64(1)


@leaf
def prepare_pair(e: Evidence, i: int) -> None:
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
def add_state(e: Evidence, c: Chain, x: int, level: float) -> None:
    """State x enters, untried; its Q-values stand at `level` until the next sweep draws them.

    Actions that x has not are marked by n = -1 beforehand.
    """
    actions = c.Q.shape[1]
    e.from_prior[x], e.from_data[x] = 0.0, 0.0
    for a in range(actions):
        i = x * actions + a
        prepare_pair(e, i)
        c.Q[x, a] = level
        if e.s[i] > 0.0 and e.prior[DECLARED] == 0.0:
            e.from_prior[x] += 1.0
    c.M[x] = level


@leaf
def learn(e: Evidence, x: int, i: int, y: int, r: float) -> int:
    """Pair i of state x has led to y and paid r: LEARNT, or FULL and nothing done."""
    here, end = e.first[i], e.first[i] + e.known[i]
    target = np.uint64(y)
    while here < end and e.successor[here] != target:
        here += U1
    prior = 0.0 if e.prior[DECLARED] > 0.0 else e.prior[LAMBDA0]
    if here == end:
        if e.known[i] == e.room[i]:
            return FULL
        e.successor[here], e.count[here], e.rewards[here] = target, 0.0, 0.0
        if prior > 0.0:
            if e.known[i] == U0:  # the pseudo-transition onto x itself is over
                e.from_prior[x] -= 1.0
            e.from_prior[y] += 1.0
        e.known[i] += U1
    e.count[here] += 1.0
    e.rewards[here] += r
    e.weight[here] = prior + e.prior[UNIT] * e.count[here]
    e.from_data[y] += 1.0
    e.n[i] += 1.0
    e.r[i] += r
    e.r2[i] += r * r
    prepare_pair(e, i)
    return LEARNT


@leaf
def _draw_rho(e: Evidence, c: Chain, states: int, state: UIntArray) -> float:
    """ρ given all Q."""
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
    return (pull + into) / total + c.scalars[SIGMA] / math.sqrt(total) * normal(state)


@leaf
def _draw_state(e: Evidence, c: Chain, x: int, level: float, state: UIntArray) -> float:
    """Q(x,·) given ρ and M, then M(x). `level` is Σ_y M(y), of use to prior A; gives the new one."""
    rho, sigma = c.scalars[RHO], c.scalars[SIGMA]
    from_all = e.prior[LAMBDA0] * level if e.prior[DECLARED] > 0.0 else 0.0
    from_itself = 0.0 if e.prior[DECLARED] > 0.0 else e.prior[LAMBDA0] * c.M[x]
    top = -math.inf
    i = np.uint64(x * c.Q.shape[1])
    for a in range(np.uint64(c.Q.shape[1])):
        if e.s[i] > 0.0:
            here, end = e.first[i], e.first[i] + e.known[i]
            into = from_all if here < end else from_all + from_itself
            for t in range(here, end):
                into += e.weight[t] * c.M[e.successor[t]]
            q = (e.pull[i] + into) * e.inverse[i] - rho + sigma * e.spread[i] * normal(state)
            c.Q[x, a] = q
            top = max(top, q)
        i += U1
    level += top - c.M[x]
    c.M[x] = top
    return level


@leaf
def _level(e: Evidence, c: Chain, states: int) -> float:
    """Σ_y M(y), where prior A needs it."""
    level = 0.0
    if e.prior[DECLARED] > 0.0:
        for y in range(states):
            level += c.M[y]
    return level


@leaf
def sweep(e: Evidence, c: Chain, states: int, first: int, count: int, state: UIntArray) -> None:
    """ρ, then `count` states in cyclic order from `first` on; all of them are one full sweep."""
    c.scalars[RHO] = _draw_rho(e, c, states, state)
    level = _level(e, c, states)
    x, n = np.uint64(first), np.uint64(states)
    for _ in range(count):
        level = _draw_state(e, c, x, level, state)
        x += U1
        if x == n:
            x = U0


@leaf
def recentre(c: Chain, states: int) -> None:
    """Q -> Q - M(0): the gauge is taken out."""
    shift = c.M[0]
    for x in range(states):
        c.M[x] -= shift
    Q = c.Q.reshape(-1)
    for i in range(states * c.Q.shape[1]):
        Q[i] -= shift


@leaf
def draw_precision(
    e: Evidence, c: Chain, states: int, a0: float, b0: float, state: UIntArray
) -> None:
    """p ~ Gamma(a0 + ½ #terms, b0 + ½ Σ n (r - ξ)² + ½ λ0 Σ (ξ - μ0)²), σ = 1/√p (prior B)."""
    terms, squares = 0.0, 0.0
    i = U0
    for x in range(np.uint64(states)):
        for a in range(np.uint64(c.Q.shape[1])):
            if e.s[i] > 0.0:
                base = c.Q[x, a] + c.scalars[RHO]
                here, end = e.first[i], e.first[i] + e.known[i]
                if here == end:
                    terms += 1.0
                    squares += e.prior[LAMBDA0] * (base - c.M[x] - e.prior[MU0]) ** 2
                else:
                    terms += e.n[i] + float(e.known[i])
                    squares += e.r2[i]
                for t in range(here, end):
                    xi = base - c.M[e.successor[t]]
                    squares += xi * (e.count[t] * xi - 2.0 * e.rewards[t])
                    squares += e.prior[LAMBDA0] * (xi - e.prior[MU0]) ** 2
            i += U1
    p = gamma(state, a0 + 0.5 * terms) / (b0 + 0.5 * max(squares, 0.0))
    c.scalars[SIGMA] = 1.0 / math.sqrt(p)


@leaf
def best_action(e: Evidence, c: Chain, x: int) -> int:
    """arg max_a Q(x,a) over the actions that x has."""
    actions = c.Q.shape[1]
    best = -1
    for a in range(actions):
        if e.s[x * actions + a] > 0.0 and (best < 0 or c.Q[x, a] > c.Q[x, best]):
            best = a
    return best


# What a step does: [full sweeps, states of a partial sweep (0: all), recentre, a0, b0 (0: p known)]
SWEEPS, PARTIAL, RECENTRE, A0, B0 = 0, 1, 2, 3, 4


@leaf
def draw_mode(
    e: Evidence, c: Chain, how: FloatArray, states: int, cursor: int, x: int, state: UIntArray
) -> int:
    """A new (Q, ρ) as `how` says, the state x of now included; gives where to go on next time.

    A partial sweep draws ρ, then so many states in cyclic order, then x (-1: none).
    """
    partial = int(how[PARTIAL])
    for _ in range(int(how[SWEEPS])):
        if partial == 0 or partial >= states:
            sweep(e, c, states, 0, states, state)
        else:
            cursor = cursor if cursor < states else 0
            sweep(e, c, states, cursor, partial, state)
            cursor = (cursor + partial) % states
            if x >= 0:
                _draw_state(e, c, x, _level(e, c, states), state)
        if how[B0] > 0.0:
            draw_precision(e, c, states, how[A0], how[B0], state)
        if how[RECENTRE] > 0.0:
            recentre(c, states)
    return cursor
