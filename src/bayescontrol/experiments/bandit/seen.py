"""What was seen of each agent, run by run.

reward       mean of o_t over a window of steps
best lever   share of the steps with m_{a_t} = max_j m_j
regret       R_t = Σ_{τ≤t} (max_j m_j - m_{a_τ})
"""

from dataclasses import dataclass

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.bandit.replica import AGENTS, Settings, evenly_spaced
from bayescontrol.lab import Columns


@dataclass(frozen=True, eq=False)
class Seen:
    """The columns of `bandit`, asked agent by agent; every answer has the runs first.

    >>> from bayescontrol.experiments.bandit.replica import run
    >>> small = Settings(runs=1, steps=20, levers=3, lookahead=20, window=5)
    >>> seen = Seen(small, {name: column[None] for name, column in run(small, 0).items()})
    >>> seen.regret("control rule").shape, seen.late_reward("control rule").shape
    ((1, 20), (1,))
    """

    settings: Settings
    columns: Columns

    def reward(self, agent: str) -> FloatArray:
        """o_t for every run and step."""
        return np.asarray(self.columns["reward"][:, self._place(agent)], np.float64)

    def best(self, agent: str) -> FloatArray:
        """1 where the best lever was pulled, else 0."""
        best = self.columns["bias"].argmax(axis=1)
        pulled = self.columns["action"][:, self._place(agent)]
        return np.asarray(pulled == best[:, None], np.float64)

    def regret(self, agent: str, *, even: bool = False) -> FloatArray:
        """R_t of the bandits drawn, or of the levers that are evenly spaced."""
        bias = self.columns["bias"]
        bias = evenly_spaced(bias) if even else bias
        pulled = self.columns["even_action" if even else "action"][:, self._place(agent)]
        lost = bias.max(axis=1, keepdims=True) - np.take_along_axis(bias, pulled, axis=1)
        return np.asarray(lost.cumsum(axis=1))

    def early_reward(self, agent: str) -> FloatArray:
        """Mean reward of each run over the first steps."""
        return np.asarray(self.reward(agent)[:, : self.settings.window].mean(axis=1))

    def late_reward(self, agent: str) -> FloatArray:
        """Mean reward of each run over the last steps."""
        return np.asarray(self.reward(agent)[:, -self.settings.window :].mean(axis=1))

    def late_best(self, agent: str) -> FloatArray:
        """Share of the best lever in each run over the last steps."""
        return np.asarray(self.best(agent)[:, -self.settings.window :].mean(axis=1))

    def total_regret(self, agent: str) -> FloatArray:
        """R_T of each run."""
        return self.regret(agent)[:, -1]

    @staticmethod
    def _place(agent: str) -> int:
        return list(AGENTS).index(agent)
