"""The JSON bodies of requests and answers, and their validation.

    {"situation": null}              ->  act      ->  {"id": "2", "action": "red", …}
    {"id": "2", "observation": 1}    ->  observe  ->  {"learned": true}

Situations, actions and observations are any JSON values, in the notation of logs
(`durable.plain`): a tuple is {"tuple": [1, "b"]}, an array {"array": …}, a dict {"dict": …}.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta

from bayescontrol.durable.agent import Explanation
from bayescontrol.durable.events import Decision
from bayescontrol.durable.plain import as_plain, from_plain
from bayescontrol.errors import BadEvidence, BayesControlError, DamagedLog

#: The media type of a log.
LINES: Final = "application/jsonl"
#: Names that need no escaping in a URL.
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._~-]{0,199}\Z"
_EXAMPLE: Final = {"arms": ["red", "blue"]}

Value: TypeAlias = Annotated[
    Any,
    Meta(
        description='A JSON value. A tuple is {"tuple": [1, "b"]}, an array {"array": [0.5], '
        '"shape": [1], "dtype": "<f8"}, an object {"dict": [["key", 1]]}.'
    ),
]
_UnitInterval: TypeAlias = Annotated[float, Meta(ge=0.0, le=1.0)]
_Id: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=200, description="The id that act returned.")
]


class _RequestBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request; unknown fields are errors."""


class NewAgent(_RequestBody, frozen=True):
    """An agent to create."""

    name: Annotated[str, Meta(pattern=NAME, description="Letters, digits, and . _ ~ -")]
    model: Annotated[str, Meta(min_length=1, max_length=200, examples=["bernoulli-bandit"])]
    settings: Annotated[
        dict[str, Any], Meta(description="Settings of the model.", examples=[_EXAMPLE])
    ] = msgspec.field(default_factory=dict)
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


class Question(_RequestBody, frozen=True):
    """The situation of a decision; null for agents without situations."""

    situation: Value = None


class Answer(_RequestBody, frozen=True):
    """The observation that follows a decision."""

    id: _Id
    observation: Value


class Probability(msgspec.Struct, frozen=True):
    """P(a | past) of one action."""

    action: Value
    probability: _UnitInterval


class DecisionInfo(msgspec.Struct, frozen=True):
    """A decision, which is on disk before the answer is sent.

    >>> DecisionInfo.of(Decision("2", "red", 0.5, None, 1, 0.0)).action
    'red'
    """

    id: _Id
    action: Value
    #: The probability of this action; null if it is not known exactly.
    probability: _UnitInterval | None
    #: The probability of every action; null if it was not computed now (explain computes it).
    probabilities: list[Probability] | None
    situation: Value
    #: The number of the last event that the agent knew when it decided.
    basis: Annotated[int, Meta(ge=0)]
    #: Seconds since 1970.
    time: float

    @classmethod
    def of(cls, d: Decision) -> "DecisionInfo":
        """Convert to the body of an answer."""
        probabilities = None if d.probabilities is None else probability_list(d.probabilities)
        action, x = as_plain(d.action, "the action"), as_plain(d.situation, "the situation")
        p = None if d.probability is None else _clipped(d.probability)
        return cls(d.id, action, p, probabilities, x, d.basis, d.time)


class Learned(msgspec.Struct, frozen=True):
    """Whether an observation was new. If not, the agent knew it already, and nothing changed."""

    learned: bool


class ExplanationInfo(msgspec.Struct, frozen=True):
    """Why a decision was made, reproduced from the log."""

    decision: DecisionInfo
    #: The posterior at the time of the decision.
    posterior: dict[str, dict[str, Any]]
    #: The mode that was drawn, as text.
    mode: str | None
    answered: bool
    observation: Value

    @classmethod
    def of(cls, e: Explanation) -> "ExplanationInfo":
        """Convert to the body of an answer."""
        mode = None if e.mode is None else repr(e.mode)
        o = as_plain(e.observation, "the observation")
        return cls(DecisionInfo.of(e.decision), e.posterior, mode, e.answered, o)


class AgentInfo(msgspec.Struct, frozen=True):
    """An agent, its model and the size of its log."""

    name: str
    model: str
    version: int
    settings: dict[str, Any]
    #: When an observation may arrive: "any time", or "in turn", before the next act.
    feedback: str
    #: The number of events in the agent's log.
    head: int
    decisions: int
    observations: int


class AgentList(msgspec.Struct, frozen=True):
    """The names of all agents in the store."""

    agents: list[str]


class Posterior(msgspec.Struct, frozen=True):
    """The current posterior, by arm or mode, after event `head`."""

    head: int
    posterior: dict[str, dict[str, Any]]


class Probabilities(msgspec.Struct, frozen=True):
    """P(a | past) of the next action; null if it cannot be computed exactly."""

    probabilities: list[Probability] | None


class Status(msgspec.Struct, frozen=True):
    """The status of the server."""

    status: str


class Readiness(Status, frozen=True):
    """The status of the server and of its agents."""

    #: Agents that could not be opened: their number, and their names if no token is needed.
    failed: int = 0
    unopened: list[str] = msgspec.field(default_factory=list)


def _clipped(p: float) -> float:
    """Return p in [0, 1]: a sum of rounded probabilities may exceed 1 in its last bit."""
    return min(max(p, 0.0), 1.0)


def probability_list(probabilities: Mapping[Any, float]) -> list[Probability]:
    """Convert probabilities by action into a list, because JSON keys must be strings.

    >>> probability_list({("left", 2): 1.0})
    [Probability(action={'tuple': ['left', 2]}, probability=1.0)]
    """
    return [Probability(as_plain(a, "an action"), _clipped(p)) for a, p in probabilities.items()]


def value_of(plain: Any, what: str, error: type[BayesControlError] = BadEvidence) -> Any:
    """Decode a value from its JSON notation; raise `error` if a log cannot store it.

    >>> value_of({"tuple": [1, "b"]}, "the observation")
    (1, 'b')
    >>> value_of({"b": 1}, "the observation")
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: the observation {'b': 1} cannot be stored in a log: ...
    """
    try:
        return from_plain(plain)
    except (DamagedLog, RecursionError):
        raise error(
            f"{what} {str(plain)[:80]} cannot be stored in a log: write a tuple as "
            '{"tuple": […]} and an object as {"dict": [["key", value], …]}'
        ) from None
