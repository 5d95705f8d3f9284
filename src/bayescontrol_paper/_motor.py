"""A DC motor with an unknown load, a noisy speed sensor and a known setpoint; the load may change.

    w' = a w + g u + 0.3 e       y = w' + v n       e, n standard normal, |u| ≤ 12 V, every 10 ms

a and g follow from the inertia J and the friction b of the load, and g has the sign of the wiring.
The setpoint r is a square wave of ±25 rad/s. The cost of a step is (r - w)² + 0.1 u².

There are 24 modes, one for each plant (J, b, sign): a Kalman filter for the speed, and a PI
controller tuned to the plant, in velocity form.

The controllers are tuned for a time constant, not for this cost: a controller for a heavy load is
often cheaper than that of the true plant. So a low cost in `load` does not show that an agent
follows the changes; an agent that never learns can have it. `prediction_bits` in
`benchmarks/motor.py` compares beliefs directly. In `sign` a wrong mode is expensive, and the cost
does show it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayescontrol.bank import PI, Bank, BankAgent, PlantMode
from bayescontrol.interaction import interact
from bayescontrol.seeding import Stream, StreamLike, require_stream

PERIOD = 0.01  # seconds between samples
LIMIT = 12.0  # volts
MOTOR_CONSTANT, RESISTANCE = 0.05, 1.0
TIME_CONSTANT = 0.04  # of the closed loop, in seconds
SPEED_NOISE = 0.3
#: The rate at which plants change in the scenarios, which the agents may not know.
RATE = 1e-3
#: A grid for an unknown rate.
RATES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)

SCENARIOS = ("fixed", "noisy", "load", "sign")


def tuned_gains(a: float, g: float) -> tuple[float, float]:
    """Return kp and ki of a PI controller for the plant w' = a w + g u and TIME_CONSTANT."""
    gain = (1.0 - math.exp(-PERIOD / TIME_CONSTANT)) / g
    return gain * a, gain * (1.0 - a)


class Plant(NamedTuple):
    """The load of the motor, and the sign of its wiring."""

    inertia: float
    friction: float
    sign: int

    @property
    def coefficients(self) -> tuple[float, float]:
        """(a, g) of the sampled plant."""
        drag = self.friction + MOTOR_CONSTANT**2 / RESISTANCE
        a = math.exp(-drag / self.inertia * PERIOD)
        return a, self.sign * MOTOR_CONSTANT / RESISTANCE / drag * (1.0 - a)

    @property
    def gains(self) -> tuple[float, float]:
        """(kp, ki) of the PI controller for the time constant."""
        return tuned_gains(*self.coefficients)

    def mode(self, noise: float = 1.0) -> PlantMode:
        """Return the plant with its filter and its controller; the motor stands still at first."""
        a, g = self.coefficients
        return PlantMode(
            ([[a]], [[g]], [[1.0]]), PI(*self.gains), process_noise=SPEED_NOISE, sensor_noise=noise,
            limits=(-LIMIT, LIMIT), start_noise=1.0,
            name=f"J {self.inertia:g}, b {self.friction:g}, sign {self.sign:+d}",
        )  # fmt: skip


PLANTS = [
    Plant(inertia, friction, sign)
    for sign in (1, -1)
    for inertia in (5e-5, 1e-4, 2e-4, 4e-4)
    for friction in (1e-4, 1e-3, 4e-3)
]


def setpoint(k: int) -> float:
    """Return the wanted speed at step k: ±25 rad/s, with a new sign every 100 steps."""
    return -25.0 if k // 100 % 2 else 25.0


def motor_bank(noise: float = 1.0, plants: Sequence[Plant] = PLANTS, **options: Any) -> Bank:
    """Return the bank of all 24 plants, or of the given `plants`."""
    return Bank([plant.mode(noise) for plant in plants], setpoint=setpoint, **options)


class Motor:
    """The world. `plants` maps the first step of each plant to the plant.

    `speed` is the true speed, `k` the number of steps so far, and `cost` their total cost.
    """

    def __init__(self, plants: Mapping[int, Plant], noise: float = 1.0) -> None:
        self.plants, self.plant, self.noise = plants, plants[0], noise
        self.speed, self.k, self.cost = 0.0, 0, 0.0

    def respond(self, a: float, rng: StreamLike) -> float:
        """Apply the input, add the cost of the step and return the measured speed."""
        rng = require_stream(rng)
        self.plant = self.plants.get(self.k, self.plant)
        decay, gain = self.plant.coefficients
        u = min(max(float(a), -LIMIT), LIMIT)
        self.speed = decay * self.speed + gain * u + SPEED_NOISE * rng.normal()
        self.k += 1
        self.cost += (setpoint(self.k) - self.speed) ** 2 + 0.1 * u * u
        return float(self.speed + self.noise * rng.normal())


def interacting_agent(motor: Motor, rates: Any = RATES, **options: Any) -> Any:
    """Return the control rule over interacting models, for a motor that changes.

    `rates` is the rate of changes, or a sequence of rates among which the agent learns.
    """
    return motor_bank(motor.noise, hazard=rates).agent(**options)


class WeightedAgent(BankAgent):
    """Classical multiple-model control: the mean input of all modes, weighted by P(m | past)."""

    def decide(self, x: Any, rng: Stream) -> tuple[Any, Any]:
        """Return the most probable mode and the weighted input."""
        v = self.belief.posterior()
        inputs = [self.belief.select(m).act(x, rng) for m in range(len(v))]
        return self.belief.select(int(v.argmax())), math.fsum(v * inputs)


class SelfTuning:
    """Recursive least squares with forgetting, and the PI tuning for the estimated plant.

    `theta` has the estimates of (a, g), and `P` their covariance up to the variance of the noise.
    `u`, `y` and `previous_y` are the last input and the last two measured speeds.
    """

    def __init__(self, forgetting: float = 0.995) -> None:
        self.theta, self.P = np.array([0.9, 1.0]), np.diag([0.1, 10.0])
        self.forgetting, self.k = forgetting, 0
        self.y, self.previous_y, self.u = 0.0, 0.0, 0.0

    def act(self, rng: StreamLike) -> float:
        """Return the input of the PI controller for the estimates, in velocity form.

        Estimates are limited to 0.3 ≤ a ≤ 0.999 and |g| ≥ 0.2, so that the gains stay moderate
        while the estimates are poor.
        """
        a, g = self.theta
        kp, ki = tuned_gains(min(max(a, 0.3), 0.999), math.copysign(max(abs(g), 0.2), g))
        error, previous_error = setpoint(self.k + 1) - self.y, setpoint(self.k) - self.previous_y
        u = self.u + kp * (error - previous_error) + ki * error
        return float(np.clip(u, -LIMIT, LIMIT))

    def observe(self, a: float, o: float) -> None:
        """Update the estimates from the action, which is the input u, and the measured speed."""
        u, speed = float(a), float(o)
        z = np.array([self.y, u])  # the regressors of the new speed
        gain = self.P @ z / (self.forgetting + z @ self.P @ z)
        self.theta = self.theta + gain * (speed - z @ self.theta)
        self.P = (self.P - np.outer(gain, z @ self.P)) / self.forgetting
        self.k, self.previous_y, self.y, self.u = self.k + 1, self.y, speed, u


def draw_motor(scenario: str, run: int, steps: int, *, every: int = 1000, seed: int = 0) -> Motor:
    """Draw a motor; in `load` and `sign` it has a new plant every `every` steps.

    In `load` the sign of the wiring stays the same. In `noisy` the noise of the sensor is 5 rad/s,
    otherwise 1.
    """
    if scenario not in SCENARIOS:
        raise ValueError(f"scenario={scenario!r}: expected one of {', '.join(SCENARIOS)}")
    rng = Stream.named(seed, run, "plants")
    plants = {0: PLANTS[rng.integers(len(PLANTS))]}
    if scenario in ("load", "sign"):
        keeps_sign, sign = scenario == "load", plants[0].sign
        choices = [p for p in PLANTS if not keeps_sign or p.sign == sign]
        plants |= {k: choices[rng.integers(len(choices))] for k in range(every, steps, every)}
    return Motor(plants, 5.0 if scenario == "noisy" else 1.0)


def motor_cost(
    make: Callable[[Motor], Any], scenario: str, run: int, steps: int, **options: int
) -> float:
    """Return the cost of a run of the agent `make(motor)`; the options are those of `draw_motor`.

    The plants and the noise depend on the seed and the run only.
    """
    motor = draw_motor(scenario, run, steps, **options)
    interact(make(motor), motor, steps, seed=options.get("seed", 0), run=run)
    return motor.cost
