"""Families: the reward distribution of an arm and its conjugate prior.

    P(r | m_j)        the reward of arm j, given its unknown parameters
    P(m_j | row_j)    the posterior of arm j, given its row of parameters

The equations are kernels (`kernels.families`), selected by the number `kind` of the family. A
family adds names, defaults, checks and densities, and describes itself by a `FamilyKind`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, as_numbers
from bayescontrol._mode_queries import has
from bayescontrol._support.description import ARMS, ModelKind, SettingDoc
from bayescontrol.bandits.best_arm import Mixture, integrate
from bayescontrol.bandits.priced import priced_best
from bayescontrol.errors import BadEvidence, InvalidPrior, InvalidTable, MissingCapability
from bayescontrol.protocols import Totals
from bayescontrol.seeding import Stream

#: The largest reward that is a count: not every larger whole number is a double.
LARGEST_COUNT: Final = 2.0**53
_BITS: Final = {0: 0.0, 1: 1.0}
#: The probabilities at which quantiles are given, from which those of a mixture are interpolated.
QUANTILE_GRID: Final = 1.0 / (1.0 + np.exp(np.linspace(12.0, -12.0, 401)))


class TableRow(NamedTuple):
    """A row of the table of families in the documentation."""

    arguments: str
    rewards: str
    default_prior: str
    environment_takes: str


@dataclass(frozen=True)
class FamilyKind(ModelKind):
    """The description of a family: besides that of a model, a world and rows of a table."""

    #: True parameters of the arms of `example`, for `environment`.
    truth: Any = None
    #: Rewards that no arm of the example can pay.
    refused: tuple[Any, ...] = ()
    #: What the documentation says about the family.
    table: tuple[TableRow, ...] = ()


def settings_of(row: str, prior: str, **others: SettingDoc) -> dict[str, SettingDoc]:
    """Describe the settings of a family: arms, `others`, and a prior with such a `row`."""
    prior_rows = SettingDoc(f"{row}, or one such list for each arm", prior)
    return {"arms": ARMS, **others, "prior": prior_rows}


class Family(Protocol):
    """What the belief, the environment and the compiled loops need from a family.

    The defaults are for families whose parameters are positive and whose evidence adds up.
    """

    #: The number of the family, from `kernels.families.number`.
    kind: int
    #: Known parameters: a standard deviation, or the possible rewards.
    constants: FloatArray = np.empty(0)
    #: The names of the parameters in a posterior row.
    columns: tuple[str, ...]
    #: The default prior of an arm, in the form in which users give it.
    default: tuple[float, ...]

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the family as plain values, as logs store them."""
        return {}

    def prior(self, given: ArrayLike | None, arms: int) -> FloatArray:
        """Convert a user's prior to rows of shape (arms, columns).

        `given` is one row for all arms, one row per arm, or None for the default prior of the
        family. An invalid prior raises InvalidPrior.
        """
        return self.rows(self.default if given is None else given, arms)

    def rows(self, saved: ArrayLike, arms: int) -> FloatArray:
        """Return saved rows of shape (arms, columns); raise InvalidPrior if they are invalid."""
        return parameter_rows(saved, arms, self.columns, self.columns)

    def truth(self, given: ArrayLike, arms: int) -> FloatArray:
        """Convert a user's true parameters to one row per arm, for `kernels.arms.respond`.

        Invalid parameters raise InvalidTable.
        """

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """Draw the true parameters of each arm from its prior row."""

    def reward(self, o: Any) -> float:
        """Return o as a number; raise BadEvidence if an arm of this family cannot pay o."""

    def means(self, truth: FloatArray) -> FloatArray:
        """The mean reward of each arm: by default the first true parameter."""
        return truth[:, 0].copy()

    def expected(self, rows: FloatArray) -> FloatArray:
        """E[r_j], the posterior mean reward of each arm; inf or nan where it does not exist."""

    def log_predictive(self, row: FloatArray, r: float) -> float:
        """ln P(r | past) of the arm's next reward; a density where rewards are continuous."""
        return kernels.arms.log_predictive(self.kind, self.constants, row, r)

    def merged(self, prior: FloatArray, one: FloatArray, two: FloatArray) -> FloatArray:
        """Add the evidence of the rows `one` and `two`; their common prior counts once."""
        return one + (two - prior)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class BestArm(Protocol):
    """The family computes P(arm j is the best | past) exactly."""

    def best(self, rows: FloatArray, mixture: Mixture | None = None) -> FloatArray:
        """P(m_j > all others) from a row for each arm, or for each component of a mixture."""


class PricedArms(Protocol):
    """The family computes P(mean reward minus price of arm j is the largest | past) exactly."""

    def best_priced(
        self, rows: FloatArray, prices: FloatArray, mixture: Mixture | None = None
    ) -> FloatArray:
        """P(m_j - prices[j] > all others) for every arm j."""


class Density(NamedTuple):
    """The density of a mean reward: a kind of `kernels.posteriors`, and its parameters."""

    kind: int
    #: The columns of the rows that hold the two parameters.
    columns: tuple[int, int] = (0, 1)
    #: Whether mean rewards are below 1.
    bounded: bool = False


class DensityFamily(Family):
    """Base of families that find the best arm by quadrature of the densities of positive means."""

    density: ClassVar[Density]

    def best(self, rows: FloatArray, mixture: Mixture | None = None) -> FloatArray:
        """P(m_j > all others), by quadrature."""
        kind, (i, j), _ = self.density
        return integrate(kind, mixture, alpha=rows[:, i], beta=rows[:, j])

    def best_priced(
        self, rows: FloatArray, prices: FloatArray, mixture: Mixture | None = None
    ) -> FloatArray:
        """P(m_j - prices[j] > all others), by quadrature."""
        kind, (i, j), bounded = self.density
        return priced_best(kind, rows[:, i], rows[:, j], prices, mixture, bounded=bounded)


class LearnsTotals(Protocol):
    """The posterior of an arm depends on the number, the sum and the squares of rewards only."""

    def learn_totals(self, row: FloatArray, totals: Totals) -> FloatArray:
        """Return the row after these rewards; raise BadEvidence if they are impossible."""


def with_totals(family: Family, row: FloatArray, totals: Totals, arm: Any) -> FloatArray:
    """Return the row after these rewards; raise an error if the family or the row cannot be."""
    if not has(family, LearnsTotals):
        raise MissingCapability(
            f"{family!r} cannot learn totals: observe the rewards one by one, observe(x, a, o)"
        )
    learned = family.learn_totals(row, totals)
    if not np.isfinite(learned).all():
        raise BadEvidence(f"{totals!r} of arm {arm!r} is too large for the posterior")
    return learned


def best_at_prices(
    family: Any, rows: FloatArray, prices: FloatArray | None, mixture: Mixture | None = None
) -> FloatArray:
    """Return `best` of the family without prices, else `best_priced`."""
    needed: type[Any] = BestArm if prices is None else PricedArms
    if not has(family, needed):
        raise MissingCapability(
            f"{family!r} has no exact action probabilities{' with prices' * (prices is not None)}: "
            "estimate them by counting the arms that `draw_action` chooses"
        )
    more = () if mixture is None else (mixture,)
    best = family.best(rows, *more) if prices is None else family.best_priced(rows, prices, *more)
    return np.asarray(best)


def same_family(one: Family, other: Family) -> bool:
    """Return whether two families have the same rewards and priors."""
    return one is other or repr(one) == repr(other)


class FiniteRewards(Protocol):
    """The family pays one of finitely many rewards."""

    def predictive(self, row: FloatArray) -> dict[float, float]: ...


class Intervals(Protocol):
    """The family knows the posterior distribution of an arm's mean reward."""

    def interval(self, rows: FloatArray, tails: FloatArray) -> FloatArray:
        """The m with P(m_j ≤ m | past) = p for each p of `tails`, shape (arms, tails)."""


def mixed_quantiles(parts: Sequence[tuple[float, FloatArray]], tails: FloatArray) -> FloatArray:
    """Return the m with F(m) = p for each p of `tails`, where F = Σ_s p_s F_s.

    A part is p_s with the quantiles of F_s at `QUANTILE_GRID`.
    """
    m = np.unique(np.concatenate([q for _, q in parts]))
    F = np.sum([p * np.interp(m, q, QUANTILE_GRID, 0.0, 1.0) for p, q in parts], axis=0)
    return np.asarray(np.interp(tails, F, m))


def mixed_log(w: FloatArray, logs: Sequence[float]) -> float:
    """Return ln Σ_s w_s exp(logs_s).

    >>> mixed_log(np.array([0.5, 0.5]), [-1000.0, -1000.0])
    -1000.0
    """
    largest = max(logs)
    return largest + math.log(float(w @ np.exp(np.array(logs) - largest)))


def mixed_predictive(w: FloatArray, given: Sequence[Mapping[float, float]]) -> dict[float, float]:
    """Return Σ_s w_s P_s(r) of every reward r, from the probabilities `given` each s.

    >>> mixed_predictive(np.array([0.5, 0.5]), [{0: 0.5, 1: 0.5}, {0: 0.0, 1: 1.0}])
    {0: 0.25, 1: 0.75}
    """
    return {r: float(w @ [p[r] for p in given]) for r in given[0]}


def parameter_rows(
    given: ArrayLike, arms: int, columns: tuple[str, ...], positive: tuple[str, ...]
) -> FloatArray:
    """Convert a prior to rows of finite parameters, shape (arms, columns), or raise InvalidPrior.

    The parameters named in `positive` must be above zero.
    """
    expected = f"give one row ({', '.join(columns)}) for all arms, or one per arm"
    what = "the prior" if isinstance(given, np.ndarray) else f"prior {given!r}"  # print no array
    table = as_numbers(given, what, InvalidPrior)
    if table.shape not in ((len(columns),), (arms, len(columns))):
        raise InvalidPrior(f"a prior of shape {table.shape} for {arms} arms: {expected}")
    rows = np.empty((arms, len(columns)))
    rows[:] = table
    lower_bound = np.array([0.0 if name in positive else -np.inf for name in columns])
    is_valid = np.isfinite(rows) & (rows > lower_bound)
    if not is_valid.all():
        j, k = (int(i) for i in np.argwhere(~is_valid)[0])
        expected = "positive and finite" if columns[k] in positive else "finite"
        where = "the prior" if table.ndim == 1 else f"arm {j}"
        raise InvalidPrior(f"{where}: {columns[k]} = {rows[j, k]:g} must be {expected}")
    return rows


def true_rows(given: ArrayLike, arms: int, limits: Mapping[str, tuple[float, float]]) -> FloatArray:
    """Return the true parameters, one row per arm; raise InvalidTable if they are invalid.

    `limits` has the name of each parameter, its smallest and its largest value. A single parameter
    is given as one number per arm, several ones as a row per arm.
    """
    values, names = as_numbers(given, "the true parameters", InvalidTable), list(limits)
    if values.shape != ((arms,) if len(names) == 1 else (arms, len(names))):
        raise InvalidTable(
            f"true parameters of shape {values.shape} for {arms} arms: give each arm its "
            f"{' and '.join(names)}"
        )
    rows = values.reshape(arms, -1)
    for name, (low, high), column in zip(names, limits.values(), rows.T, strict=True):
        for j in (column.argmin(), column.argmax()):  # a NaN counts as smallest and as largest
            if not low <= column.item(j) <= high:
                raise InvalidTable(f"arm {j}: {name} {column[j]:g} is not in [{low:g}, {high:g}]")
    return rows


def as_reward(
    o: Any, arm: str, expected: str, is_valid: Callable[[float], bool] = math.isfinite
) -> float:
    """Return o as a valid float, else raise BadEvidence; `is_valid` must reject NaN.

    The error mentions the kind of `arm` and which rewards are `expected`.
    """
    is_text = isinstance(o, str | bytes | bytearray)  # float() would parse it
    try:
        r = math.nan if is_text else float(o)
    except (TypeError, ValueError, OverflowError):
        r = math.nan
    if not is_valid(r):
        raise BadEvidence(f"reward {o!r} is invalid for a {arm} arm: expected {expected}")
    return r


def zero_or_one(o: Any, arm: str = "Bernoulli") -> float:
    """Return o as 0.0 or 1.0, else raise BadEvidence, which mentions the kind of `arm`."""
    try:
        return _BITS[o]  # the usual case
    except (KeyError, TypeError):
        return as_reward(o, arm, "0 or 1", lambda r: r in (0.0, 1.0))


def as_count(o: Any, arm: str) -> float:
    """Return o as one of 0.0, 1.0, 2.0, …, else raise BadEvidence, which mentions the `arm`."""
    return as_reward(o, arm, "0, 1, 2, …", lambda r: 0.0 <= r <= LARGEST_COUNT and r.is_integer())


def odds_means(rows: FloatArray) -> FloatArray:
    """E[r_j] = b_j / (a_j - 1) of rows (a, b); ∞ for a_j ≤ 1."""
    a, b = rows.T
    return np.asarray(np.divide(b, a - 1.0, out=np.full(len(rows), np.inf), where=a > 1.0))


def checked_draws(what: str, drawn: list[float], low: float, high: float, hint: str) -> FloatArray:
    """Return drawn values as a column; raise InvalidPrior if one is outside [low, high]."""
    for j, value in enumerate(drawn):
        if not low <= value <= high:
            raise InvalidPrior(
                f"arm {j}: the {what} {value:g} drawn from the prior is outside "
                f"[{low:g}, {high:g}]: {hint}"
            )
    return np.array(drawn)[:, None]
