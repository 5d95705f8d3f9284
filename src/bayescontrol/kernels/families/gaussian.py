"""Gaussian rewards with known noise: r = m + σ z, and m ~ N(μ, 1/λ). A row is (μ, λ).

learn      λ ← λ + 1/σ²,  μ ← μ + (r - μ) / σ²λ
predict    r ~ N(μ, σ² + 1/λ)
"""

import math

from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import inlined
from bayescontrol.kernels.elementary import HALF_LOG_2PI, log
from bayescontrol.kernels.random import normal


@inlined
def draw(constants: FloatArray, row: FloatArray, rng_state: UIntArray) -> float:
    """Draw m ~ N(μ, 1/λ)."""
    return float(row[0] + normal(rng_state) / math.sqrt(row[1]))


@inlined
def learn(constants: FloatArray, row: FloatArray, r: float) -> None:
    """Move μ towards r, and increase the precision."""
    tau = 1.0 / (constants[0] * constants[0])
    row[1] += tau
    row[0] += tau * (r - row[0]) / row[1]


@inlined
def log_predictive(constants: FloatArray, row: FloatArray, r: float) -> float:
    """ln N(r; μ, σ² + 1/λ)."""
    scale = math.hypot(constants[0], 1.0 / math.sqrt(row[1]))
    z = (r - row[0]) / scale
    return float(-0.5 * z * z - log(scale) - HALF_LOG_2PI)


@inlined
def temper(row: FloatArray, temperature: float, out: FloatArray) -> None:
    """Multiply the variance of m by the temperature."""
    out[0], out[1] = row[0], row[1] / temperature


@inlined
def respond(constants: FloatArray, truth: FloatArray, rng_state: UIntArray) -> float:
    """Draw a reward of an arm with mean `truth[0]`."""
    return float(truth[0] + constants[0] * normal(rng_state))
