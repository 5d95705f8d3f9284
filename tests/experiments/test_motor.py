"""A motor whose load and wiring change: the rule over interacting models against known rates."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import Stream
from bayescontrol.experiments.control.motor import (
    PLANTS,
    SCENARIOS,
    KnownRateIMM,
    Motor,
    MotorMode,
    MotorOracle,
    interacting_agent,
    motor_costs,
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


def test_worlds_depend_on_the_run_and_not_on_the_agent() -> None:
    first = motor_costs(MotorOracle, "load", [3], 50, every=20, seed=2)
    assert motor_costs(MotorOracle, "load", [2, 3], 50, every=20, seed=2)[1] == first[0]
    with pytest.raises(ValueError, match=", ".join(SCENARIOS)):
        motor_costs(MotorOracle, "lod", [0], 10)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["load", "sign"])
def test_an_unknown_rate_costs_at_most_five_percent(scenario: str) -> None:
    """Ten runs of 6,000 steps with a new plant every 1,000: the requirement is 1.05."""
    ours, imm = (
        motor_costs(make, scenario, range(10), 6000) for make in (interacting_agent, known)
    )
    assert ours.sum() <= 1.05 * imm.sum()
