"""A motor whose load changes: cost of agents that do not know the rate of changes.

`python -m benchmarks.motor` prints costs as shares of those of interacting models with the known
rate and of an oracle that knows the plant: 10 runs of 6,000 steps in `load` and `sign`, 50 runs of
400 steps in `fixed` and `noisy`. It takes about ten minutes. In `load` a low cost does not show
that an agent follows the changes; `prediction_bits` compares the predictions of beliefs.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.bank import BankAgent, FilterBank
from bayescontrol.beliefs import FadingBelief
from bayescontrol.interaction import both_streams
from bayescontrol.protocols import SituatedState
from bayescontrol.seeding import StreamLike
from bayescontrol_paper.motor import (
    LIMIT,
    PLANTS,
    RATE,
    SCENARIOS,
    SPEED_NOISE,
    Motor,
    draw_motor,
    interacting_agent,
    motor_bank,
    motor_cost,
    setpoint,
)

__all__ = ["AGENTS", "KnownRateIMM", "MotorOracle", "prediction_bits", "print_costs"]


class KnownRateIMM:
    """Interacting multiple models with a known rate, in one array; the most probable mode acts.

    This is the usual solution of a control engineer who knows the rate, and a second implementation
    of `InteractingBelief` for this problem.
    """

    def __init__(self, rate: float = RATE, noise: float = 1.0) -> None:
        n, self.noise = len(PLANTS), noise
        self.a, self.g = np.array([plant.coefficients for plant in PLANTS]).T
        self.table = (1.0 - rate) * np.eye(n) + rate / n
        self.p, self.mean, self.variance = np.full(n, 1.0 / n), np.zeros(n), np.ones(n)
        self.before, self.k, self.u = np.zeros(n), 0, 0.0

    def mixed(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the probabilities, means and variances with which the next step begins."""
        p = self.p @ self.table
        w = self.table * self.p[:, None] / p
        mean = self.mean @ w
        return p, mean, ((self.variance[:, None] + (self.mean[:, None] - mean) ** 2) * w).sum(0)

    def act(self, rng: StreamLike) -> float:
        """Return the input of the most probable mode."""
        m = int(self.p.argmax())
        kp, ki = PLANTS[m].gains
        error, before = setpoint(self.k + 1) - self.mean[m], setpoint(self.k) - self.before[m]
        return float(np.clip(self.u + kp * (error - before) + ki * error, -LIMIT, LIMIT))

    def observe(self, a: float, o: float) -> None:
        """Mix, predict and correct all filters."""
        p, self.before, variance = self.mixed()
        mean, variance = self.a * self.before + self.g * a, self.a**2 * variance + SPEED_NOISE**2
        S, error = variance + self.noise**2, o - mean
        self.mean, self.variance = mean + variance / S * error, (1.0 - variance / S) * variance
        log_p = -0.5 * (error**2 / S + np.log(S))
        p = p * np.exp(log_p - log_p.max())
        self.p, self.k, self.u = p / p.sum(), self.k + 1, a


class MotorOracle:
    """The controller of the true plant, with its Kalman filter: it knows every change."""

    def __init__(self, motor: Motor) -> None:
        self.motor, self.bank = motor, motor_bank(motor.noise)
        self.x, self.s = self.bank.first_signals(), self._mode(0).start()

    def _mode(self, k: int) -> Any:
        """Return the mode of the plant at step k."""
        return self.bank.modes[PLANTS.index(self.motor.plants.get(k, self.motor.plant))]

    def act(self, rng: StreamLike) -> Any:
        """Return the input of the controller of the true plant."""
        return self._mode(int(self.x[0])).act(SituatedState(self.x, self.s), rng)

    def observe(self, a: float, o: float) -> None:
        """Update the filter of the true plant."""
        self.s = self._mode(int(self.x[0])).advance(SituatedState(self.x, self.s), a, o)
        self.x = self.bank.next_signals(self.x, a, o)


def prediction_bits(
    makers: Mapping[str, Callable[[], Any]], scenario: str, run: int, steps: int, **options: int
) -> dict[str, float]:
    """Return -log2 P(y | past) per step of beliefs that see the same inputs and outputs.

    `makers` are functions that return a belief over the plants, by name. The inputs are those of
    `KnownRateIMM`, so that no belief profits from its own controller. The options are those of
    `draw_motor`.
    """
    motor, driver = draw_motor(scenario, run, steps, **options), KnownRateIMM()
    rng = both_streams(options.get("seed", 0), run)[1]
    bits, beliefs = dict.fromkeys(makers, 0.0), {name: make() for name, make in makers.items()}
    bank = motor_bank()
    x = bank.first_signals()
    for _ in range(steps):
        a = driver.act(rng)
        o = motor.respond(a, rng)
        driver.observe(a, o)
        for name, belief in beliefs.items():
            bits[name] -= belief.log_predictive(x, a, o) / math.log(2) / steps
            belief.observe(x, a, o)
        x = bank.next_signals(x, a, o)
    return bits


AGENTS = {
    "oracle": MotorOracle,
    "known rate, most probable mode": lambda motor: KnownRateIMM(noise=motor.noise),
    "known rate, drawn mode": lambda motor: interacting_agent(motor, RATE),
    "unknown rate, drawn mode": interacting_agent,
    "unknown rate, most probable": lambda motor: interacting_agent(motor, choose="most probable"),
    "fading 0.96": lambda motor: _fading_agent(motor, 0.96),
    "static": lambda motor: motor_bank(motor.noise).agent(),
}


def _fading_agent(motor: Motor, forgetting: float) -> BankAgent:
    bank = motor_bank(motor.noise)
    return BankAgent(bank, FadingBelief(FilterBank(bank.modes), forgetting=forgetting))


def print_costs(scenario: str, runs: int, steps: int) -> None:
    """Print the costs of all agents in a scenario."""
    costs = {
        name: sum(motor_cost(make, scenario, run, steps) for run in range(runs))
        for name, make in AGENTS.items()
    }
    oracle, known = (costs[name] for name in list(AGENTS)[:2])
    for name, total in costs.items():
        print(
            f"{scenario:6} {name:31} {total / known:6.3f} of known {total / oracle:6.3f} of oracle"
        )


if __name__ == "__main__":
    for scenario in SCENARIOS:
        print_costs(scenario, *((10, 6000) if scenario in ("load", "sign") else (50, 400)))
