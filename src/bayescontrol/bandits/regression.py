"""Contexts, links from scores to rewards, and the priors of contextual bandits.

    context     x_t ∈ ℝᵈ,   o_t = (r_t, x_{t+1}),   T(x, a, o) = the context in o
    score       x·w_a | past ~ N(s, q)
    Gaussian    r = x·w_a + σ z:   Λ_a = Λ₀ + Σ x xᵀ / σ²,   Λ_a μ_a = Λ₀ μ₀ + Σ r x / σ²
    logistic    P(r = 1 | x, a) = σ(x·w_a),   σ(t) = 1 / (1 + e^-t)

In a stream the next context comes with the reward. Where rewards come late or without a context,
call `agent.decide(x, rng)` to act and `agent.learn(x, a, r)` when r is known.

With a logistic link the posterior is not Gaussian. It is approximated by a Gaussian, reward by
reward, at constant cost: the current Gaussian is the prior, and the new Gaussian has the mean and
the variance of the score t = x·w under the posterior of this prior and the reward (moment matching,
also called assumed density filtering):

    μ' = μ + Λ⁻¹x (r - E[σ(t) | r])        Λ' = Λ + h x xᵀ,   h = 1/Var[t | r] - 1/Var[t]

`LaplaceLogit` takes the mode of that posterior and its curvature; Newton's method finds η:

    μ' = μ + Λ⁻¹x (r - σ(η)),  η = x·μ'        Λ' = Λ + σ(η) σ(-η) x xᵀ

The update equations are kernels (`kernels.regression`), selected by the number `kind` of the link.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, as_integer
from bayescontrol._support.description import ARMS, MOST_NUMBERS, ModelKind, SettingDoc, SizeLimit
from bayescontrol._support.regressions import Regressions
from bayescontrol.bandits.family import as_number, standard_deviation, zero_or_one
from bayescontrol.errors import BadEvidence, InvalidPrior
from bayescontrol.situations import accept_late_feedback

#: Larger numbers are rejected, so that squares and sums stay finite.
LARGEST = 1e50

# Contexts with a smaller squared length are scaled, so that squared scores do not underflow.
_SHORT_SQUARED = 1e-100


#: Settings of all contextual bandits.
SETTINGS: Final = {
    "arms": ARMS,
    "features": SettingDoc("whole number", "The length d of a situation.", largest=1_000),
    "prior": SettingDoc(
        "[mean, precision]",
        "Gaussian prior of the weights of an arm. mean: a number, a list of d numbers, or one such "
        "list for each arm. precision: a number, a d × d matrix, or one for each arm. Default: "
        "[0, 1].",
    ),
}
LIMIT: Final = SizeLimit(
    "arms times features squared", lambda size: size["arms"] * size["features"] ** 2, MOST_NUMBERS
)


class NoContext(BadEvidence):
    """The agent has no context yet, so it can neither act nor learn."""

    def __init__(self) -> None:
        super().__init__(
            "no context yet: use decide(x, rng) and learn(x, a, o), or agent(start=x); for a "
            "simulated world use agent(start=world.start)"
        )


class RewardAndContext(NamedTuple):
    """o = (r, x'): a reward and the context of the next decision.

    >>> RewardAndContext(0.5, (1.0, -2.0))
    RewardAndContext(reward=0.5, context=(1.0, -2.0))
    """

    reward: float
    context: tuple[float, ...]


def as_context(x: ArrayLike, features: int) -> FloatArray:
    """Return x as a vector of finite numbers, one per feature; raise BadEvidence if it is not.

    None raises `NoContext`.
    """
    if x is None:
        raise NoContext
    try:
        v = np.asarray(x)
    except ValueError:  # a ragged list
        v = np.empty(0, object)
    if v.shape != (features,) or v.dtype.kind not in "biuf":
        raise BadEvidence(f"context {x!r}: it must be a vector of {features} numbers")
    v = np.ascontiguousarray(v, np.float64)
    if not kernels.regression.dot(v, v) <= LARGEST * LARGEST:  # also if it is NaN
        raise BadEvidence(f"context {x!r}: every feature must be a finite number up to {LARGEST:g}")
    return v


def scale_for_comparison(v: FloatArray) -> FloatArray:
    """Return v, scaled by a power of 2 if it is very short, so that scores do not underflow.

    Scaling does not change which arm is the best.
    """
    if kernels.regression.dot(v, v) >= _SHORT_SQUARED:
        return v
    _, exponent = np.frexp(np.abs(v).max())
    return np.asarray(np.ldexp(v, -exponent))


@accept_late_feedback
def next_context(x: FloatArray | None, a: Any, o: Any) -> FloatArray:
    """T(x, a, o): return the context in o, or x if o is a reward without context."""
    if x is None:
        raise NoContext
    if isinstance(o, RewardAndContext):
        return as_context(o.context, len(x)).copy()
    return x


def reward_of(o: Any) -> Any:
    """Return the reward in o, or o itself if it is a reward without context."""
    return o.reward if isinstance(o, RewardAndContext) else o


class Link(Protocol):
    """What the belief, the environment and the compiled loop need from a link."""

    @property
    def kind(self) -> int:
        """The number of the link in `kernels.regression`."""

    @property
    def constants(self) -> FloatArray:
        """The known parameters for the kernels, such as a standard deviation."""

    @property
    def additive(self) -> bool:
        """Whether the evidence of a reward is independent of earlier rewards."""

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the link as plain values, as logs store them."""

    def reward(self, o: Any) -> float:
        """Return o as a number; raise BadEvidence if an arm cannot pay o."""

    def mean(self, score: FloatArray) -> FloatArray:
        """E[r | x·w]."""

    def expected(self, s: float, q: float) -> float:
        """E[r] for a score N(s, q)."""

    def log_predictive(self, s: float, q: float, r: float) -> float:
        """ln P(r) for a score N(s, q); a density if rewards are continuous."""


class FiniteLink(Protocol):
    """The link pays one of finitely many rewards."""

    def predictive(self, s: float, q: float) -> dict[float, float]: ...


LINEAR_KIND: Final = ModelKind(
    "linear-bandit",
    "Arms that pay x·w_a and Gaussian noise in situation x.",
    {
        "arms": SETTINGS["arms"],
        "features": SETTINGS["features"],
        "sd": SettingDoc("number", "Standard deviation σ of the noise. Default: 1."),
        "prior": SETTINGS["prior"],
    },
    example={"arms": ["red", "blue"], "features": 2, "sd": 0.5},
    observation=0.3,
    feedback="a number",
    situation=[1.0, 0.2],
    limits=(LIMIT,),
)


class GaussianNoise:
    """r = score + σ z: the reward is the score plus noise with known standard deviation.

    >>> GaussianNoise(2.0).expected(1.5, 0.1)
    1.5
    """

    model_kind: ClassVar[ModelKind] = LINEAR_KIND
    kind: Final = 0
    additive: Final = True

    def __init__(self, sd: float = 1.0) -> None:
        self.sd = standard_deviation(sd, 1e25)
        self.constants: Final = np.array([self.sd])

    def settings(self) -> dict[str, Any]:
        """Return σ, as logs store it."""
        return {"sd": self.sd}

    def reward(self, o: Any) -> float:
        """Return o as a float; raise BadEvidence unless it is a finite number."""
        return as_number(o, "a finite number")

    def mean(self, score: FloatArray) -> FloatArray:
        """E[r | score] = score."""
        return score

    def expected(self, s: float, q: float) -> float:
        """E[r] = s."""
        return s

    def log_predictive(self, s: float, q: float, r: float) -> float:
        """ln N(r; s, q + σ²)."""
        return kernels.regression.log_predictive(self.kind, self.constants, s, q, r)

    def format_text(self) -> str:
        """The name of the link in stored data, which is part of the format."""
        return f"GaussianNoise(sd={self.sd:g})"

    __repr__ = format_text


LOGISTIC_KIND: Final = ModelKind(
    "logistic-bandit",
    "Arms that pay 1 with probability σ(x·w_a) in situation x, else 0.",
    SETTINGS,
    example={"arms": ["red", "blue"], "features": 2},
    observation=1,
    feedback="0 or 1",
    situation=[1.0, 0.2],
    versions={1: {"laplace": True}, 2: {}},
    outcomes=lambda _: 2,
    limits=(LIMIT,),
)


def _sigmoid(t: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-np.maximum(t, -700.0))))


class Logit:
    """r = 1 with probability σ(score), else 0.

    Mean and covariance are exact after the first reward and approximate later, and the order of
    rewards matters: the evidence of a reward depends on the current mean and variance. Therefore
    beliefs do not merge. The wider the prior, the larger the error. Measured after 10 to 1,000
    rewards, with a single weight drawn from the prior: its mean is off by 0.03 to 0.1 posterior
    standard deviations (root mean square) if the prior has standard deviation 1, by 0.1 to 0.2 if
    it has 2, and by 0.3 if it has 4; at worst by 0.5, 1.0 and 1.3. The mean of five weights after
    2,000 rewards, from a standard normal prior, is at distance 0.3 from the mode of the exact
    posterior, compared with a posterior spread of 2.2.

    >>> Logit().predictive(0.0, 1.0)
    {0: 0.5, 1: 0.5}
    """

    model_kind: ClassVar[ModelKind] = LOGISTIC_KIND
    kind: int = 2
    additive: Final = False
    constants: Final = np.empty(0)

    def settings(self) -> dict[str, Any]:
        """Return no settings: the link has no arguments."""
        return {}

    def reward(self, o: Any) -> float:
        """Return o as 0.0 or 1.0, else raise BadEvidence."""
        return zero_or_one(o, "logistic")

    def mean(self, score: FloatArray) -> FloatArray:
        """E[r | score] = σ(score)."""
        return _sigmoid(score)

    def expected(self, s: float, q: float) -> float:
        """E σ(t), t ~ N(s, q)."""
        return kernels.regression.mean_sigmoid(s, q)

    def predictive(self, s: float, q: float) -> dict[float, float]:
        """Return P(r) for r = 0 and r = 1, for a score N(s, q)."""
        return {0: self.expected(-s, q), 1: self.expected(s, q)}

    def log_predictive(self, s: float, q: float, r: float) -> float:
        """ln P(r) for a score N(s, q)."""
        return kernels.regression.log_predictive(self.kind, self.constants, s, q, r)

    def format_text(self) -> str:
        """The name of the link in stored data, which is part of the format."""
        return "Logit(moments)"

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class LaplaceLogit(Logit):
    """The rewards of `Logit`, learned by Laplace's approximation at each reward.

    It continues logs of version 1 and states that were saved before `Logit` matched moments.
    Its error is two to five times that of `Logit`: a single weight is off by 0.1 to 0.2 posterior
    standard deviations (at worst 0.8), towards 0, and five weights after 2,000 rewards by 0.6.

    >>> from bayescontrol import LogisticBandit
    >>> LogisticBandit(2, features=1).belief(laplace=True).link
    LaplaceLogit()
    """

    kind = 1

    def format_text(self) -> str:
        """The name in stored data, as in states from before moment matching."""
        return "Logit()"


def with_laplace(link: Link) -> Link:
    """Return `LaplaceLogit` for `Logit`, and other links unchanged."""
    return LaplaceLogit() if type(link) is Logit else link


def pays_alike(one: Link, other: Link) -> bool:
    """Whether two links have the same rewards; how rewards are learned may differ."""
    same = repr(with_laplace(one)) == repr(with_laplace(other))
    return same and np.array_equal(one.constants, other.constants)


#: (mean, precision): numbers, or a vector and a matrix, for all arms or one per arm.
Prior: TypeAlias = Sequence[ArrayLike] | None


def make_regressions(prior: Prior, arms: int, features: int) -> Regressions:
    """Return one regression per arm with the prior (mean, precision), or raise InvalidPrior."""
    d = as_integer("features", features, 1, InvalidPrior)
    if prior is not None and (not hasattr(prior, "__len__") or len(prior) != 2):
        raise InvalidPrior(f"prior={prior!r}: expected a pair (mean, precision)")
    try:
        mean, precision = (np.asarray(part, np.float64) for part in prior or (0.0, 1.0))
        means = np.broadcast_to(mean, (arms, d))
        if precision.ndim == 0:
            precision = precision * np.eye(d)
        if precision.ndim == 1:
            # Ambiguous: a diagonal or one number per arm. With four axes, broadcast_to rejects it.
            precision = precision[:, None, None, None]
        Lambda = np.ascontiguousarray(np.broadcast_to(precision, (arms, d, d)))
    except (TypeError, ValueError) as error:
        raise InvalidPrior(
            f"the prior does not fit {arms} arms of {d} features ({error}): give a mean (a number, "
            "a vector, or one vector per arm) and a precision (a number, a matrix, or one matrix "
            "per arm)"
        ) from None
    if not (np.abs(means) <= LARGEST).all() or not (np.abs(Lambda) <= LARGEST).all():
        raise InvalidPrior(f"prior={prior!r}: expected finite numbers up to {LARGEST:g}")
    R = np.empty((arms, d, d))
    for j in range(arms):
        if not np.allclose(Lambda[j], Lambda[j].T, rtol=1e-12, atol=0.0):
            raise InvalidPrior(f"the prior precision of arm {j}, {Lambda[j]}, is not symmetric")
        is_definite = kernels.regression.cholesky(Lambda[j], R[j])
        if not is_definite or R[j].diagonal().min() < 1.0 / LARGEST**0.5:
            raise InvalidPrior(
                f"the prior precision of arm {j} is not positive definite: every direction needs "
                f"a precision of at least {1.0 / LARGEST:g}"
            )
    return Regressions(R, np.einsum("jki,ji->jk", R, means))
