"""Bernoulli arms, the bandit of the paper, and arms that pay one of K values.

    P(o = 1 | m, a = j) = m_j          m_j ~ Beta(α_j, β_j),  uniform by default
    P(m | âo_≤t) = Π_j m_j^(r_j) (1 - m_j)^(f_j) / B(r_j + 1, f_j + 1)

r_j and f_j count the pulls of arm j with and without a reward. For K known values v_k:

    P(o = v_k | m, a = j) = p_jk        p_j ~ Dirichlet(α_j1 … α_jK),  all ones by default
    α_jk ← α_jk + 1 if o = v_k          mean reward m_j = Σ_k v_k p_jk
"""

from collections.abc import Iterable
from itertools import product
from typing import Any, ClassVar, Final

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray, as_numbers
from bayescontrol._support.description import MOST_NUMBERS, SettingDoc, SizeLimit
from bayescontrol.bandits.bandit import Bandit
from bayescontrol.bandits.family import (
    Density,
    DensityFamily,
    Family,
    FamilyKind,
    TableRow,
    as_reward,
    parameter_rows,
    settings_of,
    true_rows,
    zero_or_one,
)
from bayescontrol.bandits.learned import Learned, with_prior
from bayescontrol.bandits.roster import Arms
from bayescontrol.beliefs.totals import checked_totals
from bayescontrol.errors import InvalidPrior, InvalidTable
from bayescontrol.kernels.families import BETA, number
from bayescontrol.protocols import Totals
from bayescontrol.seeding import Stream

_BERNOULLI: Final = FamilyKind(
    "bernoulli-bandit",
    "Arms that pay 0 or 1.",
    settings_of(
        '[α, β], or "learned"',
        "Beta(α, β) over the bias of an arm. Default: [1, 1]. Learned: α and β are learned from "
        "all arms.",
    ),
    example={"arms": ["red", "blue"], "prior": [1, 1]},
    observation=1,
    feedback="0 or 1",
    outcomes=lambda _: 2,
    truth=[0.2, 0.7],
    refused=(2, -1, 0.5),
    table=(TableRow("arms", "0 or 1", "bias ~ Beta(1, 1)", "biases"),),
)
#: The smallest α and β of a learned prior: Jeffreys' prior. With less, most biases are near 0 or 1.
LEAST: Final = 0.5


def _beta_grid(odds: Iterable[float], strengths: Iterable[float]) -> FloatArray:
    """Return the rows (α, β) with these odds α/β and strengths α + β that are not below `LEAST`."""
    pairs = product(strengths, odds)
    rows = [(n * odds / (1.0 + odds), n / (1.0 + odds)) for n, odds in pairs]
    return np.array([row for row in rows if min(row) >= LEAST])


#: Values of (α, β) of a learned prior: odds and strengths in steps of 4, with the uniform prior.
LEARNED_BETA: Final = _beta_grid(4.0 ** np.arange(-3.0, 4.0), (2.0, 8.0, 32.0, 128.0))
#: The same for segments: many of them tell the prior of an arm more precisely.
POOLED_BETA: Final = _beta_grid(2.0 ** np.arange(-6.0, 6.5, 0.5), (2.0, 8.0, 32.0, 128.0, 512.0))


class Bernoulli(DensityFamily):
    """Rewards of 0 and 1; the biases have Beta(α, β) priors, uniform by default.

    >>> Bernoulli().prior(None, 2).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    >>> Bernoulli().predictive(np.array([2.0, 1.0]))
    {0: 0.333..., 1: 0.666...}
    """

    model_kind: ClassVar[FamilyKind] = _BERNOULLI
    kind = number("bernoulli")
    density = Density(BETA, bounded=True)
    format_text: ClassVar[str] = "Bernoulli()"
    columns = ("alpha", "beta")
    default = (1.0, 1.0)

    def truth(self, given: ArrayLike, arms: int) -> FloatArray:
        """Return the biases m_j as a column; each must be in [0, 1]."""
        return true_rows(given, arms, {"bias": (0.0, 1.0)})

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """Draw m_j ~ Beta(α_j, β_j)."""
        return np.array([[rng.beta(alpha, beta)] for alpha, beta in prior])

    reward = staticmethod(zero_or_one)

    def expected(self, rows: FloatArray) -> FloatArray:
        """E[r_j] = α_j / (α_j + β_j)."""
        return np.asarray(rows[:, 0] / rows.sum(1))

    def predictive(self, row: FloatArray) -> dict[float, float]:
        """P(r | past) for r = 0 and 1."""
        p = float(row[0] / (row[0] + row[1]))
        return {0: 1.0 - p, 1: p}

    def learn_totals(self, row: FloatArray, totals: Totals) -> FloatArray:
        """Count the rewards of 1 and of 0."""
        n, total, _ = checked_totals(totals, "Bernoulli", 0, 1, whole=True)
        return np.array([row[0] + total, row[1] + (n - total)])

    def interval(self, rows: FloatArray, tails: FloatArray) -> FloatArray:
        """Solve I_m(α, β) = p for m: the inverse of the regularised incomplete beta function."""
        from scipy import special  # type: ignore[import-untyped]

        return np.asarray(special.betaincinv(rows[:, :1], rows[:, 1:], tails))

    def merged(self, prior: FloatArray, one: FloatArray, two: FloatArray) -> FloatArray:
        """Add the counts of `one` and `two`; the prior counts once."""
        return one + two - prior

    def for_segments(self) -> Learned:
        """Return the family with a prior that the segments of an arm share."""
        return Learned(self, POOLED_BETA, _totals)


def _totals(counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the number of rewards of 1 and of all rewards."""
    return counts[:, 0], counts.sum(1)


class BernoulliBandit(Bandit):
    """N arms that pay 0 or 1, with Beta priors over their biases; for Thompson sampling.

    `arms` is the number of arms or a list of names, `prior` one (α, β) for all arms or one per arm.
    With `prior="learned"` the arms share α and β, which are learned from the rewards of all arms.

    >>> bandit = BernoulliBandit(["red", "blue"])
    >>> agent = bandit.agent()
    >>> agent.observe("red", 1)
    >>> {a: round(p, 10) for a, p in agent.action_probabilities().items()}
    {'red': 0.6666666667, 'blue': 0.3333333333}
    >>> world = bandit.environment([0.3, 0.8])
    >>> from bayescontrol import interact
    >>> record = interact(agent, world, 500, seed=0)
    >>> float((record.actions == "blue").mean()) > 0.8
    True
    """

    model_kind: ClassVar[FamilyKind] = _BERNOULLI

    def __init__(self, arms: Arms, prior: ArrayLike | str | None = None) -> None:
        super().__init__(*with_prior(Bernoulli(), arms, prior, LEARNED_BETA, _totals))


#: The largest reward of a categorical arm: sums of rewards times weights must not overflow.
LARGEST: Final = 1e150
#: How far the sum of probabilities may be from 1.
SUMS_TO_ONE: Final = 1e-9
_CATEGORICAL: Final = FamilyKind(
    "categorical-bandit",
    "Arms that pay one of a few values.",
    settings_of(
        "list of K numbers",
        "Dirichlet(α_1, …, α_K). Default: all 1.",
        values=SettingDoc("list of K different numbers", "The rewards that an arm may pay."),
    ),
    example={"arms": ["red", "blue"], "values": [-1, 0, 10]},
    observation=10,
    feedback="one of the values",
    limits=(
        SizeLimit("arms times values", lambda size: size["arms"] * size["values"], MOST_NUMBERS),
    ),
    truth=[[0.3, 0.5, 0.2], [0.2, 0.3, 0.5]],
    refused=(2, 10.0000001),
    table=(
        TableRow("arms, values", "one of `values`", "Dirichlet(1, …, 1)", "rows of probabilities"),
    ),
)


class Categorical(Family):
    """Rewards from a list of values; their probabilities have Dirichlet(α) priors.

    >>> family = Categorical([0, 1, 5])
    >>> family.columns
    ('alpha[0.0]', 'alpha[1.0]', 'alpha[5.0]')
    >>> family.predictive(np.array([1.0, 2.0, 1.0]))
    {0.0: 0.25, 1.0: 0.5, 5.0: 0.25}
    >>> family.expected(np.array([[1.0, 2.0, 1.0]]))
    array([1.75])
    """

    model_kind: ClassVar[FamilyKind] = _CATEGORICAL
    kind = number("categorical")

    def __init__(self, values: ArrayLike) -> None:
        v = as_numbers(values, f"values={values!r}", InvalidTable)
        if v.ndim != 1 or v.size == 0:
            raise InvalidTable(f"values={values!r}: expected a list of possible rewards")
        if not (np.abs(v) <= LARGEST).all():
            raise InvalidTable(f"values={values!r}: each must be finite, up to ±{LARGEST:g}")
        if np.unique(v).size < v.size:
            raise InvalidTable(f"values={values!r}: a value occurs twice")
        self.constants = v + 0.0  # turns -0.0 into 0.0, so that equal values have equal text
        self.columns = tuple(f"alpha[{value}]" for value in self.constants)
        self.default = (1.0,) * v.size

    def settings(self) -> dict[str, Any]:
        """Return the values, as logs store them."""
        return {"values": self.constants.tolist()}

    def rows(self, saved: ArrayLike, arms: int) -> FloatArray:
        """Return rows α_1 … α_K; raise InvalidPrior if they are invalid or their sum too large."""
        rows = parameter_rows(saved, arms, self.columns, self.columns)
        for j, total in enumerate(rows.sum(1)):
            if not total <= LARGEST:  # also if the sum is infinite
                raise InvalidPrior(f"arm {j}: the alphas sum to {total:g}, above {LARGEST:g}")
        return rows

    def truth(self, given: ArrayLike, arms: int) -> FloatArray:
        """Return a row of probabilities p_1 … p_K for each arm, or raise InvalidTable."""
        largest = 1.0 + SUMS_TO_ONE
        rows = true_rows(given, arms, {f"P({v})": (0.0, largest) for v in self.constants})
        for j in np.flatnonzero(np.abs(rows.sum(1) - 1.0) > SUMS_TO_ONE):
            raise InvalidTable(f"arm {j}: the probabilities {rows[j].tolist()} must sum to 1")
        return rows

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """Draw p_j ~ Dirichlet(α_j), by stick breaking, which is accurate for small α too."""
        rows = np.empty_like(prior)
        for j, alphas in enumerate(prior):
            rest_of_stick = 1.0
            for k, alpha in enumerate(alphas[:-1]):
                part = rng.beta(alpha, float(alphas[k + 1 :].sum()))
                rows[j, k], rest_of_stick = rest_of_stick * part, rest_of_stick * (1.0 - part)
            rows[j, -1] = rest_of_stick
        return rows

    def reward(self, o: Any) -> float:
        """Return o as a float; raise BadEvidence unless it is one of the values."""
        listed = ", ".join(f"{v:g}" for v in self.constants[:8])
        expected = f"one of {listed}" + (", …" if self.constants.size > 8 else "")
        return as_reward(o, "categorical", expected, lambda r: r in self.constants)

    def means(self, truth: FloatArray) -> FloatArray:
        """m_j = Σ_k v_k p_jk."""
        return np.asarray(truth @ self.constants)

    def expected(self, rows: FloatArray) -> FloatArray:
        """E[r_j] = Σ_k v_k α_jk / Σ_k α_jk."""
        return np.asarray(rows @ self.constants / rows.sum(1))

    def predictive(self, row: FloatArray) -> dict[float, float]:
        """P(v_k | past) = α_k / Σ α."""
        return dict(zip(self.constants.tolist(), (row / row.sum()).tolist(), strict=True))

    def format_text(self) -> str:
        """The name of the family in stored data, which is part of the format."""
        return f"Categorical({self.constants.tolist()})"

    __repr__ = format_text


class CategoricalBandit(Bandit):
    """N arms that pay one of the same `values`, with Dirichlet priors; o is the value itself.

    `prior` is one row α_1 … α_K for all arms, or one row per arm, by default all ones. Exact action
    probabilities are not available: for more than two values they have no simple integral.

    `arms` is the number of arms or their names.

    >>> bandit = CategoricalBandit(["red", "blue"], values=[-1, 0, 10])
    >>> agent = bandit.agent()
    >>> agent.observe("red", 10)
    >>> agent.belief.expected()
    {'red': 4.75, 'blue': 3.0}
    >>> agent.predictive("red")
    {-1.0: 0.25, 0.0: 0.25, 10.0: 0.5}
    >>> bandit.environment([[0.9, 0.1, 0], [0.8, 0, 0.2]]).best()
    'blue'
    """

    model_kind: ClassVar[FamilyKind] = _CATEGORICAL

    def __init__(self, arms: Arms, values: ArrayLike, prior: ArrayLike | None = None) -> None:
        super().__init__(Categorical(values), arms, prior)
