"""One replica: one run of both agents in each of the three worlds.

low_t = min_{τ≤t} P(m* | ·) / P(m*)        how little the truth has ever been left with
"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Final

import msgspec
import numpy as np

from bayescontrol.arrays import IntArray
from bayescontrol.convergence.boundedness import simulate_divergences
from bayescontrol.experiments.chance import FEW
from bayescontrol.experiments.lower_bound.worlds import AGENTS, worlds
from bayescontrol.lab import Columns
from bayescontrol.problems.tabular import TabularModes

#: With fewer runs nothing is judged.
FEWEST: Final = 200


@dataclass(frozen=True)
class Settings:
    """Size of the experiment.

    >>> Settings().steps
    200
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=FEWEST, description=FEW)] = 4000
    steps: Annotated[int, msgspec.Meta(ge=10, description="steps in a replica")] = 200


def times(settings: Settings) -> IntArray:
    """When the posterior is looked at: at most 51 times, from 0 to the last step.

    >>> times(Settings())[[0, 1, -1]]
    array([  0,   4, 200])
    """
    return np.unique(np.linspace(0, settings.steps, 51).round().astype(np.int64))


@cache
def _learnt(world: str, agent: str) -> TabularModes:
    return worlds()[world].of(agent)


def run(settings: Settings, i: int) -> Columns:
    """The posterior of m* and its lowest value so far, over P(m*), at `times`.

    >>> columns = run(Settings(), 0)
    >>> columns["three levers rule low"].shape
    (51,)
    """
    columns = {}
    for name, (modes, true) in worlds().items():
        for agent in AGENTS:
            seen = simulate_divergences(
                _learnt(name, agent), true, settings.steps, 1, settings.seed,
                at=times(settings), against=[], first=i,
            )  # fmt: skip
            columns[f"{name} {agent} low"] = seen.low[0]
            columns[f"{name} {agent} posterior"] = seen.posterior[0, :, true] / modes.prior[true]
    return columns
