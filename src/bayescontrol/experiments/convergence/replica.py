"""One replica: one run of the rule in each class, and how far it is from acting as m*.

distance_t = ½ Σ_a | Σ_m P(a | m, x_t) P(m | âo_<t) - P(a | m*, x_t) |        between 0 and 1
"""

from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.convergence.reading import read
from bayescontrol.experiments.chance import FEW
from bayescontrol.experiments.convergence.cases import CASES, Case, case
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns

#: With fewer runs nothing is judged.
FEWEST: Final = 100


@dataclass(frozen=True)
class Settings:
    """Size of the experiment.

    >>> Settings().steps
    1000
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=FEWEST, description=FEW)] = 1000
    steps: Annotated[int, msgspec.Meta(ge=300, description="steps in a replica")] = 1000


def times(settings: Settings) -> IntArray:
    """The steps that are looked at: sixteen times from t to ten times t, from 1 to the last.

    >>> times(Settings())[[0, 1, -17, -1]]
    array([   1,    2,  100, 1000])
    """
    back = np.arange(0, 16 * np.log10(settings.steps) + 1e-9)
    return np.unique((settings.steps * 10.0 ** (-back / 16)).round().astype(np.int64))


def distance(one: Case, steps: int, seed: int, run: int) -> FloatArray:
    """How far P(a_t | âo_<t) is from P(a_t | m*, x_t), in total variation, t = 1 … steps.

    >>> distance(case("two policies"), 4, seed=0, run=0)
    array([0.5, 0.5, 0.5, 0.5])
    """
    modes, true = one
    record = interact(modes.agent(), modes.environment(true), steps, seed=seed, run=run)
    posterior = read(record, modes.agent()).posterior[:-1]
    a, o = (np.asarray(column, np.int64) for column in (record.actions, record.observations))
    x = np.empty(steps, np.int64)
    kernels.divergence.follow(modes.successor, modes.start, a, o, x)
    law = np.einsum("tm,mta->ta", posterior, modes.policy[:, x])
    return np.asarray(0.5 * np.abs(law - modes.policy[true, x]).sum(-1))


def run(settings: Settings, i: int) -> Columns:
    """The distance at `times`, and the largest in the last tenth of the steps, for each class.

    >>> columns = run(Settings(), 0)
    >>> columns["bias grid"].shape == times(Settings()).shape, columns["chain late"]
    (True, array(0.))
    """
    columns = {}
    for name in CASES:
        found = distance(case(name), settings.steps, settings.seed, i)
        columns[name] = found[times(settings) - 1]
        columns[f"{name} late"] = np.array(found[-settings.steps // 10 :].max())
    return columns
