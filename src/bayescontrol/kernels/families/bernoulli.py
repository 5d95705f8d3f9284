"""Rewards of 0 and 1: r = 1 with probability m, and m ~ Beta(α, β). A row is (α, β).

learn      α ← α + r,  β ← β + 1 - r
log scale  ln m/(1 - m) = ln G_α - ln G_β        with ln G_a = ln G_(a+1) - E/a if a < 1
"""

from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol.kernels._jit import inlined
from bayescontrol.kernels.elementary import log
from bayescontrol.kernels.families import MIN_SHAPE
from bayescontrol.kernels.random import beta, log_odds, uniform


@inlined
def draw(constants: FloatArray, row: FloatArray, rng_state: UIntArray) -> float:
    """Draw m ~ Beta(α, β)."""
    return beta(rng_state, row[0], row[1])


@inlined
def learn(constants: FloatArray, row: FloatArray, r: float) -> None:
    """Count the reward."""
    row[0] += r
    row[1] += 1.0 - r


@inlined
def log_predictive(constants: FloatArray, row: FloatArray, r: float) -> float:
    """ln α/(α + β) for r = 1, ln β/(α + β) for r = 0."""
    return log(row[0] if r > 0.5 else row[1]) - log(row[0] + row[1])


@inlined
def respond(constants: FloatArray, truth: FloatArray, rng_state: UIntArray) -> float:
    """Draw a reward of an arm with the bias `truth[0]`."""
    return 1.0 if uniform(rng_state) < truth[0] else 0.0


@inlined
def needs_log(row: FloatArray) -> bool:
    """Whether a shape is so small that m is often 0.0 or 1.0 as a double."""
    return bool(min(row[0], row[1]) < MIN_SHAPE)


@inlined
def log_mean(row: FloatArray, rng_state: UIntArray) -> float:
    """Draw m as `draw` does, and return LOG_UNIT · ln m/(1 - m)."""
    return log_odds(rng_state, row[0], row[1])
