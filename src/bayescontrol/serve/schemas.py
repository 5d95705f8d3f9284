"""What goes over the wire: JSON, checked at the door.

    {"situation": null}              ->  act      ->  {"id": "2", "action": "red", …}
    {"id": "2", "observation": 1}    ->  observe  ->  {"learnt": true}

Situations, actions and observations are any JSON values, in the way that logs keep them
(`durable.plain`): a tuple is {"tuple": [1, "b"]}, an array {"array": …}, a dict {"dict": …}.
"""

import re
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
#: Names that need no escaping in an address.
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._~-]{0,199}\Z"
_DTYPE: Final = re.compile(r"[<>|=]?[biuf][1248]\Z")
_EXAMPLE: Final = {"arms": ["red", "blue"]}

Value: TypeAlias = Annotated[
    Any,
    Meta(
        description='A JSON value. A tuple is {"tuple": [1, "b"]}, an array {"array": [0.5], '
        '"shape": [1], "dtype": "<f8"}, an object {"dict": [["key", 1]]}.'
    ),
]
_Chance: TypeAlias = Annotated[float, Meta(ge=0.0, le=1.0)]
_Id: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200, description="What act gave.")]


class _In(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What comes in: a field that is not known is a mistake."""


class NewAgent(_In, frozen=True):
    """An agent to be made.

    >>> msgspec.json.decode(b'{"name": "shop", "model": "bernoulli-bandit"}', type=NewAgent).seed
    """

    name: Annotated[str, Meta(pattern=NAME, description="Letters, digits, and . _ ~ -")]
    model: Annotated[str, Meta(min_length=1, max_length=200, examples=["bernoulli-bandit"])]
    settings: Annotated[dict[str, Any], Meta(description="Of the model.", examples=[_EXAMPLE])] = (
        msgspec.field(default_factory=dict)
    )
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


class Question(_In, frozen=True):
    """What to do in a situation; null where there is only one.

    >>> Question().situation
    """

    situation: Value = None


class Answer(_In, frozen=True):
    """What came of a decision.

    >>> Answer("2", 1).observation
    1
    """

    id: _Id
    observation: Value


class Probability(msgspec.Struct, frozen=True):
    """P(a | past) of one action.

    >>> Probability("red", 0.5).probability
    0.5
    """

    action: Value
    probability: _Chance


class DecisionInfo(msgspec.Struct, frozen=True):
    """A decision, on disk before anyone saw it.

    >>> DecisionInfo.of(Decision("2", "red", 0.5, None, 1, 0.0)).action
    'red'
    """

    id: _Id
    action: Value
    #: Of this action, where it is known exactly.
    probability: _Chance | None
    #: Of every action; null where it was not just computed: explain tells.
    probabilities: list[Probability] | None
    situation: Value
    #: The event of the log up to which everything was known.
    basis: Annotated[int, Meta(ge=0)]
    #: Seconds since 1970.
    time: float

    @classmethod
    def of(cls, d: Decision) -> "DecisionInfo":
        """As it is sent."""
        law = None if d.probabilities is None else law_of(d.probabilities)
        action, x = as_plain(d.action, "the action"), as_plain(d.situation, "the situation")
        return cls(d.id, action, _chance(d.probability), law, x, d.basis, d.time)


class Learnt(msgspec.Struct, frozen=True):
    """Whether an observation was news; false: it was known, and nothing was changed.

    >>> Learnt(True).learnt
    True
    """

    learnt: bool


class ExplanationInfo(msgspec.Struct, frozen=True):
    """Why a decision was taken: drawn again from the log, and found to be the same.

    >>> ExplanationInfo.__struct_fields__[0]
    'decision'
    """

    decision: DecisionInfo
    #: What was believed then.
    posterior: dict[str, dict[str, Any]]
    #: The mode that was drawn, in words.
    mode: str | None
    answered: bool
    observation: Value

    @classmethod
    def of(cls, e: Explanation) -> "ExplanationInfo":
        """As it is sent."""
        mode = None if e.mode is None else repr(e.mode)
        o = as_plain(e.observation, "the observation")
        return cls(DecisionInfo.of(e.decision), e.posterior, mode, e.answered, o)


class AgentInfo(msgspec.Struct, frozen=True):
    """An agent.

    >>> AgentInfo("shop", "bernoulli-bandit", 1, {}, "any time", 1, 0, 0).head
    1
    """

    name: str
    model: str
    version: int
    settings: dict[str, Any]
    #: When an observation may come: "any time", or "in turn", before the next act.
    feedback: str
    #: The number of events in its log.
    head: int
    decisions: int
    observations: int


class AgentList(msgspec.Struct, frozen=True):
    """The names of all agents in the store.

    >>> AgentList(["checkout"]).agents
    ['checkout']
    """

    agents: list[str]


class Posterior(msgspec.Struct, frozen=True):
    """What is believed now, by arm or mode.

    >>> Posterior(3, {"red": {"mean": 0.5}}).head
    3
    """

    head: int
    posterior: dict[str, dict[str, Any]]


class Probabilities(msgspec.Struct, frozen=True):
    """P(a | past) if it were to act now; null where it is not known exactly.

    >>> Probabilities(None).probabilities
    """

    probabilities: list[Probability] | None


class Status(msgspec.Struct, frozen=True):
    """How the server is.

    >>> Status("ok").status
    'ok'
    """

    status: str


class Readiness(Status, frozen=True):
    """Whether the agents are open.

    >>> Readiness("ok", 1, ["shop"]).unopened
    ['shop']
    """

    #: Agents that could not be opened: how many, and, where no token is needed, which.
    failed: int = 0
    unopened: list[str] = msgspec.field(default_factory=list)


def _chance(p: float | None) -> float | None:
    # A sum of rounded numbers may be beyond 1 by its last bit.
    return None if p is None else min(max(p, 0.0), 1.0)


def law_of(law: Mapping[Any, float]) -> list[Probability]:
    """Pairs, because an action need not be a text.

    >>> law_of({("left", 2): 1.0})
    [Probability(action={'tuple': ['left', 2]}, probability=1.0)]
    """
    return [Probability(as_plain(a, "an action"), _chance(p) or 0.0) for a, p in law.items()]


def value_of(plain: Any, what: str, wrong: type[BayesControlError] = BadEvidence) -> Any:
    """The value that was sent; the error `wrong` if it is none that a log can keep.

    >>> value_of({"tuple": [1, "b"]}, "the observation")
    (1, 'b')
    >>> value_of({"b": 1}, "the observation")
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: the observation {'b': 1} is not a value that a log keeps: ...
    """
    try:
        _require_numeric(plain)
        return from_plain(plain)
    except (DamagedLog, RecursionError):
        raise wrong(
            f"{what} {str(plain)[:80]} is not a value that a log keeps: write a tuple as "
            '{"tuple": […]} and an object as {"dict": [["key", value], …]}'
        ) from None


def _require_numeric(plain: Any) -> None:
    """Arrays are of numbers: another type of cell could ask for any amount of memory."""
    if type(plain) is list:
        for one in plain:
            _require_numeric(one)
    elif type(plain) is dict:
        if "array" in plain and not _DTYPE.match(str(plain.get("dtype"))):
            raise DamagedLog("no type of numbers")
        for one in plain.values():
            _require_numeric(one)
