"""The nouns of the paper, as interfaces. Nothing here computes.

    agent P        P(a_t | ao_<t)                 environment Q   Q(o_t | ao_<t a_t)
    mode m         policy P(a | m, x)             and hypothesis P(o | m, x, a)
    belief         P(m | âo_<t): sees hypotheses, never policies
    situation x    the paper's map T from histories to states; the agent owns it

More power is a capability: a small optional protocol; `_mode_queries.has` looks it up.
No base class is needed anywhere: an object with the right methods is a mode.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from bayescontrol._arrays import Arrays, FloatArray
from bayescontrol._support.names import Among, Prices
from bayescontrol.seeding import Stream

X_contra = TypeVar("X_contra", contravariant=True)
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)
A_contra = TypeVar("A_contra", contravariant=True)
O = TypeVar("O")  # noqa: E741 - the paper's symbol
O_co = TypeVar("O_co", covariant=True)
O_contra = TypeVar("O_contra", contravariant=True)
M_co = TypeVar("M_co", covariant=True)
S = TypeVar("S")


class _Missing:
    """The type of `MISSING`."""

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        return "MISSING"  # a copy is the same object


#: Probabilities by action, or by observation.
Probabilities: TypeAlias = dict[Any, float]
#: The observation of a step whose observation was lost: `agent.observe(a, MISSING)`.
MISSING: Final = _Missing()


# -- the six nouns ---------------------------------------------------------------------


class Policy(Protocol[X_contra, A_co]):
    """P(a | m, x): what the mode does in situation x."""

    def act(self, x: X_contra, rng: Stream, /) -> A_co: ...


class Hypothesis(Protocol[X_contra, A_contra, O_contra]):
    """P(o | m, x, a): what the mode expects. Given as its natural logarithm."""

    def log_likelihood(self, x: X_contra, a: A_contra, o: O_contra, /) -> float: ...


class Mode(Policy[X_contra, A], Hypothesis[X_contra, A, O_contra], Protocol[X_contra, A, O_contra]):
    """An operation mode m: a hypothesis and the policy tailored to it."""


class Belief(Protocol[M_co, X_contra, A_contra, O_contra]):
    """P(m | âo_<t). Conditioning is deterministic; drawing is the only randomness."""

    def sample(self, rng: Stream, /) -> M_co: ...
    def observe(self, x: X_contra, a: A_contra, o: O_contra, /) -> None: ...


class Agent(Protocol[A, O_contra]):
    """The system P: emits a_t, takes o_t in."""

    def act(self, rng: Stream, /) -> A: ...
    def observe(self, a: A, o: O_contra, /) -> None: ...


class Environment(Protocol[A_contra, O_co]):
    """The system Q: answers a_t with o_t. One endless stream: no reset, reward is part of o."""

    def respond(self, a: A_contra, rng: Stream, /) -> O_co: ...


# -- capabilities of a mode ------------------------------------------------------------


class Likelihood(Protocol[X_contra, A_contra, O_contra]):
    """P(o | m, x, a) itself, not its logarithm.

    Finite beliefs multiply linear likelihoods exactly where sums of rounded logarithms
    drift; a mode may give this instead of `log_likelihood`.
    """

    def likelihood(self, x: X_contra, a: A_contra, o: O_contra, /) -> float: ...


class ActionProbabilities(Protocol[X_contra, A]):
    """P(a | m, x) for every a with positive probability."""

    def action_probabilities(self, x: X_contra, /) -> Mapping[A, float]: ...


class ActionLikelihood(Protocol[X_contra, A_contra]):
    """P(a | m, x) of one action, a density where actions are continuous."""

    def action_likelihood(self, x: X_contra, a: A_contra, /) -> float: ...


class ObservationProbabilities(Protocol[X_contra, A_contra, O]):
    """P(o | m, x, a) for every o with positive probability."""

    def observation_probabilities(self, x: X_contra, a: A_contra, /) -> Mapping[O, float]: ...


class Stateful(Protocol[S, A_contra, O_contra]):
    """A mode with private state s (a filter, a POMDP belief, a history).

    s takes the place of the shared situation: act(s, rng), log_likelihood(s, a, o).
    `advance` returns a new state and does not change the old one. It is called for every mode,
    also for one that o has just ruled out; it must return there too, but the value is not used.
    If the observation was lost, o is `MISSING`.

    A mode that also needs the situation declares `uses_situation = True`. Then all its methods
    receive a `SituatedState` (x, s) in place of s, and `advance` still returns the next s.
    """

    def start(self) -> S: ...
    def advance(self, s: S, a: A_contra, o: O_contra, /) -> S: ...


class SituatedState(NamedTuple):
    """The situation x and the private state s, for a mode that declares `uses_situation`.

    >>> x, s = SituatedState("setpoint", 0.5)
    """

    x: Any
    s: Any


class StateMixing(Protocol[S]):
    """A filter that can start from a mixture of the states of all filters.

    `states` are the private states of the modes that are possible, and `weights` their
    probabilities, which sum to 1.
    """

    def mix_states(self, states: Sequence[S], weights: FloatArray, /) -> S: ...


class IOSystem(Stateful[S, A, O], Protocol[S, A, O]):
    """The paper's Pr: P(a_t | ao_<t) and P(o_t | ao_<t a_t), with the history in a state s.

    Agents, modes, environments and the generative distribution are all I/O systems.
    """

    def action_probabilities(self, s: S, /) -> Mapping[A, float]: ...
    def observation_probabilities(self, s: S, a: A, /) -> Mapping[O, float]: ...


class ModeArray(Protocol[M_co, X_contra, A_contra, O_contra]):
    """Many modes at once: one object answers P(o | m, x, a) for all m as an array."""

    def __len__(self) -> int: ...
    def __getitem__(self, m: int, /) -> M_co: ...
    def likelihoods(self, x: X_contra, a: A_contra, o: O_contra, /) -> FloatArray: ...


class LogModeArray(Protocol[M_co, X_contra, A_contra, O_contra]):
    """Many modes at once, answering with ln P(o | m, x, a)."""

    def __len__(self) -> int: ...
    def __getitem__(self, m: int, /) -> M_co: ...
    def log_likelihoods(self, x: X_contra, a: A_contra, o: O_contra, /) -> FloatArray: ...


# -- capabilities of a belief --------------------------------------------------------------


# A belief may have `ActionProbabilities` too: then it answers P(a | âo_<t) by itself.
#
# Its class may declare for durable agents (each attribute is False if the class itself does not
# have it, except for the last one, which is inherited and otherwise True):
#     stateless_draws          `sample` changes nothing but the saved array "drawn"
#     context_free             it uses no situation
#     accepts_late_feedback    observations may come in any order
# An agent, a belief or an environment may declare a compiled loop, see `bayescontrol._compiled`.


class ActionDraws(Protocol[X_contra, A_co]):
    """Draw a ~ Σ_m P(a | m, x) P(m | âo_<t) directly, which may be faster than drawing a mode."""

    def draw_action(self, x: X_contra, rng: Stream, /) -> A_co: ...


class Predictions(Protocol[X_contra, A_contra, O]):
    """P(o | âo_<t â_t) for every o with positive probability."""

    def predictive(self, x: X_contra, a: A_contra, /) -> dict[O, float]: ...


class LogPredictions(Protocol[X_contra, A_contra, O_contra]):
    """ln P(o | âo_<t â_t), the predictive log-probability or log-density of o; it does not learn.

    All beliefs of this library have it. Where it is not defined, it raises `MissingCapability`. A
    belief or mode that predicts only a part of o has `observed_part(o)`, which returns this part.
    """

    def log_predictive(self, x: X_contra, a: A_contra, o: O_contra, /) -> float: ...


class Resumable(Protocol[M_co]):
    """Return the mode that was drawn last, and an independent copy."""

    def last(self) -> M_co | None: ...
    def copy(self) -> Any: ...


class Totals(NamedTuple):
    """n rewards of an arm, their sum, and the sum of their squares, which some arms need.

    >>> from bayescontrol import BernoulliBandit
    >>> belief = BernoulliBandit(["red", "blue"]).belief()
    >>> belief.observe_totals(None, "red", Totals(1000, 420))
    >>> belief.pulls
    {'red': 1000, 'blue': 0}
    """

    n: int
    total: float
    squares: float | None = None


class AggregatedRewards(Protocol[X_contra, A_contra]):
    """Learn many rewards of an arm in the same situation at once. An error changes nothing."""

    def observe_totals(self, x: X_contra, a: A_contra, totals: Totals, /) -> None: ...


class Choosing(Protocol):
    """Choose among some arms only, and subtract prices from mean rewards, within a block.

    Within the block `sample` and `action_probabilities` choose among these arms, by default all
    active ones, and a mode maximises mean minus price. An arm without a price costs 0.
    """

    def choosing(
        self, among: Among = None, prices: Prices = None
    ) -> AbstractContextManager[None]: ...


class Unresolved(NamedTuple):
    """Models that predict as well as the belief does, but would act otherwise.

    The agent's own actions have not shown whether they are true: it may be confirming itself.
    """

    #: Their prior probability; for trees, the share of the latest cycles for which there are some.
    share: float
    #: The models as modes, the most probable first; for trees none are listed.
    modes: tuple[Any, ...]


class Diagnosis(Protocol[X_contra]):
    """Find models that the agent's own actions have not told apart from the belief.

    A model counts if its policy differs from that of the belief by at least `distance` in total
    variation, on average over the situations, and its predictions by at most `nats` a step.
    Beliefs over context trees count the cycles for which there are such models.
    """

    def unresolved(
        self, x: X_contra, /, *, nats: float = ..., distance: float = ...
    ) -> Unresolved: ...


class UnresolvedModes(Diagnosis[X_contra], Protocol[X_contra]):
    """Draw an unresolved mode, whose policy may decide about it; None if all are resolved."""

    def draw_unresolved(self, x: X_contra, rng: Stream, /) -> Any | None: ...


class UnresolvedActions(Diagnosis[X_contra], Protocol[X_contra, A_contra]):
    """Say whether some action other than a is untested here; a is what the agent would do."""

    def is_unresolved(self, x: X_contra, a: A_contra, /) -> bool: ...


class Skips(Protocol[X_contra, A_contra]):
    """Advance private states and clocks by a step whose observation is `MISSING`."""

    def skip(self, x: X_contra, a: A_contra, /) -> None: ...


class CountsDecisions(Protocol[X_contra, A_contra, O_contra]):
    """A belief about a changing world: time counts decisions, and an answer has its decision."""

    @property
    def decision(self) -> int: ...
    @property
    def window(self) -> int: ...
    def begin(self) -> None: ...
    def answer(self, decision: int, x: X_contra, a: A_contra, o: O_contra, /) -> None: ...


class Retirement(Protocol):
    """Tell whether the mode that was drawn last must not act any more."""

    def is_retired(self, mode: Any, /) -> bool: ...


class MixingBelief(Protocol):
    """A belief that can average over its modes: Σ_m query(m) P(m | âo_<t).

    `query` is called with one mode, or with the array of all modes; `capability` is the protocol
    that the modes need for it.
    """

    def offers(self, capability: type, /) -> bool: ...
    def mix(self, capability: type, query: Callable[[Any], Any], /) -> dict[Any, float]: ...
    def reweigh(self, capability: type, query: Callable[[Any], Any], what: str, /) -> None: ...


class PosteriorMeasure(NamedTuple):
    """What the means of a posterior summary measure, for a page that draws them."""

    name: str
    unit: str
    #: A remark for the reader of the page.
    note: str = ""


#: Plain numbers for each arm, mode or parameter, by name: {"red": {"mean": 0.5, "count": 3}}.
Summary: TypeAlias = dict[str, dict[str, Any]]


class PosteriorSummary(Protocol):
    """The posterior in a few plain numbers, by the names of arms, modes or parameters."""

    #: None if the numbers are probabilities of modes.
    posterior_measure: ClassVar[PosteriorMeasure | None]

    def posterior_summary(self) -> Summary: ...


# -- capabilities of anything with state -------------------------------------------------


class Persistent(Protocol):
    """State as named arrays: `load(save())` continues bit for bit."""

    def save(self) -> Arrays: ...
    def load(self, arrays: Arrays, /) -> None: ...
