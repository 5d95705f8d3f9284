"""The paper's benchmark, played by this library and by hand-written code.

    10 Bernoulli levers with uniform biases, Thompson sampling with uniform priors, 1,000 steps

`python -m benchmarks.bandit_players` speaks the protocol of `benchmarks.peers.worker`. Its players
draw rewards as they go; those of other libraries read the same biases from a table of rewards.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np
from benchmarks.peers.bandit_worlds import ARMS as LEVERS
from benchmarks.peers.bandit_worlds import make_run
from benchmarks.peers.worker import serve

from bayescontrol import Stream, interact
from bayescontrol._arrays import FloatArray
from bayescontrol.bandits import BernoulliBandit
from bayescontrol.interaction import both_streams
from bayescontrol.kernels.random import beta, uniform

__all__ = ["PLAYERS", "STEPS", "WORLD"]

WORLD, STEPS = "ten Bernoulli arms", 1_000

_njit: Any = numba.njit(error_model="numpy")


@_njit  # type: ignore[untyped-decorator]
def numpy_generator_loop(biases: Any, rng: Any) -> float:
    """Draw ten Beta variables per decision from NumPy's generator."""
    alpha, beta_ = np.ones(biases.size), np.ones(biases.size)
    total = 0.0
    for _ in range(STEPS):
        a, best = 0, -1.0
        for j in range(biases.size):
            m = rng.beta(alpha[j], beta_[j])
            if m > best:
                a, best = j, m
        if rng.random() < biases[a]:
            alpha[a] += 1.0
            total += 1.0
        else:
            beta_[a] += 1.0
    return total


@_njit  # type: ignore[untyped-decorator]
def kernel_numbers_loop(biases: Any, p: Any, q: Any) -> float:
    """The same with our kernels' random numbers, one stream each for agent and environment."""
    alpha, beta_ = np.ones(biases.size), np.ones(biases.size)
    total = 0.0
    for _ in range(STEPS):
        a, best = 0, -1.0
        for j in range(biases.size):
            m = beta(p, alpha[j], beta_[j])
            if m > best:
                a, best = j, m
        if uniform(q) < biases[a]:
            alpha[a] += 1.0
            total += 1.0
        else:
            beta_[a] += 1.0
    return total


GENERATOR = np.random.default_rng(0)
AGENT, ENVIRONMENT = Stream(1), Stream(2)
BANDIT = BernoulliBandit(LEVERS)


def numba_numpy(biases: FloatArray, run: int) -> float:
    """A plain Numba loop with NumPy's generator."""
    return float(numpy_generator_loop(biases, GENERATOR))


def numba_kernels(biases: FloatArray, run: int) -> float:
    """A plain Numba loop with the random numbers of our kernels."""
    return float(kernel_numbers_loop(biases, AGENT.state, ENVIRONMENT.state))


def numpy_python(biases: FloatArray, run: int) -> float:
    """A Python loop that draws ten variables with one NumPy call."""
    rng = GENERATOR
    counts = np.ones((2, LEVERS))
    total = 0
    for _ in range(STEPS):
        a = rng.beta(counts[0], counts[1]).argmax()
        r = rng.random() < biases[a]
        counts[0 if r else 1, a] += 1.0
        total += r
    return total


def fused(biases: FloatArray, run: int) -> float:
    """`interact` with the compiled loop; streams continue across runs, like NumPy's generator."""
    streams = (AGENT, ENVIRONMENT)
    record = interact(BANDIT.agent(), BANDIT.environment(biases), STEPS, streams=streams)
    return float(record.observations.sum())


def readable(biases: FloatArray, run: int) -> float:
    """A Python loop that calls `act` and `observe` in turn."""
    agent, world, total = BANDIT.agent(), BANDIT.environment(biases), 0.0
    p, q = both_streams(0, run)
    for _ in range(STEPS):
        a = agent.act(p)
        o = world.respond(a, q)
        agent.observe(a, o)
        total += o
    return total


#: Players by the name on the command line.
PLAYERS = {
    "numba-numpy": numba_numpy,
    "numba-own": numba_kernels,
    "numpy": numpy_python,
    "fused": fused,
    "readable": readable,
}


def prepare(request: Mapping[str, Any], run: int) -> Callable[[], float]:
    """Return a function that plays a run and returns its regret, max_j m_j · steps - Σ_t r_t."""
    biases = make_run(WORLD, request["seed"], run, STEPS).means[0]
    play, best = PLAYERS[request["player"]], float(biases.max()) * STEPS
    return lambda: best - play(biases, run)


if __name__ == "__main__":
    serve(prepare, "bayescontrol")
