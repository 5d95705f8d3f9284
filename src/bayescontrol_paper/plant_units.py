"""Three plants in SI units, controlled with default settings.

    motor          position, speed and current of a DC motor, every 10 ms; marginally stable
    cart-pole      linearised about the upright position, every 20 ms; unstable, |u| ≤ 20 N
    three masses   in a row, joined by springs, with two forces, every 50 ms; lightly damped

The parameters are those of common textbook models in SI units. Noise deviations are between 0.001
and 0.1, so a prior of unit noise is wrong by up to six orders of magnitude in the variance. The
agent knows Q and R; for the cart-pole also the limits of the force and a backup gain, the optimal
gain of a cart-pole whose masses and length are 30 % too large. A fall is |angle| > 0.5 rad.

    excess     J(K)/J* - 1 of the gain that the agent applies at the last step, exact
    of_mean    the same of the gain of the posterior mean
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.bank.state_space import sampled
from bayescontrol.interaction import interact
from bayescontrol.lqr import LinearQuadratic, LinearSystem

#: The angle of the pole in rad that counts as a fall.
FALL: Final = 0.5
#: The largest force on the cart, in N.
FORCE: Final = 20.0


def _sampled(A: ArrayLike, B: ArrayLike, period: float) -> list[FloatArray]:
    """Return A and B in discrete time, for an input that is constant between samples."""
    n, m = np.shape(B)
    return sampled((np.array(A), np.array(B), np.eye(n), np.zeros((n, m))), period)[:2]


def motor() -> LinearSystem:
    """Return the motor: rad, rad/s, A and V."""
    A, B = _sampled([[0, 1, 0], [0, -2, 20], [0, -5, -50]], [[0], [0], [50]], 0.01)
    Q, W = np.diag([10, 0.1, 0.01]), np.diag([1e-4, 1e-2, 1e-2])
    return LinearSystem(A, B, Q, [[0.1]], W, name="motor")


def cart_pole(scale: float = 1.0) -> LinearSystem:
    """Return the cart-pole, m, m/s, rad, rad/s and N; `scale` multiplies masses and length."""
    g, length, cart, pole, friction = 9.81, 0.5 * scale, 1.0 * scale, 0.2 * scale, 0.1
    dynamics = np.eye(4, k=1)  # position and angle are the integrals of the speeds
    dynamics[1] = 0, -friction / cart, pole * g / cart, 0
    dynamics[3] = 0, -friction / (cart * length), (cart + pole) * g / (cart * length), 0
    A, B = _sampled(dynamics, [[0.0], [1 / cart], [0.0], [1 / (cart * length)]], 0.02)
    Q, W = np.diag([1, 0.1, 10, 0.1]), np.diag([1e-6, 1e-4, 1e-6, 1e-4])
    return LinearSystem(A, B, Q, [[0.1]], W, name="cart-pole")


def three_masses() -> LinearSystem:
    """Return three masses of 1 kg: m, m/s and N."""
    springs = 50.0 * np.array([[2, -1, 0], [-1, 2, -1], [0, -1, 1]])
    B = np.zeros((6, 2))
    B[3, 0] = B[5, 1] = 1.0
    dynamics = np.block([[np.zeros((3, 3)), np.eye(3)], [-springs, -0.01 * springs]])
    A, B = _sampled(dynamics, B, 0.05)
    W = np.diag([1e-5] * 3 + [1e-2] * 3)
    return LinearSystem(A, B, np.eye(6), 0.1 * np.eye(2), W, name="three masses")


@cache
def plants() -> Mapping[str, tuple[LinearSystem, dict[str, Any]]]:
    """Return each plant with the settings of its agent besides Q and R."""
    balanced = {"backup": cart_pole(1.3).K, "limits": (-FORCE, FORCE)}
    return {
        "motor": (motor(), {}),
        "cart-pole": (cart_pole(), balanced),
        "three masses": (three_masses(), {}),
    }


class Controlled(NamedTuple):
    """The result of one run."""

    excess: float  #: J(K)/J* - 1 of the gain that is applied at the last step
    of_mean: float  #: the same of the gain of the posterior mean; ∞ if it has none
    average: float  #: average cost per step of the whole run, divided by J*
    search: int  #: the number of steps until the scale was known
    refused: int  #: how often a drawn gain was replaced
    largest: float  #: the largest |angle| of the cart-pole, 0 for the other plants

    @property
    def fell(self) -> bool:
        """Whether the pole fell."""
        return self.largest > FALL


def control(name: str, run: int, steps: int = 10_000, seed: int = 0) -> Controlled:
    """Control the plant of this name for some steps, with default settings.

    >>> control("motor", run=0, steps=500).excess < 1.0
    True
    """
    system, settings = plants()[name]
    problem = LinearQuadratic(system.Q, system.R, **settings)
    agent, plant = problem.agent(), problem.environment(system)
    record = interact(agent, plant, steps, seed=seed, run=run)
    mean = agent.belief.certain()
    angles = record.observations[:, 2] if name == "cart-pole" else np.zeros(1)
    return Controlled(
        system.cost(agent.gain) / system.best_cost - 1.0,
        np.inf if mean is None else system.cost(mean.K) / system.best_cost - 1.0,
        float(plant.costs(record).mean()) / system.best_cost,
        agent.belief.search_steps,
        agent.belief.refused,
        float(np.abs(angles).max()),
    )
