"""The JSON bodies of requests and answers, and the models that they name.

    {"situation": null}               ->  act      ->  {"id": "k3v7p2dq4m-2", "action": "red", …}
    {"id": …, "observation": 1}       ->  observe  ->  {"learned": true}

Situations, actions and observations are any JSON values, in the notation of logs
(`durable.plain`): a tuple is {"tuple": [1, "b"]}, an array {"array": …}, a dict {"dict": …}.

    "bernoulli-bandit", {"arms": ["red", "blue"]}    ->  a built-in kind, see `durable.models`
    "mine", {}                                       ->  a model that the server was started with

Errors name the fields and settings, not the code that they reach.
"""

import inspect
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from bayescontrol._support.description import ModelKind, SettingDoc
from bayescontrol.bandits import Schema
from bayescontrol.durable.agent import Explanation
from bayescontrol.durable.events import Decision, Observed
from bayescontrol.durable.models import KINDS, OF_DRAWS, Model, as_model, restored_schedule
from bayescontrol.durable.plain import as_plain, same_value
from bayescontrol.errors import BayesControlError
from bayescontrol.serve.decision_ids import encode_id
from bayescontrol.serve.http_errors import BadSettings, ProblemDetails, UnknownModel
from bayescontrol.serve.values import plain_situation, value_of

#: The media type of a log.
LINES: Final = "application/jsonl"
#: Names that need no escaping in a URL.
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._~-]{0,199}\Z"
#: A key that a header can hold.
KEY: Final = r"^[!-~]{1,200}\Z"
#: The most entries of a batch.
_MAX_ENTRIES: Final = 1000
#: Every kind of model has these settings.
SCHEDULE: Final = SettingDoc(
    '["every_step"], ["doubling"], ["Every", k], ["Geometric", p], ["WhenSituationReturns", home], '
    '["MinimumDwell", steps, schedule]; for linear-quadratic also ["DeterminantDoubling", factor], '
    'for dirichlet-mdp also ["tsde"]',
    "When to draw a new mode from the posterior.",
)
TEMPERATURE: Final = SettingDoc(
    "number from 0.001 to 1000",
    "Below 1, draws are closer to the mean, and the agent explores less. Default: 1.",
)
_SETTING_ERRORS: Final = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
#: Messages of the library about a value begin with its name and an equals sign.
_NAMES_A_VALUE: Final = re.compile(r"(\w+)(\[[^]]*\])*\s?=")

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


class CreateBody(_RequestBody, frozen=True):
    """An agent to create."""

    name: Annotated[str, Meta(pattern=NAME, description="Letters, digits, and . _ ~ -")]
    model: Annotated[str, Meta(min_length=1, max_length=200, examples=["bernoulli-bandit"])]
    settings: Annotated[dict[str, Any], Meta(description="Settings of the model.")] = msgspec.field(
        default_factory=dict
    )
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None


class ActBody(_RequestBody, frozen=True):
    """The situation of a decision; null for agents without situations."""

    situation: Value = None


class ObserveBody(_RequestBody, frozen=True):
    """The observation that follows a decision."""

    id: _Id
    observation: Value


class ActEntry(ActBody, frozen=True):
    """One decision of a batch."""

    #: A name for this entry: a repeated entry returns the same decision.
    key: Annotated[str, Meta(pattern=KEY)] | None = None


class ActBatch(_RequestBody, frozen=True):
    """Many decisions, which are made in one commit."""

    decisions: Annotated[list[ActEntry], Meta(max_length=_MAX_ENTRIES)]
    #: Whether each answer lists the probability of every action.
    probabilities: bool = False


class ObserveBatch(_RequestBody, frozen=True):
    """Many observations, which are learned in one commit."""

    observations: Annotated[list[ObserveBody], Meta(max_length=_MAX_ENTRIES)]


class Probability(msgspec.Struct, frozen=True):
    """P(a | past) of one action."""

    action: Value
    probability: _UnitInterval


class SharedLists(dict[int, list[Probability]]):
    """Converts each mapping of probabilities once: decisions of a batch share them."""

    def of(self, probabilities: Mapping[Any, float]) -> list[Probability]:
        """Return the probabilities as a list. The mapping must live as long as this object."""
        found = self.get(id(probabilities))
        if found is None:
            found = self[id(probabilities)] = probability_list(probabilities)
        return found


class DecisionInfo(msgspec.Struct, frozen=True):
    """A decision, which is on disk before the answer is sent.

    >>> DecisionInfo.of(Decision("2", "red", 0.5, None, 1, 0.0), "k3v7p2dq4m").id
    'k3v7p2dq4m-2'
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
    def of(
        cls, d: Decision, tag: str, schema: Schema | None = None,
        lists: SharedLists | None = None,
    ) -> "DecisionInfo":  # fmt: skip
        """Convert to the body of an answer; `tag` and `schema` are those of the agent.

        The probabilities of all actions are included if there are `lists` to convert them.
        """
        probabilities = None
        if lists is not None and d.probabilities is not None:
            probabilities = lists.of(d.probabilities)
        x = None if d.situation is None else plain_situation(d.situation, schema)
        p = None if d.probability is None else _clipped(d.probability)
        action = as_plain(d.action, "the action")
        return cls(encode_id(tag, d.id), action, p, probabilities, x, d.basis, d.time)


class Learned(msgspec.Struct, frozen=True):
    """Whether an observation was new. If not, the agent knew it already, and nothing changed."""

    learned: bool


class ActResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The decision of an entry of a batch, or the problem that it has."""

    decision: DecisionInfo | None = None
    problem: ProblemDetails | None = None


class ActResults(msgspec.Struct, frozen=True):
    """The results of a batch, in the order of its entries."""

    results: list[ActResult]


class ObserveResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether an entry of a batch was new, as in `Learned`, or the problem that it has."""

    learned: bool | None = None
    problem: ProblemDetails | None = None


class ObserveResults(msgspec.Struct, frozen=True):
    """The results of a batch, in the order of its entries."""

    results: list[ObserveResult]


class DecisionRecord(msgspec.Struct, frozen=True):
    """A decision of the log with its observation, if it has one."""

    decision: DecisionInfo
    answered: bool
    observation: Value
    #: When it was observed, in seconds since 1970.
    observed_at: float | None

    @classmethod
    def of(
        cls, d: Decision, observed: Observed | None, tag: str, schema: Schema | None
    ) -> "DecisionRecord":
        """Convert to an entry of a page."""
        decision = DecisionInfo.of(d, tag, schema)
        if observed is None:
            return cls(decision, False, None, None)
        return cls(decision, True, as_plain(observed.o, "the observation"), observed.time)


class DecisionPage(msgspec.Struct, frozen=True):
    """Decisions with their observations, and the `start` of the next page, if there is one."""

    decisions: list[DecisionRecord]
    next: int | None


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
    def of(cls, e: Explanation, tag: str, schema: Schema | None) -> "ExplanationInfo":
        """Convert to the body of an answer; `tag` and `schema` are those of the agent."""
        mode = None if e.mode is None else repr(e.mode)
        o = as_plain(e.observation, "the observation")
        decision = DecisionInfo.of(e.decision, tag, schema, SharedLists())
        return cls(decision, e.posterior, mode, e.answered, o)


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
    #: The JSON schema of a situation whose fields have names; otherwise null.
    situation_schema: dict[str, Any] | None


class AgentList(msgspec.Struct, frozen=True):
    """Names of agents, and the `after` of the next page, if there is one."""

    agents: list[str]
    next: str | None


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


# -- the model of a new agent ---------------------------------------------------------------------


def requested_model(name: str, plain: Mapping[str, Any], models: Mapping[str, Model]) -> Model:
    """Return the server's own model of that name, or the built-in one with these JSON settings.

    >>> requested_model("bernoulli-bandit", {"arms": ["red", "blue"]}, {}).settings["arms"]
    ['red', 'blue']
    >>> requested_model("bernoulli-bandit", {"legs": 2}, {})
    Traceback (most recent call last):
    bayescontrol.serve.http_errors.BadSettings: model 'bernoulli-bandit' has no setting 'legs': ...
    """
    settings = {s: value_of(v, f"setting {s}", BadSettings) for s, v in plain.items()}
    if name in models:
        model = models[name]
        if settings and not same_value(settings, dict(model.settings)):
            raise BadSettings(f"model {name!r} is defined by the server: it takes no settings")
        return model
    if name not in KINDS:
        raise UnknownModel(f"no model {name!r}: give one of {', '.join([*models, *KINDS])}")
    kind = KINDS[name].model_kind
    _require_known(kind, settings)
    _require_small(kind, settings)
    try:
        if "settings" in kind.settings and settings["problem"] in KINDS:  # also the problem inside
            _require_small(KINDS[settings["problem"]].model_kind, settings["settings"])
        schedule = restored_schedule(settings.pop("schedule", ["every_step"]), kind)
        temperature = settings.pop("temperature", 1.0)
        model = as_model(KINDS[name](**settings), schedule, temperature)
        model.driver()
    except BayesControlError as error:
        raise BadSettings(f"model {name!r}: {error}") from None
    except _SETTING_ERRORS as error:
        raise BadSettings(f"model {name!r}: {_explained(error, settings)}") from None
    return model


def required_settings(name: str) -> set[str]:
    """Return the settings of a built-in kind that have no default."""
    parameters = inspect.signature(KINDS[name]).parameters
    return {s for s, parameter in parameters.items() if parameter.default is parameter.empty}


def _require_known(kind: ModelKind, settings: Mapping[str, Any]) -> None:
    """Raise `BadSettings` for a setting that the model does not have, or that is missing."""
    known = [*kind.settings, *OF_DRAWS]
    for setting in settings:
        if setting not in known:
            raise BadSettings(
                f"model {kind.name!r} has no setting {setting[:80]!r}: it has {', '.join(known)}"
            )
    required = required_settings(kind.name)
    for setting in kind.settings:
        if setting in required and setting not in settings:
            raise BadSettings(f"model {kind.name!r}: the setting {setting!r} is missing")


def _require_small(kind: ModelKind, settings: Mapping[str, Any]) -> None:
    """Raise `BadSettings` if a model of this size may not be created over HTTP."""
    sizes: dict[str, int] = defaultdict(int)
    for setting, value in settings.items():
        sizes[setting] = _size(value)
        if isinstance(value, dict):
            sizes |= {f"{setting}.{name}": _size(v) for name, v in value.items()}
    for setting, doc in kind.settings.items():
        if doc.largest is not None and sizes[setting] > doc.largest:
            raise BadSettings(f"{sizes[setting]} {setting}: over HTTP give up to {doc.largest:,}")
    for limit in kind.limits:
        if (size := limit.size(sizes)) > limit.largest:
            raise BadSettings(f"{limit.what} is {size:,}: over HTTP use at most {limit.largest:,}")


def _size(value: Any) -> int:
    """Return the length of a list, the number of entries of an array, or a number itself."""
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, list | tuple | dict):
        return len(value)
    return max(value, 0) if isinstance(value, int) else 0


def _explained(error: Exception, settings: Mapping[str, Any]) -> str:
    """Return the error's message if it begins with a setting, else a message for HTTP clients."""
    text = str(error)
    named = _NAMES_A_VALUE.match(text)
    if named and named[1] in (*settings, *OF_DRAWS):
        return text
    return f"the settings {', '.join(settings)} are invalid: see their documentation at /docs"
