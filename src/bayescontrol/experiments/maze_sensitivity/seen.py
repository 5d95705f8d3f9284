"""What was seen of each variant, as shares.

maze, lake    ρ / ρ*: what was earned, of what the best policy earns
cliff         (ρ + 1) / (ρ* + 1): of what can be gained over walking without end, for which
              every step costs 1; ρ* / ρ would say 93 % of that already
"""

from dataclasses import dataclass

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.maze_sensitivity.replica import (
    CLIFF,
    PRECISIONS,
    PRIORS,
    TOYS,
    VARIANTS,
    Settings,
    maze_plan,
    toy_plan,
)
from bayescontrol.lab import Columns


@dataclass(frozen=True, eq=False)
class Seen:
    """The columns of `maze-sensitivity`; every answer has the runs first.

    >>> from bayescontrol.experiments.maze_sensitivity.replica import run
    >>> small = Settings(runs=1, steps=100, toy_steps=1000)
    >>> seen = Seen(small, {name: column[None] for name, column in run(small, 0).items()})
    >>> seen.maze("late", "prior B", "mu0", 1.0).shape, seen.toy("cliff walk", None).shape
    ((1,), (1,))
    """

    settings: Settings
    columns: Columns

    def maze(self, what: str, prior: str, parameter: str, value: float | None) -> FloatArray:
        """The share of ρ* that a variant earned: `late`, in the last fifth, or in `total`."""
        place = VARIANTS.index((parameter, value))
        return np.asarray(self.columns[what][:, PRIORS.index(prior), place] / maze_plan().gain)

    def toy(self, name: str, precision: float | None) -> FloatArray:
        """The share of a toy world's optimum that was earned in the last tenth of the steps."""
        reward = self.columns["toy_late"][:, TOYS.index(name), PRECISIONS.index(precision)]
        return self._share(name, reward)

    def toy_curve(self, name: str, precision: float | None) -> FloatArray:
        """[run, window]: the share of a toy world's optimum in every window."""
        reward = self.columns["toy"][:, TOYS.index(name), PRECISIONS.index(precision)]
        return self._share(name, reward)

    @staticmethod
    def _share(name: str, reward: FloatArray) -> FloatArray:
        nothing = -1.0 if name == CLIFF else 0.0
        return np.asarray((reward - nothing) / (toy_plan(name).gain - nothing))
