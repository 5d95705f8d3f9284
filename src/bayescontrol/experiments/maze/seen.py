"""What was seen of each agent, run by run.

reward         mean over a block of steps
cumulative     R_t = (r_1 + … + r_t) / t
late           mean over the last steps
crossing       the step from which one agent's R_t, averaged over runs, stays above another's
"""

from dataclasses import dataclass

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.maze.replica import AGENTS, BLOCK, Settings, World, world
from bayescontrol.lab import Columns
from bayescontrol.mdp import Maze, policy_iteration


def crossing(ahead: FloatArray, behind: FloatArray) -> float:
    """The step from which `ahead` stays above in cumulative reward; ∞ if that is not seen.

    Both are rewards [run, block]; what counts is the mean over runs.

    >>> crossing(np.array([[0.0, 2.0, 2.0]]), np.array([[1.0, 1.0, 1.0]]))
    2000.0
    >>> crossing(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]]))
    inf
    """
    lead = (ahead - behind).mean(axis=0).cumsum()
    not_ahead = np.flatnonzero(lead <= 0.0)
    if not not_ahead.size:
        return 0.0
    return np.inf if not_ahead[-1] == lead.size - 1 else float((not_ahead[-1] + 1) * BLOCK)


@dataclass(frozen=True, eq=False)
class Seen:
    """The columns of `maze`, asked agent by agent; every answer has the runs first.

    >>> from bayescontrol.experiments.maze.replica import run
    >>> small = Settings(runs=1, steps=3000)
    >>> seen = Seen(small, {name: column[None] for name, column in run(small, 0).items()})
    >>> seen.reward("R-learning, C = 30").shape, seen.late("R-learning, C = 30").shape
    ((1, 3), (1,))
    """

    settings: Settings
    columns: Columns

    @property
    def world(self) -> World:
        """The maze, its table and its best policy."""
        return world(self.settings.layout)

    @property
    def optimum(self) -> float:
        """ρ* of the maze."""
        return self.world.plan.gain

    @property
    def cup_cycle(self) -> float:
        """What the best policy would earn if the goal paid nothing: the cups alone."""
        return policy_iteration(Maze(self.settings.layout, goal_reward=0.0).mdp()).gain

    def reward(self, agent: str) -> FloatArray:
        """Mean reward of every run and block."""
        return np.asarray(self.columns["reward"][:, self._place(agent)])

    def windows(self, agent: str, count: int) -> FloatArray:
        """Mean reward of every run over `count` blocks at a time."""
        reward = self.reward(agent)
        whole = reward.shape[1] // count * count
        return np.asarray(reward[:, :whole].reshape(len(reward), -1, count).mean(axis=2))

    def cumulative(self, agent: str) -> FloatArray:
        """R_t at the end of every block."""
        reward = self.reward(agent)
        return np.asarray(reward.cumsum(axis=1) / np.arange(1, reward.shape[1] + 1))

    def late(self, agent: str) -> FloatArray:
        """Mean reward of every run over the last steps."""
        return np.asarray(self.columns["late"][:, self._place(agent)])

    def visits(self, agent: str, run: int, last: bool) -> FloatArray:
        """[x, a]: the share of the first or last steps of that run in which a was done in x."""
        counts = self.columns["visits"][run, self._place(agent), int(last)]
        return np.asarray(counts / counts.sum())

    def crossing(self, ahead: str, behind: str) -> tuple[float, float]:
        """The step at which `ahead` passes `behind` for good, and its jackknife standard error."""
        a, b = self.reward(ahead), self.reward(behind)
        ours = crossing(a, b)
        n = len(a)
        if n < 2:
            return ours, np.inf
        without = np.array([crossing(np.delete(a, i, 0), np.delete(b, i, 0)) for i in range(n)])
        if not np.isfinite(without).all():
            return ours, np.inf
        # A block is as fine as the curves tell.
        return ours, float(np.hypot(np.sqrt((n - 1) * without.var()), BLOCK / np.sqrt(12)))

    @staticmethod
    def _place(agent: str) -> int:
        return list(AGENTS).index(agent)
