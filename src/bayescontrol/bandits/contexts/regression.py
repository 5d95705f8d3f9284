"""Contexts, links from scores to rewards, priors and worlds of contextual bandits.

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

The update equations are kernels (`kernels.regression`), selected by the number `kind` of the link.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, as_integer, as_numbers, require_between
from bayescontrol._support.description import ARMS, MOST_NUMBERS, ModelKind, SettingDoc, SizeLimit
from bayescontrol._support.names import Names
from bayescontrol.bandits.contexts.schema import Schema
from bayescontrol.bandits.family import as_reward, zero_or_one
from bayescontrol.errors import BadEvidence, InvalidPrior, InvalidTable, counted
from bayescontrol.record import Record
from bayescontrol.seeding import Stream, StreamLike, require_stream
from bayescontrol.situations import accept_late_feedback

#: Marks a scale, the noise or the prior, that is learned.
LEARNED: Final = "learned"
#: A number, or "learned".
Learnable: TypeAlias = float | Literal["learned"]
#: Larger numbers are rejected, so that squares and sums stay finite.
LARGEST = 1e50
#: The largest standard deviation of the noise, and the inverse of the smallest.
LARGEST_SD = 1e25

# Contexts with a smaller squared length are scaled, so that squared scores do not underflow.
_SHORT_SQUARED = 1e-100


#: Settings of all contextual bandits.
SETTINGS: Final = {
    "arms": ARMS,
    "features": SettingDoc(
        "whole number",
        "The length d of a situation. Or an object with the fields of a situation and what they "
        'hold: "number", {"center": 40, "scale": 15}, "boolean", or a list of categories.',
        largest=1_000,
    ),
    "prior": SettingDoc(
        "[mean, precision]",
        "Gaussian prior of the weights of an arm. mean: a number, a list of d numbers, or one such "
        "list for each arm. precision: a number, a d × d matrix, or one for each arm. Default: "
        '"learned", mean 0 and a common precision that is learned.',
    ),
}


def _weights(size: Mapping[str, int]) -> int:
    """Return arms times features squared; categories count as features."""
    categories = sum(n for name, n in size.items() if name.startswith("features."))
    return size["arms"] * (size["features"] + categories) ** 2


LIMIT: Final = SizeLimit("arms times features squared", _weights, MOST_NUMBERS)


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


def as_context(x: Any, features: int, schema: Schema | None = None) -> FloatArray:
    """Return x as a vector of finite numbers, one per feature; raise BadEvidence if it is not.

    With a schema, x may also be a mapping of fields. None raises `NoContext`.
    """
    if x is None:
        raise NoContext
    if schema is not None and hasattr(x, "keys"):
        x = schema.encode(x)
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

    #: The number of the link in `kernels.regression`.
    kind: int
    #: The known parameters for the kernels, such as a standard deviation.
    constants: FloatArray = np.empty(0)
    #: Whether the evidence of a reward is independent of earlier rewards.
    additive: bool
    #: The standard deviation of the noise, or LEARNED; None if rewards have none.
    sd: float | str | None = None

    def settings(self) -> dict[str, Any]:
        """Return the arguments of the link as plain values, as logs store them."""
        return {}

    def reward(self, o: Any) -> float:
        """Return o as a number; raise BadEvidence if an arm cannot pay o."""

    def in_world(self, sd: float | None) -> "Link":
        """Return the link of a world with noise `sd`; None: with the noise of this link."""
        if sd is not None:
            raise InvalidTable(f"sd={sd!r}: rewards of {self!r} have no noise")
        return self

    def mean(self, score: FloatArray) -> FloatArray:
        """E[r | x·w]."""

    def expected(self, s: float, q: float) -> float:
        """E[r] for a score N(s, q)."""

    def log_predictive(self, s: float, q: float, r: float) -> float:
        """ln P(r) for a score N(s, q); a density if rewards are continuous."""
        return kernels.regression.log_predictive(self.kind, self.constants, s, q, r)


class FiniteLink(Protocol):
    """The link pays one of finitely many rewards."""

    def predictive(self, s: float, q: float) -> dict[float, float]: ...


class GaussianNoise(Link):
    """r = score + σ z: the reward is the score plus noise with standard deviation `sd`, or learned.

    >>> GaussianNoise(2.0).expected(1.5, 0.1)
    1.5
    """

    model_kind: ClassVar[ModelKind] = ModelKind(
        "linear-bandit",
        "Arms that pay x·w_a and Gaussian noise in situation x.",
        {
            "arms": SETTINGS["arms"],
            "features": SETTINGS["features"],
            "sd": SettingDoc(
                "number",
                'Standard deviation σ of the noise. Default: "learned". Give both `sd` and '
                "`prior`, or neither.",
            ),
            "prior": SETTINGS["prior"],
        },
        example={"arms": ["red", "blue"], "features": 2},
        observation=0.3,
        feedback="a number",
        situation=[1.0, 0.2],
        limits=(LIMIT,),
    )
    kind = 0  # kernels.regression.GAUSSIAN
    additive = True

    def __init__(self, sd: Learnable = "learned") -> None:
        self.sd: float | str = LEARNED
        if not isinstance(sd, str) or sd != LEARNED:
            self.sd = require_between("sd", sd, 1.0 / LARGEST_SD, LARGEST_SD, error=InvalidPrior)
            self.constants = np.array([self.sd])

    def settings(self) -> dict[str, Any]:
        """Return σ, as logs store it."""
        return {"sd": self.sd}

    def in_world(self, sd: float | None) -> "GaussianNoise":
        """Return the link of a world with noise `sd`; None: that of this link, 1 if learned."""
        if sd is None and self.sd != LEARNED:
            return self
        return GaussianNoise(1.0 if sd is None else sd)

    def reward(self, o: Any) -> float:
        """Return o as a float; raise BadEvidence unless it is a number within ±1e50."""
        return as_reward(o, "linear", f"a number in ±{LARGEST:g}", lambda r: abs(r) <= LARGEST)

    def mean(self, score: FloatArray) -> FloatArray:
        """E[r | score] = score."""
        return score

    def expected(self, s: float, q: float) -> float:
        """E[r] = s."""
        return s

    def format_text(self) -> str:
        """The name of the link in stored data, which is part of the format."""
        return f"GaussianNoise(sd={self.sd if isinstance(self.sd, str) else f'{self.sd:g}'})"

    __repr__ = format_text


class Logit(Link):
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

    model_kind: ClassVar[ModelKind] = ModelKind(
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
    kind = 1  # kernels.regression.LOGISTIC
    additive = False

    def reward(self, o: Any) -> float:
        """Return o as 0.0 or 1.0, else raise BadEvidence."""
        return zero_or_one(o, "logistic")

    def mean(self, score: FloatArray) -> FloatArray:
        """E[r | score] = σ(score)."""
        return np.asarray(1.0 / (1.0 + np.exp(-np.maximum(score, -700.0))))  # exp(710) overflows

    def expected(self, s: float, q: float) -> float:
        """E σ(t), t ~ N(s, q)."""
        return kernels.regression.mean_sigmoid(s, q)

    def predictive(self, s: float, q: float) -> dict[float, float]:
        """Return P(r) for r = 0 and r = 1, for a score N(s, q)."""
        return {0: self.expected(-s, q), 1: self.expected(s, q)}

    def format_text(self) -> str:
        """The name of the link in stored data, which is part of the format."""
        return "Logit()"

    __repr__ = format_text


def pays_alike(one: Link, other: Link) -> bool:
    """Whether two links have the same rewards."""
    return repr(one) == repr(other) and np.array_equal(one.constants, other.constants)


def can_learn(link: Link, world: Link) -> bool:
    """Whether `link` describes the rewards of a world, or learns their noise."""
    return pays_alike(link, world) or (link.sd == LEARNED and isinstance(world, GaussianNoise))


#: (mean, precision): numbers, or a vector and a matrix, for all arms or one per arm; or LEARNED.
Prior: TypeAlias = Sequence[ArrayLike] | Literal["learned"]


def prior_factors(prior: Prior, arms: int, features: int) -> tuple[FloatArray, FloatArray]:
    """Return R and z of every arm for the prior (mean, precision), or raise InvalidPrior."""
    d = as_integer("features", features, 1, InvalidPrior)
    if not hasattr(prior, "__len__") or len(prior) != 2:
        raise InvalidPrior(f"prior={prior!r}: expected a pair (mean, precision) or 'learned'")
    try:
        mean, precision = (np.asarray(part, np.float64) for part in prior)
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
    return R, np.einsum("jki,ji->jk", R, means)


#: The source of contexts: "normal", "sphere", or a function of a stream.
Contexts: TypeAlias = Literal["normal", "sphere"] | Callable[[Stream], ArrayLike]

_SOURCES = ("normal", "sphere")  # in the order of their numbers in the kernels


class LinearEnvironment:
    """A world Q: arm a pays by its true weights in the current context, then a context is drawn.

    >>> from bayescontrol import LinearBandit, Stream
    >>> world = LinearBandit(2, features=2).environment([[1, 0], [0, 1]], contexts="sphere")
    >>> world.means([0.2, 0.7])
    array([0.2, 0.7])
    >>> reward, context = world.respond(1, Stream(0))
    >>> round(sum(c * c for c in context), 12)
    1.0
    """

    def __init__(
        self,
        link: Link,
        arms: Names,
        weights: ArrayLike,
        contexts: Contexts = "normal",
        start: ArrayLike | None = None,
    ) -> None:
        truth = as_numbers(weights, "the true weights", InvalidTable)
        if truth.ndim != 2 or len(truth) != len(arms) or not truth.shape[1]:
            raise InvalidTable(f"weights of shape {truth.shape}: give {len(arms)} rows, 1 per arm")
        for w in truth[~(np.abs(truth) < LARGEST**0.5)]:
            raise InvalidTable(f"a true weight is {w}: expected a number below {LARGEST**0.5:g}")
        if not callable(contexts) and contexts not in _SOURCES:
            raise InvalidTable(f"contexts={contexts!r}: give 'normal', 'sphere' or a function(rng)")
        self.link, self.labels, self.truth, self.contexts = link, arms, truth, contexts
        features = truth.shape[1]
        self._context = np.zeros(features) if start is None else as_context(start, features).copy()
        # The first context and the number of steps so far, for `_start_of`.
        self._first, self._steps = self._context, 0

    @property
    def start(self) -> FloatArray:
        """x_t, the context of the next pull, as a copy: the start for an agent."""
        return self._context.copy()

    def change_to(self, other: "LinearEnvironment") -> None:
        """Take the true weights of another world with the same arms."""
        same_rewards = pays_alike(other.link, self.link) and other.truth.shape == self.truth.shape
        if other.labels != self.labels or not same_rewards:
            raise InvalidTable(f"{self!r} cannot become {other!r}: the arms differ")
        self.truth = other.truth

    def means(self, x: ArrayLike | None = None) -> FloatArray:
        """E[r | x, a] of every arm a in context x, by default the current context.

        If x is an array with a context in each row, so is the result.

        >>> from bayescontrol import LinearBandit
        >>> world = LinearBandit(2, features=1).environment([[1], [-1]], start=[0.5])
        >>> world.means()
        array([ 0.5, -0.5])
        >>> world.means(np.array([[2.0], [3.0]]))
        array([[ 2., -2.],
               [ 3., -3.]])
        """
        v = self._context if x is None else x
        if isinstance(v, np.ndarray) and v.ndim == 2 and v.shape[1] == self.truth.shape[1]:
            return self.link.mean(v @ self.truth.T)
        return self.link.mean(self.truth @ as_context(v, self.truth.shape[1]))

    def best(self, x: ArrayLike | None = None) -> Any:
        """Return the arm with the largest mean reward in context x, by default the current one."""
        return self.labels[int(self.means(x).argmax())]

    def respond(self, a: Hashable, rng: StreamLike) -> RewardAndContext:
        """Draw r ~ P(r | x·w_a), then the next context."""
        link, w, rng = self.link, self.truth[self.labels.place(a)], require_stream(rng)
        r = kernels.regression.respond(link.kind, link.constants, w, self._context, rng.state)
        x = np.empty(len(w))
        if callable(self.contexts):
            x[:] = as_context(self.contexts(rng), len(w))
        else:
            kernels.regression.draw_context(self.source, x, rng.state)
        self.fast_forward(x, 1)
        return RewardAndContext(r, tuple(x.tolist()))

    @property
    def source(self) -> int:
        """The number of the source of contexts in the kernels."""
        return _SOURCES.index(self.contexts) if isinstance(self.contexts, str) else -1

    def fast_forward(self, x: FloatArray, steps: int) -> None:
        """Set the context x after `steps` steps of a compiled loop."""
        self._context, self._steps = x, self._steps + steps

    def contexts_of(self, record: Record, start: ArrayLike | None = None) -> FloatArray:
        """Return x_t, the context of each step t of a run; see `metrics.regret`.

        `start` is the context at the start of the run. It may be omitted if the world was used for
        this run only, or not at all: then it is the context with which the world was made. If the
        world was used for several runs, `start` is required.

        >>> from bayescontrol import LinearBandit
        >>> world = LinearBandit(2, features=1).environment([[1], [-1]], start=[0.5])
        >>> observations = [RewardAndContext(1.0, (2.0,)), RewardAndContext(1.0, (3.0,))]
        >>> world.contexts_of(Record([0, 1], observations))
        array([[0.5],
               [2. ]])
        """
        features = self.truth.shape[1]
        try:
            next_contexts = np.array([as_context(o.context, features) for _, o in record])
        except AttributeError:
            raise BadEvidence(
                "the observations of the record have no context: pass a record of this world"
            ) from None
        next_contexts = next_contexts.reshape(-1, features)
        return np.vstack([self._start_of(next_contexts, start), next_contexts])[: len(record)]

    def _start_of(self, next_contexts: FloatArray, start: ArrayLike | None) -> FloatArray:
        """Return the first context of a run, whose later contexts are `next_contexts`.

        This is `start` if given. Otherwise it is the world's first context, which is right if the
        run is the complete history of the world; raise `BadEvidence` if it is not.
        """
        if start is not None:
            return as_context(start, self.truth.shape[1])
        if len(next_contexts) and self._steps:
            ends_here = np.array_equal(next_contexts[-1], self._context)
            if self._steps != len(next_contexts) or not ends_here:
                raise BadEvidence(
                    f"cannot infer the first context of {counted(len(next_contexts), 'step')}: not "
                    f"the complete history of this world ({counted(self._steps, 'step')} so far). "
                    "Save world.start before a run and pass it as start=..."
                )
        return self._first

    def __repr__(self) -> str:
        arms, features = self.truth.shape
        shown = self.contexts if isinstance(self.contexts, str) else "given"
        return f"LinearEnvironment({self.link!r}, {arms} arms of {features} features, {shown})"
