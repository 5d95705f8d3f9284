"""Contextual bandits: the problem classes, their simulated worlds, and the compiled loop.

    agent          P(a_t | âo_<t) = P(x_t·w_a is the largest score | âo_<t)
    environment    r_t ~ P(r | x_t·w_a),  then x_{t+1} from the source of contexts

Contexts are N(0, I), uniform on the unit sphere, or drawn by a function. A world starts in the
context 0, in which nothing can be learned, unless another start is given. Give the agent the same
start: `agent(start=world.start)`.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, as_numbers
from bayescontrol._compiled import learner
from bayescontrol._support.description import ModelKind
from bayescontrol._support.names import Names
from bayescontrol.bandits.changing import changing_problem
from bayescontrol.bandits.linear_belief import (
    FeatureMap,
    LinearBelief,
    LinearWeights,
    SharedLinearBelief,
    SharedWeights,
)
from bayescontrol.bandits.regression import (
    LARGEST,
    LINEAR_KIND,
    LOGISTIC_KIND,
    GaussianNoise,
    Link,
    Logit,
    Prior,
    RewardAndContext,
    as_context,
    make_regressions,
    next_context,
    pays_alike,
    scale_for_comparison,
    with_laplace,
)
from bayescontrol.beliefs.changing_problem import Changing
from bayescontrol.errors import BadEvidence, InvalidTable, counted
from bayescontrol.record import Record
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import SeedLike, Stream, StreamLike, as_stream, require_stream
from bayescontrol.situations import accept_late_feedback

#: The source of contexts: "normal", "sphere", or a function of a stream.
Contexts: TypeAlias = Literal["normal", "sphere"] | Callable[[Stream], ArrayLike]

_SOURCES = ("normal", "sphere")  # in the order of their numbers in the kernels


class LinearEnvironment:
    """A world Q: arm a pays by its true weights in the current context, then a context is drawn.

    >>> from bayescontrol import LinearBandit
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
            raise InvalidTable(
                f"weights of shape {truth.shape} for {len(arms)} arms: give one row per arm"
            )
        for w in truth[~(np.abs(truth) < LARGEST**0.5)]:
            raise InvalidTable(f"a true weight is {w}: expected a number below {LARGEST**0.5:g}")
        if not callable(contexts) and contexts not in _SOURCES:
            raise InvalidTable(
                f"contexts={contexts!r}: expected 'normal', 'sphere', or a function of rng"
            )
        self.link, self.labels, self.truth, self.contexts = link, arms, truth, contexts
        self.context = np.zeros(truth.shape[1]) if start is None else start

    @property
    def context(self) -> FloatArray:
        """x_t, the context of the next pull, as a copy. Setting it starts a new run."""
        return self._context.copy()

    @context.setter
    def context(self, x: ArrayLike) -> None:
        self._context = as_context(x, self.truth.shape[1]).copy()
        # The start and the length of the current run, for `_start_of`.
        self._first, self._steps = self._context, 0

    @property
    def start(self) -> FloatArray:
        """The current context, as a copy: the start for an agent."""
        return self.context

    def change_to(self, other: "LinearEnvironment") -> None:
        """Take the true weights of another world with the same arms."""
        same_arms = tuple(other.labels) == tuple(self.labels)
        same_rewards = pays_alike(other.link, self.link) and other.truth.shape == self.truth.shape
        if not same_arms or not same_rewards:
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
        w, rng = self.truth[self.labels.place(a)], require_stream(rng)
        r = kernels.regression.respond(
            self.link.kind, self.link.constants, w, self._context, rng.state
        )
        x = np.empty(len(w))
        if callable(self.contexts):
            x[:] = as_context(self.contexts(rng), len(w))
        else:
            kernels.regression.draw_context(_SOURCES.index(self.contexts), x, rng.state)
        self.fast_forward(x, 1)
        return RewardAndContext(r, tuple(x.tolist()))

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
                    "cannot infer the first context of this run of "
                    f"{counted(len(next_contexts), 'step')}: it is not the complete history of "
                    f"this world ({counted(self._steps, 'step')} so far). Save world.start before "
                    "a run and pass it as start=..."
                )
        return self._first

    @staticmethod
    def fused_loop(agent: Any, environment: Any) -> Any:
        """Return the compiled loop if the rule draws at every step and contexts have a kernel."""
        if type(learner(agent)) is not LinearBelief:
            return None
        belief, x = agent.belief, agent.x
        fits = (
            agent.schedule is every_step
            and agent.advance is next_context
            and isinstance(environment.contexts, str)
            and pays_alike(belief.link, environment.link)
            and belief.labels == tuple(environment.labels)
            and isinstance(x, np.ndarray)
            and x.dtype == np.float64
            and x.shape == environment.start.shape == (belief.features,)
            and bool((np.abs(x) < LARGEST**0.5).all())
            and (scale_for_comparison(x) is x or not x.any())  # the loop does not scale contexts
        )
        return _run if fits else None

    def __repr__(self) -> str:
        arms, features = self.truth.shape
        shown = self.contexts if isinstance(self.contexts, str) else "given"
        return f"LinearEnvironment({self.link!r}, {arms} arms of {features} features, {shown})"


def _run(agent: Any, environment: LinearEnvironment, steps: int, p: Stream, q: Stream) -> Record:
    """Run the compiled loop; the agent draws from p, the environment from q."""
    belief = agent.belief
    link = belief.link
    R, z, active, v = belief.loop_arrays()
    x, y = np.array(agent.x, np.float64), environment.start  # contexts of agent and environment
    actions, rewards = np.empty(steps, np.int64), np.empty(steps)
    contexts = np.empty((steps, y.size))
    kernels.regression.interact(
        link.kind, link.constants, R, z, active, v, x, y, environment.truth,
        _SOURCES.index(environment.contexts), p.state, q.state, actions, rewards, contexts,
    )  # fmt: skip
    environment.fast_forward(y, steps)
    belief.fast_forward(actions)
    agent.fast_forward(steps, contexts[-2].copy() if steps > 1 else agent.x, x)
    rows = map(tuple, contexts.tolist())
    return Record(
        environment.labels.column(actions), list(map(RewardAndContext, rewards.tolist(), rows))
    )


class ContextualBandit:
    """Arms with independent weights; the base of `LinearBandit` and `LogisticBandit`.

    >>> from bayescontrol.bandits.regression import GaussianNoise
    >>> ContextualBandit(GaussianNoise(0.5), ["red", "blue"], 3)
    ContextualBandit(GaussianNoise(sd=0.5), 2 arms of 3 features)
    """

    model_part: ClassVar[str] = "link"
    not_stored_because: ClassVar[str] = "its link has no stored name"

    def __init__(
        self, link: Link, arms: int | Sequence[Hashable], features: int, prior: Prior = None
    ) -> None:
        self.link, self.labels, self.prior = link, Names("arm", arms), prior
        self._priors = make_regressions(prior, len(self.labels), features)
        self.features = self._priors.features

    def belief(self, *, laplace: bool = False) -> LinearBelief:
        """Return the prior belief; see `agent` for `laplace`."""
        link = with_laplace(self.link) if laplace else self.link
        return LinearBelief(link, list(self.labels), self.features, self.prior)

    def agent(
        self,
        start: ArrayLike | None = None,
        *,
        schedule: Schedule = every_step,
        laplace: bool = False,
    ) -> ControlRule[LinearWeights, Any, Any, Any]:
        """Return an agent that acts by Thompson sampling, in the context `start`.

        Without `start` use `decide(x, rng)` and `learn(x, a, o)`; `act` and `observe` raise
        `NoContext`. For a simulated world use `start=world.start`. With `laplace`, rewards of a
        logistic bandit are learned by Laplace's approximation, as in logs of version 1.

        >>> from bayescontrol import LinearBandit
        >>> LinearBandit(["short", "long"], features=2).agent().observe("short", 5.0)
        Traceback (most recent call last):
        bayescontrol.bandits.regression.NoContext: no context yet: use decide(x, rng) ...
        """
        x = None if start is None else as_context(start, self.features).copy()
        belief = self.belief(laplace=True) if laplace else self.belief()
        return ControlRule(belief, x, next_context, schedule)

    def changing(self, *, per_arm: bool = False, **options: Any) -> Changing:
        """Return the same problem for a world that changes; see `ChangePointBelief` for options.

        All arms change together, or each arm at its own times with `per_arm`.
        """
        return changing_problem(self, per_arm, options)

    def environment(
        self,
        weights: ArrayLike,
        contexts: Contexts = "normal",
        start: ArrayLike | None = None,
    ) -> LinearEnvironment:
        """A world with these true weights, one row per arm."""
        world = LinearEnvironment(self.link, self.labels, weights, contexts, start)
        if world.truth.shape[1] != self.features:
            raise InvalidTable(
                f"weights of {world.truth.shape[1]} features: expected {self.features} per arm"
            )
        return world

    def draw(
        self, seed: SeedLike, contexts: Contexts = "normal", start: ArrayLike | None = None
    ) -> LinearEnvironment:
        """A world drawn from the prior."""
        stream, weights = as_stream(seed), np.empty((len(self.labels), self.features))
        for j, w in enumerate(weights):
            self._priors.draw(j, stream.state, w)
        return self.environment(weights, contexts, start)

    def settings(self) -> dict[str, Any]:
        """Return the arms, the length of a context, the prior and the link's settings.

        >>> from bayescontrol import LogisticBandit
        >>> LogisticBandit(["red"], features=3).settings()
        {'arms': ['red'], 'features': 3, 'prior': [0.0, 1.0]}
        """
        prior = [np.asarray(part, np.float64).tolist() for part in self.prior or (0.0, 1.0)]
        return {
            "arms": list(self.labels), "features": self.features, "prior": prior,
            **self.link.settings(),
        }  # fmt: skip

    def __repr__(self) -> str:
        shown = f"{len(self.labels)} arms of {self.features} features"
        return f"{type(self).__name__}({self.link!r}, {shown})"


class LinearBandit(ContextualBandit):
    """N arms that pay x·w_a and Gaussian noise; `features` is the length d of a context x.

    `prior` is (mean, precision) of the weights: numbers, or a vector and a matrix, for all arms
    or per arm; (0, 1) by default.

    `arms` is the number of arms or their names. `sd` is the standard deviation of the noise.

    >>> bandit = LinearBandit(["red", "blue"], features=2, sd=0.5)
    >>> agent = bandit.agent()
    >>> from bayescontrol import Stream, interact, metrics
    >>> _, a = agent.decide([1.0, 0.3], Stream(0))      # now
    >>> agent.learn([1.0, 0.3], a, 0.7)                 # when the reward is known
    >>> world = bandit.environment([[1, 0], [0, 1]])
    >>> record = interact(bandit.agent(start=world.start), world, 500, seed=0)
    >>> regret = metrics.regret(record, world)          # cumulative
    >>> bool((regret[499] - regret[249]) / 250 < 0.1)
    True
    """

    model_kind: ClassVar[ModelKind] = LINEAR_KIND

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        features: int,
        sd: float = 1.0,
        prior: Prior = None,
    ) -> None:
        super().__init__(GaussianNoise(sd), arms, features, prior)


class LogisticBandit(ContextualBandit):
    """N arms that pay 1 with probability σ(x·w_a); see `Logit` for the approximation.

    `arms` is the number of arms or their names. `features` is the length of a context x. `prior` is
    (mean, precision) of the weights, as for `LinearBandit`.

    >>> bandit = LogisticBandit(["red", "blue"], features=2)
    >>> agent = bandit.agent()
    >>> agent.learn([1.0, 0.0], "red", 1)
    >>> {a: round(p, 3) for a, p in agent.belief.expected([1.0, 0.0]).items()}
    {'red': 0.587, 'blue': 0.5}
    """

    model_kind: ClassVar[ModelKind] = LOGISTIC_KIND

    def __init__(self, arms: int | Sequence[Hashable], features: int, prior: Prior = None) -> None:
        super().__init__(Logit(), arms, features, prior)


class SharedLinearBandit:
    """Arms with shared weights: r = φ(x, a)·w plus noise, or `link=Logit()` for 0 and 1.

    `arms` is the number of arms or their names. `phi(x, a)` returns the features of arm a in
    context x, a vector of length `features`. `sd` is the standard deviation of the noise. `prior`
    is (mean, precision) of the weights, by default (0, 1).

    >>> bandit = SharedLinearBandit(["day", "night"], lambda x, a: [x, a == "day"], features=2)
    >>> agent = bandit.agent(start=0.5)
    >>> agent.learn(0.5, "day", 1.0)
    >>> agent.belief.mean().round(3)
    array([0.222, 0.444])
    """

    not_stored_because: ClassVar[str] = "its phi is code"

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        phi: FeatureMap,
        features: int,
        sd: float = 1.0,
        prior: Prior = None,
        *,
        link: Link | None = None,
    ) -> None:
        self.link = GaussianNoise(sd) if link is None else link
        self._belief = SharedLinearBelief(self.link, arms, phi, features, prior)

    def belief(self) -> SharedLinearBelief:
        """The prior belief."""
        return self._belief.copy()

    def agent(
        self, start: Any = None, *, schedule: Schedule = every_step
    ) -> ControlRule[SharedWeights, Any, Any, Any]:
        """The control rule for this bandit, in the context `start`.

        Without `start` use `decide(x, rng)` and `learn(x, a, o)`; `act` and `observe` raise
        `NoContext`.
        """
        return ControlRule(self.belief(), start, self.advance, schedule)

    @accept_late_feedback
    def advance(self, x: Any, a: Any, o: Any) -> Any:
        """T(x, a, o): the context in o; x if o is a reward without context."""
        if not isinstance(o, RewardAndContext):
            return x
        self._belief._features(o.context, self._belief.arms[0])  # raises if φ rejects the context
        return o.context

    def __repr__(self) -> str:
        return f"SharedLinearBandit({self.link!r}, {len(self._belief.arms)} arms)"
