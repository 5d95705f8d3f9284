"""Gaussian rewards with unknown noise: r = m + z/√τ. A row is (μ, κ, α, β).

prior      τ ~ Gamma(α, rate β),  m ~ N(μ, 1/κτ)
learn      β ← β + κ (r - μ)² / 2(κ + 1),  μ ← μ + (r - μ)/(κ + 1),  κ ← κ + 1,  α ← α + ½
predict    Student's t: 2α degrees of freedom, location μ, squared scale β (κ + 1)/ακ
"""

import math

from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import inlined
from bayescontrol.kernels.elementary import log, log_gamma_function, log_one_plus
from bayescontrol.kernels.random import gamma, normal


@inlined
def draw(constants: FloatArray, row: FloatArray, rng_state: UIntArray) -> float:
    """Draw τ, then m."""
    tau = gamma(rng_state, row[2]) / row[3]
    return float(row[0] + normal(rng_state) / math.sqrt(row[1] * tau))


@inlined
def learn(constants: FloatArray, row: FloatArray, r: float) -> None:
    """Update μ, κ, α and β."""
    surprise = r - row[0]
    row[3] += 0.5 * row[1] * surprise * surprise / (row[1] + 1.0)
    row[0] += surprise / (row[1] + 1.0)
    row[1] += 1.0
    row[2] += 0.5


@inlined
def log_predictive(constants: FloatArray, row: FloatArray, r: float) -> float:
    """ln of Student's density."""
    width = 2.0 * row[3] * (1.0 + 1.0 / row[1])  # scale² times degrees of freedom
    z = (r - row[0]) / math.sqrt(width)
    ratio = log_gamma_function(row[2] + 0.5) - log_gamma_function(row[2])
    return float(ratio - 0.5 * log(math.pi * width) - (row[2] + 0.5) * log_one_plus(z * z))


@inlined
def temper(row: FloatArray, temperature: float, out: FloatArray) -> None:
    """Multiply the variance of m given τ by the temperature."""
    out[0], out[1], out[2], out[3] = row[0], row[1] / temperature, row[2], row[3]


@inlined
def respond(constants: FloatArray, truth: FloatArray, rng_state: UIntArray) -> float:
    """Draw a reward of an arm with mean `truth[0]` and standard deviation `truth[1]`."""
    return float(truth[0] + truth[1] * normal(rng_state))
