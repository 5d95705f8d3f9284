"""The paper's operation mode for Markov decision problems: m = (Q, ρ).

ξ_m(x,a,y) = Q(x,a) + ρ - M(y),   M(y) = max_a Q(y,a)          what mode m expects to be paid
P(r | m, x, a, y) = N(r; ξ_m(x,a,y), 1/p)                      its hypothesis
P(a | m, x) = 1 for a = arg max_a' Q(x,a')                     its policy
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from bayescontrol.arrays import FloatArray
from bayescontrol.seeding import Stream


class QValues:
    """A mode (Q, ρ): it does what looks best, arg max_a Q(x,a).

    `places` says which row of Q is whose; -∞ marks an action that a state does not offer. A state
    without a row gets one of its actions at random, of `offered(x)`: nothing tells them apart.

    >>> import numpy as np
    >>> mode = QValues({"home": 0}, ("stay", "go"), np.array([[0.0, 1.0]]), rho=0.5)
    >>> mode.act("home", Stream(0)), mode.act("elsewhere", Stream(0)) in ("stay", "go")
    ('go', True)
    """

    def __init__(
        self,
        places: Mapping[Hashable, int],
        actions: Sequence[Any],
        Q: FloatArray,
        rho: float,
        offered: Callable[[Any], Sequence[Any]] | None = None,
    ) -> None:
        self._places, self.actions, self.Q, self.rho = places, tuple(actions), Q, rho
        self._offered = offered

    def act(self, x: Any, rng: Stream) -> Any:
        """arg max_a Q(x,a), the first of several."""
        place = self._places.get(x)
        if place is None or place >= len(self.Q):
            choices = self.actions if self._offered is None else self._offered(x)
            return choices[rng.integers(len(choices))]
        return self.actions[int(self.Q[place].argmax())]

    def __repr__(self) -> str:
        return f"QValues({len(self.Q)} states, ρ = {self.rho:.4g})"
