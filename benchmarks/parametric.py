"""A user's functions: one step of the compiled loop, compared with calling them one by one.

Levers are cheap (a product for each mode), waves are not (a cosine and an exponential each).
`python -m benchmarks.parametric` prints both for 10, 100 and 1,000 modes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.timing import Timing, take_turns

from bayescontrol import Probe, interact
from bayescontrol._compiled import find_loop
from bayescontrol.finite.parametric import ParametricModes
from bayescontrol.kernels.random import normal, uniform

__all__ = ["compiled_and_readable"]


def pays(theta: Any, x: Any, a: Any, o: Any) -> Any:
    """Bernoulli levers."""
    return theta[:, a] if o else 1.0 - theta[:, a]


def best(theta_m: Any, x: Any, state: Any) -> Any:
    """The lever that pays most."""
    return np.argmax(theta_m)


def pay(theta_m: Any, x: Any, a: Any, state: Any) -> Any:
    """The reward, 0 or 1."""
    return uniform(state) < theta_m[a]


def fit(theta: Any, t: Any, a: Any, o: Any) -> Any:
    """Likelihood of a sine wave with noise."""
    z = (o - np.cos(a - theta[:, 0] - theta[:, 1] * t)) / 0.5
    return np.exp(-0.5 * z * z)


def follow(theta_m: Any, t: Any, state: Any) -> Any:
    """Point at the crest."""
    return theta_m[0] + theta_m[1] * t


def later(t: Any, a: Any, o: Any) -> Any:
    """The situation is the time."""
    return t + 1


def wave(theta_m: Any, t: Any, a: Any, state: Any) -> Any:
    """The reward for pointing in direction a."""
    return np.cos(a - theta_m[0] - theta_m[1] * t) + 0.5 * normal(state)


def levers(count: int) -> ParametricModes:
    """Ten biases for each mode."""
    theta = np.random.default_rng(0).uniform(size=(count, 10))
    return ParametricModes(theta, likelihoods=pays, act=best, respond=pay)


def waves(count: int) -> ParametricModes:
    """A phase and a frequency for each mode."""
    theta = np.random.default_rng(0).uniform((0.0, 0.1), (2 * np.pi, 1.0), (count, 2))
    return ParametricModes(theta, likelihoods=fit, act=follow, advance=later, respond=wave)


def _zero(agent: object, a: object, o: object) -> int:
    return 0


def compiled_and_readable(modes: ParametricModes, steps: int = 2_000) -> dict[str, Timing]:
    """Time one step of `interact`: readable (forced by a probe) and compiled."""
    assert find_loop(modes.agent(), modes.environment(0)), "these modes have no compiled loop"

    def run(probes: dict[str, Probe]) -> Callable[[], object]:
        return lambda: interact(modes.agent(), modes.environment(0), steps, probes=probes, seed=0)

    per_call = take_turns(
        {"readable": run({"nothing": Probe(_zero)}), "compiled": run({})}, calls=1
    )
    return {
        name: Timing(t.median / steps, t.low / steps, t.high / steps)
        for name, t in per_call.items()
    }


if __name__ == "__main__":
    for make in (levers, waves):
        for count in (10, 100, 1_000):
            timings = compiled_and_readable(make(count))
            ratio = timings["readable"].median / timings["compiled"].median
            shown = ", ".join(f"{name} {timing}" for name, timing in timings.items())
            print(f"{count:>5} {make.__name__}: {shown}: {ratio:.1f} times faster")
