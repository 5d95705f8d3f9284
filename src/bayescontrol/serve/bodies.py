"""The JSON bodies of requests and answers.

    {"situation": null}               ->  act      ->  {"id": "k3v7p2dq4m-2", "action": "red", …}
    {"id": …, "observation": 1}       ->  observe  ->  {"learned": true}

Situations, actions and observations are any JSON values, in the notation of logs
(`durable.plain`): a tuple is {"tuple": [1, "b"]}, an array {"array": …}, a dict {"dict": …}.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from bayescontrol.bandits import Schema
from bayescontrol.durable.agent import Explanation
from bayescontrol.durable.configuration import Configuration
from bayescontrol.durable.decisions import Answer
from bayescontrol.durable.events import Decision
from bayescontrol.durable.plain import as_plain
from bayescontrol.errors import InvalidRequest
from bayescontrol.protocols import Summary
from bayescontrol.serve.http_errors import ProblemDetails
from bayescontrol.serve.values import JsonObject, encode_id, plain_situation, value_of

#: The media type of a log.
LINES: Final = "text/jsonl"
#: Names that need no escaping in a URL.
NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._~-]{0,199}\Z"
#: A key that a header can hold.
KEY: Final = r"^[!-~]{1,200}\Z"
#: The most entries of a batch.
_MAX_ENTRIES: Final = 1000
Value: TypeAlias = Annotated[
    Any,
    Meta(
        description='A JSON value. A tuple is {"tuple": [1, "b"]}, an array {"array": [0.5], '
        '"shape": [1], "dtype": "<f8"}, an object {"dict": [["key", 1]]}.'
    ),
]
ArmChange: TypeAlias = Literal["add", "pause", "resume", "retire"]
_UnitInterval: TypeAlias = Annotated[float, Meta(ge=0.0, le=1.0)]
_Id: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=200, description="The id that act returned.")
]


#: In JSON 7.0 is the integer 7, but a large integer is not a float. The document rounds the limit
#: of floats, so it is far below that of integers.
_Seed: TypeAlias = (
    Annotated[int, Meta(ge=0, le=2**63 - 1)]
    | Annotated[float, Meta(ge=0, lt=2.0**62, multiple_of=1)]
)


class _RequestBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The body of a request; unknown fields are errors."""


class CreateBody(_RequestBody, frozen=True):
    """An agent to create."""

    name: Annotated[str, Meta(pattern=NAME, description="Letters, digits, and . _ ~ -")]
    model: Annotated[str, Meta(min_length=1, max_length=200, examples=["bernoulli-bandit"])]
    settings: Annotated[JsonObject, Meta(description="Settings of the model.")] = msgspec.field(
        default_factory=dict
    )
    seed: _Seed | None = None


class ActBody(_RequestBody, frozen=True):
    """The situation of a decision; null for agents without situations."""

    situation: Value = None
    #: The arms that may be chosen; null for all active arms.
    among: list[Value] | None = None
    #: A session holds its decision: the same session gets it again, while its arm is eligible.
    session: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class ObserveBody(_RequestBody, frozen=True):
    """The observation that follows a decision."""

    id: _Id
    observation: Value
    #: What the decision has cost, for arms whose price is "reported".
    cost: float | None = None


class ActEntry(ActBody, frozen=True):
    """One decision of a batch."""

    #: A name for this entry: a repeated entry returns the same decision.
    key: Annotated[str, Meta(pattern=KEY)] | None = None


class ActBatch(_RequestBody, frozen=True):
    """Many decisions, which are made in one commit."""

    decisions: Annotated[list[ActEntry], Meta(max_length=_MAX_ENTRIES)]


class ObserveBatch(_RequestBody, frozen=True):
    """Many observations, which are learned in one commit."""

    observations: Annotated[list[ObserveBody], Meta(max_length=_MAX_ENTRIES)]


class Probability(msgspec.Struct, frozen=True):
    """P(a | past) of one action."""

    action: Value
    probability: _UnitInterval


class SharedLists(dict[int, list[Probability]]):
    """Converts each mapping of probabilities once: decisions of a batch share them."""

    def of(self, probabilities: Mapping[object, float]) -> list[Probability]:
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
    session: str | None
    #: Whether the decision belongs to the holdout, which ignores what was learned.
    holdout: bool

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
        return cls(
            encode_id(tag, d.id), action, p, probabilities, x, d.basis, d.time, d.session,
            d.holdout,
        )  # fmt: skip


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
    #: Whether the observation is the default, which was recorded at the end of the window.
    is_default: bool

    @classmethod
    def of(
        cls, d: Decision, answer: Answer | None, tag: str, schema: Schema | None
    ) -> "DecisionRecord":
        """Convert to an entry of a page."""
        decision = DecisionInfo.of(d, tag, schema)
        if answer is None:
            return cls(decision, False, None, None, False)
        o = as_plain(answer.o, "the observation")
        return cls(decision, True, o, answer.last.time, answer.is_default)


class DecisionPage(msgspec.Struct, frozen=True):
    """Decisions with their observations, and the `start` of the next page, if there is one."""

    decisions: list[DecisionRecord]
    next: int | None


class ExplanationInfo(msgspec.Struct, frozen=True):
    """Why a decision was made, reproduced from the log."""

    decision: DecisionInfo
    #: The posterior at the time of the decision.
    posterior: Summary
    #: The mode that was drawn, as text.
    mode: str | None
    answered: bool
    observation: Value
    #: Whether the observation is the default, which was recorded at the end of the window.
    is_default: bool

    @classmethod
    def of(cls, e: Explanation, tag: str, schema: Schema | None) -> "ExplanationInfo":
        """Convert to the body of an answer; `tag` and `schema` are those of the agent."""
        mode = None if e.mode is None else repr(e.mode)
        o = as_plain(e.observation, "the observation")
        decision = DecisionInfo.of(e.decision, tag, schema, SharedLists())
        return cls(decision, e.posterior, mode, e.answered, o, e.is_default)


class AgentInfo(msgspec.Struct, frozen=True):
    """An agent, its model and the size of its log."""

    name: str
    model: str
    version: int
    settings: JsonObject
    #: When an observation may arrive: "any time", or "in turn", before the next act.
    feedback: str
    #: The number of events in the agent's log.
    head: int
    decisions: int
    observations: int
    #: The JSON schema of a situation whose fields have names; otherwise null.
    situation_schema: JsonObject | None


class AgentList(msgspec.Struct, frozen=True):
    """Names of agents, and the `after` of the next page, if there is one."""

    agents: list[str]
    next: str | None


class Posterior(msgspec.Struct, frozen=True):
    """The current posterior, by arm or mode, after event `head`."""

    head: int
    posterior: Summary


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


class Backup(msgspec.Struct, frozen=True):
    """A backup of the store."""

    #: The name of its file in the folder of backups.
    name: str
    #: When it was begun, in seconds since 1970.
    time: float
    bytes: int


class BackupList(msgspec.Struct, frozen=True):
    """The backups of the store, oldest first."""

    backups: list[Backup]


def _clipped(p: float) -> float:
    """Return p in [0, 1]: a sum of rounded probabilities may exceed 1 in its last bit."""
    return min(max(p, 0.0), 1.0)


def probability_list(probabilities: Mapping[object, float]) -> list[Probability]:
    """Convert probabilities by action into a list, because JSON keys must be strings.

    >>> probability_list({("left", 2): 1.0})
    [Probability(action={'tuple': ['left', 2]}, probability=1.0)]
    """
    return [Probability(as_plain(a, "an action"), _clipped(p)) for a, p in probabilities.items()]


# -- totals, arms and the configuration ------------------------------------------------------------


class TotalsBody(_RequestBody, frozen=True):
    """The totals of many rewards of an arm that belong to no decision."""

    arm: Value
    #: The number of rewards, their sum, and the sum of their squares, if it is known.
    n: Annotated[float, Meta(ge=0, multiple_of=1)]
    total: float
    squares: float | None = None
    situation: Value = None


class WithdrawBody(_RequestBody, frozen=True):
    """A decision whose observation was wrong."""

    id: _Id


class Withdrawal(msgspec.Struct, frozen=True):
    """Whether the observation was withdrawn now. If not, it was before, and nothing changed."""

    withdrawn: bool


class ArmBody(_RequestBody, frozen=True):
    """A change of an arm. A new arm may have a prior of its own, as the model takes it."""

    arm: Value
    change: ArmChange
    prior: Value = None


class ArmInfo(msgspec.Struct, frozen=True):
    """An arm: its state is active, paused or retired."""

    arm: Value
    state: str
    #: The current price: declared, or the mean of the reported costs; null if it has none.
    price: float | None


class ArmList(msgspec.Struct, frozen=True):
    """The arms of an agent."""

    arms: list[ArmInfo]


class Changed(msgspec.Struct, frozen=True):
    """The number of the event that records a change."""

    event: int


class Share(_RequestBody, frozen=True, omit_defaults=False):
    """The least and the greatest probability of an arm."""

    arm: Value
    low: float = 0.0
    high: float = 1.0


class Price(_RequestBody, frozen=True):
    """The price of an arm in units of reward, or "reported": the mean of its reported costs."""

    arm: Value
    price: float | Literal["reported"]


class ConfigurationBody(_RequestBody, frozen=True, omit_defaults=False):
    """What limits the decisions of an agent and their feedback; nothing by default.

    >>> ConfigurationBody.of(Configuration(prices={"red": 0.5})).prices
    [Price(arm='red', price=0.5)]
    """

    #: The share of decisions that ignore the belief; they take `control`, or any arm if it is null.
    holdout: float = 0.0
    control: Value = None
    shares: list[Share] = msgspec.field(default_factory=list)
    prices: list[Price] = msgspec.field(default_factory=list)
    #: Seconds after which a decision without an observation gets the `default`.
    window: float | None = None
    default: Value = None
    #: The least and the greatest valid reward.
    reward_range: Annotated[list[float], Meta(min_length=2, max_length=2)] | None = None

    @classmethod
    def of(cls, c: Configuration) -> "ConfigurationBody":
        """Convert to the body of an answer."""
        shares = [Share(as_plain(a, "an arm"), *bounds) for a, bounds in c.shares.items()]
        found: Mapping[Any, Any] = c.prices
        prices = [Price(as_plain(a, "an arm"), price) for a, price in found.items()]
        control, default = as_plain(c.control, "the control"), as_plain(c.default, "the default")
        limits = None if c.reward_range is None else [*c.reward_range]
        return cls(c.holdout, control, shares, prices, c.window, default, limits)

    def configuration(self) -> Configuration:
        """Return the configuration; raise `InvalidRequest` if it is invalid."""

        def value(plain: object, what: str) -> object:
            return value_of(plain, what, InvalidRequest)

        try:
            shares = {value(s.arm, "an arm"): (s.low, s.high) for s in self.shares}
            prices = {value(p.arm, "an arm"): p.price for p in self.prices}
        except TypeError as error:  # not hashable
            raise InvalidRequest(f"shares or prices name an arm that is invalid: {error}") from None
        if len(shares) < len(self.shares) or len(prices) < len(self.prices):
            raise InvalidRequest("an arm occurs twice in shares or in prices: give it once")
        limits: Any = None if self.reward_range is None else tuple(self.reward_range)
        return Configuration(
            holdout=self.holdout, control=value(self.control, "control"), shares=shares,
            prices=prices, window=self.window, default=value(self.default, "default"),
            reward_range=limits,
        )  # fmt: skip
