"""R-learning (Schwartz 1993; Singh 1994, Algorithm 3) with uncertainty exploration.

    Q(x,a) ← (1-α) Q(x,a) + α (r - ρ + max_a' Q(y,a'))
    ρ      ← (1-β) ρ + β (r + max_a' Q(y,a') - Q(x,a))
    with probability p_exp  arg max_a Q(x,a) + C/F(x,a),  F(x,a) how often a was tried in x

As the paper prints it: every right-hand side is as it was before the step, and ρ learns at every
step. An untried action goes before all others. Of several best actions the first is taken, in the
order of `actions`: with p_exp = 1 the agent draws no random number.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, UIntArray
from bayescontrol.baselines.mdp.checks import between
from bayescontrol.baselines.mdp.learner import TabularLearner

if TYPE_CHECKING:
    from bayescontrol.kernels.td import RValues


class RLearning(TabularLearner):
    """The paper's opponent in the grid-world, there with C = 5, 30 and 200.

    The paper leaves open what is done with probability 1 - p_exp: the action that looks best,
    `otherwise="greedy"`, or any, "random". `greedy_only` lets ρ learn only from actions with
    Q(x,a) = max_a' Q(x,a'), as Schwartz has it. States, actions and masks: see `TabularLearner`.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(3)
    >>> agent = RLearning.on(mdp, C=1.0)
    >>> record = interact(agent, mdp.environment(), 2_000)
    >>> float(record.observations["reward"][-300:].mean()), round(agent.rho, 3)
    (0.333..., 0.3...)
    >>> agent.q_values(0)[0] > agent.q_values(0)[1]
    True
    """

    format_name: ClassVar[str] = "RLearning"

    _derived: ClassVar[tuple[str, ...]] = ("bonus",)

    def __init__(
        self,
        states: int | Iterable[Hashable] | None,
        actions: int | Iterable[Hashable],
        C: float = 30.0,
        p_exp: float = 1.0,
        alpha: float = 0.5,
        beta: float = 0.001,
        otherwise: Literal["greedy", "random"] = "greedy",
        greedy_only: bool = False,
        *,
        start: Hashable | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        if otherwise not in ("greedy", "random"):
            raise ValueError(f"otherwise={otherwise!r}: it must be 'greedy' or 'random'")
        settings: dict[str, Any] = {
            "C": between("C", C, 0, np.inf, ends="[)"),
            "p_exp": between("p_exp", p_exp, 0, 1),
            "alpha": between("alpha", alpha, 0, 1, ends="(]"),
            "beta": between("beta", beta, 0, 1),
            "otherwise": otherwise,
            "greedy_only": bool(greedy_only),
        }
        self._how = kernels.td.RSettings(
            C=settings["C"],
            p_exp=settings["p_exp"],
            alpha=settings["alpha"],
            beta=settings["beta"],
            otherwise_random=otherwise == "random",
            greedy_only=settings["greedy_only"],
        )
        super().__init__(states, actions, start, allowed, settings)
        self._scalars = {"rho": np.zeros(1)}

    @property
    def rho(self) -> float:
        """ρ: the average reward, as estimated."""
        return float(self._scalars["rho"][0])

    def q_values(self, x: Any) -> dict[Any, float]:
        """Q(x,·) of the actions that x offers."""
        row = self._rows["Q"][self.number(x)]
        return {a: float(row[self.actions.place(a)]) for a in self.actions_in(x)}

    def tried(self, x: Any) -> dict[Any, int]:
        """F(x,·) of the actions that x offers."""
        row = self._rows["F"][self.number(x)]
        return {a: int(row[self.actions.place(a)]) for a in self.actions_in(x)}

    def _fresh(self, offered: npt.NDArray[np.bool_]) -> dict[str, FloatArray]:
        return {
            "Q": np.where(offered, 0.0, -np.inf),
            "F": np.zeros(offered.size),
            "bonus": np.where(offered, np.inf, 0.0),
        }

    def _restore(self) -> None:
        F = self._rows["F"]
        np.divide(self._how.C, F, out=self._rows["bonus"], where=F > 0.0)

    def _values(self) -> "RValues":
        return kernels.td.RValues(**self._rows, **self._scalars)

    def _choose(self, x: int, state: UIntArray) -> int:
        return kernels.td.r_choose(self._values(), self._how, x, state)

    def _learn(self, x: int, a: int, r: float, y: int) -> bool:
        return kernels.td.r_learn(self._values(), self._how, x, a, r, y)

    def _interact(self, *world_and_columns: Any) -> tuple[int, int]:
        return kernels.td.r_interact(self._values(), self._how, *world_and_columns)
