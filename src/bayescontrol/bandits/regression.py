"""Contexts: what is seen before an arm is pulled.

    x_t ∈ ℝᵈ        o_t = (r_t, x_{t+1})        T(x, a, o) = the context in o

In a stream the next context comes with the reward. Where rewards come late or alone, the rule is
used by its two halves: `agent.decide(x, rng)` now, `agent.learn(x, a, r)` when r is known.

A link: how the reward of an arm hangs on its score x·w.

    P(r | x·w)        the reward, given the score
    x·w ~ N(s, q)     the score, given the past

The equations of learning and paying are kernels (`kernels.regression`), found by the link's
number; a link adds what a person needs: checks, means, densities.

Linear contextual bandits: Gaussian rewards whose mean is linear in the context.

    r = x·w_a + σ z        w_a ~ N(μ₀, Λ₀⁻¹), independent arms
    Λ_a = Λ₀ + Σ x xᵀ / σ²        Λ_a μ_a = Λ₀ μ₀ + Σ r x / σ²

The sums run over the pulls of arm a: evidence adds up, whatever its order.

Logistic contextual bandits: rewards of 0 and 1 whose log-odds are linear in the context.

    P(r = 1 | x, a) = σ(x·w_a),  σ(t) = 1 / (1 + e^-t)        w_a ~ N(μ₀, Λ₀⁻¹)

The posterior is no longer Gaussian. Here it is approximated by one, reward by reward (streaming
Laplace): the present Gaussian is the prior, the new mean is the mode

    μ' = μ + Λ⁻¹x (r - σ(η)),  η = x·μ'        Λ' = Λ + σ(η) σ(-η) x xᵀ

at constant cost. The mode lies on one line, so Newton's method is about a number.

N Gaussian regressions side by side, each a triangle R_j and a vector z_j.

    w_j ~ N(μ_j, Λ_j⁻¹)        Λ_j = R_jᵀ R_j        z_j = R_j μ_j

Evidence adds up in Λ and Λ μ, so regressions merge: the sum of both, less the prior once.
"""

import math
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.bandits.family import number
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidPrior
from bayescontrol.problems.description import ARMS, MOST_NUMBERS, ModelKind, SettingDoc, SizeLimit

F = TypeVar("F", bound=Callable[..., Any])

#: Numbers beyond this are refused: squares and sums of such numbers stay numbers.
LARGEST = 1e50

# Contexts shorter than the root of this are scaled before their scores are squared.
_SHORT = 1e-100


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
    """An agent was asked to act or to learn before it was told the context.

    >>> str(NoContext())
    'no context yet: use decide(x, rng) and learn(x, a, o), or agent(start=x)...'
    """

    def __init__(self) -> None:
        super().__init__(
            "no context yet: use decide(x, rng) and learn(x, a, o), or agent(start=x); in a "
            "simulated world agent(start=world.start)"
        )


class Outcome(NamedTuple):
    """o = (r, x'): a reward, and the context of the next decision.

    >>> Outcome(0.5, (1.0, -2.0))
    Outcome(reward=0.5, context=(1.0, -2.0))
    """

    reward: float
    context: tuple[float, ...]


def accept_late_feedback(advance: F) -> F:
    """Mark a function `advance` of agents that are given their context with each question.

    Their feedback may come late, in any order, or never: it leads to no situation. A durable agent
    looks for the attribute `accepts_late_feedback` of its `advance`.

    >>> next_context.accepts_late_feedback
    True
    """
    advance.__dict__["accepts_late_feedback"] = True
    return advance


def as_context(x: npt.ArrayLike, features: int) -> FloatArray:
    """x as a vector of finite numbers, one for each feature.

    >>> as_context([1, 2], 2)
    array([1., 2.])
    >>> as_context([1, float("nan")], 2)
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: context [1, nan]: every feature must be a finite number ...
    """
    if x is None:
        raise NoContext
    try:
        v = np.asarray(x)
    except ValueError:
        v = np.empty(0, object)
    if v.shape != (features,) or v.dtype.kind not in "biuf":
        raise BadEvidence(f"context {x!r}: it must be a vector of {features} numbers")
    v = np.ascontiguousarray(v, np.float64)
    if not kernels.regression.dot(v, v) <= LARGEST * LARGEST:
        raise BadEvidence(f"context {x!r}: every feature must be a finite number up to {LARGEST:g}")
    return v


def comparable(v: FloatArray) -> FloatArray:
    """v, or if it is very short c·v, c a power of 2: the same arm is best, and nothing underflows.

    >>> comparable(np.array([2.0, 1.0])), comparable(np.array([2.0**-500, 2.0**-501]))
    (array([2., 1.]), array([0.5 , 0.25]))
    """
    if kernels.regression.dot(v, v) >= _SHORT:
        return v
    _, exponent = np.frexp(np.abs(v).max())
    return np.asarray(np.ldexp(v, -exponent))


@accept_late_feedback
def next_context(x: FloatArray | None, a: Any, o: Any) -> FloatArray:
    """T(x, a, o): the context in o; a reward that came alone leaves x.

    >>> next_context(np.zeros(2), "red", Outcome(1.0, (3.0, 4.0)))
    array([3., 4.])
    """
    if x is None:
        raise NoContext
    if isinstance(o, Outcome):
        return as_context(o.context, len(x)).copy()
    return x


def reward_of(o: Any) -> Any:
    """The reward in o, or o itself where it is a reward alone.

    >>> reward_of(Outcome(1.0, (3.0,))), reward_of(2.0)
    (1.0, 2.0)
    """
    return o.reward if isinstance(o, Outcome) else o


class Link(Protocol):
    """What the belief, the environment and the compiled loop ask of a link."""

    @property
    def kind(self) -> int:
        """Its number in `kernels.regression`."""

    @property
    def constants(self) -> FloatArray:
        """What is known for certain: a standard deviation."""

    @property
    def additive(self) -> bool:
        """Whether the evidence of a reward does not depend on the rewards before it."""

    def settings(self) -> dict[str, Any]:
        """The arguments of the link as plain values, as logs store them."""

    def reward(self, o: Any) -> float:
        """o as a number, if an arm can pay it; else BadEvidence."""

    def mean(self, score: FloatArray) -> FloatArray:
        """E[r | x·w]."""

    def expected(self, s: float, q: float) -> float:
        """E[r] for a score N(s, q)."""

    def log_predictive(self, s: float, q: float, r: float) -> float:
        """ln P(r) for a score N(s, q), a density where rewards are continuous."""


@runtime_checkable
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
    """r = score + σ z: the reward is the score, with noise of known standard deviation.

    >>> GaussianNoise(2.0).expected(1.5, 0.1)
    1.5
    """

    model_kind: ClassVar[ModelKind] = LINEAR_KIND
    additive: Final = True

    def __init__(self, sd: float = 1.0) -> None:
        given: Any = sd
        try:
            value = 0.0 if isinstance(given, str | bytes) else float(given)  # float would read text
        except (TypeError, ValueError):
            value = 0.0
        if not 1e-25 <= value <= 1e25:
            raise InvalidPrior(f"sd={sd!r}: the noise has a positive, finite standard deviation")
        self.sd = value
        self.constants: Final = np.array([self.sd])

    @property
    def kind(self) -> int:
        """Its number in `kernels.regression`."""
        return kernels.regression.GAUSSIAN

    def settings(self) -> dict[str, Any]:
        """σ."""
        return {"sd": self.sd}

    def reward(self, o: Any) -> float:
        """Any finite number."""
        return number(o, "a finite number")

    def mean(self, score: FloatArray) -> FloatArray:
        """The score."""
        return score

    def expected(self, s: float, q: float) -> float:
        """s."""
        return s

    def log_predictive(self, s: float, q: float, r: float) -> float:
        """ln N(r; s, q + σ²).

        >>> round(GaussianNoise().log_predictive(0.0, 0.0, 0.0), 6)
        -0.918939
        """
        variance = q + self.sd * self.sd
        return -0.5 * ((r - s) ** 2 / variance + math.log(2.0 * math.pi * variance))

    def format_text(self) -> str:
        """Return the text of the link in stored data, which is part of the format."""
        return f"GaussianNoise(sd={self.sd:g})"

    def __repr__(self) -> str:
        return f"GaussianNoise(sd={self.sd:g})"


LOGISTIC_KIND: Final = ModelKind(
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

    model_kind: ClassVar[ModelKind] = LOGISTIC_KIND
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


#: (mean, precision): numbers, or a vector and a matrix, for all arms or one for each.
Prior: TypeAlias = Sequence[npt.ArrayLike] | None


def _factors(prior: Prior, arms: int, d: int) -> tuple[FloatArray, FloatArray]:
    """R and z of a prior (mean, precision), one for each arm."""
    if prior is not None and (not hasattr(prior, "__len__") or len(prior) != 2):
        raise InvalidPrior(f"prior={prior!r}: it is a pair (mean, precision)")
    try:
        mean, precision = (np.asarray(part, np.float64) for part in prior or (0.0, 1.0))
        means = np.broadcast_to(mean, (arms, d))
        if precision.ndim == 0:
            precision = precision * np.eye(d)
        if precision.ndim == 1:  # a diagonal, or one number an arm? Neither is guessed
            precision = precision[:, None, None, None]
        Lambda = np.ascontiguousarray(np.broadcast_to(precision, (arms, d, d)))
    except (TypeError, ValueError) as error:
        raise InvalidPrior(
            f"the prior does not fit {arms} arms of {d} features ({error}): give a mean (a number, "
            "a vector, or one vector an arm) and a precision (a number, a matrix, or one an arm)"
        ) from None
    if not (np.abs(means) <= LARGEST).all() or not (np.abs(Lambda) <= LARGEST).all():
        raise InvalidPrior(f"a prior mean or precision is not a finite number up to {LARGEST:g}")
    R = np.empty((arms, d, d))
    for j in range(arms):
        if not np.allclose(Lambda[j], Lambda[j].T, rtol=1e-12, atol=0.0):
            raise InvalidPrior(f"the prior precision of arm {j} is not symmetric")
        definite = kernels.regression.cholesky(Lambda[j], R[j])
        if not definite or R[j].diagonal().min() < 1.0 / LARGEST**0.5:
            raise InvalidPrior(
                f"the prior precision of arm {j} is not positive definite: every direction needs "
                f"a precision of at least {1.0 / LARGEST:g}"
            )
    return R, np.einsum("jki,ji->jk", R, means)


class Regressions:
    """The posteriors of N weight vectors of d features.

    >>> one = Regressions(1, 2, None)
    >>> kernels.regression.absorb(one.R[0], one.z[0], np.array([1.0, 0.0]), 1.0, 3.0, one.v)
    >>> one.mean(0).round(12), one.precision(0).round(12)
    (array([1.5, 0. ]), array([[2., 0.],
           [0., 1.]]))
    """

    def __init__(self, arms: int, features: int, prior: Prior) -> None:
        try:
            self.features = index(features)
        except TypeError:
            self.features = 0
        if self.features < 1:
            raise InvalidPrior(f"features={features!r}: a context has at least one feature")
        self._prior = _factors(prior, arms, self.features)
        self.R, self.z = (part.copy() for part in self._prior)
        self.v: FloatArray = np.empty(self.features)

    def __len__(self) -> int:
        """The number of regressions."""
        return len(self.z)

    def append(self, prior: Prior) -> None:
        """One more, with a prior of its own."""
        R, z = _factors(prior, 1, self.features)
        self.R, self.z = np.vstack([self.R, R]), np.vstack([self.z, z])
        self._prior = np.vstack([self._prior[0], R]), np.vstack([self._prior[1], z])

    def score(self, j: int, x: FloatArray) -> tuple[float, float]:
        """Mean and variance of x·w_j."""
        return kernels.regression.score(self.R[j], self.z[j], x, self.v)

    def mean(self, j: int) -> FloatArray:
        """μ_j."""
        mu = np.empty(self.features)
        kernels.regression.solve_upper(self.R[j], self.z[j], mu)
        return mu

    def precision(self, j: int) -> FloatArray:
        """Λ_j."""
        return np.asarray(self.R[j].T @ self.R[j])

    def draw(self, j: int, state: Any, w: FloatArray) -> None:
        """w_j ~ N(μ_j, Λ_j⁻¹) into w."""
        kernels.regression.draw_weights(self.R[j], self.z[j], self.v, w, state)

    def same_prior(self, other: "Regressions") -> bool:
        """Whether both began alike, bit for bit."""
        pairs = zip(self._prior, other._prior, strict=True)
        return all(p.shape == q.shape and p.tobytes() == q.tobytes() for p, q in pairs)

    def merge(self, other: "Regressions") -> None:
        """Λ + Λ' - Λ₀ and Λμ + Λ'μ' - Λ₀μ₀: the evidence of both, the prior counted once."""
        R, z = np.empty_like(self.R), np.empty_like(self.z)
        parts = ((1.0, self.R, self.z), (1.0, other.R, other.z), (-1.0, *self._prior))
        for j in range(len(self)):
            Lambda = sum((sign * (S[j].T @ S[j]) for sign, S, _ in parts), np.zeros(R[j].shape))
            shift = sum((sign * (S[j].T @ y[j]) for sign, S, y in parts), np.zeros(z[j].shape))
            if not kernels.regression.cholesky(Lambda, R[j]):
                raise IncompatibleState(
                    f"arm {j}: beside its prior the evidence is lost in rounding and cannot be "
                    "merged; learn the rewards one by one instead"
                )
            kernels.regression.score(R[j], z[j], shift, self.v)
            z[j] = self.v
        self.R, self.z = R, z

    def save(self) -> Arrays:
        """Named arrays: `factor`, `target`, and the same of the prior.

        >>> sorted(Regressions(1, 2, None).save())
        ['factor', 'prior_factor', 'prior_target', 'target']
        """
        return {
            "factor": self.R.copy(),
            "target": self.z.copy(),
            "prior_factor": self._prior[0].copy(),
            "prior_target": self._prior[1].copy(),
        }

    def loaded(self, arrays: Arrays, arms: int) -> "Regressions":
        """What `save` gave, for so many arms of these features."""
        twin, d = self.copy(), self.features
        shapes = {"factor": (arms, d, d), "target": (arms, d)}
        for name, shape in list(shapes.items()):
            shapes[f"prior_{name}"] = shape
        for name, shape in shapes.items():
            array = arrays.get(name)
            if array is None:
                raise IncompatibleState(f"the saved state lacks the array {name!r}")
            if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise IncompatibleState(
                    f"the saved array {name!r} is {array.dtype}{list(array.shape)}, it must be "
                    f"finite float64{list(shape)}"
                )
            if name.endswith("factor"):
                diagonals = np.diagonal(array, axis1=1, axis2=2)
                if np.tril(array, -1).any() or not (diagonals > 0.0).all():
                    raise IncompatibleState(f"the saved array {name!r} is no triangular factor")
        twin.R, twin.z = arrays["factor"].copy(), arrays["target"].copy()
        twin._prior = arrays["prior_factor"].copy(), arrays["prior_target"].copy()
        return twin

    def copy(self) -> "Regressions":
        """The same, free to go their own way.

        >>> one = Regressions(1, 2, None)
        >>> one.copy().R is one.R
        False
        """
        twin = Regressions.__new__(Regressions)
        twin.features, twin._prior = self.features, self._prior
        twin.R, twin.z, twin.v = self.R.copy(), self.z.copy(), self.v.copy()
        return twin
