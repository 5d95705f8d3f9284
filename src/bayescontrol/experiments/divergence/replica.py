"""One replica: the rule among all modes and among two, and each policy applied alone.

    d_t(m*‖m) = Σ_{τ≤t} ln P(o_τ | m*, x_τ, a_τ) / P(o_τ | m, x_τ, a_τ)

Everything is checked at every step and kept at a few times.
"""

from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.convergence.boundedness import Ensemble, simulate_divergences
from bayescontrol.experiments.chance import FEW
from bayescontrol.experiments.divergence.controller import TRUE, alone, controller
from bayescontrol.lab import Columns
from bayescontrol.problems.tabular import TabularModes

#: With fewer runs nothing is judged.
FEWEST: Final = 50
#: Whose policies are applied alone.
POLICIES: Final = (0, 1, 2)
#: They are compared on d_t(m*‖m3).
SHOWN: Final = 3
#: The class of two in which one process is taken apart.
PAIR: Final = (0, 2)
#: What rounding may do to a posterior or a sum, relative to its size.
ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class Settings:
    """Size of the experiment.

    >>> Settings().steps
    400
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=FEWEST, description=FEW)] = 1000
    steps: Annotated[int, msgspec.Meta(ge=200, description="steps in a replica")] = 400


def times(settings: Settings) -> IntArray:
    """When the processes are looked at: at most 81 times, from 0 to the last step.

    >>> times(Settings())[[0, 1, 40, -1]]
    array([  0,   5, 200, 400])
    """
    return np.unique(np.linspace(0, settings.steps, 81).round().astype(np.int64))


def far_times(settings: Settings) -> IntArray:
    """When the widest excursion so far is looked at: twice as late every four times.

    >>> far_times(Settings())[-5:]
    array([200, 238, 283, 336, 400])
    """
    back = np.arange(0, np.log2(settings.steps / 8), 0.25)
    return np.unique((settings.steps * 2.0**-back).round().astype(np.int64))


def whole(settings: Settings, modes: TabularModes, i: int) -> Ensemble:
    """Run i of the rule over these modes in the world of m*, at every step.

    >>> whole(Settings(), controller(*PAIR), 0).d.shape
    (1, 401, 2)
    """
    steps = settings.steps
    return simulate_divergences(modes, TRUE, steps, 1, settings.seed, at=range(steps), first=i)


def bound(modes: TabularModes, d: FloatArray, true: int = TRUE) -> FloatArray:
    """P(m)/P(m*) e^(-d_t(m*‖m)), as an array of the shape of d, modes last.

    >>> bound(controller(), np.zeros((1, 5)))
    array([[1., 1., 1., 1., 1.]])
    """
    out = np.empty(d.shape)
    for m, odds in enumerate((modes.prior / modes.prior[true]).tolist()):
        column = np.empty(d[..., m].size)
        kernels.divergence.bound(d[..., m].ravel(), odds, column)
        out[..., m] = column.reshape(d.shape[:-1])
    return out


def run(settings: Settings, i: int) -> Columns:
    """d_t, the posterior, what of them is checked, and how far g - G strayed.

    >>> columns = run(Settings(), 0)
    >>> columns["d"].shape, columns["violations"], columns["under"].shape
    ((81, 5), array(0), (3, 81))
    """
    when, far = times(settings), far_times(settings)
    modes = controller()
    rule, two = whole(settings, modes, i), whole(settings, controller(*PAIR), i)
    under = [whole(settings, alone(policy), i) for policy in POLICIES]
    own = under[TRUE]
    above = rule.posterior > bound(modes, rule.d) * (1.0 + ROUNDING)
    size = np.maximum(np.abs(rule.g).sum(2), 1.0)
    return {
        "d": rule.d[0, when],
        "posterior": rule.posterior[0, when],
        "violations": np.array(int(above.sum())),
        "unsplit": np.array(float((np.abs(rule.g.sum(2) - rule.d) / size).max())),
        "excess": (rule.g - rule.G)[0, -1],
        "under": np.stack([one.d[0, when, SHOWN] for one in under]),
        "g": own.g[0, when, TRUE, 1],
        "G": own.G[0, when, TRUE, 1],
        "far": own.sup[0, far, TRUE, 1],
        "far of two": two.sup[0, far, :, 1],
    }
