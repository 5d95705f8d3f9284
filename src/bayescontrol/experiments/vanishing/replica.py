"""One replica: one run of the rule in each of three classes.

five modes       two outside the core of m*, two inside that act as it does
core diagram     m2 differs from m1 only in region B, m3 everywhere; m1 is true
bias grid        two arms; (.8, .5) is true, (.8, .8) is in its core and acts differently
"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Final

import msgspec
import numpy as np

from bayescontrol.arrays import IntArray
from bayescontrol.bandits.bias_grid import bias_grid
from bayescontrol.convergence.boundedness import simulate_divergences
from bayescontrol.experiments.chance import FEW
from bayescontrol.experiments.divergence.controller import TRUE, controller
from bayescontrol.experiments.divergence.replica import ROUNDING, bound
from bayescontrol.lab import Columns
from bayescontrol.problems.diagrams import core_diagram
from bayescontrol.problems.tabular import TabularModes

#: With fewer runs nothing is judged.
FEWEST: Final = 100

FIVE: Final = "five modes"
CORE: Final = "core diagram"
BIASES: Final = "bias grid"
#: The true mode of each class.
CLASSES: Final = {FIVE: TRUE, CORE: 0, BIASES: 7}
#: What each class is, in words.
ABOUT: Final = {
    FIVE: "three levers in two rooms (experiment divergence)",
    CORE: "only P1 comes to region B, where H1 and H2 differ (experiment core)",
    BIASES: "two arms win with .2, .5 or .8 each; a mode pulls its better arm",
}


@dataclass(frozen=True)
class Settings:
    """Size of the experiment.

    >>> Settings().long_steps
    4000
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=FEWEST, description=FEW)] = 1000
    steps: Annotated[int, msgspec.Meta(ge=200, description="steps among five modes")] = 400
    long_steps: Annotated[
        int, msgspec.Meta(ge=500, description="steps in the core diagram and the bias grid")
    ] = 4000


@cache
def class_of(name: str) -> TabularModes:
    """The class of that name.

    >>> class_of("bias grid").name(CLASSES["bias grid"])
    '(.8, .5)'
    """
    if name == FIVE:
        return controller()
    return core_diagram() if name == CORE else bias_grid()


def times(settings: Settings, name: str) -> IntArray:
    """When a class is looked at: evenly over `steps`, and evenly in ln t over `long_steps`.

    >>> times(Settings(), "five modes")[-2:], times(Settings(), "bias grid")[[0, 1, -13, -1]]
    (array([395, 400]), array([   1,    2,  400, 4000]))
    """
    even = np.linspace(0, settings.steps, 81).round().astype(np.int64)
    back = np.arange(0, 12 * np.log10(settings.long_steps) + 1e-9)
    late = (settings.long_steps * 10.0 ** (-back / 12)).round().astype(np.int64)
    return np.unique({FIVE: even, CORE: np.concatenate([even, late]), BIASES: late}[name])


def run(settings: Settings, i: int) -> Columns:
    """Posteriors and their bounds at `times`, and how often a posterior was above its bound.

    >>> columns = run(Settings(), 0)
    >>> columns["five modes bound"].shape, columns["five modes violations"]
    ((81, 5), array(0))
    """
    columns = {}
    for name, true in CLASSES.items():
        modes, when = class_of(name), times(settings, name)
        seen = simulate_divergences(modes, true, int(when[-1]), 1, settings.seed, at=when, first=i)
        above = bound(modes, seen.d[0], true)
        columns[f"{name} posterior"] = seen.posterior[0]
        columns[f"{name} bound"] = above
        violated = seen.posterior[0] > above * (1.0 + ROUNDING)
        columns[f"{name} violations"] = np.array(int(violated.sum()))
    return columns
