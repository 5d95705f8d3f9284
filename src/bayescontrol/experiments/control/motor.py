"""A DC motor with an unknown load, a noisy speed sensor and a known setpoint; the load may change.

    w' = a w + g u + 0.3 e       y = w' + v n       e, n standard normal, |u| ≤ 12 V, every 10 ms

a and g follow from the inertia J and the friction b of the load, and g has the sign of the wiring.
The setpoint r is a square wave of ±25 rad/s. The cost of a step is (r - w)² + 0.1 u².

There are 24 modes, one for each plant (J, b, sign): a Kalman filter for the speed, and a PI
controller tuned to the plant. The filter is the private state. The situation (k, u) is the clock k,
which gives the setpoint, and the last input.

The controllers are tuned for a time constant, not for this cost: a controller for a heavy load is
often cheaper than that of the true plant. So a low cost in `load` does not show that an agent
follows the changes; an agent that never learns can have it. `prediction_bits` compares beliefs
directly. In `sign` a wrong mode is expensive, and the cost does show it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.beliefs.interacting import InteractingBelief, mix_gaussians
from bayescontrol.interaction import both_streams
from bayescontrol.protocols import MISSING, SituatedState
from bayescontrol.rule import ControlRule, Rule
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

X = tuple[int, float]


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


PLANTS = [
    Plant(inertia, friction, sign)
    for sign in (1, -1)
    for inertia in (5e-5, 1e-4, 2e-4, 4e-4)
    for friction in (1e-4, 1e-3, 4e-3)
]


def setpoint(k: int) -> float:
    """The speed that is wanted at step k."""
    return -25.0 if k // 100 % 2 else 25.0


class Controller:
    """A PI controller in velocity form, with the gains for one plant."""

    def __init__(self, plant: Plant) -> None:
        a, g = plant.coefficients
        gain = (1.0 - math.exp(-PERIOD / TIME_CONSTANT)) / g
        self.proportional, self.integral = gain * a, gain * (1.0 - a)

    def __call__(self, k: int, u: float, speed: float, speed_before: float) -> float:
        """Return the input for step k + 1, after input u and these two estimates of the speed."""
        error, error_before = setpoint(k + 1) - speed, setpoint(k) - speed_before
        change = self.proportional * (error - error_before) + self.integral * error
        return min(max(u + change, -LIMIT), LIMIT)


class MotorMode:
    """A Kalman filter and a PI controller for one plant. The state is (ŵ, P, the ŵ before)."""

    uses_situation = True

    def __init__(self, plant: Plant, noise: float = 1.0) -> None:
        self.plant, self.noise = plant, noise
        self.name = f"J {plant.inertia:g}, b {plant.friction:g}, sign {plant.sign:+d}"
        self.control = Controller(plant)
        self.a, self.g = plant.coefficients

    def start(self) -> FloatArray:
        """The motor stands still, with variance 1."""
        return np.array([0.0, 1.0, 0.0])

    def act(self, xs: SituatedState, rng: Stream) -> float:
        """Return the input of the controller."""
        (k, u), (speed, _, before) = xs
        return self.control(k, u, float(speed), float(before))

    def _predict(self, s: FloatArray, u: float) -> tuple[float, float]:
        """Return the mean and the variance of the next speed."""
        return self.a * s[0] + self.g * u, self.a**2 * s[1] + SPEED_NOISE**2

    def log_likelihood(self, xs: SituatedState, a: float, o: float) -> float:
        """Return ln N(y; ŵ⁻, P⁻ + v²)."""
        mean, variance = self._predict(xs.s, a)
        S = variance + self.noise**2
        return -0.5 * ((o - mean) ** 2 / S + math.log(2.0 * math.pi * S))

    def advance(self, xs: SituatedState, a: float, o: Any) -> FloatArray:
        """Return the state after input a and output o; without an output, the prediction."""
        mean, variance = self._predict(xs.s, a)
        gain = 0.0 if o is MISSING else variance / (variance + self.noise**2)
        error = 0.0 if o is MISSING else o - mean
        return np.array([mean + gain * error, (1.0 - gain) * variance, xs.s[0]])

    def mix_states(self, states: Sequence[FloatArray], weights: FloatArray) -> FloatArray:
        """Return the mean and the variance of the mixture, and the mean of the speeds before."""
        s = np.array(states)
        mean, variance = mix_gaussians(s[:, 0], s[:, 1], weights)
        return np.array([mean, variance, weights @ s[:, 2]])


def next_situation(x: X, a: float, o: Any) -> X:
    """T((k, u), a, o) = (k + 1, a)."""
    return x[0] + 1, float(a)


def motor_modes(noise: float = 1.0) -> list[MotorMode]:
    """Return the 24 modes."""
    return [MotorMode(plant, noise) for plant in PLANTS]


class Motor:
    """The world. `changes` maps a step to the plant from this step on."""

    def __init__(
        self, plant: Plant, noise: float = 1.0, changes: Mapping[int, Plant] | None = None
    ) -> None:
        self.plant, self.noise, self.changes = plant, noise, dict(changes or {})
        self.speed, self.k, self.cost = 0.0, 0, 0.0

    def respond(self, a: float, rng: StreamLike) -> float:
        """Apply the input, add the cost of the step and return the measured speed."""
        rng = require_stream(rng)
        self.plant = self.changes.get(self.k, self.plant)
        decay, gain = self.plant.coefficients
        u = min(max(float(a), -LIMIT), LIMIT)
        self.speed = decay * self.speed + gain * u + SPEED_NOISE * rng.normal()
        self.k += 1
        self.cost += (setpoint(self.k) - self.speed) ** 2 + 0.1 * u * u
        return float(self.speed + self.noise * rng.normal())


class KnownRateIMM:
    """Interacting multiple models with a known rate, in one array; the most probable mode acts.

    This is the usual solution of a control engineer who knows the rate, and a second implementation
    of `InteractingBelief` for this problem.
    """

    def __init__(self, rate: float = RATE, noise: float = 1.0) -> None:
        n = len(PLANTS)
        self.controllers = [Controller(plant) for plant in PLANTS]
        self.a, self.g = np.array([plant.coefficients for plant in PLANTS]).T
        self.table, self.noise = (1.0 - rate) * np.eye(n) + rate / n, noise
        self.p, self.mean, self.variance = np.full(n, 1.0 / n), np.zeros(n), np.ones(n)
        self.before, self.x = np.zeros(n), (0, 0.0)

    def mixed(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the probabilities, means and variances with which the next step begins."""
        p = self.p @ self.table
        w = self.table * self.p[:, None] / p
        mean = self.mean @ w
        return p, mean, ((self.variance[:, None] + (self.mean[:, None] - mean) ** 2) * w).sum(0)

    def act(self, rng: StreamLike) -> float:
        """Return the input of the most probable mode."""
        m = int(self.p.argmax())
        return self.controllers[m](*self.x, float(self.mean[m]), float(self.before[m]))

    def observe(self, a: float, o: float) -> None:
        """Mix, predict and correct all filters."""
        p, start, variance = self.mixed()
        mean, variance = self.a * start + self.g * a, self.a**2 * variance + SPEED_NOISE**2
        S, error = variance + self.noise**2, o - mean
        self.before, self.mean = start, mean + variance / S * error
        self.variance = (1.0 - variance / S) * variance
        log_p = -0.5 * (error**2 / S + np.log(S))
        p = p * np.exp(log_p - log_p.max())
        self.p, self.x = p / p.sum(), next_situation(self.x, a, o)


class MotorOracle:
    """The controller of the true plant, with its Kalman filter: it knows every change."""

    def __init__(self, motor: Motor) -> None:
        self.motor, self.x = motor, (0, 0.0)
        self.s = self._mode().start()

    def _mode(self) -> MotorMode:
        """Return the mode of the plant at this step."""
        return MotorMode(self.motor.changes.get(self.x[0], self.motor.plant), self.motor.noise)

    def act(self, rng: StreamLike) -> float:
        """Return the input of the controller of the true plant."""
        return self._mode().act(SituatedState(self.x, self.s), require_stream(rng))

    def observe(self, a: float, o: float) -> None:
        """Update the filter of the true plant."""
        # The motor has just used this plant, also at a step with a change.
        mode = MotorMode(self.motor.plant, self.motor.noise)
        self.s = mode.advance(SituatedState(self.x, self.s), a, o)
        self.x = next_situation(self.x, a, o)


def interacting_agent(motor: Motor, rates: npt.ArrayLike = RATES) -> Rule:
    """Return the control rule over interacting models, which learns the rate of changes."""
    belief = InteractingBelief(motor_modes(motor.noise), hazard=rates)
    return ControlRule(belief, (0, 0.0), next_situation)


def draw_plants(scenario: str, steps: int, every: int, rng: Stream) -> dict[int, Plant]:
    """Draw a plant for step 0 and, in `load` and `sign`, a new one every `every` steps.

    In `load` the sign of the wiring stays the same, in `sign` it may change too.
    """
    first = PLANTS[rng.integers(len(PLANTS))]
    choices = [plant for plant in PLANTS if scenario == "sign" or plant.sign == first.sign]
    changes = range(every, steps, every) if scenario in ("load", "sign") else ()
    return {0: first} | {k: choices[rng.integers(len(choices))] for k in changes}


def motor_costs(
    make: Callable[[Motor], Any],
    scenario: str,
    runs: Iterable[int],
    steps: int,
    *,
    every: int = 1000,
    seed: int = 0,
) -> FloatArray:
    """Return the cost of each run of the agents `make(motor)`.

    `scenario` is "fixed", "noisy", "load" or "sign"; in the last two the plant changes every
    `every` steps. The plants and the noise depend on `seed` and the run only.
    """
    if scenario not in SCENARIOS:
        raise ValueError(f"scenario={scenario!r}: expected one of {', '.join(SCENARIOS)}")
    costs = []
    for run in runs:
        plants = draw_plants(scenario, steps, every, Stream.named(seed, run, "plants"))
        motor = Motor(plants[0], 5.0 if scenario == "noisy" else 1.0, plants)
        agent, (p, q) = make(motor), both_streams(seed, run)
        for _ in range(steps):
            a = agent.act(p)
            agent.observe(a, motor.respond(a, q))
        costs.append(motor.cost)
    return np.array(costs)


def prediction_bits(
    makers: Mapping[str, Callable[[], Any]],
    scenario: str,
    runs: Iterable[int],
    steps: int,
    *,
    every: int = 1000,
    seed: int = 0,
) -> dict[str, float]:
    """Return -log2 P(y | past) per step of beliefs that see the same inputs and outputs.

    `makers` are functions that return a belief over `motor_modes()`, by name. The inputs are those
    of `KnownRateIMM`, so that no belief profits from its own controller.
    """
    bits = dict.fromkeys(makers, 0.0)
    runs = list(runs)
    for run in runs:
        plants = draw_plants(scenario, steps, every, Stream.named(seed, run, "plants"))
        motor, driver, rng = (
            Motor(plants[0], 1.0, plants),
            KnownRateIMM(),
            both_streams(seed, run)[1],
        )
        beliefs = {name: make() for name, make in makers.items()}
        for _ in range(steps):
            x, a = driver.x, driver.act(rng)
            o = motor.respond(a, rng)
            driver.observe(a, o)
            for name, belief in beliefs.items():
                bits[name] += belief.surprise(x, a, o) / (steps * len(runs))
                belief.observe(x, a, o)
    return bits
