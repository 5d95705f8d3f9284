"""Experts for Gymnasium's classic control tasks: CartPole, MountainCar and Pendulum.

CartPole: an unknown pole, and a motor that may be wired the wrong way round.

    s = (position, velocity, angle, angular velocity),   u = -1 or +1: push left or right
    θ = (half the pole's length, its mass, the sign of the force)

The dynamics are affine in the force, so the two actions determine them for every u in between:
f(s, u) = ½ (f(s, 1) + f(s, 0)) + ½ u (f(s, 1) - f(s, 0)). The expert is the sign of the linear
regulator about the upright position.

MountainCar: a car that is too weak for its hill, unknown gravity, and a possibly reversed gear.

    v' = v + F a - γ cos 3p,   p' = p + v',   a = -1, 0, +1 (actions 0, 1, 2);   goal: p ≥ ½
    H(p, v) = ½ v² + (γ / 3) sin 3p - F p        constant under full throttle to the right

If H exceeds its value at rest on the barrier, where γ cos 3p = F, the expert uses full throttle to
the right, which leads over the barrier. Otherwise it accelerates along v, which increases H. An
expert that assumes too little gravity turns too early and never arrives; one that assumes too much
gathers more energy than necessary.

Pendulum: a rod of unknown mass and length that the torque cannot lift directly.

    s = (φ, ω), φ = 0 upright;  o = (cos φ, sin φ, ω);   |u| ≤ 2
    E = m l² ω² / 6 + m g (l / 2) (cos φ - 1)            0 in the upright position

Far from the top, dE/dt = u ω, so u = -k E ω brings E to 0 (swing-up). Near the top the expert is
the linear regulator u = -K s.
"""

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from bayescontrol.lqr.matrices import riccati
from bayescontrol.simulators.mode import SimulatorMode, SimulatorNoise, limited
from bayescontrol.simulators.plant import PlantModel, linearise


def _mode(
    model: PlantModel, theta: Any, expert: Any, noise: SimulatorNoise | None
) -> SimulatorMode:
    """Return the mode whose hypothesis is the environment with the attributes of θ."""
    return SimulatorMode(model.simulator(**theta.attributes()), expert, noise, theta.name)


#: Gymnasium's CartPole-v1.
CARTPOLE: Final = PlantModel("CartPole-v1", clear=("steps_beyond_terminated",))

#: Costs of the regulator: position, velocity, angle, angular velocity; and the push.
_CART_Q: Final = np.diag([0.1, 0.1, 10.0, 1.0])
_CART_R: Final = np.array([[1.0]])


class CartPole(NamedTuple):
    """θ = (half-length, mass, sign of the force): one hypothesis about the plant.

    >>> wired_wrong = CartPole(length=0.5, mass=0.1, sign=-1)
    >>> wired_wrong.name
    'force -, half-length 0.5, mass 0.1'
    >>> wired_wrong.attributes()["force_mag"]
    -10.0
    """

    length: float = 0.5
    mass: float = 0.1
    sign: int = 1

    @property
    def name(self) -> str:
        """A name for the mode."""
        return f"force {'+' if self.sign > 0 else '-'}, half-length {self.length}, mass {self.mass}"

    def attributes(self) -> dict[str, float]:
        """Return θ as attributes of the environment, including those derived from θ."""
        return {
            "length": self.length,
            "masspole": self.mass,
            "total_mass": 1.0 + self.mass,
            "polemass_length": self.mass * self.length,
            "force_mag": 10.0 * self.sign,
        }

    def expert(self) -> Callable[[Any], int]:
        """Return the policy a = 1 if -K s > 0, else 0, with the regulator gain K for θ.

        >>> CartPole(sign=1).expert()([0.0, 0.0, 0.1, 0.0])     # it leans right: push right
        1
        >>> CartPole(sign=-1).expert()([0.0, 0.0, 0.1, 0.0])
        0
        """
        step = CARTPOLE.simulator(**self.attributes())

        def f(s: Any, u: Any) -> Any:
            """Return the next state after a push of any strength u in [-1, 1]."""
            right, left = np.array(step(s, 1)), np.array(step(s, 0))
            return 0.5 * (right + left) + 0.5 * u[0] * (right - left)

        _, K = riccati(*linearise(f, np.zeros(4)), _CART_Q, _CART_R)
        k0, k1, k2, k3 = K[0].tolist()

        def policy(x: Any) -> int:
            """Return 1, push right, if -K x > 0; else 0, push left."""
            return int(k0 * x[0] + k1 * x[1] + k2 * x[2] + k3 * x[3] < 0.0)

        return policy

    def mode(self, noise: SimulatorNoise | None = None) -> SimulatorMode:
        """Return the mode with the hypothesis θ and its expert."""
        return _mode(CARTPOLE, self, self.expert(), noise)


#: Five lengths, two masses, both signs of the force.
CARTPOLE_HYPOTHESES: Final = tuple(
    CartPole(length, mass, sign)
    for sign in (1, -1)
    for length in (0.3, 0.5, 0.8, 1.2, 1.8)
    for mass in (0.1, 0.5)
)


#: Gymnasium's MountainCar-v0.
MOUNTAIN_CAR: Final = PlantModel("MountainCar-v0")

#: F, the force of the engine.
_FORCE: Final = 0.001
#: Remaining ½ v² on the barrier: the car passes it at v = 0.02.
_MARGIN: Final = 2e-4
#: The noise floor φ: a step changes velocities by only about a thousandth.
_FLOOR: Final = 1e-5


class MountainCar(NamedTuple):
    """θ = (gravity γ, sign of the force): one hypothesis.

    >>> MountainCar(gravity=0.002, sign=-1).name
    'gravity 0.002, force -'
    """

    gravity: float = 0.0025
    sign: int = 1

    @property
    def name(self) -> str:
        """A name for the mode."""
        return f"gravity {self.gravity}, force {'+' if self.sign > 0 else '-'}"

    def attributes(self) -> dict[str, float]:
        """Return θ as attributes of the environment."""
        return {"gravity": self.gravity, "force": _FORCE * self.sign}

    def expert(self) -> Callable[[Any], int]:
        """Return the policy: full throttle to the right if the energy suffices, else along v.

        >>> drive = MountainCar().expert()
        >>> drive((-0.5, 0.0)), drive((-0.6, -0.01)), drive((-0.9, 0.04))
        (2, 0, 2)
        """
        third, sign = self.gravity / 3.0, self.sign
        # The barrier is at γ cos 3p = F, and H must exceed its value there.
        top = math.acos(min(1.0, _FORCE / self.gravity)) / 3.0
        barrier = third * math.sin(3.0 * top) - _FORCE * top + _MARGIN

        def policy(x: Any) -> int:
            """Return the action, which is one more than a; a reversed gear flips the sign of a."""
            p, v = float(x[0]), float(x[1])
            energy = 0.5 * v * v + third * math.sin(3.0 * p) - _FORCE * p
            return 1 + (sign if energy > barrier or v >= 0.0 else -sign)

        return policy

    def mode(self, noise: SimulatorNoise | None = None) -> SimulatorMode:
        """Return the mode with the hypothesis θ and its expert."""
        return _mode(MOUNTAIN_CAR, self, self.expert(), noise or SimulatorNoise(floor=_FLOOR))


#: Five gravities, both signs of the force.
MOUNTAIN_CAR_HYPOTHESES: Final = tuple(
    MountainCar(gravity, sign)
    for sign in (1, -1)
    for gravity in (0.0015, 0.002, 0.0025, 0.003, 0.0035)
)


def _observed(s: Any) -> tuple[float, float, float]:
    """Return o = (cos φ, sin φ, ω) of the state (φ, ω)."""
    return math.cos(s[0]), math.sin(s[0]), float(s[1])


def _state(x: Any) -> tuple[float, float]:
    """Return the state (φ, ω) of the observation x = (cos φ, sin φ, ω)."""
    return math.atan2(x[1], x[0]), float(x[2])


def _torque(u: Any) -> Any:
    """Return the torque u as an array, which Gymnasium expects."""
    return np.array([u], np.float64)


#: Gymnasium's Pendulum-v1; an action is one number.
PENDULUM: Final = PlantModel("Pendulum-v1", _observed, _state, _torque)

#: Gravity and the largest torque of the environment.
_G: Final = 10.0
_TORQUE: Final = 2.0
#: The regulator acts above the pivot where it demands less than this many times the limit.
_REGULATOR_RANGE: Final = 2.0
#: Swing-up: the torque is at its limit from |E ω| = `scale` / this on.
_PUMP: Final = 20.0
#: Costs of the regulator: angle and angular velocity; and the torque.
_ROD_Q: Final = np.diag([1.0, 0.1])
_ROD_R: Final = np.array([[0.01]])


class Pendulum(NamedTuple):
    """θ = (m, l): one hypothesis about the rod.

    >>> Pendulum(m=0.7).name
    'mass 0.7, length 1.0'
    """

    m: float = 1.0
    l: float = 1.0  # noqa: E741 - the environment's symbol

    @property
    def name(self) -> str:
        """A name for the mode."""
        return f"mass {self.m}, length {self.l}"

    def attributes(self) -> dict[str, float]:
        """Return θ as attributes of the environment."""
        return {"m": self.m, "l": self.l}

    def energy(self, x: Any) -> float:
        """Return E(x) = m l² ω² / 6 + m g (l / 2) (cos φ - 1).

        >>> Pendulum().energy((1.0, 0.0, 0.0)), Pendulum().energy((-1.0, 0.0, 0.0))
        (0.0, -10.0)
        """
        m, l = self  # noqa: E741 - the environment's symbol
        return float(m * l * l * x[2] ** 2 / 6 + m * _G * l / 2 * (x[0] - 1.0))

    def expert(self, limit: float = _TORQUE) -> Callable[[Any], float]:
        """Return the policy u = -K s where the regulator can hold the rod, else u ∝ -E ω.

        >>> u = Pendulum().expert()
        >>> u((-1.0, 0.0, 1.0)), round(u((1.0, 0.0, 0.1)), 3)      # swing up below, hold above
        (2.0, -0.328)
        """
        simulate = PENDULUM.simulator(**self.attributes())
        A, B = linearise(lambda s, u: _state(simulate(_observed(s), u[0])), np.zeros(2))
        k0, k1 = riccati(A, B, _ROD_Q, _ROD_R)[1][0].tolist()
        scale = self.m * _G * self.l  # the energy difference between bottom and top

        def policy(x: Any) -> float:
            """Return the torque before it is limited."""
            phi, omega = _state(x)
            u: float = -k0 * phi - k1 * omega
            if x[0] > 0.0 and abs(u) < _REGULATOR_RANGE * limit:  # cos φ > 0: above the pivot
                return u
            pump = -_PUMP * limit * self.energy(x) / scale * omega
            return pump if omega else limit  # at rest at the bottom: push in any direction

        return limited(policy, -limit, limit)

    def mode(self, noise: SimulatorNoise | None = None, limit: float = _TORQUE) -> SimulatorMode:
        """Return the mode with the hypothesis θ and its expert."""
        return _mode(PENDULUM, self, self.expert(limit), noise)


#: Three masses, three lengths.
PENDULUM_HYPOTHESES: Final = tuple(Pendulum(m, l) for m in (0.7, 1.0, 1.4) for l in (0.7, 1.0, 1.4))  # noqa: E741
