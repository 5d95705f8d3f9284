"""Exponential amounts with mean m = 1/θ, and θ ~ Gamma(a, rate b). A row is (a, b).

learn      a ← a + 1,  b ← b + r
predict    a bᵃ / (b + r)^(a + 1), a Lomax density
log scale  ln m = ln b - ln G_a
"""

from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import inlined
from bayescontrol.kernels.elementary import log, log_one_plus
from bayescontrol.kernels.families.poisson import needs_log  # noqa: F401 - of this family too
from bayescontrol.kernels.random import LOG_UNIT, exponential, gamma, log_gamma


@inlined
def draw(constants: FloatArray, row: FloatArray, rng_state: UIntArray) -> float:
    """Draw θ ~ Gamma(a, rate b) and return 1/θ."""
    return float(row[1] / gamma(rng_state, row[0]))


@inlined
def learn(constants: FloatArray, row: FloatArray, r: float) -> None:
    """Count the pull and add the amount."""
    row[0] += 1.0
    row[1] += r


@inlined
def log_predictive(constants: FloatArray, row: FloatArray, r: float) -> float:
    """ln of Lomax's density."""
    a, b = row[0], row[1]
    return float(log(a) - log(b + r) - a * log_one_plus(r / b))


@inlined
def respond(constants: FloatArray, truth: FloatArray, rng_state: UIntArray) -> float:
    """Draw a reward of an arm with mean `truth[0]`."""
    return float(truth[0] * exponential(rng_state))


@inlined
def log_mean(row: FloatArray, rng_state: UIntArray) -> float:
    """Draw m as `draw` does, and return LOG_UNIT · ln m."""
    return -(log_gamma(rng_state, row[0]) - LOG_UNIT * log(row[1]))
