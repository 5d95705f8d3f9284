"""The rule at a linear plant: draw a system, solve it, use its gain for a while.

m = (A, B, W) ~ P(m | âo_<t),   u_t = -K(m) x_t,   x_{t+1} = o_t
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidSystem
from bayescontrol.linear.belief import SystemBelief
from bayescontrol.linear.checks import as_vector
from bayescontrol.linear.mode import LinearMode
from bayescontrol.linear.plant import next_state
from bayescontrol.linear.prior import SystemPrior
from bayescontrol.linear.schedule import HeldSystem
from bayescontrol.linear.system import LinearSystem
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Held, Schedule, every_step
from bayescontrol.values import unpack


class LinearAgent(ControlRule[LinearMode, FloatArray, FloatArray, Any]):
    """The Bayesian control rule over linear systems. `start` is the state at first, 0 unless given.

    >>> from bayescontrol import interact
    >>> from bayescontrol.linear import DeterminantDoubling, LinearPlant, double_integrator
    >>> system = double_integrator()
    >>> agent = LinearAgent.on(system, schedule=DeterminantDoubling())
    >>> record = interact(agent, LinearPlant(system), 2000)
    >>> round(system.cost(agent.gain) / system.best_cost, 1)
    1.0
    """

    format_name: ClassVar[str] = "LinearAgent"

    #: Whether modes are drawn; a baseline may take the mean instead.
    sampled = True
    #: Deviation of noise on the input at t = 1, and steps of unit noise: the rule needs none.
    exploration = 0.0
    warm_up = 0

    def __init__(
        self,
        belief: SystemBelief,
        start: npt.ArrayLike | None = None,
        schedule: Schedule = every_step,
    ) -> None:
        try:
            start = np.zeros(belief.states) if start is None else start
            x = as_vector(start, belief.states, "the start").copy()
        except BadEvidence as error:
            raise InvalidSystem(str(error)) from None
        super().__init__(belief, x, next_state, schedule)

    @classmethod
    def on(
        cls,
        system: LinearSystem,
        *,
        noise: Literal["known", "unknown"] = "unknown",
        prior: SystemPrior | None = None,
        start: npt.ArrayLike | None = None,
        **options: Any,
    ) -> Any:
        """An agent for a system of which it knows the costs, and the noise if that is "known".

        `start` must be where the plant is: an agent that begins elsewhere takes the jump for
        evidence about A and B.

        >>> from bayescontrol.linear import double_integrator
        >>> LinearAgent.on(double_integrator()).belief
        SystemBelief(2 states, 1 input, unknown noise, after 0 observations)
        """
        if noise not in ("known", "unknown"):
            raise InvalidSystem(f"noise={noise!r}: it is 'known' or 'unknown'")
        W = system.W if noise == "known" else None
        return cls(SystemBelief(system.costs, noise=W, prior=prior), start, **options)

    @property
    def gain(self) -> FloatArray:
        """K of the mode in charge; NaN before the first action."""
        shape = (self.belief.inputs, self.belief.states)
        return np.full(shape, np.nan) if self.mode is None else self.mode.K.copy()

    def _held(self) -> Held[FloatArray]:
        return HeldSystem.of(super()._held(), self.belief.growth())

    def load(self, arrays: Arrays) -> None:
        """As `ControlRule.load`; states that are no numbers are refused, and nothing changes."""
        if isinstance(arrays, Mapping):
            for name in {"situation", "drawn_in"} & arrays.keys():
                try:
                    as_vector(unpack(arrays[name]), self.belief.states, f"the saved {name!r}")
                except BadEvidence as error:
                    raise IncompatibleState(f"the saved state is damaged: {error}") from None
        super().load(arrays)

    # -- for compiled loops --------------------------------------------------------------------

    def clock(self) -> tuple[int, int, FloatArray]:
        """Actions so far, the time of the last draw, and the state in which it was made."""
        return self._t, self._drawn_at, self._drawn_in

    def wind(self, t: int, drawn_at: int, drawn_in: FloatArray, x: FloatArray) -> None:
        """Be where a compiled loop has led; the belief is there already."""
        self._t, self._drawn_at, self._drawn_in, self.x = t, drawn_at, drawn_in, x
        self.mode = self.belief.last()
