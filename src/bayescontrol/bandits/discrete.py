"""Arms that pay 1 with probability m_j, else 0: the bandit of the paper.

    P(o = 1 | m, a = j) = m_j          m_j ~ Beta(α_j, β_j),  uniform by default
    P(m | âo_≤t) = Π_j m_j^(r_j) (1 - m_j)^(f_j) / B(r_j + 1, f_j + 1)

r_j and f_j count the pulls of arm j with and without a reward.

Arms that pay one of K values, with Dirichlet priors over how often.

    P(o = v_k | m, a = j) = p_jk        p_j ~ Dirichlet(α_j1 … α_jK),  all ones by default
    α_jk ← α_jk + 1 if o = v_k          mean reward m_j = Σ_k v_k p_jk

The values are known, their probabilities are not.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.bandits.bandit import Bandit
from bayescontrol.bandits.best_arm import beta_best
from bayescontrol.bandits.family import number, parameter_rows, true_rows, true_table
from bayescontrol.errors import BadEvidence, InvalidPrior, InvalidTable
from bayescontrol.problems.description import (
    ARMS,
    MOST_NUMBERS,
    ModelKind,
    SettingDoc,
    SizeLimit,
    prior_rows,
)
from bayescontrol.seeding import Stream

_NOTHING: Final = np.empty(0)
_BERNOULLI: Final = ModelKind(
    "bernoulli-bandit",
    "Arms that pay 0 or 1.",
    {
        "arms": ARMS,
        "prior": prior_rows("[α, β]", "Beta(α, β) over the bias of an arm. Default: [1, 1]."),
    },
    example={"arms": ["red", "blue"], "prior": [1, 1]},
    observation=1,
    feedback="0 or 1",
    versions={1: {"split_ties": True}, 2: {}},
    outcomes=lambda _: 2,
)


class Bernoulli:
    """Rewards of 0 and 1, biases with Beta(α, β) priors.

    >>> Bernoulli().prior(None, 2).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    >>> Bernoulli().predictive(np.array([2.0, 1.0]))
    {0: 0.333..., 1: 0.666...}
    """

    model_kind: ClassVar[ModelKind] = _BERNOULLI
    kind: Final = 0
    constants: Final = _NOTHING
    columns: Final = ("alpha", "beta")
    #: (α, β)
    default: Final = (1.0, 1.0)

    def settings(self) -> dict[str, Any]:
        """It has none."""
        return {}

    def prior(self, given: npt.ArrayLike | None, arms: int) -> FloatArray:
        """(α, β), by default (1, 1): every bias alike."""
        return self.rows(self.default if given is None else given, arms)

    def rows(self, saved: npt.ArrayLike, arms: int) -> FloatArray:
        """(α, β)."""
        return parameter_rows(saved, arms, self.columns, self.columns)

    def truth(self, given: npt.ArrayLike, arms: int) -> FloatArray:
        """The biases m_j."""
        return true_rows(given, arms, "bias", 0.0, 1.0)

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """m_j ~ Beta(α_j, β_j)."""
        return np.array([[rng.beta(alpha, beta)] for alpha, beta in prior])

    def reward(self, o: Any) -> float:
        """0 or 1."""
        r = number(o, "0 or 1")
        if r not in (0.0, 1.0):
            raise BadEvidence(f"reward {o!r}: a Bernoulli arm pays 0 or 1")
        return r

    def means(self, truth: FloatArray) -> FloatArray:
        """m_j."""
        return truth[:, 0].copy()

    def expected(self, rows: FloatArray) -> FloatArray:
        """α / (α + β)."""
        return np.asarray(rows[:, 0] / rows.sum(1))

    def predictive(self, row: FloatArray) -> dict[float, float]:
        """P(r | past) for r = 0 and 1."""
        p = float(row[0] / (row[0] + row[1]))
        return {0: 1.0 - p, 1: p}

    def log_predictive(self, row: FloatArray, r: float) -> float:
        """ln P(r | past)."""
        return float(np.log(row[0] if r else row[1]) - np.log(row[0] + row[1]))

    def best(self, rows: FloatArray) -> FloatArray:
        """P(m_j > all others), by quadrature."""
        return beta_best(rows[:, 0], rows[:, 1])

    def interval(self, rows: FloatArray, tails: FloatArray) -> FloatArray:
        """m with I_m(α, β) = p: the regularised incomplete beta function, inverted."""
        from scipy import special  # type: ignore[import-untyped]

        return np.asarray(special.betaincinv(rows[:, :1], rows[:, 1:], tails))

    def merged(self, prior: FloatArray, one: FloatArray, two: FloatArray) -> FloatArray:
        """Counts add up."""
        return one + two - prior

    def format_text(self) -> str:
        """Return the text of the family in stored data, which is part of the format."""
        return "Bernoulli()"

    def __repr__(self) -> str:
        return "Bernoulli()"


class BernoulliBandit(Bandit):
    """N levers that pay 0 or 1, with Beta priors over their biases.

    `arms` is their number, or their names; `prior` one (α, β) for all, or one for each.

    >>> bandit = BernoulliBandit(["red", "blue"])
    >>> agent = bandit.agent()
    >>> agent.observe("red", 1)
    >>> {a: round(p, 10) for a, p in agent.action_probabilities().items()}
    {'red': 0.6666666667, 'blue': 0.3333333333}
    >>> world = bandit.environment([0.3, 0.8])
    >>> from bayescontrol import interact
    >>> record = interact(agent, world, 500)
    >>> float((record.actions == "blue").mean()) > 0.8
    True
    """

    model_kind: ClassVar[ModelKind] = _BERNOULLI

    def __init__(self, arms: int | Sequence[Hashable], prior: npt.ArrayLike | None = None) -> None:
        super().__init__(Bernoulli(), arms, prior)


#: Σ_k v_k G_k must be a double.
LARGEST: Final = 1e150
SUMS_TO_ONE: Final = 1e-9
_CATEGORICAL: Final = ModelKind(
    "categorical-bandit",
    "Arms that pay one of a few values.",
    {
        "arms": ARMS,
        "values": SettingDoc("list of K different numbers", "The rewards that an arm may pay."),
        "prior": prior_rows("list of K numbers", "Dirichlet(α_1, …, α_K). Default: all 1."),
    },
    example={"arms": ["red", "blue"], "values": [-1, 0, 10]},
    observation=10,
    feedback="one of the values",
    limits=(
        SizeLimit("arms times values", lambda size: size["arms"] * size["values"], MOST_NUMBERS),
    ),
)


class Categorical:
    """Rewards from a list of values, their probabilities with Dirichlet(α) priors.

    >>> family = Categorical([0, 1, 5])
    >>> family.columns
    ('alpha[0.0]', 'alpha[1.0]', 'alpha[5.0]')
    >>> family.predictive(np.array([1.0, 2.0, 1.0]))
    {0.0: 0.25, 1.0: 0.5, 5.0: 0.25}
    >>> family.expected(np.array([[1.0, 2.0, 1.0]]))
    array([1.75])
    """

    model_kind: ClassVar[ModelKind] = _CATEGORICAL
    kind: Final = 5

    def __init__(self, values: npt.ArrayLike) -> None:
        try:
            v = np.array(values, np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidTable(f"values={values!r}: {error}") from None
        if v.ndim != 1 or v.size == 0:
            raise InvalidTable(f"values={values!r}: give a list of the rewards that an arm may pay")
        if not (np.abs(v) <= LARGEST).all():
            raise InvalidTable(f"values={values!r}: each must be finite, up to ±{LARGEST:g}")
        if np.unique(v).size < v.size:
            raise InvalidTable(f"values={values!r}: they must differ from each other")
        self.constants: FloatArray = v + 0.0  # no -0.0: it has another repr
        self.columns = tuple(f"alpha[{value}]" for value in self.constants)
        #: α_1 … α_K
        self.default = (1.0,) * v.size

    def settings(self) -> dict[str, Any]:
        """The values."""
        return {"values": self.constants.tolist()}

    def prior(self, given: npt.ArrayLike | None, arms: int) -> FloatArray:
        """α_1 … α_K, by default all 1: every distribution over the values alike."""
        return self.rows(self.default if given is None else given, arms)

    def rows(self, saved: npt.ArrayLike, arms: int) -> FloatArray:
        """α_1 … α_K."""
        rows = parameter_rows(saved, arms, self.columns, self.columns)
        for j, total in enumerate(rows.sum(1)):
            if not total <= LARGEST:
                raise InvalidPrior(f"arm {j}: its alphas sum to {total:g}, too large for a count")
        return rows

    def truth(self, given: npt.ArrayLike, arms: int) -> FloatArray:
        """A row p_1 … p_K for each arm."""
        rows = true_table(given, arms, tuple(f"P({v})" for v in self.constants))
        for j, row in enumerate(rows):
            if (row < 0.0).any() or abs(row.sum() - 1.0) > SUMS_TO_ONE:
                raise InvalidTable(
                    f"arm {j}: {row.tolist()} are not the probabilities of the values: they must "
                    f"be at least 0 and sum to 1"
                )
        return rows

    def draw_truth(self, prior: FloatArray, rng: Stream) -> FloatArray:
        """p_j ~ Dirichlet(α_j), by breaking a stick: robust also where all α are small."""
        rows = np.empty_like(prior)
        for j, alphas in enumerate(prior):
            left = 1.0
            for k, alpha in enumerate(alphas[:-1]):
                part = rng.beta(alpha, float(alphas[k + 1 :].sum()))
                rows[j, k], left = left * part, left * (1.0 - part)
            rows[j, -1] = left
        return rows

    def reward(self, o: Any) -> float:
        """One of the values."""
        listed = ", ".join(f"{v:g}" for v in self.constants[:8])
        more = ", …" if self.constants.size > 8 else ""
        r = number(o, f"one of {listed}{more}")
        if r not in self.constants:
            raise BadEvidence(f"reward {o!r}: these arms pay one of {listed}{more}")
        return r

    def means(self, truth: FloatArray) -> FloatArray:
        """Σ_k v_k p_jk."""
        return np.asarray(truth @ self.constants)

    def expected(self, rows: FloatArray) -> FloatArray:
        """Σ_k v_k α_k / Σ_k α_k."""
        return np.asarray(rows @ self.constants / rows.sum(1))

    def predictive(self, row: FloatArray) -> dict[float, float]:
        """P(v_k | past) = α_k / Σ α."""
        return dict(zip(self.constants.tolist(), (row / row.sum()).tolist(), strict=True))

    def log_predictive(self, row: FloatArray, r: float) -> float:
        """ln α_k / Σ α for the value v_k = r."""
        return math.log(row[self.constants == r].item()) - math.log(row.sum())

    def merged(self, prior: FloatArray, one: FloatArray, two: FloatArray) -> FloatArray:
        """Counts add up."""
        return one + (two - prior)

    def format_text(self) -> str:
        """Return the text of the family in stored data, which is part of the format."""
        return f"Categorical({self.constants.tolist()})"

    def __repr__(self) -> str:
        return f"Categorical({self.constants.tolist()})"


class CategoricalBandit(Bandit):
    """N arms that pay one of the same `values`, with Dirichlet priors; o is the value itself.

    `prior` is one row α_1 … α_K for all arms, or one for each, by default all ones. Exact action
    probabilities are not offered: for more than two values no simple integral gives them.

    >>> bandit = CategoricalBandit(["red", "blue"], values=[-1, 0, 10])
    >>> agent = bandit.agent()
    >>> agent.observe("red", 10)
    >>> agent.belief.expected()
    {'red': 4.75, 'blue': 3.0}
    >>> agent.predictive("red")
    {-1.0: 0.25, 0.0: 0.25, 10.0: 0.5}
    >>> bandit.environment([[0.9, 0.1, 0], [0.8, 0, 0.2]]).best
    'blue'
    """

    model_kind: ClassVar[ModelKind] = _CATEGORICAL

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        values: npt.ArrayLike,
        prior: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(Categorical(values), arms, prior)
