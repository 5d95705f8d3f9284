"""Independent arms with conjugate priors: a row of parameters for each arm.

    kind           reward of an arm            posterior row              mean reward drawn
    BERNOULLI      1 with probability m        α, β                       m ~ Beta(α, β)
    GAUSSIAN       m + σ z                     μ, λ                       m ~ N(μ, 1/λ)
    NORMAL_GAMMA   m + z/√τ                    μ, κ, α, β                 τ ~ Gamma(α)/β, then
                                                                         m ~ N(μ, 1/(κ τ))
    POISSON        Poisson(m)                  a, b                       m ~ Gamma(a)/b
    EXPONENTIAL    m e,  e exponential         a, b                       m ~ b/Gamma(a)
    CATEGORICAL    v_k with probability p_k    α_1 … α_K                  Σ v_k G_k / Σ G_k

`constants` holds the known constants of a family: σ, or the values v_k. A family is a number,
because Numba cannot cache a kernel that takes another as an argument.

The action is the arm with the largest m. With tiny parameters m is often 1.0, 0.0 or ∞ as a double,
or a gamma underflows: then the doubles are equal or in the wrong order, which would change P(a). So
if an arm has a shape below ½ or a rate near the limits of doubles, all arms are compared on a
logarithmic scale, with the same random numbers:

    BERNOULLI      ln m/(1 - m) = ln G_α - ln G_β        with ln G_a = ln G_(a+1) - E/a if a < 1
    POISSON        ln m = ln G_a - ln b
    EXPONENTIAL    ln m = ln b - ln G_a

Otherwise doubles are compared. Two are equal with probability about 1e-16 (times the larger of α
and β for a Bernoulli arm); then `largest_mean` chooses uniformly. Gaussian and
categorical arms are compared as doubles for all parameters.
"""

import math

from bayescontrol._arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.counts import poisson
from bayescontrol.kernels.elementary import (
    HALF_LOG_2PI,
    exp,
    log,
    log_gamma_function,
    log_one_plus,
)
from bayescontrol.kernels.random import (
    LOG_UNIT,
    beta,
    categorical,
    exponential,
    gamma,
    log_gamma,
    log_odds,
    normal,
    uniform,
)

#: The families.
BERNOULLI, GAUSSIAN, NORMAL_GAMMA, POISSON, EXPONENTIAL, CATEGORICAL = range(6)

#: Arms with a smaller shape, or a rate outside this range, are compared by logarithms.
MIN_SHAPE, MIN_RATE, MAX_RATE = 0.5, 1e-280, 1e280
#: If all α are smaller than this, even the largest of a few gammas can underflow.
SMALL_ALPHA = 0.1


@leaf
def _draw_near_corners(values: FloatArray, row: FloatArray, rng_state: UIntArray) -> float:
    """Draw Σ v_k G_k / Σ G_k if every α_k is small, so that each G_k can underflow.

    Uses ln G_k = ln gamma(α_k + 1) - E/α_k. The logarithms are multiplied by the smallest α, so
    that they fit into a double. The sums are relative to the largest G so far.
    """
    alpha = row[0]  # becomes the smallest α
    for k in range(1, values.size):
        alpha = min(alpha, row[k])
    largest, total, weighted = -math.inf, 0.0, 0.0
    for k in range(values.size):
        x = alpha * log(gamma(rng_state, row[k] + 1.0)) - exponential(rng_state) * (alpha / row[k])
        if x > largest:
            rescale = exp((largest - x) / alpha)
            largest, total, weighted = x, total * rescale + 1.0, weighted * rescale + values[k]
        else:
            g = exp((x - largest) / alpha)
            total += g
            weighted += values[k] * g
    return weighted / total


@leaf
def _draw_categorical(values: FloatArray, row: FloatArray, rng_state: UIntArray) -> float:
    """Draw Σ v_k G_k / Σ G_k, the mean of a categorical arm."""
    largest = row[0]
    for k in range(1, values.size):
        largest = max(largest, row[k])
    if largest < SMALL_ALPHA:
        return _draw_near_corners(values, row, rng_state)
    total, weighted = 0.0, 0.0
    for k in range(values.size):
        g = gamma(rng_state, row[k])
        total += g
        weighted += values[k] * g
    return weighted / total


@leaf
def draw(kind: int, constants: FloatArray, row: FloatArray, rng_state: UIntArray) -> float:
    """Draw the mean reward of one arm from its posterior row.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> 0 < draw(BERNOULLI, np.empty(0), np.array([1.0, 1.0]), Stream(1).state) < 1
    True
    """
    if kind == BERNOULLI:
        return beta(rng_state, row[0], row[1])
    if kind == GAUSSIAN:
        return float(row[0] + normal(rng_state) / math.sqrt(row[1]))
    if kind == NORMAL_GAMMA:
        tau = gamma(rng_state, row[2]) / row[3]
        return float(row[0] + normal(rng_state) / math.sqrt(row[1] * tau))
    if kind == POISSON:
        return float(gamma(rng_state, row[0]) / row[1])
    if kind == EXPONENTIAL:
        return float(row[1] / gamma(rng_state, row[0]))
    return _draw_categorical(constants, row, rng_state)


@leaf
def learn(kind: int, constants: FloatArray, row: FloatArray, r: float) -> None:
    """Update the posterior row with reward r, in place: Bayes' rule for a conjugate family.

    >>> import numpy as np
    >>> row = np.array([1.0, 1.0])
    >>> learn(BERNOULLI, np.empty(0), row, 1.0)
    >>> row
    array([2., 1.])
    """
    if kind == BERNOULLI:
        row[0] += r
        row[1] += 1.0 - r
    elif kind == GAUSSIAN:
        tau = 1.0 / (constants[0] * constants[0])
        row[1] += tau
        row[0] += tau * (r - row[0]) / row[1]
    elif kind == NORMAL_GAMMA:
        surprise = r - row[0]
        row[3] += 0.5 * row[1] * surprise * surprise / (row[1] + 1.0)
        row[0] += surprise / (row[1] + 1.0)
        row[1] += 1.0
        row[2] += 0.5
    elif kind == POISSON:
        row[0] += r
        row[1] += 1.0
    elif kind == EXPONENTIAL:
        row[0] += 1.0
        row[1] += r
    else:
        for k in range(constants.size):
            if constants[k] == r:
                row[k] += 1.0


@leaf
def log_predictive(kind: int, constants: FloatArray, row: FloatArray, r: float) -> float:
    """Return ln P(r | row), the probability or density of the arm's next reward.

    BERNOULLI and CATEGORICAL: α_r / Σ α. GAUSSIAN: N(μ, σ² + 1/λ). NORMAL_GAMMA: Student's t with
    2α degrees of freedom, location μ and squared scale β (κ + 1)/ακ. POISSON: negative binomial.
    EXPONENTIAL: a bᵃ / (b + r)^(a + 1), a Lomax distribution.

    >>> import numpy as np
    >>> round(exp(log_predictive(BERNOULLI, np.empty(0), np.array([3.0, 1.0]), 1.0)), 12)
    0.75
    """
    if kind == BERNOULLI:
        return log(row[0] if r > 0.5 else row[1]) - log(row[0] + row[1])
    if kind == GAUSSIAN:
        scale = math.hypot(constants[0], 1.0 / math.sqrt(row[1]))
        z = (r - row[0]) / scale
        return float(-0.5 * z * z - log(scale) - HALF_LOG_2PI)
    if kind == NORMAL_GAMMA:
        width = 2.0 * row[3] * (1.0 + 1.0 / row[1])  # scale² times degrees of freedom
        z = (r - row[0]) / math.sqrt(width)
        ratio = log_gamma_function(row[2] + 0.5) - log_gamma_function(row[2])
        return float(ratio - 0.5 * log(math.pi * width) - (row[2] + 0.5) * log_one_plus(z * z))
    if kind == POISSON:
        a, b = row[0], row[1]
        ratio = log_gamma_function(a + r) - log_gamma_function(a) - log_gamma_function(r + 1.0)
        return float(ratio - a * log_one_plus(1.0 / b) - r * log_one_plus(b))
    if kind == EXPONENTIAL:
        a, b = row[0], row[1]
        return float(log(a) - log(b + r) - a * log_one_plus(r / b))
    total, alpha = 0.0, 0.0
    for k in range(constants.size):
        total += row[k]
        if constants[k] == r:
            alpha = row[k]
    return log(alpha) - log(total)


@leaf
def respond(kind: int, constants: FloatArray, truth: FloatArray, rng_state: UIntArray) -> float:
    """Draw a reward of an arm whose true parameters are `truth`.

    `truth` is m; for NORMAL_GAMMA m and the standard deviation; for CATEGORICAL the p_k.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> respond(BERNOULLI, np.empty(0), np.array([1.0]), Stream(1).state)
    1.0
    """
    if kind == BERNOULLI:
        return 1.0 if uniform(rng_state) < truth[0] else 0.0
    if kind == GAUSSIAN:
        return float(truth[0] + constants[0] * normal(rng_state))
    if kind == NORMAL_GAMMA:
        return float(truth[0] + truth[1] * normal(rng_state))
    if kind == POISSON:
        return poisson(rng_state, truth[0])
    if kind == EXPONENTIAL:
        return float(truth[0] * exponential(rng_state))
    return float(constants[categorical(rng_state, truth)])


@leaf
def log_mean(kind: int, row: FloatArray, rng_state: UIntArray) -> float:
    """Draw m as `draw` does, and return LOG_UNIT · ln m.

    For a Bernoulli arm return LOG_UNIT · ln m/(1 - m). Only for Bernoulli, Poisson and exponential
    arms.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> row = np.array([1e-5, 1.0])
    >>> draw(POISSON, np.empty(0), row, Stream(1).state)
    0.0
    >>> log_mean(POISSON, row, Stream(1).state) / LOG_UNIT
    -40407.252...
    """
    if kind == BERNOULLI:
        return log_odds(rng_state, row[0], row[1])
    x = log_gamma(rng_state, row[0]) - LOG_UNIT * log(row[1])
    return x if kind == POISSON else -x


@leaf
def needs_logs(kind: int, rows: FloatArray, active: IntArray) -> bool:
    """Return whether an active arm has parameters for which doubles cannot distinguish means.

    Learning never makes a parameter smaller, so a False result stays False.

    >>> import numpy as np
    >>> rows = np.array([[1.0, 1.0], [0.1, 1.0]])
    >>> needs_logs(BERNOULLI, rows, np.arange(1)), needs_logs(BERNOULLI, rows, np.arange(2))
    (False, True)
    """
    if kind == BERNOULLI:
        for k in range(active.size):
            if min(rows[active[k], 0], rows[active[k], 1]) < MIN_SHAPE:
                return True
    elif kind in (POISSON, EXPONENTIAL):
        for k in range(active.size):
            shape, rate = rows[active[k], 0], rows[active[k], 1]
            if shape < MIN_SHAPE or not MIN_RATE < rate < MAX_RATE:
                return True
    return False


@leaf
def largest_mean(
    kind: int,
    constants: FloatArray,
    rows: FloatArray,
    active: IntArray,
    drawn: FloatArray,
    rng_state: UIntArray,
) -> int:
    """Draw m_j of each active arm into `drawn`; return arg max_j m_j, ties broken uniformly.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> rows, drawn = np.array([[1.0, 99.0], [99.0, 1.0]]), np.empty(2)
    >>> largest_mean(BERNOULLI, np.empty(0), rows, np.arange(2), drawn, Stream(1).state)
    1
    """
    best, ties = active[0], 1
    drawn[best] = draw(kind, constants, rows[best], rng_state)
    for k in range(1, active.size):
        j = active[k]
        drawn[j] = draw(kind, constants, rows[j], rng_state)
        if drawn[j] > drawn[best]:
            best, ties = j, 1
        elif drawn[j] == drawn[best]:
            ties += 1
            if uniform(rng_state) * ties < 1.0:
                best = j
    return int(best)


@leaf
def _largest_log(kind: int, rows: FloatArray, active: IntArray, rng_state: UIntArray) -> int:
    """Draw `log_mean` of each active arm; return the arm with the largest."""
    best, largest = active[0], log_mean(kind, rows[active[0]], rng_state)
    for k in range(1, active.size):
        x = log_mean(kind, rows[active[k]], rng_state)
        if x > largest:
            best, largest = active[k], x
    return int(best)


@leaf
def draw_action(
    kind: int,
    constants: FloatArray,
    rows: FloatArray,
    active: IntArray,
    drawn: FloatArray,
    rng_state: UIntArray,
) -> int:
    """Draw m_j of each active arm; return arg max_j m_j. `drawn` is scratch for the m_j.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> rows, drawn = np.array([[2.0, 1e-3], [2.0, 1e-5]]), np.empty(2)
    >>> draw_action(BERNOULLI, np.empty(0), rows, np.arange(2), drawn, Stream(1).state)
    1
    """
    if needs_logs(kind, rows, active):
        return _largest_log(kind, rows, active, rng_state)
    return largest_mean(kind, constants, rows, active, drawn, rng_state)


@leaf
def draw_logs(
    kind: int,
    constants: FloatArray,
    rows: FloatArray,
    active: IntArray,
    drawn: FloatArray,
    logs: FloatArray,
    rng_state: UIntArray,
) -> None:
    """Write m of the active arms to `drawn`, and `log_mean` of the same m to `logs`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> rows, (drawn, logs) = np.array([[2.0, 1e-3], [2.0, 1e-3]]), np.empty((2, 2))
    >>> draw_logs(BERNOULLI, np.empty(0), rows, np.arange(2), drawn, logs, Stream(1).state)
    >>> drawn, bool(logs[0] > logs[1])
    (array([1., 1.]), True)
    """
    s0, s1, s2, s3 = rng_state[0], rng_state[1], rng_state[2], rng_state[3]
    for k in range(active.size):
        drawn[active[k]] = draw(kind, constants, rows[active[k]], rng_state)
    rng_state[0], rng_state[1], rng_state[2], rng_state[3] = s0, s1, s2, s3
    # The generator is back at its first state: the logarithms use the same random numbers.
    for k in range(active.size):
        logs[active[k]] = log_mean(kind, rows[active[k]], rng_state)


@leaf
def interact(
    kind: int,
    constants: FloatArray,
    rows: FloatArray,
    active: IntArray,
    drawn: FloatArray,
    truth: FloatArray,
    p: UIntArray,
    q: UIntArray,
    actions: IntArray,
    rewards: FloatArray,
) -> None:
    """Run the control rule over independent arms; fill `actions` and `rewards`.

    >>> import numpy as np
    >>> from bayescontrol.seeding import Stream
    >>> rows, truth, drawn = np.ones((2, 2)), np.array([[0.0], [1.0]]), np.empty(2)
    >>> actions, rewards = np.empty(50, np.int64), np.empty(50)
    >>> interact(BERNOULLI, np.empty(0), rows, np.arange(2), drawn, truth,
    ...          Stream(1).state, Stream(2).state, actions, rewards)
    >>> bool((rewards == actions).all())
    True
    """
    by_doubles = not needs_logs(kind, rows, active)
    for t in range(actions.size):
        if by_doubles:
            a = largest_mean(kind, constants, rows, active, drawn, p)
        else:
            a = draw_action(kind, constants, rows, active, drawn, p)
        r = respond(kind, constants, truth[a], q)
        learn(kind, constants, rows[a], r)
        actions[t], rewards[t] = a, r
