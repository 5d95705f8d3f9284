"""A motor whose load and wiring change: the rule over interacting models against known rates."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import FiniteBelief, Stream
from bayescontrol.beliefs import InteractingBelief
from bayescontrol.experiments.control.motor import (
    PLANTS,
    RATE,
    RATES,
    SCENARIOS,
    KnownRateIMM,
    Motor,
    MotorMode,
    MotorOracle,
    interacting_agent,
    motor_costs,
    motor_modes,
    prediction_bits,
    setpoint,
)
from bayescontrol.protocols import SituatedState


def known(motor: Motor) -> KnownRateIMM:
    return KnownRateIMM(noise=motor.noise)


def test_the_plants_are_sampled_from_the_differential_equation() -> None:
    """J dw/dt = -(b + K²/R) w + K/R u with constant u, by small Euler steps."""
    for plant in PLANTS:
        w, u, steps = 3.0, 2.0, 20_000
        for _ in range(steps):
            torque = -(plant.friction + 0.05**2) * w + plant.sign * 0.05 * u
            w += 0.01 / steps * torque / plant.inertia
        a, g = plant.coefficients
        assert a * 3.0 + g * u == pytest.approx(w, rel=1e-3)


def test_every_controller_brings_its_plant_to_the_setpoint() -> None:
    for plant in PLANTS:
        motor, mode = Motor(plant), MotorMode(plant)
        s, x = mode.start(), (0, 0.0)
        for _ in range(99):
            xs = SituatedState(x, s)
            u = mode.act(xs, Stream(0))
            a, g = plant.coefficients
            motor.speed, motor.k = a * motor.speed + g * u, motor.k + 1
            s, x = mode.advance(xs, u, motor.speed), (x[0] + 1, u)
        assert motor.speed == pytest.approx(setpoint(99), abs=0.3), plant


def test_the_filter_knows_the_speed_better_than_the_sensor() -> None:
    motor, mode, rng = Motor(PLANTS[0], noise=5.0), MotorMode(PLANTS[0], noise=5.0), Stream(1)
    s, errors = mode.start(), []
    for k in range(500):
        s = mode.advance(SituatedState((k, 0.0), s), 1.0, motor.respond(1.0, rng))
        errors.append(s[0] - motor.speed)
    # 500 squared errors with memory: the standard error of their mean is about a tenth of it.
    assert np.mean(np.square(errors)) == pytest.approx(s[1], rel=0.5)
    assert s[1] < 25.0 / 10


def test_an_unknown_rate_costs_little_when_the_wiring_changes_often() -> None:
    """Two runs of 600 steps with a new plant every 200.

    Pilot with seeds 1 to 12: 0.97 to 1.13 of the models with a known rate. On the same seeds a
    belief without changes has at least 4.0, and fading with 0.98 at least 2.2.
    """
    scenario: dict[str, Any] = {"scenario": "sign", "runs": range(2), "steps": 600, "every": 200}
    ratio = motor_costs(interacting_agent, **scenario).sum() / motor_costs(known, **scenario).sum()
    assert ratio < 1.3


def test_learning_the_rate_costs_few_bits_when_the_load_changes() -> None:
    """One run of 600 steps with a new load every 200: the cost does not show who follows it.

    Pilot with seeds 1 to 8, in bits per step more than with the known rate: 0.002 to 0.004 with a
    learnt rate, at least 0.06 with fading 0.96, at least 0.42 with a belief without changes.
    """
    modes = motor_modes()
    makers: dict[str, Any] = {
        "known": lambda: InteractingBelief(modes, hazard=RATE),
        "learnt": lambda: InteractingBelief(modes, hazard=RATES),
        "static": lambda: FiniteBelief(modes),
    }
    bits = prediction_bits(makers, "load", range(1), 600, every=200)
    assert bits["learnt"] < bits["known"] + 0.02 < bits["static"] - 0.1


def test_a_low_cost_does_not_show_that_an_agent_follows_the_load() -> None:
    """A single controller for a heavy load is cheaper than the controller of the true plant."""
    true, heavy = PLANTS[3], PLANTS[10]

    def cost(plant: Any) -> float:
        motor, mode, rng = Motor(true), MotorMode(plant), Stream(7)
        s, x = mode.start(), (0, 0.0)
        for _ in range(1000):
            u = mode.act(SituatedState(x, s), rng)
            s = mode.advance(SituatedState(x, s), u, motor.respond(u, rng))
            x = (x[0] + 1, u)
        return motor.cost

    # Pilot with streams 8 to 19: 0.31 to 0.33.
    assert cost(heavy) < 0.5 * cost(true)


def test_worlds_depend_on_the_run_and_not_on_the_agent() -> None:
    first = motor_costs(MotorOracle, "load", [3], 50, every=20, seed=2)
    assert motor_costs(MotorOracle, "load", [2, 3], 50, every=20, seed=2)[1] == first[0]
    with pytest.raises(ValueError, match=", ".join(SCENARIOS)):
        motor_costs(MotorOracle, "lod", [0], 10)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["load", "sign"])
def test_an_unknown_rate_costs_at_most_five_percent(scenario: str) -> None:
    """Ten runs of 6,000 steps with a new plant every 1,000: the requirement is 1.05.

    In `sign` a belief without changes has 14 and fading 1.5. In `load` they pass too, with 0.80 and
    0.98, because the controller of the true plant is not the cheapest.
    """
    ours, imm = (
        motor_costs(make, scenario, range(10), 6000) for make in (interacting_agent, known)
    )
    assert ours.sum() <= 1.05 * imm.sum()
