"""Bayesian Q-learning (Dearden, Friedman & Russell 1998): the paper's nearest relative.

    R(x,a) ~ N(q, 1/τ),  (q, τ) normal-gamma with μ, κ, α, β: one for each pair, independent
    observed: r + γ R(y, b), b the best action of y by its mean, entering by its two moments

Of the two updates of that article this is *moment updating*; the other, mixture updating, needs an
integral at each step. Both ways to act are here: "sampling" draws every q and takes the largest,
as the control rule would if these were its modes; "vpi" adds to each mean the myopic value of
perfect information. What differs from the control rule: returns of pairs are taken for independent,
and a successor's uncertainty is counted as noise, which makes moment updating sure too soon. All
that was ever expected weighs alike, first guesses included: a mean nears its value as n^-(1-γ).
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, UIntArray
from bayescontrol.baselines.mdp.checks import between
from bayescontrol.baselines.mdp.learner import TabularLearner


class BayesianQ(TabularLearner):
    """Normal-gamma beliefs over discounted returns, by moment updating.

    `mu0`, `kappa0`, `alpha0` > 1 and `beta0` are the prior of every pair: E[q] = μ0, and q has
    variance β0/(κ0 (α0 - 1)). States, actions and masks: see `TabularLearner`.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(3)
    >>> agent = BayesianQ.on(mdp, gamma=0.9)
    >>> record = interact(agent, mdp.environment(), 2_000)
    >>> float(record.observations["reward"][-300:].mean()) > 0.3
    True
    >>> agent.means(0)[0] > agent.means(0)[1]
    True
    """

    format_name: ClassVar[str] = "BayesianQ"

    def __init__(
        self,
        states: int | Iterable[Hashable] | None,
        actions: int | Iterable[Hashable],
        gamma: float = 0.95,
        selection: Literal["sampling", "vpi"] = "sampling",
        mu0: float = 0.0,
        kappa0: float = 1.0,
        alpha0: float = 1.5,
        beta0: float = 1.0,
        *,
        start: Hashable | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        if selection not in ("sampling", "vpi"):
            raise ValueError(f"selection={selection!r}: it must be 'sampling' or 'vpi'")
        settings: dict[str, Any] = {
            "gamma": between("gamma", gamma, 0, 1, ends="[)"),
            "selection": selection,
            "mu0": between("mu0", mu0, -np.inf, np.inf, ends="()"),
            "kappa0": between("kappa0", kappa0, 0, np.inf, ends="()"),
            "alpha0": between("alpha0", alpha0, 1, np.inf, ends="()"),
            "beta0": between("beta0", beta0, 0, np.inf, ends="()"),
        }
        self._gamma, self._vpi = settings["gamma"], selection == "vpi"
        super().__init__(states, actions, start, allowed, settings)

    def means(self, x: Any) -> dict[Any, float]:
        """E[q(x,·)] of the actions that x offers."""
        row = self._rows["beliefs"][self.number(x), :, 0]
        return {a: float(row[self.actions.place(a)]) for a in self.actions_in(x)}

    def belief(self, x: Any, a: Any) -> tuple[float, float, float, float]:
        """μ, κ, α, β of a pair.

        >>> BayesianQ(1, 1).belief(0, 0)
        (0.0, 1.0, 1.5, 1.0)
        """
        row = self._rows["beliefs"][self.number(x), self.actions.place(a)]
        mu, kappa, alpha, beta = row.tolist()
        return mu, kappa, alpha, beta

    def _fresh(self, offered: npt.NDArray[np.bool_]) -> dict[str, FloatArray]:
        prior = [self._settings[name] for name in ("mu0", "kappa0", "alpha0", "beta0")]
        rows = np.tile(prior, (offered.size, 1))
        rows[~offered, 0] = -np.inf
        return {"beliefs": rows}

    def _choose(self, x: int, state: UIntArray) -> int:
        return kernels.bayesian_q.choose(self._rows["beliefs"], self._vpi, x, state)

    def _learn(self, x: int, a: int, r: float, y: int) -> bool:
        return kernels.bayesian_q.learn(self._rows["beliefs"], self._gamma, x, a, r, y)

    def _interact(self, *world_and_columns: Any) -> tuple[int, int]:
        rows = self._rows["beliefs"]
        return kernels.bayesian_q.interact(rows, self._gamma, self._vpi, *world_and_columns)
