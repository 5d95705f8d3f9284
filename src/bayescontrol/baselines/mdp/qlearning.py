"""Q-learning (Watkins 1989), ε-greedy.

    Q(x,a) ← (1-α) Q(x,a) + α (r + γ max_a' Q(y,a'))
    with probability ε any action, else arg max_a Q(x,a);   ε ← ε · decay after every step

It maximises discounted, not average reward: as γ → 1 the two come together. Optimistic initial
values explore without chance: with `initial` above all that can be earned, r_max/(1-γ), every
action is disappointing until it has been tried often. Of several best actions the first is taken.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, UIntArray
from bayescontrol.baselines.mdp.checks import between
from bayescontrol.baselines.mdp.learner import TabularLearner

if TYPE_CHECKING:
    from bayescontrol.kernels.td import QValues


class QLearning(TabularLearner):
    """Discounted Q-learning; `epsilon=0` and a large `initial` make the optimistic learner.

    States, actions and masks: see `TabularLearner`.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(3)
    >>> agent = QLearning.on(mdp, gamma=0.9, epsilon=0.0, initial=10.0)
    >>> record = interact(agent, mdp.environment(), 2_000)
    >>> float(record.observations["reward"][-300:].mean()) > 0.3
    True
    """

    format_name: ClassVar[str] = "QLearning"

    def __init__(
        self,
        states: int | Iterable[Hashable] | None,
        actions: int | Iterable[Hashable],
        gamma: float = 0.99,
        alpha: float = 0.1,
        epsilon: float = 0.1,
        decay: float = 1.0,
        initial: float = 0.0,
        *,
        start: Hashable | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        settings = {
            "gamma": between("gamma", gamma, 0, 1, ends="[)"),
            "alpha": between("alpha", alpha, 0, 1, ends="(]"),
            "epsilon": between("epsilon", epsilon, 0, 1),
            "decay": between("decay", decay, 0, 1),
            "initial": between("initial", initial, -np.inf, np.inf, ends="()"),
        }
        self._how = kernels.td.QSettings(settings["gamma"], settings["alpha"], settings["decay"])
        super().__init__(states, actions, start, allowed, settings)
        self._scalars = {"epsilon": np.array([settings["epsilon"]])}

    @property
    def epsilon(self) -> float:
        """ε of the next step."""
        return float(self._scalars["epsilon"][0])

    def q_values(self, x: Any) -> dict[Any, float]:
        """Q(x,·) of the actions that x offers."""
        row = self._rows["Q"][self.number(x)]
        return {a: float(row[self.actions.place(a)]) for a in self.actions_in(x)}

    def _fresh(self, offered: npt.NDArray[np.bool_]) -> dict[str, FloatArray]:
        return {"Q": np.where(offered, self._settings["initial"], -np.inf)}

    def _values(self) -> "QValues":
        return kernels.td.QValues(**self._rows, **self._scalars)

    def _choose(self, x: int, state: UIntArray) -> int:
        return kernels.td.q_choose(self._values(), x, state)

    def _learn(self, x: int, a: int, r: float, y: int) -> bool:
        return kernels.td.q_learn(self._values(), self._how, x, a, r, y)

    def _interact(self, *world_and_columns: Any) -> tuple[int, int]:
        return kernels.td.q_interact(self._values(), self._how, *world_and_columns)
