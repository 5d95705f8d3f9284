"""Controllers of a linear plant to compare with.

    optimal                   u = -K* x, of the true plant
    certainty equivalence     u = -K(mean [A B]) x: ignores its uncertainty
    ... with exploration      u = -K(mean [A B]) x + σ t^(-1/4) n: variance σ²/√t

Exploration has the rate of Simchowitz & Foster, "Naive exploration is optimal for online LQR"
(2020). Lazy Thompson sampling (Abbasi-Yadkori & Szepesvári, 2015) is no baseline but the control
rule with the schedule `DeterminantDoubling`.
"""

from typing import Any, ClassVar, Literal, Self

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, as_integer
from bayescontrol._support.saved import Array, Saved, declare
from bayescontrol.errors import InvalidSystem, NotStabilisable
from bayescontrol.lqr.agent import LinearAgent, gain_loop, linear_loop
from bayescontrol.lqr.belief import LinearMode, SystemBelief
from bayescontrol.lqr.matrices import as_matrix, as_start
from bayescontrol.lqr.problem import LinearQuadratic
from bayescontrol.lqr.regression import SystemPrior
from bayescontrol.lqr.system import LinearSystem, next_state
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import StreamLike, state_of


class OptimalController(Saved):
    """u = -K x with the optimal gain of the true plant, or with a given gain.

    >>> from bayescontrol import Stream
    >>> from bayescontrol.lqr import double_integrator
    >>> agent = OptimalController(double_integrator(), start=[1.0, 0.0])
    >>> agent.act(Stream(0)).round(3)
    array([-0.422])
    """

    format_name: ClassVar[str] = "OptimalController"
    saved_fields = declare(Array("situation", "x"), Array("gain", shared=True))
    #: T(x, a, o) = y: the situation is the state.
    advance = staticmethod(next_state)
    fused_loop = staticmethod(gain_loop)

    def __init__(
        self,
        system: LinearSystem,
        start: ArrayLike | None = None,
        gain: ArrayLike | None = None,
    ) -> None:
        self.x, shape = as_start(start, system.states), (system.inputs, system.states)
        self.gain = system.K if gain is None else as_matrix(gain, shape, "gain")

    def act(self, rng: StreamLike) -> FloatArray:
        """Return u = -K x. Draws no random numbers."""
        u = np.empty(len(self.gain))
        kernels.lqr.control(self.gain, self.x, u)
        return u

    def observe(self, a: FloatArray, o: Any) -> None:
        """x ← o; the agent learns nothing."""
        self.x = next_state(self.x, a, o)

    def __repr__(self) -> str:
        gain = np.array2string(self.gain, precision=3, separator=", ")
        return f"OptimalController(K = {gain})"


class CertaintyEquivalence(LinearAgent):
    """u = -K x + σ t^(-1/4) n with the gain of the posterior mean; σ is `exploration`.

    In the first `warm_up` steps the noise is standard normal, since with a prior mean of zero
    nothing else would move the plant. If the posterior mean has no stabilising gain, the last gain
    stays in use; `failed` counts these cases.

    >>> from bayescontrol import interact
    >>> from bayescontrol.lqr import LinearPlant, double_integrator
    >>> system = double_integrator()
    >>> agent = CertaintyEquivalence.on(system, exploration=1.0)
    >>> record = interact(agent, LinearPlant(system), 500, seed=0)
    >>> round(system.cost(agent.gain) / system.best_cost, 1), agent.failed
    (1.0, 0)
    """

    format_name: ClassVar[str] = "CertaintyEquivalence"
    fused_loop = staticmethod(linear_loop)

    sampled = False

    def __init__(
        self,
        belief: SystemBelief,
        start: ArrayLike | None = None,
        schedule: Schedule = every_step,
        *,
        exploration: float = 0.0,
        warm_up: int = 0,
    ) -> None:
        super().__init__(belief, start, schedule)
        if not 0.0 <= exploration < np.inf:
            raise InvalidSystem(f"exploration={exploration}: it must be finite and at least 0")
        self.exploration = float(exploration)
        self.warm_up = as_integer("warm_up", warm_up, 0, InvalidSystem)

    @classmethod
    def on(
        cls,
        system: LinearSystem,
        *,
        noise: Literal["known", "unknown"] = "unknown",
        prior: SystemPrior | None = None,
        start: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Create the controller of a system whose costs are known, in the state `start`."""
        prior = SystemPrior() if prior is None else prior
        agent = LinearQuadratic.on(system, noise=noise, prior=prior, start=start).agent()
        return cls(agent.belief, agent.x, **options)

    @property
    def failed(self) -> int:
        """The number of steps in which the posterior mean had no stabilising gain."""
        return int(self.belief.redrawn)

    def decide(self, x: FloatArray, rng: StreamLike) -> tuple[LinearMode, FloatArray]:
        """Return the mode of the posterior mean, or the last mode if it has no gain, and -K x."""
        mode: LinearMode | None = self.belief.certain() or self.belief.hold()
        if mode is None:
            raise NotStabilisable(
                f"the mean of {self.belief!r} has no stabilising gain, and no gain is in use yet: "
                "choose a prior whose mean has one"
            )
        return mode, mode.act(x, rng)

    def act(self, rng: StreamLike) -> FloatArray:
        """u = -K x + σ t^(-1/4) n."""
        u = super().act(rng)
        kernels.lqr.explore(u, self.exploration, self.warm_up, self._t, state_of(rng))
        return u
