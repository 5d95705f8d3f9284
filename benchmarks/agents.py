"""An agent in a Python loop, against the same agent written with NumPy calls."""

import math
from collections.abc import Callable

import numpy as np
from benchmarks.timing import Timing, take_turns

from bayescontrol import ControlRule, FiniteBelief, Probe, Stream, interact
from bayescontrol.finite.tabular import TabularModes, random_modes

__all__ = ["act_and_observe", "fused_and_readable", "user_written_modes"]


class NumPyAgent:
    """The control rule over tables, written by hand with NumPy."""

    def __init__(self, modes: TabularModes) -> None:
        self.policy = modes.policy
        self.log_hypothesis = np.log(modes.hypothesis)
        self.successor = modes.successor
        self.lw = np.zeros(len(modes))
        self.x = modes.start

    def act(self, rng: np.random.Generator) -> int:
        """Draw a mode and return its action."""
        v = np.exp(self.lw - self.lw.max())
        c = np.cumsum(v)
        m = np.searchsorted(c, rng.random() * c[-1])
        c = np.cumsum(self.policy[m, self.x])
        return int(np.searchsorted(c, rng.random() * c[-1]))

    def observe(self, a: int, o: int) -> None:
        """Add the log-likelihoods."""
        self.lw += self.log_hypothesis[:, self.x, a, o]
        self.x = self.successor[self.x, a, o]


def act_and_observe() -> dict[str, Timing]:
    """Time one `act` and one `observe` with ten modes."""
    modes = random_modes(10, situations=3, actions=3, seed=1)
    by_hand, generator = NumPyAgent(modes), np.random.default_rng(0)
    agent, stream = modes.agent(), Stream(0)

    def numpy_step() -> None:
        by_hand.observe(by_hand.act(generator), 0)

    def our_step() -> None:
        agent.observe(agent.act(stream), 0)

    return take_turns({"NumPy by hand": numpy_step, "bayescontrol": our_step}, calls=5000)


class Valve:
    """A user's mode: plain Python, two methods."""

    def __init__(self, gain: float) -> None:
        self.gain = gain

    def act(self, x: float, rng: Stream) -> float:
        """Cancel the error."""
        return -x / self.gain

    def log_likelihood(self, x: float, a: float, o: float) -> float:
        """Normal noise."""
        z = (o - x - self.gain * a) / 0.5
        return -0.5 * z * z - math.log(0.5 * math.sqrt(2 * math.pi))


class Room:
    """A user's environment."""

    def __init__(self) -> None:
        self.x = 5.0

    def respond(self, a: float, rng: Stream) -> float:
        """Move by the valve and by noise."""
        self.x += a + rng.normal(0.0, 0.5)
        return self.x


def _follow(x: float, a: float, o: float) -> float:
    return o


def _zero(agent: object, a: object, o: object) -> int:
    return 0


def user_written_modes(steps: int = 5000) -> Timing:
    """Time one step of `interact` with ten modes written in Python."""

    def run() -> object:
        agent = ControlRule(FiniteBelief([Valve(g) for g in range(1, 11)]), 5.0, _follow)
        return interact(agent, Room(), steps, seed=0)

    timings = take_turns({"interact": run}, calls=1)["interact"]
    return Timing(timings.median / steps, timings.low / steps, timings.high / steps)


def fused_and_readable(steps: int = 20_000) -> dict[str, Timing]:
    """Time one step of `interact` over tables: readable (forced by a probe) and compiled."""
    modes = random_modes(10, situations=3, actions=3, seed=1)
    no_op_probe = {"nothing": Probe(_zero)}

    def run(probes: dict[str, Probe]) -> Callable[[], object]:
        return lambda: interact(modes.agent(), modes.environment(0), steps, probes=probes, seed=0)

    timings = take_turns({"readable": run(no_op_probe), "fused": run({})}, calls=1, rounds=5)
    return {
        name: Timing(t.median / steps, t.low / steps, t.high / steps) for name, t in timings.items()
    }
