"""A motor whose load changes: cost of agents that do not know the rate of changes.

`python -m benchmarks.motor` prints costs as shares of those of interacting models with the known
rate and of an oracle that knows the plant: 10 runs of 6,000 steps in `load` and `sign`, 50 runs of
400 steps in `fixed` and `noisy`. It takes about ten minutes. In `load` a low cost does not show
that an agent follows the changes: see `bayescontrol.experiments.control.motor.prediction_bits`.
"""

from typing import Any

from bayescontrol import ControlRule, FiniteBelief
from bayescontrol.beliefs import FadingBelief
from bayescontrol.experiments.control.motor import (
    RATE,
    SCENARIOS,
    KnownRateIMM,
    MotorOracle,
    interacting_agent,
    motor_costs,
    motor_modes,
    next_situation,
)
from bayescontrol.rule import Rule

__all__ = ["AGENTS", "print_costs"]

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
    costs = {name: motor_costs(make, scenario, range(runs), steps) for name, make in AGENTS.items()}
    oracle, known = (costs[name].sum() for name in list(AGENTS)[:2])
    for name, cost in costs.items():
        total = cost.sum()
        print(
            f"{scenario:6} {name:31} {total / known:6.3f} of known {total / oracle:6.3f} of oracle"
        )


if __name__ == "__main__":
    for scenario in SCENARIOS:
        print_costs(scenario, *((10, 6000) if scenario in ("load", "sign") else (50, 400)))
