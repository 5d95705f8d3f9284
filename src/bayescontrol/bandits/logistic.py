"""Logistic contextual bandits: rewards of 0 and 1 whose log-odds are linear in the context.

    P(r = 1 | x, a) = σ(x·w_a),  σ(t) = 1 / (1 + e^-t)        w_a ~ N(μ₀, Λ₀⁻¹)

The posterior is no longer Gaussian. Here it is approximated by one, reward by reward (streaming
Laplace): the present Gaussian is the prior, the new mean is the mode

    μ' = μ + Λ⁻¹x (r - σ(η)),  η = x·μ'        Λ' = Λ + σ(η) σ(-η) x xᵀ

at constant cost. The mode lies on one line, so Newton's method is about a number.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.bandits.contextual import ContextualBandit
from bayescontrol.bandits.family import number
from bayescontrol.bandits.regression import LIMIT, SETTINGS, Prior
from bayescontrol.errors import BadEvidence
from bayescontrol.problems.description import ModelKind

_KIND: Final = ModelKind(
    "logistic-bandit",
    "Arms that pay 1 with probability σ(x·w_a) in situation x, else 0.",
    SETTINGS,
    example={"arms": ["red", "blue"], "features": 2},
    observation=1,
    feedback="0 or 1",
    situation=[1.0, 0.2],
    outcomes=lambda _: 2,
    limits=(LIMIT,),
)


def _sigmoid(t: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-np.maximum(t, -700.0))))


class Logit:
    """r = 1 with probability σ(score), else 0.

    Streaming Laplace is an approximation, and the order of rewards matters: a reward counts by
    the curvature where the mode was when it came. Therefore beliefs do not merge. Measured with
    weights from a standard normal prior: one weight is off by .1 to .2 posterior standard
    deviations (root mean square; at worst .7), towards 0, and its standard deviation by up to a
    fifth; of five weights the mean after 2,000 rewards is .7 from the mode of all data at once,
    where the posterior itself scatters by 2.2. Weights far out in the prior fare worse, and so
    does a stream whose first context points along the weights (1.2).

    >>> Logit().predictive(0.0, 1.0)
    {0: 0.5, 1: 0.5}
    """

    model_kind: ClassVar[ModelKind] = _KIND
    additive: Final = False
    constants: Final = np.empty(0)

    @property
    def kind(self) -> int:
        """Its number in `kernels.regression`."""
        return kernels.regression.LOGIT

    def settings(self) -> dict[str, Any]:
        """It has none."""
        return {}

    def reward(self, o: Any) -> float:
        """0 or 1."""
        r = number(o, "0 or 1")
        if r not in (0.0, 1.0):
            raise BadEvidence(f"reward {o!r}: a logistic arm pays 0 or 1")
        return r

    def mean(self, score: FloatArray) -> FloatArray:
        """σ(score)."""
        return _sigmoid(score)

    def expected(self, s: float, q: float) -> float:
        """E σ(t), t ~ N(s, q), to 14 digits: the trapezoidal rule in the narrower variable.

        σ is the distribution function of logistic noise, so it is also the probability that t
        exceeds such noise: E σ(t) = E Φ((s - u) / √q), u logistic. Where t is spread widely the
        noise u is integrated over, otherwise t.

        >>> round(Logit().expected(1.0, 0.0), 12), round(Logit().expected(0.0, 1e6), 12)
        (0.73105857863, 0.5)
        """
        sd = math.sqrt(q)
        if sd <= 1.0:
            u = np.arange(-36.0, 37.0) / 4.0
            weight, value = np.exp(-0.5 * u * u), _sigmoid(s + sd * u)
        else:
            u = np.arange(-160.0, 161.0) / 4.0
            weight = _sigmoid(u) * _sigmoid(-u)
            value = np.array([0.5 * math.erfc((t - s) / (sd * math.sqrt(2.0))) for t in u])
        return float(weight @ value / weight.sum())

    def predictive(self, s: float, q: float) -> dict[float, float]:
        """P(r) for r = 0 and 1."""
        return {0: self.expected(-s, q), 1: self.expected(s, q)}

    def log_predictive(self, s: float, q: float, r: float) -> float:
        """ln P(r)."""
        return math.log(self.expected(s if r else -s, q))

    def format_text(self) -> str:
        """Return the text of the link in stored data, which is part of the format."""
        return "Logit()"

    def __repr__(self) -> str:
        return "Logit()"


class LogisticBandit(ContextualBandit):
    """N arms that pay 1 with probability σ(x·w_a); see `Logit` for the approximation.

    >>> bandit = LogisticBandit(["red", "blue"], features=2)
    >>> agent = bandit.agent()
    >>> agent.learn([1.0, 0.0], "red", 1)
    >>> {a: round(p, 3) for a, p in agent.belief.expected([1.0, 0.0]).items()}
    {'red': 0.585, 'blue': 0.5}
    """

    model_kind: ClassVar[ModelKind] = _KIND

    def __init__(self, arms: int | Sequence[Hashable], features: int, prior: Prior = None) -> None:
        super().__init__(Logit(), arms, features, prior)
