"""Controllers of a linear plant to compare with, and linear beliefs that forget.

    optimal                   u = -K* x, of the true plant
    certainty equivalence     u = -K(mean [A B]) x: ignores its uncertainty
    ... with exploration      u = -K(mean [A B]) x + σ t^(-1/4) n: variance σ²/√t

Exploration has the rate of Simchowitz & Foster, "Naive exploration is optimal for online LQR"
(2020). Lazy Thompson sampling (Abbasi-Yadkori & Szepesvári, 2015) is no baseline but the control
rule with the schedule `DeterminantDoubling`.

Beliefs that forget at a fixed rate are compared with beliefs about change points:

    Λ ← γ Λ + (1 - γ) Λ₀ + x xᵀ / σ²        γ = `forgetting`, and Λμ in the same way

At each step all evidence loses the share 1 - γ of its weight, and the prior returns by as much. The
memory has about 1/(1 - γ) steps, however long the world stays the same. In square-root form, the
factor is multiplied by √γ, and the rows of √(1 - γ) times the prior factor are added.
"""

import math
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, as_integer, require_between
from bayescontrol._support.saved import Array, Number, Saved, declare
from bayescontrol.bandits import ContextualBandit
from bayescontrol.bandits.contexts.belief import LinearBelief
from bayescontrol.errors import IncompatibleState, InvalidSystem, MissingCapability, NotStabilisable
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
        self, system: LinearSystem, start: ArrayLike | None = None, gain: ArrayLike | None = None
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


def fade(R: FloatArray, z: FloatArray, prior: tuple[FloatArray, FloatArray], gamma: float) -> None:
    """RᵀR ← γ RᵀR + (1 - γ) R₀ᵀR₀ and Rᵀz ← γ Rᵀz + (1 - γ) R₀ᵀz₀, in place."""
    scale, v = math.sqrt(1.0 - gamma), np.empty(z.size)
    R *= math.sqrt(gamma)
    z *= math.sqrt(gamma)
    for row, target in zip(*prior, strict=True):
        kernels.regression.absorb(R, z, row, scale, scale * target, v)


class ForgettingLinearBelief(LinearBelief):
    """P(w | âo_<t) of contextual arms, with evidence that fades: all arms fade at each reward.

    >>> from bayescontrol import LinearBandit
    >>> bandit = LinearBandit(["red", "blue"], features=1, sd=1, prior=(0, 1))
    >>> belief = ForgettingLinearBelief(bandit, forgetting=0.5)
    >>> for _ in range(50):
    ...     belief.observe([1.0], "red", 3.0)
    >>> belief.precision("red").round(6), belief.mean("red").round(6)    # 1 + 1/(1 - 0.5)
    (array([[3.]]), array([2.]))
    """

    format_name: ClassVar[str] = "ForgettingLinearBelief"
    stateless_draws: ClassVar[bool] = True

    def __init__(self, bandit: ContextualBandit, *, forgetting: float) -> None:
        if isinstance(bandit.prior, str):
            raise MissingCapability(
                f"{bandit!r} learns its scales, which a belief that forgets does not: create it "
                "with given ones, as sd=1, prior=(0, 1)"
            )
        super().__init__(bandit.link, list(bandit.labels), bandit.features, bandit.prior)
        self.forgetting = require_between("forgetting", forgetting, 0.0, 1.0, ends="(]")

    def observe(self, x: ArrayLike, a: Any, o: Any) -> None:
        """Fade all arms, then learn the reward. An error leaves the belief unchanged."""
        self._event(x, a, o)  # raises if the event is invalid
        posteriors = cast("Any", self._posteriors)
        R0, z0 = posteriors._prior
        for j in range(len(posteriors)):
            fade(posteriors.R[j], posteriors.z[j], (R0[j], z0[j]), self.forgetting)
        super().observe(x, a, o)

    def merge(self, other: object) -> None:
        """Raise IncompatibleState: the weight of the evidence depends on its order."""
        raise IncompatibleState(f"{self!r} cannot be merged: its evidence fades with time")


class ForgettingSystemBelief(SystemBelief):
    """P(A, B, W | âo_<t) of a linear plant, with evidence that fades.

    >>> from bayescontrol.lqr import LinearQuadratic
    >>> belief = ForgettingSystemBelief(LinearQuadratic([[1.0]], [[1.0]]), forgetting=0.5)
    >>> for _ in range(50):
    ...     belief.observe([1.0], [0.0], [3.0])
    >>> round(float(belief.precision()[0, 0]), 6), round(belief.nu, 6)      # 1 + 2 and ν₀ + 2
    (3.0, 5.0)
    """

    format_name: ClassVar[str] = "ForgettingSystemBelief"
    saved_fields = declare(Number("weight", "_weight"))

    def __init__(self, problem: LinearQuadratic, *, forgetting: float) -> None:
        if problem.known is None:
            raise MissingCapability("a belief that forgets needs known costs: give Q and R")
        problem = problem.with_proper_prior()
        costs = problem.agent().belief.costs.mean()  # they are known: exactly Q and R
        super().__init__(costs, noise=problem.noise, prior=problem.prior, tries=problem.tries)
        self.forgetting = require_between("forgetting", forgetting, 0.0, 1.0, ends="(]")
        self._weight = 0.0  # Σ γ^age over the observations

    @property
    def nu(self) -> float:
        """ν ← γ ν + (1 - γ) ν₀ + 1, the degrees of freedom of the noise."""
        return self._nu0 + self._weight

    def learn(self, x: FloatArray, u: FloatArray, y: FloatArray) -> None:
        """Fade, then add one observation.

        F is the factor of the rows (x, u, y) together, so the separate targets of `fade` are zero.
        """
        targets = self.zero.copy()  # `fade` writes to them
        fade(self.F, targets, (self._prior, self.zero), self.forgetting)
        super().learn(x, u, y)
        self._weight = self.forgetting * self._weight + 1.0

    def merge(self, other: object) -> None:
        """Raise IncompatibleState: the weight of the evidence depends on its order."""
        raise IncompatibleState(f"{self!r} cannot be merged: its evidence fades with time")
