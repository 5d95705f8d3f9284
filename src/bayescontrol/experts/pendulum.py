"""Pendulum: a rod of unknown mass and length, too heavy to be lifted in one go.

    s = (φ, ω), φ = 0 upright;  o = (cos φ, sin φ, ω);   |u| ≤ 2
    E = m l² ω² / 6 + m g (l / 2) (cos φ - 1)            zero when it stands upright

Two controllers in one. Far from the top: dE/dt = u ω, so u = -k E ω brings E to zero, whatever
the way (swing-up). Near it: the regulator u = -K s. The limit of the torque is the plant's.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import numpy as np

from bayescontrol.experts.limits import limited
from bayescontrol.experts.linearise import linearise
from bayescontrol.experts.mode import SimulatorMode
from bayescontrol.experts.noise import Gaussian
from bayescontrol.experts.plant import Kind
from bayescontrol.linear.riccati import riccati


def _observed(s: Any) -> tuple[float, float, float]:
    return math.cos(s[0]), math.sin(s[0]), float(s[1])


def _state(x: Any) -> tuple[float, float]:
    return math.atan2(x[1], x[0]), float(x[2])


def _torque(u: Any) -> Any:
    return np.array([u], np.float64)


#: Pendulum-v1 as it comes; an action is one number.
PENDULUM: Final = Kind("Pendulum-v1", _observed, _state, _torque)

_G: Final = 10.0
_TORQUE: Final = 2.0
_Q: Final = np.diag([1.0, 0.1])
_R: Final = np.array([[0.01]])


class Pendulum(NamedTuple):
    """θ = (m, l): one hypothesis about the rod.

    >>> Pendulum(m=0.7).name
    'mass 0.7, length 1.0'
    """

    m: float = 1.0
    l: float = 1.0  # noqa: E741 - the environment's symbol

    @property
    def name(self) -> str:
        """What to call it."""
        return f"mass {self.m}, length {self.l}"

    def attributes(self) -> dict[str, float]:
        """θ as the environment has it.

        >>> Pendulum(m=0.7).attributes()
        {'m': 0.7, 'l': 1.0}
        """
        return {"m": self.m, "l": self.l}

    def energy(self, x: Any) -> float:
        """E(x) = m l² ω² / 6 + m g (l / 2) (cos φ - 1).

        >>> Pendulum().energy((1.0, 0.0, 0.0)), Pendulum().energy((-1.0, 0.0, 0.0))
        (0.0, -10.0)
        """
        m, l = self  # noqa: E741 - the environment's symbol
        return float(m * l * l * x[2] ** 2 / 6 + m * _G * l / 2 * (x[0] - 1.0))

    def expert(self, limit: float = _TORQUE) -> Callable[[Any], float]:
        """u = -K s where the regulator can hold the rod, else -E ω, within the limit.

        >>> u = Pendulum().expert()
        >>> u((-1.0, 0.0, 1.0)), round(u((1.0, 0.0, 0.1)), 3)      # pump below, hold above
        (2.0, -0.328)
        """
        simulate = PENDULUM.simulator(**self.attributes())
        A, B = linearise(lambda s, u: _state(simulate(_observed(s), u[0])), np.zeros(2))
        k0, k1 = riccati(A, B, _Q, _R)[1][0].tolist()
        scale = self.m * _G * self.l  # of the energy, from bottom to top

        def policy(x: Any) -> float:
            phi, omega = _state(x)
            u: float = -k0 * phi - k1 * omega
            if x[0] > 0.0 and abs(u) < 2.0 * limit:
                return u
            pump = -20.0 * limit * self.energy(x) / scale * omega
            return pump if omega else limit  # at rest at the bottom: any push will do

        return limited(policy, -limit, limit)

    def mode(self, noise: Gaussian | None = None, limit: float = _TORQUE) -> SimulatorMode:
        """The hypothesis that θ is true, and the expert for it."""
        simulator = PENDULUM.simulator(**self.attributes())
        return SimulatorMode(simulator, self.expert(limit), noise, self.name)


#: Three masses, three lengths.
NINE_RODS: Final = tuple(Pendulum(m, l) for m in (0.7, 1.0, 1.4) for l in (0.7, 1.0, 1.4))  # noqa: E741


def pendulum_modes(
    noise: Gaussian | None = None,
    hypotheses: Iterable[Pendulum] = NINE_RODS,
    *,
    limit: float = _TORQUE,
) -> list[SimulatorMode]:
    """A mode for each hypothesis, nine by default; `limit` bounds the torque of every expert.

    >>> [mode.name for mode in pendulum_modes()][:2]
    ['mass 0.7, length 0.7', 'mass 0.7, length 1.0']
    """
    return [hypothesis.mode(noise, limit) for hypothesis in hypotheses]
