"""Arms that pay 1 with probability m_j, else 0: the bandit of the paper.

    P(o = 1 | m, a = j) = m_j          m_j ~ Beta(α_j, β_j),  uniform by default
    P(m | âo_≤t) = Π_j m_j^(r_j) (1 - m_j)^(f_j) / B(r_j + 1, f_j + 1)

r_j and f_j count the pulls of arm j with and without a reward.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.bandits.bandit import Bandit
from bayescontrol.bandits.best_arm import beta_best
from bayescontrol.bandits.family import number, parameter_rows, true_rows
from bayescontrol.errors import BadEvidence
from bayescontrol.problems.description import ARMS, ModelKind, prior_rows
from bayescontrol.seeding import Stream

_NOTHING: Final = np.empty(0)
_KIND: Final = ModelKind(
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

    model_kind: ClassVar[ModelKind] = _KIND
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

    model_kind: ClassVar[ModelKind] = _KIND

    def __init__(self, arms: int | Sequence[Hashable], prior: npt.ArrayLike | None = None) -> None:
        super().__init__(Bernoulli(), arms, prior)
