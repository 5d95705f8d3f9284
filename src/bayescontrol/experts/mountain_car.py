"""MountainCar: a car too weak for its hill, unknown gravity, a gear that may be reversed.

    v' = v + F a - γ cos 3p,   p' = p + v',   a = -1, 0, +1 (actions 0, 1, 2);   goal: p ≥ ½
    H(p, v) = ½ v² + (γ / 3) sin 3p - F p        does not change under full throttle to the right

The energy expert: if H exceeds its value at rest on the barrier, where γ cos 3p = F, then full
throttle to the right leads over it, even if the car now rolls to the left; if not, throttle along
v, which adds to H. One that believes in too light a hill turns too soon and swings for ever;
one that believes in too heavy a hill gathers more than it needs.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from bayescontrol.experts.mode import SimulatorMode
from bayescontrol.experts.noise import Gaussian
from bayescontrol.experts.plant import Kind

#: MountainCar-v0 as it comes.
MOUNTAIN_CAR: Final = Kind("MountainCar-v0")

_FORCE: Final = 0.001
#: What is left of ½ v² on the barrier: the car passes it at v = 0.02, it does not crawl.
_MARGIN: Final = 2e-4
#: Positions are of order one, a step changes velocities by a thousandth.
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
        """What to call it."""
        return f"gravity {self.gravity}, force {'+' if self.sign > 0 else '-'}"

    def attributes(self) -> dict[str, float]:
        """θ as the environment has it.

        >>> MountainCar(sign=-1).attributes()
        {'gravity': 0.0025, 'force': -0.001}
        """
        return {"gravity": self.gravity, "force": _FORCE * self.sign}

    def expert(self) -> Callable[[Any], int]:
        """Full throttle to the right if the energy suffices, else along the velocity.

        >>> drive = MountainCar().expert()
        >>> drive((-0.5, 0.0)), drive((-0.6, -0.01)), drive((-0.9, 0.04))
        (2, 0, 2)
        """
        third, sign = self.gravity / 3.0, self.sign
        top = math.acos(min(1.0, _FORCE / self.gravity)) / 3.0
        barrier = third * math.sin(3.0 * top) - _FORCE * top + _MARGIN

        def policy(x: Any) -> int:
            p, v = float(x[0]), float(x[1])
            energy = 0.5 * v * v + third * math.sin(3.0 * p) - _FORCE * p
            return 1 + (sign if energy > barrier or v >= 0.0 else -sign)

        return policy

    def mode(self, noise: Gaussian | None = None) -> SimulatorMode:
        """The hypothesis that θ is true, and the expert for it."""
        simulator = MOUNTAIN_CAR.simulator(**self.attributes())
        return SimulatorMode(simulator, self.expert(), noise or Gaussian(floor=_FLOOR), self.name)


#: Five gravities, both signs of the force.
TEN_HILLS: Final = tuple(
    MountainCar(gravity, sign)
    for sign in (1, -1)
    for gravity in (0.0015, 0.002, 0.0025, 0.003, 0.0035)
)


def mountain_car_modes(
    noise: Gaussian | None = None, hypotheses: Iterable[MountainCar] = TEN_HILLS
) -> list[SimulatorMode]:
    """A mode for each hypothesis, ten by default. The default floor is 1e-5.

    >>> mountain_car_modes()[9].name
    'gravity 0.0035, force -'
    """
    return [hypothesis.mode(noise) for hypothesis in hypotheses]
