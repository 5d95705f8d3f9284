"""What the replicas showed, and how far chance alone may carry a mean.

A mean of n independent variables in [0, 1] with expectation μ and variance at most σ² obeys
Bernstein's inequality,

    P(|mean - μ| ≥ ε) ≤ 2 exp(-n ε² / (2 σ² + 2 ε / 3)),

for every n, also where a rate is near 0 or 1 and no count is normal. Where only μ is known,
σ² ≤ μ (1 - μ).
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.delusion.replica import AGENTS, Settings, processes
from bayescontrol.lab import Columns
from bayescontrol.lab.statistics import bernstein

#: The rate of false alarms of all statistical claims together.
FALSE_ALARMS: Final = 1e-3
# Three identities, each for two agents in two processes.
_FAMILIES: Final = 12


@dataclass(frozen=True, eq=False)
class Seen:
    """One agent in one process, in all replicas; entry t of an axis is after t steps.

    >>> from bayescontrol.experiments.delusion.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(steps=3), 0).items()}
    >>> all_seen(Settings(steps=3), one)["prize", "causal"].posterior.shape
    (1, 4, 2)
    """

    #: P(m | ·), the prior first; shape (runs, steps + 1, modes).
    posterior: FloatArray
    #: 1 where the mode drawn next is m*; shape (runs, steps).
    matched: FloatArray
    #: Σ_m P(m | ·)² when it is drawn; shape (runs, steps).
    squares: FloatArray
    #: The lowest P(m* | ·) / P(m*) so far; shape (runs, steps + 1).
    lowest: FloatArray


def all_seen(settings: Settings, columns: Columns) -> dict[tuple[str, str], Seen]:
    """Both agents in both processes.

    >>> from bayescontrol.experiments.delusion.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(steps=3), 0).items()}
    >>> list(all_seen(Settings(steps=3), one))[:2]
    [('prize', 'naive'), ('prize', 'causal')]
    """
    seen = {}
    for name, (_, prior) in processes(settings.reliability).items():
        truth = columns[f"{name} truth"]
        runs = np.arange(len(truth))
        for agent in AGENTS:
            later = columns[f"{name} {agent} posterior"]
            v = np.concatenate([np.broadcast_to(prior, (len(runs), 1, len(prior))), later], axis=1)
            seen[name, agent] = Seen(
                posterior=v,
                matched=np.asarray(
                    columns[f"{name} {agent} drawn"] == truth[:, None], dtype=np.float64
                ),
                squares=(v * v).sum(-1)[:, :-1],
                lowest=np.minimum.accumulate(v[runs, :, truth] / prior[truth, None], axis=1),
            )
    return seen


def margin(variance: npt.ArrayLike, runs: int, tests: int) -> FloatArray:
    """ε of Bernstein's inequality at FALSE_ALARMS, shared by all families and their tests.

    >>> print(f"{margin(0.25, runs=1000, tests=1):.4f}")
    0.0745
    """
    return bernstein(variance, runs, FALSE_ALARMS / (_FAMILIES * tests))


def strain(gap: FloatArray, variance: FloatArray, runs: int) -> float:
    """max gap / ε over all components: above 1, chance does not explain it.

    >>> some = np.array([0.25, 0.25])
    >>> [round(strain(np.array([0.0, gap]), some, runs=1000), 2) for gap in (0.02, 0.1)]
    [0.26, 1.3]
    """
    return float(np.max(gap / margin(variance, runs, gap.size)))
