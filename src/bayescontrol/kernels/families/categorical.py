"""Rewards v_k with probability p_k, and p ~ Dirichlet(α_1 … α_K). A row is (α_1, …, α_K).

    learn      α_k ← α_k + 1 if r = v_k
    predict    P(v_k) = α_k / Σ α
    mean       m = Σ v_k G_k / Σ G_k with G_k ~ Gamma(α_k)

`constants` are the values v_k.
"""

import math

from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import inlined, leaf
from bayescontrol.kernels.elementary import exp, log
from bayescontrol.kernels.random import categorical, exponential, gamma

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
def draw(constants: FloatArray, row: FloatArray, rng_state: UIntArray) -> float:
    """Draw Σ v_k G_k / Σ G_k, the mean of a categorical arm."""
    largest = row[0]
    for k in range(1, constants.size):
        largest = max(largest, row[k])
    if largest < SMALL_ALPHA:
        return _draw_near_corners(constants, row, rng_state)
    total, weighted = 0.0, 0.0
    for k in range(constants.size):
        g = gamma(rng_state, row[k])
        total += g
        weighted += constants[k] * g
    return weighted / total


@inlined
def learn(constants: FloatArray, row: FloatArray, r: float) -> None:
    """Count the value."""
    for k in range(constants.size):
        if constants[k] == r:
            row[k] += 1.0


@inlined
def log_predictive(constants: FloatArray, row: FloatArray, r: float) -> float:
    """ln α_k / Σ α for r = v_k."""
    total, alpha = 0.0, 0.0
    for k in range(constants.size):
        total += row[k]
        if constants[k] == r:
            alpha = row[k]
    return log(alpha) - log(total)


@inlined
def respond(constants: FloatArray, truth: FloatArray, rng_state: UIntArray) -> float:
    """Draw a reward of an arm with the probabilities `truth`."""
    return float(constants[categorical(rng_state, truth)])
