"""Poisson counts with mean m, and m ~ Gamma(a, rate b). A row is (a, b).

learn      a ← a + r,  b ← b + 1
predict    r: negative binomial
log scale  ln m = ln G_a - ln b
"""

from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import inlined
from bayescontrol.kernels.counts import poisson
from bayescontrol.kernels.elementary import log, log_gamma_function, log_one_plus
from bayescontrol.kernels.families import MAX_RATE, MIN_RATE, MIN_SHAPE
from bayescontrol.kernels.random import LOG_UNIT, gamma, log_gamma


@inlined
def draw(constants: FloatArray, row: FloatArray, rng_state: UIntArray) -> float:
    """Draw m ~ Gamma(a, rate b)."""
    return float(gamma(rng_state, row[0]) / row[1])


@inlined
def learn(constants: FloatArray, row: FloatArray, r: float) -> None:
    """Count the events and the pull."""
    row[0] += r
    row[1] += 1.0


@inlined
def log_predictive(constants: FloatArray, row: FloatArray, r: float) -> float:
    """ln of the negative binomial probability of r."""
    a, b = row[0], row[1]
    ratio = log_gamma_function(a + r) - log_gamma_function(a) - log_gamma_function(r + 1.0)
    return float(ratio - a * log_one_plus(1.0 / b) - r * log_one_plus(b))


@inlined
def respond(constants: FloatArray, truth: FloatArray, rng_state: UIntArray) -> float:
    """Draw a reward of an arm with mean `truth[0]`."""
    return poisson(rng_state, truth[0])


@inlined
def needs_log(row: FloatArray) -> bool:
    """Whether the shape is so small, or the rate so extreme, that m is often 0.0 or ∞."""
    return bool(row[0] < MIN_SHAPE or not MIN_RATE < row[1] < MAX_RATE)


@inlined
def log_mean(row: FloatArray, rng_state: UIntArray) -> float:
    """Draw m as `draw` does, and return LOG_UNIT · ln m."""
    return log_gamma(rng_state, row[0]) - LOG_UNIT * log(row[1])
