"""Beliefs that forget at a fixed rate, to compare with beliefs about change points.

    Λ ← γ Λ + (1 - γ) Λ₀ + x xᵀ / σ²        γ = `forgetting`, and Λμ in the same way

At each step all evidence loses the share 1 - γ of its weight, and the prior returns by as much. The
memory has about 1/(1 - γ) steps, however long the world stays the same. In square-root form, the
factor is multiplied by √γ, and the rows of √(1 - γ) times the prior factor are added.
"""

import math
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, require_between
from bayescontrol._support.saved import Number, declare
from bayescontrol.bandits import ContextualBandit
from bayescontrol.bandits.linear_belief import LinearBelief
from bayescontrol.errors import IncompatibleState, MissingCapability
from bayescontrol.lqr import LinearQuadratic
from bayescontrol.lqr.belief import SystemBelief


def fade(
    R: FloatArray, z: FloatArray, prior: tuple[FloatArray, FloatArray], forgetting: float
) -> None:
    """RᵀR ← γ RᵀR + (1 - γ) R₀ᵀR₀ and Rᵀz ← γ Rᵀz + (1 - γ) R₀ᵀz₀, in place."""
    scale, v = math.sqrt(1.0 - forgetting), np.empty(z.size)
    R *= math.sqrt(forgetting)
    z *= math.sqrt(forgetting)
    for row, target in zip(*prior, strict=True):
        kernels.regression.absorb(R, z, row, scale, scale * target, v)


class ForgettingLinearBelief(LinearBelief):
    """P(w | âo_<t) of contextual arms, with evidence that fades: all arms fade at each reward.

    >>> from bayescontrol import LinearBandit
    >>> belief = ForgettingLinearBelief(LinearBandit(["red", "blue"], features=1), forgetting=0.5)
    >>> for _ in range(50):
    ...     belief.observe([1.0], "red", 3.0)
    >>> belief.precision("red").round(6), belief.mean("red").round(6)    # 1 + 1/(1 - 0.5)
    (array([[3.]]), array([2.]))
    """

    format_name: ClassVar[str] = "ForgettingLinearBelief"
    stateless_draws: ClassVar[bool] = True

    def __init__(self, bandit: ContextualBandit, *, forgetting: float) -> None:
        super().__init__(bandit.link, list(bandit.labels), bandit.features, bandit.prior)
        self.forgetting = require_between("forgetting", forgetting, 0.0, 1.0, ends="(]")

    def observe(self, x: ArrayLike, a: Any, o: Any) -> None:
        """Fade all arms, then learn the reward. An error leaves the belief unchanged."""
        self._event(x, a, o)  # raises if the event is invalid
        posteriors = self._posteriors
        R0, z0 = posteriors._prior
        for j in range(len(posteriors)):
            fade(posteriors.R[j], posteriors.z[j], (R0[j], z0[j]), self.forgetting)
        super().observe(x, a, o)

    def merge(self, other: Any) -> None:
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
    saved_fields = declare(
        Number("weight", "_weight"),
    )

    def __init__(self, problem: LinearQuadratic, *, forgetting: float) -> None:
        if problem.known is None:
            raise MissingCapability("a belief that forgets needs known costs: give Q and R")
        problem = problem.with_proper_prior()
        costs = problem.agent().belief.costs.mean()
        super().__init__(costs, noise=problem.noise, prior=problem.prior, tries=problem.tries)
        self.forgetting = require_between("forgetting", forgetting, 0.0, 1.0, ends="(]")
        self._weight = 0.0  # the number of observations, faded

    @property
    def nu(self) -> float:
        """ν ← γ ν + (1 - γ) ν₀ + 1, the degrees of freedom of the noise."""
        return self._nu0 + self._weight

    def learn(self, x: FloatArray, u: FloatArray, y: FloatArray) -> None:
        """Fade, then add one observation."""
        fade(self.F, self.zero.copy(), (self._prior, self.zero), self.forgetting)
        super().learn(x, u, y)
        self._weight = self.forgetting * self._weight + 1.0

    def merge(self, other: Any) -> None:
        """Raise IncompatibleState: the weight of the evidence depends on its order."""
        raise IncompatibleState(f"{self!r} cannot be merged: its evidence fades with time")
