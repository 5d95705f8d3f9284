"""A motor whose load and wiring change: plants, controllers, filters."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import Stream, interact
from bayescontrol.bank import Bank
from bayescontrol_paper import _motor as motors


def test_the_plants_are_sampled_from_the_differential_equation() -> None:
    """J dw/dt = -(b + K²/R) w + K/R u with constant u, by small Euler steps."""
    for plant in motors.PLANTS:
        w, u, steps = 3.0, 2.0, 20_000
        for _ in range(steps):
            torque = -(plant.friction + 0.05**2) * w + plant.sign * 0.05 * u
            w += 0.01 / steps * torque / plant.inertia
        a, g = plant.coefficients
        assert a * 3.0 + g * u == pytest.approx(w, rel=1e-3)


def single(plant: Any, noise: float = 1.0) -> Any:
    """Return the agent with the filter and the controller of one plant."""
    return Bank([plant.mode(noise)], setpoint=motors.setpoint).agent()


def test_every_controller_brings_its_plant_to_the_setpoint() -> None:
    for plant in motors.PLANTS:
        motor, agent = motors.Motor({0: plant}), single(plant)
        for _ in range(99):
            u = agent.act(Stream(0))
            a, g = plant.coefficients
            motor.speed, motor.k = a * motor.speed + g * u, motor.k + 1
            agent.observe(u, motor.speed)
        assert motor.speed == pytest.approx(motors.setpoint(99), abs=0.3), plant


def test_the_filter_knows_the_speed_better_than_the_sensor() -> None:
    plant, rng = motors.PLANTS[0], Stream(1)
    motor, agent, errors = motors.Motor({0: plant}, noise=5.0), single(plant, 5.0), []
    for _ in range(500):
        agent.observe(1.0, motor.respond(1.0, rng))
        *_, speed, variance = agent.belief.save()["state/0"][0]
        errors.append(speed - motor.speed)
    # 500 squared errors with memory: the standard error of their mean is about a tenth of it.
    assert np.mean(np.square(errors)) == pytest.approx(variance, rel=0.5)
    assert variance < 25.0 / 10


def test_a_low_cost_does_not_show_that_an_agent_follows_the_load() -> None:
    """A single controller for a heavy load is cheaper than the controller of the true plant."""
    true, heavy = motors.PLANTS[3], motors.PLANTS[10]

    def cost(plant: Any) -> float:
        motor = motors.Motor({0: true})
        interact(single(plant), motor, 1000, seed=7)
        return motor.cost

    # Pilot with streams 8 to 19: 0.31 to 0.33.
    assert cost(heavy) < 0.5 * cost(true)


def test_worlds_depend_on_the_run_and_not_on_the_agent() -> None:
    first, again = (motors.draw_motor("load", 3, 50, every=20, seed=2) for _ in range(2))
    assert first.plants == again.plants != motors.draw_motor("load", 2, 50, every=20, seed=2).plants
    costs = [
        motors.motor_cost(motors.interacting_agent, "load", 3, 50, every=20, seed=2)
        for _ in range(2)
    ]
    assert costs[0] == costs[1]
    with pytest.raises(ValueError, match=", ".join(motors.SCENARIOS)):
        motors.motor_cost(motors.interacting_agent, "lod", 0, 10)
