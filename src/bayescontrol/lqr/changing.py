"""A linear plant that changes: the regression of the system for each possible start.

P(A, B, W | s, past) = P(A, B, W | the steps since s)
"""

from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray
from bayescontrol.beliefs.change_points import ArraySegments, ChangePointBelief, Event, Segments
from bayescontrol.lqr.belief import SystemBelief
from bayescontrol.protocols import PosteriorMeasure


class SystemSegments(ArraySegments):
    """The factors F of the regressions and their numbers of observations, for each start."""

    def __init__(self, prior: SystemBelief, starts: int) -> None:
        super().__init__(prior, starts, factor=prior.F.copy(), count=np.array(float(prior.count)))
        self._V, self._nu0 = prior.noise_factor, prior.nu - prior.count

    def attach(self, belief: SystemBelief, *parts: FloatArray) -> None:
        """Make the belief use this factor."""
        belief.F = parts[0]

    def belief(self, place: int) -> SystemBelief:
        """Return the belief of a place: a view of the arrays."""
        belief: SystemBelief = super().belief(place)
        belief.count = int(self.arrays["count"][place])
        return belief

    def likelihoods(self, size: int, event: Event) -> tuple[FloatArray, float]:
        """Return P(y | segment) of the first `size` starts over a scale, and ln of the scale."""
        x, u, y = map(np.array, event)
        factors, belief = self.arrays["factor"], self.prior
        if self._V is None:
            V, nu = factors[0], self._nu0 + self.arrays["count"]
        else:
            V, nu = self._V, np.zeros(size)
        log_scale = kernels.changes.system_likelihoods(
            factors, V, nu, size, x, u, y, belief.row, belief.v, self.p
        )
        return self.p[:size], log_scale

    def learn(self, size: int, event: Event) -> None:
        """Update the first `size` regressions."""
        x, u, y = map(np.array, event)
        belief = self.prior
        kernels.changes.learn_systems(
            self.arrays["factor"], size, x, u, y, belief.row, belief.v, belief.zero
        )
        self.arrays["count"][:size] += 1.0


class ChangingSystemBelief(ChangePointBelief):
    """P(h, s, A, B, W | âo_<t): a plant that may become another one at any step.

    >>> from bayescontrol.lqr import LinearQuadratic
    >>> belief = LinearQuadratic([[1.0]], [[1.0]]).changing().belief()
    >>> belief.observe([1.0], [0.0], [0.5])
    >>> belief
    ChangingSystemBelief(decision 1, segment since 0 with probability 0.9815)
    """

    format_name: ClassVar[str] = "ChangingSystemBelief"
    posterior_measure: ClassVar[PosteriorMeasure | None] = SystemBelief.posterior_measure

    def segments(self, starts: int) -> Segments:
        """Return the regressions of all starts in arrays."""
        return SystemSegments(self.prior, starts)

    def posterior_summary(self) -> dict[str, dict[str, Any]]:
        """Return E[A], E[B] and the number of decisions."""
        means = self.posterior_means()
        return {k: {"mean": v, "count": self.decision} for k, v in means.items()}
