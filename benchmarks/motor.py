"""A motor whose load changes: cost of agents that do not know the rate of changes.

`python -m benchmarks.motor` prints costs as shares of those of interacting models with the known
rate and of an oracle that knows the plant: 10 runs of 6,000 steps in `load` and `sign`, 50 runs of
400 steps in `fixed` and `noisy`. It takes about ten minutes. In `load` a low cost does not show
that an agent follows the changes; `prediction_bits` compares the predictions of beliefs.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bayescontrol import ControlRule, FiniteBelief
from bayescontrol.beliefs import FadingBelief
from bayescontrol.experiments.control.motor import (
    RATE,
    SCENARIOS,
    KnownRateIMM,
    Motor,
    MotorMode,
    draw_motor,
    interacting_agent,
    motor_cost,
    motor_modes,
    next_situation,
)
from bayescontrol.interaction import both_streams
from bayescontrol.protocols import SituatedState
from bayescontrol.rule import Rule
from bayescontrol.seeding import StreamLike, require_stream

__all__ = ["AGENTS", "MotorOracle", "prediction_bits", "print_costs"]


class MotorOracle:
    """The controller of the true plant, with its Kalman filter: it knows every change."""

    def __init__(self, motor: Motor) -> None:
        self.motor, self.x = motor, (0, 0.0)
        self.s = self._mode().start()

    def _mode(self) -> MotorMode:
        """Return the mode of the plant at this step."""
        return MotorMode(self.motor.plants.get(self.x[0], self.motor.plant), self.motor.noise)

    def act(self, rng: StreamLike) -> float:
        """Return the input of the controller of the true plant."""
        return self._mode().act(SituatedState(self.x, self.s), require_stream(rng))

    def observe(self, a: float, o: float) -> None:
        """Update the filter of the true plant."""
        self.s = self._mode().advance(SituatedState(self.x, self.s), a, o)
        self.x = next_situation(self.x, a, o)


def prediction_bits(
    makers: Mapping[str, Callable[[], Any]], scenario: str, run: int, steps: int, **options: int
) -> dict[str, float]:
    """Return -log2 P(y | past) per step of beliefs that see the same inputs and outputs.

    `makers` are functions that return a belief over `motor_modes()`, by name. The inputs are those
    of `KnownRateIMM`, so that no belief profits from its own controller. The options are those of
    `draw_motor`.
    """
    motor, driver = draw_motor(scenario, run, steps, **options), KnownRateIMM()
    rng = both_streams(options.get("seed", 0), run)[1]
    bits, beliefs = dict.fromkeys(makers, 0.0), {name: make() for name, make in makers.items()}
    for _ in range(steps):
        x, a = driver.x, driver.act(rng)
        o = motor.respond(a, rng)
        driver.observe(a, o)
        for name, belief in beliefs.items():
            bits[name] += belief.surprise(x, a, o) / steps
            belief.observe(x, a, o)
    return bits


AGENTS = {
    "oracle": MotorOracle,
    "known rate, most probable mode": lambda motor: KnownRateIMM(noise=motor.noise),
    "known rate, drawn mode": lambda motor: interacting_agent(motor, RATE),
    "unknown rate, drawn mode": interacting_agent,
    "fading 0.96": lambda motor: _rule(FadingBelief(motor_modes(motor.noise), forgetting=0.96)),
    "static": lambda motor: _rule(FiniteBelief(motor_modes(motor.noise))),
}


def _rule(belief: FiniteBelief[Any]) -> Rule:
    return ControlRule(belief, (0, 0.0), next_situation)


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
