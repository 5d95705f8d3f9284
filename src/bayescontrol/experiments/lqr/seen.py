"""What the columns of `lqr` say of one controller at one plant, and how fast regret grows.

    exponent   p in R_t ∝ tᵖ: the slope of log₂ of the median over the last three octaves, with an
               error by drawing runs with replacement
    late       p in R_2t - R_t ∝ tᵖ, of the mean over the last five octaves: free of how runs began

Medians, because a few runs begin with a plunge that outweighs all the others.
"""

import math
from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.lqr.replica import AGENTS, Settings, octaves, system
from bayescontrol.lab import Columns
from bayescontrol.linear import PLANTS
from bayescontrol.seeding import Stream

#: Over so many octaves the exponent of regret is taken: about a decade.
OCTAVES: Final = 3
_RESAMPLES: Final = 400
_PLACE: Final = {name: i for i, name in enumerate(AGENTS)}


class Seen:
    """The columns by name, in units of J*.

    >>> from bayescontrol.experiments.lqr.replica import run
    >>> small = Settings(runs=1, steps=64)
    >>> seen = Seen(small, {name: column[None] for name, column in run(small, 0).items()})
    >>> seen.octaves("aircraft", "control rule").shape
    (1, 6)
    """

    def __init__(self, settings: Settings, columns: Columns) -> None:
        self.settings, self.columns = settings, columns
        self.runs = len(columns["cost"])

    def excess(self, plant: str, agent: str) -> FloatArray:
        """J(K_t)/J* - 1 at the checkpoints, by run."""
        return self._column("cost", plant, agent) - 1.0

    def regret(self, plant: str, agent: str) -> FloatArray:
        """R_t/J* at the checkpoints, by run."""
        return self._column("regret", plant, agent)

    def octaves(self, plant: str, agent: str) -> FloatArray:
        """R_t/J* at T/32, T/16, … T, by run."""
        return self.regret(plant, agent)[:, octaves(self.settings)]

    def gain(self, plant: str, agent: str) -> float:
        """The median of J(K_T)/J* - 1."""
        return float(np.median(self.excess(plant, agent)[:, -1]))

    def gain_interval(self, plant: str, agent: str) -> tuple[float, float]:
        """95 % for the median of J(K_T)/J* - 1, by order statistics: it needs no law of them."""
        ordered = np.sort(self.excess(plant, agent)[:, -1])
        n = len(ordered)
        tail, k = 0.5**n, 0  # P(Binomial(n, 1/2) <= k)
        while tail <= 0.025 and k < n // 2:
            k += 1
            tail += math.comb(n, k) * 0.5**n
        return float(ordered[max(k - 1, 0)]), float(ordered[min(n - k, n - 1)])

    def total(self, plant: str, agent: str) -> float:
        """The median of R_T/J*."""
        return float(np.median(self.regret(plant, agent)[:, -1]))

    def redrawn(self, plant: str, agent: str) -> int:
        """How many systems had no stabilising gain, in all runs."""
        return int(self.columns["redrawn"][:, list(PLANTS).index(plant), _PLACE[agent]].sum())

    def _column(self, name: str, plant: str, agent: str) -> FloatArray:
        column = self.columns[name][:, list(PLANTS).index(plant), _PLACE[agent]]
        return np.asarray(column / system(plant).best_cost)


def exponent(regret: FloatArray) -> tuple[float, float]:
    """p in R_t ∝ tᵖ over the last of these octaves, of the median of runs, and its standard error.

    >>> t = 2.0 ** np.arange(6)
    >>> p, error = exponent(np.outer([1.0, 2.0, 3.0], np.sqrt(t)))
    >>> round(p, 9), round(error, 9)
    (0.5, 0.0)
    """
    last, n = regret[:, -OCTAVES - 1 :], len(regret)
    drawn = Stream(0).integers(n, size=(_RESAMPLES, n))
    slopes = _slopes(np.median(last[drawn], axis=1))
    error = float(slopes.std()) if np.isfinite(slopes).all() else math.inf
    return float(_slopes(np.median(last, axis=0))), error


def late(regret: FloatArray) -> float:
    """p in R_2t - R_t ∝ tᵖ over these octaves, of the mean of the runs; NaN if it falls.

    >>> t = 2.0 ** np.arange(6)
    >>> round(late(100.0 + np.outer([1.0, 2.0], np.sqrt(t))), 9)
    0.5
    """
    if not np.isfinite(regret).all():
        return math.nan
    added = np.diff(regret, axis=1).mean(axis=0)
    return float(_slopes(added)) if (added > 0).all() else math.nan


def _slopes(curves: FloatArray) -> FloatArray:
    """Of log₂ from octave to octave, by least squares along the last axis.

    0 where there is no regret, ∞ where it is infinite.
    """
    x = np.arange(curves.shape[-1]) - (curves.shape[-1] - 1) / 2
    seen = (np.isfinite(curves) & (curves > 0)).all(axis=-1, keepdims=True)
    logs = np.log2(np.where(seen, curves, 1.0))
    slopes = (logs @ x) / (x @ x)
    return np.asarray(np.where(np.isinf(curves).any(axis=-1), math.inf, slopes))
