"""A motor whose load and wiring change: the rule over interacting models against known rates."""

from typing import Any

import numpy as np
import pytest
from benchmarks.motor import KnownRateIMM, MotorOracle, prediction_bits

from bayescontrol import Stream, interact
from bayescontrol.bank import Bank
from bayescontrol_paper import _motor as motors


def known(motor: motors.Motor) -> KnownRateIMM:
    return KnownRateIMM(noise=motor.noise)


def relative_cost(scenario: str, runs: int, steps: int, **options: int) -> float:
    """Return the cost of the rule, divided by that of interacting models with a known rate."""
    ours, imm = (
        sum(motors.motor_cost(make, scenario, run, steps, **options) for run in range(runs))
        for make in (motors.interacting_agent, known)
    )
    return ours / imm


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


def test_an_unknown_rate_costs_little_when_the_wiring_changes_often() -> None:
    """Two runs of 600 steps with a new plant every 200.

    Pilot with seeds 1 to 12: 0.97 to 1.13 of the models with a known rate. On the same seeds a
    belief without changes has at least 4.0, and fading with 0.98 at least 2.2.
    """
    assert relative_cost("sign", 2, 600, every=200) < 1.3


def test_learning_the_rate_costs_few_bits_when_the_load_changes() -> None:
    """One run of 600 steps with a new load every 200: the cost does not show who follows it.

    Pilot with seeds 1 to 8, in bits per step more than with the known rate: 0.002 to 0.004 with a
    learned rate, at least 0.06 with fading 0.96, at least 0.42 with a belief without changes.
    """
    makers: dict[str, Any] = {
        "known": motors.motor_bank(hazard=motors.RATE).belief,
        "learned": motors.motor_bank(hazard=motors.RATES).belief,
        "static": motors.motor_bank().belief,
    }
    bits = prediction_bits(makers, "load", 0, 600, every=200)
    assert bits["learned"] < bits["known"] + 0.02 < bits["static"] - 0.1


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
    costs = [motors.motor_cost(MotorOracle, "load", 3, 50, every=20, seed=2) for _ in range(2)]
    assert costs[0] == costs[1]
    with pytest.raises(ValueError, match=", ".join(motors.SCENARIOS)):
        motors.motor_cost(MotorOracle, "lod", 0, 10)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["load", "sign"])
def test_an_unknown_rate_costs_at_most_five_percent(scenario: str) -> None:
    """Ten runs of 6,000 steps with a new plant every 1,000: the requirement is 1.05.

    In `sign` a belief without changes has 14 and fading 1.5. In `load` they pass too, with 0.80 and
    0.98, because the controller of the true plant is not the cheapest.
    """
    assert relative_cost(scenario, 10, 6000) <= 1.05
