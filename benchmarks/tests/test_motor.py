"""The rule over interacting models against models with a known rate, a second implementation."""

from typing import Any

import pytest
from benchmarks.motor import KnownRateIMM, prediction_bits

from bayescontrol import Stream
from bayescontrol_paper._motor import (
    PLANTS,
    RATE,
    RATES,
    Motor,
    interacting_agent,
    motor_bank,
    motor_cost,
)


@pytest.mark.parametrize("rate", [1e-3, 0.1])
def test_interacting_models_equal_a_second_implementation_on_the_motor(rate: float) -> None:
    bank = motor_bank(hazard=rate)
    belief, x = bank.belief(), bank.first_signals()
    reference, rng = KnownRateIMM(rate), Stream(3)
    motor = Motor({0: PLANTS[2], 60: PLANTS[19]})
    for _ in range(120):
        u = reference.act(rng)
        y = motor.respond(u, rng)
        reference.observe(u, y)
        belief.observe(x, u, y)
        x = bank.next_signals(x, u, y)
        p, mean, variance = reference.mixed()
        assert belief.posterior() == pytest.approx(p, abs=1e-9)
        mine = belief.save()["state/0"]
        assert mine[:, 3] == pytest.approx(mean, abs=1e-9)
        assert mine[:, 4] == pytest.approx(variance, abs=1e-9)
    assert belief.posterior()[19] > 0.5  # the change was noticed


def known(motor: Motor) -> KnownRateIMM:
    return KnownRateIMM(noise=motor.noise)


def relative_cost(scenario: str, runs: int, steps: int, **options: int) -> float:
    """Return the cost of the rule, divided by that of interacting models with a known rate."""
    ours, imm = (
        sum(motor_cost(make, scenario, run, steps, **options) for run in range(runs))
        for make in (interacting_agent, known)
    )
    return ours / imm


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
        "known": motor_bank(hazard=RATE).belief,
        "learned": motor_bank(hazard=RATES).belief,
        "static": motor_bank().belief,
    }
    bits = prediction_bits(makers, "load", 0, 600, every=200)
    assert bits["learned"] < bits["known"] + 0.02 < bits["static"] - 0.1


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["load", "sign"])
def test_an_unknown_rate_costs_at_most_five_percent(scenario: str) -> None:
    """Ten runs of 6,000 steps with a new plant every 1,000: the requirement is 1.05.

    In `sign` a belief without changes has 14 and fading 1.5. In `load` they pass too, with 0.80 and
    0.98, because the controller of the true plant is not the cheapest.
    """
    assert relative_cost(scenario, 10, 6000) <= 1.05
