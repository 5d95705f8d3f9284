"""Linear scores whose prior scale, and noise if rewards have one, are learned.

    ratio      w_a ~ N(0, ρ² s² C⁻²),   ρ one of G numbers
    features   C = diag(c),   c_i = max |x_i| of all contexts so far, rounded up to a power of 2
    GAUSSIAN   r = x·w_a + s z,   p(s) ∝ 1/s,   P(ρ) ∝ ρ²
    LOGISTIC   P(r = 1) = σ(x·w_a),   s = 1,   all ρ equally likely

Given ρ, everything is relative to s: Λ = C²/ρ² + Σ x xᵀ. A reward r is predicted with mean m and
variance s² (1 + q). It leaves the standardised error e = (r - m) / √(1 + q), and

    S_ρ = Σ e²,   L_ρ = 2 ln ρ - ½ Σ ln(1 + q)    s² | ρ, past ~ InvGamma(n/2, S_ρ/2)
    P(ρ | past) ∝ exp(L_ρ) S_ρ^(-n/2)             LOGISTIC: exp(L_ρ)

Both are exact for GAUSSIAN. For LOGISTIC, L_ρ = Σ ln P(r | ρ, past) is as exact as the moments are.
A decision draws ρ, then s, then the scores. While all rewards are 0, or there are none, s is
unknown and an arm is drawn uniformly. Multiplying all rewards, or a feature, by a power of 2
changes no bit of a decision.

When c_i grows by the factor g, every arm learns that √(g² - 1) c_i w_i / ρ was observed to be 0:
with the old prior this is the new prior. So the posterior is a function of all contexts and
rewards, not of their order. A maximum changes rarely, and its growth never subtracts. LOGISTIC
learns the first rewards again, and freezes the scales after `FREEZE_AFTER` contexts; a feature that
was 0 in all of them gets its scale when it is first other than 0.

With GAUSSIAN a ratio whose probability falls below `NEGLIGIBLE` is dropped, p = 0, and costs
nothing. The posterior of any other ratio contains all rewards, as sufficient statistics,

    Σ x xᵀ = RᵀR - C²/ρ²       Σ r x = Rᵀz        Σ r² = S + Σ_a |z_a|²

so that a dropped ratio can return. `CHECK_EVERY` says when the neighbours of the others are tried.
"""

import math
from typing import NamedTuple

from bayescontrol._arrays import BoolArray, FloatArray, IntArray, UIntArray
from bayescontrol.kernels import regression
from bayescontrol.kernels._jit import inlined, leaf
from bayescontrol.kernels.elementary import exp, log
from bayescontrol.kernels.random import Streams, below, categorical, gamma
from bayescontrol.kernels.regression import GAUSSIAN, ContextWorld, absorb

#: A ratio with a smaller probability is dropped.
NEGLIGIBLE = 1e-6
#: Dropped ratios are tried again when the rewards have grown by this part, and by at least one for
#: each weight: then it costs less than a tenth of the updates.
CHECK_EVERY = 0.5
#: LOGISTIC: the number of contexts after which the scales of features are frozen.
FREEZE_AFTER = 50
#: A smaller feature counts as 0 for its scale, so that squares do not underflow.
TINY = 1e-50


class ScaledWeights(NamedTuple):
    """The posteriors of the weights for each ratio ρ, and what the rewards say about ρ and s."""

    #: The ratios, in increasing order.
    rho: FloatArray
    #: Factors (G, N, d, d) and targets (G, N, d), relative to s.
    R: FloatArray
    z: FloatArray
    #: S_ρ and L_ρ.
    S: FloatArray
    L: FloatArray
    #: The number of rewards n, and the n at which dropped ratios are tried.
    n: IntArray
    #: P(ρ | past); 0 if ρ is dropped.
    p: FloatArray
    #: Scratch for d numbers.
    v: FloatArray
    #: Scratch for Σ x xᵀ and Σ r x of every arm.
    A: FloatArray
    b: FloatArray
    #: c, the scale of every feature; -1, which counts as 1, until it was other than 0.
    c: FloatArray
    #: Whether the scale of a feature is learned; otherwise it is 1.
    learned: BoolArray
    #: LOGISTIC: the first `FREEZE_AFTER` rewards, as rows (arm, reward, context).
    events: FloatArray


@leaf
def log_weight(kind: int, fit: ScaledWeights, h: int, reference: int) -> float:
    """Return ln P(ρ_h | past), up to a constant that does not depend on h."""
    if kind == GAUSSIAN:
        return float(fit.L[h] - 0.5 * fit.n[0] * log(fit.S[h] / fit.S[reference]))
    return float(fit.L[h])


@leaf
def weigh(kind: int, fit: ScaledWeights) -> None:
    """Update P(ρ | past) in `fit.p`, and drop ratios.

    >>> import numpy as np
    >>> S, p, n, empty = np.array([1.0, 4.0]), np.ones(2), np.array([2, 9]), np.empty((2, 1))
    >>> fit = ScaledWeights(S, empty, empty, S, np.zeros(2), n, p, p, empty, empty, p, p > 0, empty)
    >>> weigh(GAUSSIAN, fit)
    >>> p.round(12)
    array([0.8, 0.2])
    """
    p = fit.p
    reference, largest, total, in_use = -1, -math.inf, 0.0, 0
    for h in range(p.size):
        if p[h] > 0.0 or kind != GAUSSIAN:
            in_use += 1
            reference = h if reference < 0 else reference
    if in_use == 1 or (kind == GAUSSIAN and not fit.S[reference] > 0.0):
        return
    for h in range(p.size):
        if p[h] > 0.0 or kind != GAUSSIAN:
            p[h] = log_weight(kind, fit, h, reference)
            largest = max(largest, p[h])
        else:
            p[h] = -math.inf
    for h in range(p.size):
        p[h] = exp(p[h] - largest) if p[h] > -math.inf else 0.0
        total += p[h]
    rest = total
    for h in range(p.size):
        if kind == GAUSSIAN and p[h] < NEGLIGIBLE * total:
            rest -= p[h]
            p[h] = 0.0
    for h in range(p.size):
        p[h] /= rest


@leaf
def statistics(fit: ScaledWeights, h: int) -> float:
    """Write Σ x xᵀ and Σ r x of every arm to `fit.A` and `fit.b`; return Σ r². GAUSSIAN only.

    They come from the posterior of the ratio ρ_h, which must not be dropped.
    """
    rho, R, z, c, A, b = fit.rho, fit.R, fit.z, fit.c, fit.A, fit.b
    squares = float(fit.S[h])
    for j in range(z.shape[1]):
        F = R[h, j]
        for i in range(z.shape[2]):
            b[j, i] = 0.0
            for m in range(i + 1):
                b[j, i] += F[m, i] * z[h, j, m]
            squares += z[h, j, i] * z[h, j, i]
            for k in range(i, z.shape[2]):
                total = 0.0
                for m in range(i + 1):
                    total += F[m, i] * F[m, k]
                A[j, i, k] = A[j, k, i] = total
            A[j, i, i] -= c[i] * c[i] / (rho[h] * rho[h])
    return squares


@leaf
def assemble(fit: ScaledWeights, h: int, squares: float) -> bool:
    """Compute the posterior of ρ_h from `fit.A`, `fit.b` and Σ r², which `statistics` returned.

    Return False, and leave `fit` without a posterior of ρ_h, if rounding errors prevent it.

    >>> import numpy as np
    >>> rho, n, p, d = np.array([0.5, 1.0]), np.array([0, 9]), np.ones(2), np.empty((1, 1))
    >>> R, z = np.array([2.0, 1.0]).reshape(2, 1, 1, 1), np.zeros((2, 1, 1))
    >>> fit = ScaledWeights(rho, R, z, 0.0 * p, np.log(rho**2), n, p, d[0], d[None].copy(),
    ...                     d.copy(), np.ones(1), np.ones(1, bool), d)
    >>> learn_reward(GAUSSIAN, fit, 0, np.ones(1), 2.0)
    >>> before = fit.S[1], fit.L[1], R[1].item(), z[1].item()
    >>> assemble(fit, 1, statistics(fit, 0))
    True
    >>> np.allclose(before, (fit.S[1], fit.L[1], R[1].item(), z[1].item()), rtol=1e-12)
    True
    """
    rho, R, z, S, L, c = fit.rho, fit.R, fit.z, fit.S, fit.L, fit.c
    v, A, b = fit.v, fit.A, fit.b
    S[h], L[h] = squares, 2.0 * log(rho[h])
    for j in range(z.shape[1]):
        for i in range(z.shape[2]):
            v[i] = A[j, i, i]
            A[j, i, i] += c[i] * c[i] / (rho[h] * rho[h])
        is_definite = regression.cholesky(A[j], R[h, j])
        for i in range(z.shape[2]):
            A[j, i, i] = v[i]
        if not is_definite:
            return False
        regression.score(R[h, j], z[h, j], b[j], v)  # v = R⁻ᵀ b = z
        for i in range(z.shape[2]):
            z[h, j, i] = v[i]
            S[h] -= v[i] * v[i]
            L[h] -= log(R[h, j, i, i] * rho[h] / abs(c[i]))
    return bool(S[h] > 0.0)


@leaf
def _try(fit: ScaledWeights, h: int, source: int, squares: float) -> None:
    """Let the dropped ratio ρ_h return if its probability is not negligible."""
    if assemble(fit, h, squares):
        log_ratio = log_weight(GAUSSIAN, fit, h, source) - fit.L[source]
        p = fit.p[source] * exp(min(log_ratio, 700.0))
        fit.p[h] = p if p >= NEGLIGIBLE else 0.0


@leaf
def try_dropped(fit: ScaledWeights) -> None:
    """Let dropped ratios return, from the neighbours of the others outwards; GAUSSIAN only."""
    p, source, dropped = fit.p, 0, 0
    for h in range(p.size):
        if p[h] > p[source]:
            source = h
        if p[h] == 0.0:
            dropped += 1
    fit.n[1] = fit.n[0] + max(int(CHECK_EVERY * fit.n[0]), fit.z.shape[1] * fit.z.shape[2])
    if dropped == 0:
        return
    squares = statistics(fit, source)
    for h in range(1, p.size):
        if p[h] == 0.0 and p[h - 1] > 0.0:
            _try(fit, h, source, squares)
    for h in range(p.size - 2, -1, -1):
        if p[h] == 0.0 and p[h + 1] > 0.0:
            _try(fit, h, source, squares)
    weigh(GAUSSIAN, fit)


@leaf
def grow_scale(kind: int, fit: ScaledWeights, i: int, new: float) -> None:
    """Change the scale of feature i to a larger one, or to its first, in the prior of all weights.

    >>> import numpy as np
    >>> one, n, R, z = np.ones(1), np.array([0, 9]), np.ones((1, 1, 1, 1)), np.zeros((1, 1, 1))
    >>> fit = ScaledWeights(one, R, z, 0.0 * one, 0.0 * one, n, one, np.empty(1), R[0].copy(),
    ...                     z[0].copy(), one.copy(), one > 0.0, z[0])
    >>> learn_reward(GAUSSIAN, fit, 0, np.ones(1), 2.0)
    >>> grow_scale(GAUSSIAN, fit, 0, 4.0)              # the precision 1 + 1² becomes 4² + 1²
    >>> round(R.item() ** 2, 12), fit.S.round(12), (fit.L * 2).round(12) == round(log(16 / 17), 12)
    (17.0, array([3.76470588]), array([ True]))
    """
    rho, R, z, S, L, p, c = fit.rho, fit.R, fit.z, fit.S, fit.L, fit.p, fit.c
    unit, growth = fit.b[0], new / c[i]
    for k in range(unit.size):
        unit[k] = 1.0 if k == i else 0.0
    for h in range(p.size):
        for j in range(z.shape[1]):
            if growth < 0.0:  # no context had this feature: its weights have the prior
                R[h, j, i, i] = new / rho[h]
            elif kind == GAUSSIAN and p[h] > 0.0:
                scale = math.sqrt(growth * growth - 1.0) * c[i] / rho[h]
                e, shrinkage = absorb(R[h, j], z[h, j], unit, scale, 0.0, fit.v)
                S[h] += e * e
                L[h] += log(shrinkage * growth)
    c[i] = new


@inlined
def learn_scales(kind: int, fit: ScaledWeights, x: FloatArray) -> bool:
    """Let the scales contain the context x; return whether that of a feature grew, not its first.

    Then the posteriors of LOGISTIC must be computed again.
    """
    c, grew = fit.c, False
    is_frozen = kind != GAUSSIAN and fit.n[0] >= FREEZE_AFTER
    for i in range(x.size):
        size = abs(x[i])
        if size > c[i] and size >= TINY and fit.learned[i] and (c[i] < 0.0 or not is_frozen):
            grew = grew or c[i] > 0.0
            part, exponent = math.frexp(size)
            grow_scale(kind, fit, i, math.ldexp(1.0, exponent - 1 if part == 0.5 else exponent))
    return grew


@inlined
def _learn_weights(kind: int, fit: ScaledWeights, j: int, x: FloatArray, r: float) -> None:
    """Update the weights of arm j, S and L, for every ρ in use."""
    R, z, S, L, p, v = fit.R, fit.z, fit.S, fit.L, fit.p, fit.v
    for h in range(p.size):
        if kind != GAUSSIAN:
            m, q = regression.score(R[h, j], z[h, j], x, v)
            L[h] += regression.log_predictive(kind, S, m, q, r)
            regression.learn(kind, S, R[h, j], z[h, j], x, r, v)
        elif p[h] > 0.0:
            e, shrinkage = absorb(R[h, j], z[h, j], x, 1.0, r, v)
            S[h] += e * e
            L[h] += log(shrinkage)


@leaf
def _replay(kind: int, fit: ScaledWeights) -> None:
    """Learn the first rewards again, in their order, with the scales of now; LOGISTIC only."""
    rho, R, z, L, p, c, events = fit.rho, fit.R, fit.z, fit.L, fit.p, fit.c, fit.events
    L[:], z[:], R[:] = 0.0, 0.0, 0.0
    for h in range(p.size):
        for j in range(z.shape[1]):
            for i in range(c.size):
                R[h, j, i, i] = abs(c[i]) / rho[h]
    for t in range(fit.n[0]):
        _learn_weights(kind, fit, int(events[t, 0]), events[t, 2:], events[t, 1])


@leaf
def learn_reward(kind: int, fit: ScaledWeights, j: int, x: FloatArray, r: float) -> None:
    """Update the weights of arm j for every ρ, and P(ρ | past), after reward r in context x.

    >>> import numpy as np
    >>> one, n, R, z = np.ones(1), np.array([0, 9]), np.ones((1, 1, 1, 1)), np.zeros((1, 1, 1))
    >>> fit = ScaledWeights(one, R, z, 0.0 * one, 0.0 * one, n, one, np.empty(1), R[0], z[0],
    ...                     one.copy(), one > 1.0, z[0])
    >>> learn_reward(GAUSSIAN, fit, 0, np.ones(1), 2.0)
    >>> fit.S.round(12), fit.L.round(12), fit.n[0]       # 2²/(1 + 1) and -½ ln(1 + 1)
    (array([2.]), array([-0.34657359]), np.int64(1))
    """
    n, events = fit.n, fit.events
    if learn_scales(kind, fit, x) and kind != GAUSSIAN:
        _replay(kind, fit)
    _learn_weights(kind, fit, j, x, r)
    if kind != GAUSSIAN and n[0] < FREEZE_AFTER:
        events[n[0], 0], events[n[0], 1] = j, r
        for i in range(x.size):
            events[n[0], 2 + i] = x[i]
    n[0] += 1
    weigh(kind, fit)
    if kind == GAUSSIAN and n[0] >= n[1]:
        try_dropped(fit)


@leaf
def learn_totals(
    fit: ScaledWeights, j: int, x: FloatArray, n: int, total: float, squares: float
) -> None:
    """Learn n rewards of arm j in the context x, with their sum and sum of squares; GAUSSIAN only.

    They are like one reward total/√n in the context √n x, and n - 1 that only add to S

        Σ (r - total/n)² = squares - total²/n

    >>> import numpy as np
    >>> one, n, R, z = np.ones(1), np.array([0, 9]), np.ones((1, 1, 1, 1)), np.zeros((1, 1, 1))
    >>> fit = ScaledWeights(one, R, z, 0.0 * one, 0.0 * one, n, one, np.empty(1), R[0],
    ...                     z[0].copy(), one.copy(), one > 1.0, z[0])
    >>> learn_totals(fit, 0, np.ones(1), 3, 6.0, 14.0)   # the rewards 1, 2 and 3
    >>> fit.S.round(12), round(R.item(), 12), round(z.item(), 12), fit.n[0]    # 14 - 6²/4
    (array([5.]), 2.0, 3.0, np.int64(3))
    """
    learn_scales(GAUSSIAN, fit, x)
    root, scaled = math.sqrt(n), fit.b[0]
    for i in range(x.size):
        scaled[i] = root * x[i]
    _learn_weights(GAUSSIAN, fit, j, scaled, total / root)
    for h in range(fit.p.size):
        if fit.p[h] > 0.0:
            fit.S[h] += max(squares - total * (total / n), 0.0)
    fit.n[0] += n
    weigh(GAUSSIAN, fit)
    if fit.n[0] >= fit.n[1]:
        try_dropped(fit)


@inlined
def is_scale_known(fit: ScaledWeights) -> bool:
    """Whether a reward other than 0 was learned; then every S_ρ in use is positive."""
    known = False
    for h in range(fit.S.size):
        known = known or fit.S[h] > 0.0
    return known


@inlined
def draw_scale(kind: int, fit: ScaledWeights, rng_state: UIntArray) -> tuple[int, float]:
    """Draw the number of ρ and s from their posterior; s is 0 if nothing is known about it.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> one, empty, n = np.ones(1), np.empty((1, 1)), np.array([10**8, 0])
    >>> fit = ScaledWeights(one, empty, empty, 4e8 * one, one, n, one, one, empty, empty, one,
    ...                     one > 0, empty)
    >>> h, s = draw_scale(GAUSSIAN, fit, Stream(1).state)
    >>> h, round(s, 3)
    (0, 2.0)
    """
    if kind == GAUSSIAN and not is_scale_known(fit):
        return 0, 0.0
    h = categorical(rng_state, fit.p)
    if kind == GAUSSIAN:
        return h, math.sqrt(0.5 * fit.S[h] / gamma(rng_state, 0.5 * fit.n[0]))
    return h, 1.0


@leaf
def draw_arm(
    kind: int, fit: ScaledWeights, active: IntArray, x: FloatArray, rng_state: UIntArray,
    spread: float = 1.0,
) -> int:  # fmt: skip
    """Draw ρ, s and the scores of the active arms; return the arm with the largest score.

    The standard deviations of the scores given ρ and s are multiplied by `spread`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> R, z, one, n = np.ones((1, 2, 1, 1)), np.zeros((1, 2, 1)), np.ones(1), np.array([0, 9])
    >>> fit = ScaledWeights(one, R, z, 0.0 * one, 0.0 * one, n, one, np.empty(1), R[0], z[0],
    ...                     one.copy(), one > 1.0, z[0])
    >>> learn_reward(GAUSSIAN, fit, 1, 100.0 * one, 5.0)
    >>> draw_arm(GAUSSIAN, fit, np.arange(2), 0.0 * one, Stream(1).state) in (0, 1)
    True
    """
    h, s = draw_scale(kind, fit, rng_state)
    if s == 0.0:
        return int(active[below(rng_state, active.size)])
    return regression.draw_action(fit.R[h], fit.z[h], active, x, fit.v, rng_state, s * spread)


@leaf
def interact(
    kind: int, constants: FloatArray, fit: ScaledWeights, active: IntArray, x: FloatArray,
    world: ContextWorld, streams: Streams, actions: IntArray, rewards: FloatArray,
    contexts: FloatArray, spread: float = 1.0,
) -> None:  # fmt: skip
    """Run the control rule with contexts, in a world whose link is (kind, constants).

    The columns and x are those of `regression.interact`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> R, z, truth = np.ones((1, 2, 1, 1)), np.zeros((1, 2, 1)), np.array([[1.0], [-1.0]])
    >>> one, n = np.ones(1), np.array([0, 100])
    >>> fit = ScaledWeights(one, R, z, 0.0 * one, 0.0 * one, n, one, np.empty(1), R[0], z[0],
    ...                     one.copy(), one > 1.0, z[0])
    >>> actions, rewards, contexts = np.empty(99, np.int64), np.empty(99), np.empty((99, 1))
    >>> world, streams = ContextWorld(truth, 0, np.zeros(1)), (Stream(1).state, Stream(2).state)
    >>> interact(GAUSSIAN, np.array([0.1]), fit, np.arange(2), np.zeros(1), world,
    ...          Streams(*streams), actions, rewards, contexts)
    >>> bool(rewards.mean() > 0.5)
    True
    """
    truth, source, y = world
    p, q = streams
    for t in range(actions.size):
        a = draw_arm(kind, fit, active, x, p, spread)
        r = regression.respond(kind, constants, truth[a], y, q)
        regression.draw_context(source, y, q)
        learn_reward(kind, fit, a, x, r)
        actions[t], rewards[t] = a, r
        for i in range(y.size):
            x[i] = y[i]
            contexts[t, i] = y[i]
