"""Failures before a success: P(r) = p (1 - p)^r, and p ~ Beta(α, β). A row is (α, β).

mean       m = (1 - p)/p
learn      α ← α + 1,  β ← β + r
predict    P(r) = B(α + 1, β + r) / B(α, β)
log scale  ln m = -ln p/(1 - p)
"""

import math

from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import inlined
from bayescontrol.kernels.elementary import log, log_gamma_function, log_one_plus
from bayescontrol.kernels.families.bernoulli import needs_log  # noqa: F401 - of this family too
from bayescontrol.kernels.random import beta, exponential, log_odds


@inlined
def draw(constants: FloatArray, row: FloatArray, rng_state: UIntArray) -> float:
    """Draw p ~ Beta(α, β) and return (1 - p)/p."""
    p = beta(rng_state, row[0], row[1])
    return (1.0 - p) / p


@inlined
def learn(constants: FloatArray, row: FloatArray, r: float) -> None:
    """Count the success and the failures before it."""
    row[0] += 1.0
    row[1] += r


@inlined
def log_predictive(constants: FloatArray, row: FloatArray, r: float) -> float:
    """ln B(α + 1, β + r) / B(α, β)."""
    a, b = row[0], row[1]
    failures = log_gamma_function(b + r) - log_gamma_function(b)
    trials = log_gamma_function(a + b + 1.0 + r) - log_gamma_function(a + b)
    return float(log(a) + failures - trials)


@inlined
def respond(constants: FloatArray, truth: FloatArray, rng_state: UIntArray) -> float:
    """Draw a reward of an arm with p = `truth[0]`: P(E ≥ -r ln(1 - p)) = (1 - p)^r."""
    waiting = exponential(rng_state)
    if truth[0] == 1.0:
        return 0.0
    return float(math.floor(waiting / -log_one_plus(-truth[0])))


@inlined
def log_mean(row: FloatArray, rng_state: UIntArray) -> float:
    """Draw p as `draw` does, and return LOG_UNIT · ln (1 - p)/p."""
    return -log_odds(rng_state, row[0], row[1])
