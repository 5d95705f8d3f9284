"""A family: how the arms of a bandit pay, and the conjugate prior over what they pay.

    P(r | m_j)        the reward of arm j, given its unknown parameters
    P(m_j | row_j)    the posterior of arm j, given its row of parameters

The equations are kernels (`kernels.arms`), found by the family's number; a family adds what a
person needs: names, defaults, checks, densities.
"""

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BadEvidence, InvalidPrior, InvalidTable
from bayescontrol.seeding import Stream


class Family(Protocol):
    """What the belief, the environment and the compiled loops ask of a family."""

    @property
    def kind(self) -> int:
        """Its number in `kernels.arms`."""

    @property
    def constants(self) -> FloatArray:
        """What is known for certain: a standard deviation, the values of the rewards."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the parameters in a posterior row."""

    @property
    def default(self) -> tuple[float, ...]:
        """The prior of an arm unless another is stated, as people state it."""

    def settings(self) -> dict[str, Any]:
        """The arguments of the family as plain values, as logs store them."""

    def prior(self, given: npt.ArrayLike | None, arms: int) -> FloatArray:
        """Rows, shape (arms, columns), of a prior as people state it: one for all, or one each.

        InvalidPrior if it is none.
        """

    def rows(self, saved: npt.ArrayLike, arms: int) -> FloatArray:
        """Rows as they were saved, shape (arms, columns). InvalidPrior if they are none."""

    def truth(self, given: npt.ArrayLike, arms: int) -> FloatArray:
        """True parameters as `kernels.arms.respond` takes them, one row an arm. InvalidTable."""

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """True parameters drawn from the prior rows."""

    def reward(self, o: Any) -> float:
        """o as a number, if an arm of this family can pay it; else BadEvidence."""

    def means(self, truth: FloatArray) -> FloatArray:
        """The mean reward of each arm, given the truth."""

    def expected(self, rows: FloatArray) -> FloatArray:
        """E[r_j], the posterior mean reward of each arm; inf or nan where there is none."""

    def log_predictive(self, row: FloatArray, r: float) -> float:
        """ln P(r | past): of this arm's next reward, a density where rewards are continuous."""

    def merged(self, prior: FloatArray, one: FloatArray, two: FloatArray) -> FloatArray:
        """The evidence of both rows, the prior counted once."""


@runtime_checkable
class BestArm(Protocol):
    """The family knows P(arm j is the best | past) exactly."""

    def best(self, rows: FloatArray) -> FloatArray: ...


@runtime_checkable
class FiniteRewards(Protocol):
    """The family pays one of finitely many rewards."""

    def predictive(self, row: FloatArray) -> dict[float, float]: ...


@runtime_checkable
class Intervals(Protocol):
    """The family knows how the mean reward of an arm is distributed.

    >>> from bayescontrol.bandits import Bernoulli
    >>> Bernoulli().interval(np.array([[1.0, 1.0]]), np.array([0.025, 0.975]))
    array([[0.025, 0.975]])
    """

    def interval(self, rows: FloatArray, tails: FloatArray) -> FloatArray:
        """The m with P(m_j ≤ m | past) = p for each p of `tails`, shape (arms, tails)."""


def parameter_rows(
    given: npt.ArrayLike, arms: int, columns: tuple[str, ...], positive: tuple[str, ...]
) -> FloatArray:
    """`given` as rows of finite parameters, those named in `positive` above zero.

    >>> parameter_rows([1, 2], 3, ("alpha", "beta"), ("alpha", "beta")).tolist()
    [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]
    """
    wanted = f"give one row ({', '.join(columns)}) for all arms, or one for each"
    try:
        table = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidPrior(f"a prior of {given!r}: {error}; {wanted}") from None
    if table.shape not in ((len(columns),), (arms, len(columns))):
        raise InvalidPrior(f"a prior of shape {table.shape} for {arms} arms: {wanted}")
    rows = np.empty((arms, len(columns)))
    rows[:] = table
    least = np.array([0.0 if name in positive else -np.inf for name in columns])
    good = np.isfinite(rows) & (rows > least)
    if not good.all():
        j, k = (int(i) for i in np.argwhere(~good)[0])
        wanted = "positive and finite" if columns[k] in positive else "finite"
        raise InvalidPrior(f"arm {j}: {columns[k]} = {rows[j, k]:g} must be {wanted}")
    return rows


def true_rows(given: npt.ArrayLike, arms: int, what: str, low: float, high: float) -> FloatArray:
    """One number an arm, from [low, high], as a column.

    >>> true_rows([0.2, 0.7], 2, "bias", 0, 1).shape
    (2, 1)
    """
    try:
        values = np.array(given, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTable(f"{what} of the arms: {error}") from None
    if values.shape != (arms,):
        raise InvalidTable(f"{what} of shape {values.shape} for {arms} arms: give one for each")
    good = np.isfinite(values) & (low <= values) & (values <= high)
    if not good.all():
        j = int(good.argmin())
        raise InvalidTable(f"arm {j}: its {what} is {values[j]:g}, it must be in [{low}, {high}]")
    return values[:, None].copy()


def true_table(given: npt.ArrayLike, arms: int, columns: tuple[str, ...]) -> FloatArray:
    """A row of finite numbers an arm.

    >>> true_table([[0, 1], [5, 2]], 2, ("mean", "sd")).shape
    (2, 2)
    """
    try:
        table = np.array(given, np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidTable(f"the truth of the arms: {error}") from None
    if table.shape != (arms, len(columns)):
        raise InvalidTable(
            f"a truth of shape {table.shape} for {arms} arms: give each a row "
            f"({', '.join(columns)})"
        )
    for j, k in np.argwhere(~np.isfinite(table)):
        raise InvalidTable(f"arm {j}: its {columns[k]} is {table[j, k]}, it must be finite")
    return table


def number(o: Any, support: str) -> float:
    """o as a finite number, or BadEvidence that names the support.

    >>> number(True, "0 or 1")
    1.0
    """
    text = isinstance(o, str | bytes | bytearray)  # which float would read
    try:
        r = float("not a number" if text else o)
    except (TypeError, ValueError, OverflowError):
        raise BadEvidence(f"reward {o!r} is not a number: it must be {support}") from None
    if not math.isfinite(r):
        raise BadEvidence(f"reward {o!r}: it must be {support}")
    return r
