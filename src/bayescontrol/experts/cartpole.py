"""CartPole: unknown pole, and a motor that may be wired the wrong way round.

    s = (position, velocity, angle, angular velocity),   u = -1 or +1: push left or right
    θ = (half the pole's length, its mass, the sign of the force)

The dynamics are affine in the force, so the two actions give them for every u in between:
f(s, u) = ½ (f(s, 1) + f(s, 0)) + ½ u (f(s, 1) - f(s, 0)). The expert is the sign of the regulator
about the upright for that f.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import numpy as np

from bayescontrol.experts.linearise import linearise
from bayescontrol.experts.mode import SimulatorMode
from bayescontrol.experts.noise import Gaussian
from bayescontrol.experts.plant import Kind
from bayescontrol.linear.riccati import riccati

#: CartPole-v1 as it comes.
CARTPOLE: Final = Kind("CartPole-v1", clear=("steps_beyond_terminated",))

#: Cost of the regulator: position, velocity, angle, angular velocity; and of the push.
_Q: Final = np.diag([0.1, 0.1, 10.0, 1.0])
_R: Final = np.array([[1.0]])


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
        """What to call it."""
        return f"force {'+' if self.sign > 0 else '-'}, half-length {self.length}, mass {self.mass}"

    def attributes(self) -> dict[str, float]:
        """θ as the environment has it, what it derives of θ included."""
        return {
            "length": self.length,
            "masspole": self.mass,
            "total_mass": 1.0 + self.mass,
            "polemass_length": self.mass * self.length,
            "force_mag": 10.0 * self.sign,
        }

    def expert(self) -> Callable[[Any], int]:
        """a = 1 if -K s > 0, else 0: the regulator for θ, as far as two pushes can do it.

        >>> CartPole(sign=1).expert()([0.0, 0.0, 0.1, 0.0])     # it leans to the right: push right
        1
        >>> CartPole(sign=-1).expert()([0.0, 0.0, 0.1, 0.0])
        0
        """
        step = CARTPOLE.simulator(**self.attributes())

        def f(s: Any, u: Any) -> Any:
            right, left = np.array(step(s, 1)), np.array(step(s, 0))
            return 0.5 * (right + left) + 0.5 * u[0] * (right - left)

        _, K = riccati(*linearise(f, np.zeros(4)), _Q, _R)
        k0, k1, k2, k3 = K[0].tolist()

        def policy(x: Any) -> int:
            return int(k0 * x[0] + k1 * x[1] + k2 * x[2] + k3 * x[3] < 0.0)

        return policy

    def mode(self, noise: Gaussian | None = None) -> SimulatorMode:
        """The hypothesis that θ is true, and the expert for it."""
        simulator = CARTPOLE.simulator(**self.attributes())
        return SimulatorMode(simulator, self.expert(), noise, self.name)


#: Five lengths, two masses, both signs of the force.
TWENTY: Final = tuple(
    CartPole(length, mass, sign)
    for sign in (1, -1)
    for length in (0.3, 0.5, 0.8, 1.2, 1.8)
    for mass in (0.1, 0.5)
)


def cartpole_modes(
    noise: Gaussian | None = None, hypotheses: Iterable[CartPole] = TWENTY
) -> list[SimulatorMode]:
    """A mode for each hypothesis, the twenty by default.

    >>> modes = cartpole_modes()
    >>> len(modes), modes[3].name
    (20, 'force +, half-length 0.5, mass 0.5')
    """
    return [hypothesis.mode(noise) for hypothesis in hypotheses]
