"""The events of a log, and how they are encoded as rows and as lines of JSON.

    created      the model by name, version and settings; the seed
    configured   shares, prices and times: the whole configuration from now on
    arm          an arm was added, paused, resumed or retired
    decided      in situation x the action a was chosen, with probability p
    observed     o is the observation of decision n
    defaulted    decision n had no observation in time: o is the declared default
    corrected    event n, a default or a withdrawal, is replaced: the observation is o
    withdrawn    event n, an observation, was wrong: its decision has none
    aggregated   the totals of many rewards of arm a, without decisions
    refitted     posterior draws of a new fit, which contains the observations up to event `through`
    compacted    the state after events 1 … seq; it has replaced the events 2 … seq

The belief is a fold of the log: the prior, conditioned on the observations in order. A correction
takes the place of the observation that it corrects. Decision n is a function of the events before
it and of the random streams (seed, n), so every action can be drawn again.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias
from zlib import crc32

import msgspec
from msgspec.structs import asdict, fields, replace

from bayescontrol.durable.plain import Value, as_plain, from_plain
from bayescontrol.durable.stores.log import Log, Row, damaged_error, require_readable
from bayescontrol.errors import DamagedLog, StoreBusy
from bayescontrol.protocols import Totals

#: The format of payloads and checksums that this release writes. It also reads earlier ones.
FORMAT: Final = 1


class Created(msgspec.Struct, frozen=True, kw_only=True):
    """Event 1: the model by name, version and settings, and the seed. Code is never stored.

    >>> Created(seq=1, format=1, model="coin", version=3, settings={}, seed=7, time=0.0).model
    'coin'
    """

    seq: int
    format: int
    model: str
    version: int
    settings: dict[str, Value]
    seed: int
    time: float
    #: For a `named_model`: a digest of the agent before the first event.
    fingerprint: str | None = None


class Decided(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """a ~ P(a | âo_<n) in situation x; `p` is P(a | âo_<n), or None if it is not known exactly.

    >>> Decided(seq=2, x=None, a="red", p=0.5, key=None, time=0.0).a
    'red'
    """

    seq: int
    x: Value
    a: Value
    p: float | None = None
    key: str | None = None
    time: float
    #: The caller's session; a later decision of the session is made only if `a` is not eligible.
    session: str | None = None
    #: The arms that were eligible; None: all active ones.
    among: list[Value] | None = None
    #: Whether the decision belongs to the holdout, which ignores the belief.
    holdout: bool = False


class Observed(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """o is the observation of decision n, or the declared default if none came in time.

    >>> Observed(seq=3, n=2, o=1, time=0.0).n
    2
    """

    seq: int
    n: int
    o: Value
    time: float
    #: The reported cost of the decision.
    cost: float | None = None
    default: bool = False


class Corrected(msgspec.Struct, frozen=True, kw_only=True, gc=False, repr_omit_defaults=True):
    """o is the observation that event n, a default or a withdrawal, did not have.

    >>> Corrected(seq=4, n=3, answer=3, o=1, time=0.0).o
    1
    """

    seq: int
    n: int
    #: The number of the first answer of the decision: n, or what event n amends.
    answer: int
    o: Value
    time: float
    cost: float | None = None


class Withdrawn(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Event n was wrong: its decision has no observation.

    >>> Withdrawn(seq=4, n=3, answer=3, time=0.0).n
    3
    """

    seq: int
    n: int
    #: The number of the first answer of the decision: n, or what event n amends.
    answer: int
    time: float


class Aggregated(msgspec.Struct, frozen=True, kw_only=True):
    """The totals of rewards of arm a in situation x, which belong to no decision of this log.

    >>> Aggregated(seq=4, x=None, a="red", totals=Totals(10, 3.0), key="monday", time=0.0).totals.n
    10
    """

    seq: int
    x: Value
    a: Value
    totals: Totals
    key: str
    time: float


#: What can happen to an arm, and the state in which it is afterwards.
ArmChange: TypeAlias = Literal["added", "paused", "resumed", "retired"]
ARM_CHANGES: Final[Mapping[ArmChange, str]] = {
    "added": "active", "paused": "paused", "resumed": "active", "retired": "retired"
}  # fmt: skip


class ArmChanged(msgspec.Struct, frozen=True, kw_only=True):
    """An arm was added, paused, resumed or retired.

    >>> ArmChanged(seq=2, arm="green", change="paused", time=0.0).prior is None
    True
    """

    seq: int
    arm: Value
    change: ArmChange
    time: float
    #: For a new arm: its prior; None: the prior that the model gives every arm, or learns.
    prior: Value = None


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration from this event on, see `durable.configuration`.

    >>> Configured(seq=2, configuration={"holdout": 0.05}, time=0.0).configuration
    {'holdout': 0.05}
    """

    seq: int
    configuration: dict[str, Any]
    time: float


class Refitted(msgspec.Struct, frozen=True, kw_only=True):
    """The draws of a new fit, which contains the observations up to event `through`.

    >>> Refitted(seq=4, through=3, draws=[0.2, 0.7], log_weights=None, time=0.0).through
    3
    """

    seq: int
    through: int
    draws: Value
    log_weights: Value
    time: float


class Compacted(msgspec.Struct, frozen=True, kw_only=True):
    """A sealed snapshot, which has replaced the events 2 … seq.

    `decisions` and `observations` are their numbers among those events. `pending` are the decisions
    among them whose observations came later, without keys: the observations are learned with them.

    >>> Compacted(seq=90, state=b"", digest=b"", decisions=50, observations=39, time=0.0).pending
    []
    """

    seq: int
    #: The state and its checksum, as in `Snapshot`.
    state: bytes
    digest: bytes
    decisions: int
    observations: int
    #: When the log was compacted.
    time: float
    pending: list[Decided] = []


Event: TypeAlias = (
    Created | Decided | Observed | Refitted | Compacted
    | Corrected | Withdrawn | Aggregated | ArmChanged | Configured
)  # fmt: skip
#: An event that amends an observation.
Amendment: TypeAlias = Corrected | Withdrawn
#: An event about the agent as a whole.
AgentEvent: TypeAlias = ArmChanged | Configured | Aggregated | Refitted
#: {b: P(b | past, x)}
Probabilities: TypeAlias = Mapping[Any, float]


class Decision(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A decision that is on disk.

    >>> Decision("2", "red", 0.5, None, 1, 0.0, {"red": 0.5, "blue": 0.5})
    Decision(id='2', action='red', probability=0.5, situation=None, basis=1, time=0.0)
    """

    #: Pass this to `observe`.
    id: str
    action: Value
    #: P(action | past), given the mode that acts if the agent explores; None if it is not known
    #: exactly.
    probability: float | None
    #: The situation x.
    situation: Value
    #: The number of the last event that the decision is based on.
    basis: int
    #: Seconds since 1970.
    time: float
    #: P(a | past) of every action, if it was just computed; `explain` computes it again.
    probabilities: Probabilities | None = None
    #: The name of the log, if it is known.
    agent: str | None = None
    #: The caller's session, and whether the decision belongs to the holdout.
    session: str | None = None
    holdout: bool = False

    @classmethod
    def of(
        cls, event: Decided, probabilities: Probabilities | None = None, agent: str | None = None
    ) -> "Decision":
        """Return the decision that an event records."""
        n = event.seq
        return cls(
            str(n), event.a, event.p, event.x, n - 1, event.time, probabilities, agent,
            event.session, event.holdout,
        )  # fmt: skip

    def _logged(self) -> tuple[Any, ...]:
        """Return the fields that the log stores."""
        return self.id, self.action, self.probability, self.situation, self.basis, self.time

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decision) and self._logged() == other._logged()

    def __hash__(self) -> int:
        return hash(self._logged())

    def __repr__(self) -> str:
        names = self.__struct_fields__
        fields = ", ".join(f"{n}={v!r}" for n, v in zip(names, self._logged(), strict=False))
        return f"Decision({fields})"


#: What names a decision: its id, its number, or the decision itself.
DecisionId: TypeAlias = str | int | Decision


def decision_number(id: DecisionId) -> int:
    """Parse an id into its event number; return 0 if it is invalid.

    Accepts decisions, integers and digit strings.

    >>> [decision_number(id) for id in ("12", 12, "twelve", "012")]
    [12, 12, 0, 0]
    """
    text: Any = id.id if isinstance(id, Decision) else id
    if type(text) is int:
        return text if 0 < text < 10**18 else 0
    is_number = isinstance(text, str) and text.isascii() and text.isdigit() and text[0] != "0"
    return int(text) if is_number and len(text) < 19 else 0


# -- encoding ------------------------------------------------------------------------------------


class _Head(msgspec.Struct):
    """The columns of a row except the payload, as fields of a line of JSON."""

    seq: int
    kind: str
    checksum: int
    n: int | None = None
    key: str | None = None
    session: str | None = None


def _as_seed(text: Any) -> int:
    """Return the seed; raise ValueError if it is invalid."""
    if not isinstance(text, str) or not 0 <= int(text) < 2**128:
        raise ValueError(f"its seed is {text!r}")
    return int(text)


def _as_format(number: Any) -> Any:
    """Return the format of the log; raise `NewerFormat` if a later release wrote it."""
    if isinstance(number, int):
        require_readable("the log", "format", number, FORMAT)
    return number


#: The kinds of events by their stored names. A `defaulted` event is an `Observed` with `default`.
_KINDS: Final[Mapping[str, type[Event]]] = {
    "created": Created, "configured": Configured, "arm": ArmChanged, "decided": Decided,
    "defaulted": Observed, "observed": Observed, "corrected": Corrected, "withdrawn": Withdrawn,
    "aggregated": Aggregated, "refitted": Refitted, "compacted": Compacted,
}  # fmt: skip
_KIND_OF: Final = {event_type: kind for kind, event_type in _KINDS.items()}
#: How fields are encoded that JSON has no values for. A seed has up to 128 bits, more than a JSON
#: number holds.
_ENCODERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "seed": str, "state": lambda state: b64encode(state).decode(),
    "digest": lambda digest: b64encode(digest).decode(),
    "pending": lambda found: [to_line(replace(d, key=None, session=None)) for d in found],
}  # fmt: skip
_DECODERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "seed": _as_seed, "format": _as_format,
    "pending": lambda lines: [from_line(line) for line in lines],
}  # fmt: skip
#: Types of fields that JSON has values for; their numbers are finite.
_JSON_TYPES: Final = (int, float, str, bool, float | None, str | None)
#: The fields of the payload, which are no columns of a row: their names, defaults and encoders.
_PAYLOAD_FIELDS: Final = {
    event_type: [
        (f.name, f.default, _ENCODERS.get(f.name, None if f.type in _JSON_TYPES else as_plain))
        for f in fields(event_type)
        if f.name not in Row._fields
    ]
    for event_type in _KIND_OF
}
#: A number for each kind, for the checksum.
_KIND_CODES: Final = {kind: crc32(kind.encode()) for kind in _KINDS}
#: The factors of seq and n in the checksum: two large primes (of xxHash), to spread their bits.
_SEQ_FACTOR, _N_FACTOR = 2654435761, 2246822519
_encode: Final = msgspec.json.Encoder().encode
_decode_object: Final = msgspec.json.Decoder(dict[str, Any]).decode


def _checksum(
    seq: int, kind: str, n: int | None, key: str | None, session: str | None, payload: bytes
) -> int:
    """Return the CRC-32 of the payload, started with a hash of the other columns."""
    columns = seq * _SEQ_FACTOR + (n or 0) * _N_FACTOR + _KIND_CODES.get(kind, 0)
    start = columns % 2**32
    if key is not None:
        start = crc32(key.encode(), start)
    if session is not None:  # the separator, which no key contains, tells the two apart
        start = crc32(b"\0" + session.encode(), start)
    return crc32(payload, start)


def encode_row(event: Event) -> Row:
    """Encode an event as a row. The payload has its other fields, without defaults.

    >>> encode_row(Observed(seq=3, n=2, o=1, time=0.5))[:3]
    (3, 'observed', 2)
    """
    kind = _KIND_OF[type(event)]
    body = {}
    for name, default, encode in _PAYLOAD_FIELDS[type(event)]:
        if (value := getattr(event, name)) is not default:
            body[name] = value if encode is None else encode(value)
    if body.pop("default", False):
        kind = "defaulted"
    n, key = getattr(event, "n", None), getattr(event, "key", None)
    session = getattr(event, "session", None)
    payload = _encode(body)
    checksum = _checksum(event.seq, kind, n, key, session, payload)
    return Row(event.seq, kind, n, key, session, payload, checksum)


def decode_row(row: Row, log: str | None = None) -> Event:
    """Decode a row; raise `DamagedLog` if its checksum is wrong or it cannot be read.

    `log` is the name of the log, for error messages.

    >>> decode_row(encode_row(Observed(seq=3, n=2, o=(1.0, "b"), time=0.5)))
    Observed(seq=3, n=2, o=(1.0, 'b'), time=0.5)
    """
    seq, kind, n, key, session, payload, checksum = row
    try:
        if checksum != _checksum(*row[:-1]):
            raise damaged_error(log, f"event {seq} is damaged, its checksum is wrong")
        if kind not in _KINDS:
            raise damaged_error(log, f"event {seq} has the unknown kind {kind!r}")
        body = {k: _DECODERS.get(k, from_plain)(v) for k, v in _decode_object(payload).items()}
        body |= {"seq": seq, "n": n, "key": key, "session": session, "default": kind == "defaulted"}
        return msgspec.convert(body, _KINDS[kind])
    except (ValueError, RecursionError, TypeError, AttributeError) as error:
        raise damaged_error(log, f"event {seq} cannot be read ({error})") from None


def read_events(log: Log, start: int = 1, stop: int | None = None) -> Iterator[Event]:
    """Iterate over the events of a log; raise `DamagedLog` if one is damaged or missing.

    Compacted events are left out. Raise `StoreBusy` if they are compacted during the iteration.
    """
    expected, first = start, max(start, 2)  # a `compacted` event comes first, or after event 1
    for row in log.read(start, stop):
        if row.seq != expected and not (row.kind == "compacted" and expected == first):
            sealed = log.find_sealed()
            if sealed is not None and expected <= sealed.seq:
                raise StoreBusy(
                    f"log {log.name!r} was compacted through event {sealed.seq} while event "
                    f"{expected} was read: read it again"
                )
            raise damaged_error(log.name, f"event {expected} is missing before event {row.seq}")
        yield decode_row(row, log.name)
        expected = row.seq + 1


def read_created(log: Log) -> Created:
    """Return the first event of a log; raise `DamagedLog` if it does not describe a model."""
    first = next(read_events(log, 1, 1), None)
    if not isinstance(first, Created):
        raise damaged_error(log.name, "it does not start with an event `created`")
    return first


def to_line(event: Event) -> str:
    """Encode an event as one line of JSON, with its checksum.

    >>> to_line(Observed(seq=3, n=2, o=1, time=0.5))
    '{"seq":3,"kind":"observed","n":2,"o":1,"time":0.5,"checksum":...}'
    """
    row = encode_row(event)
    head = {name: v for name, v in row._asdict().items() if v is not None}
    body, checksum = _decode_object(head.pop("payload")), head.pop("checksum")
    return _encode(head | body | {"checksum": checksum}).decode()


def from_line(line: str) -> Event:
    """Decode a line of JSON; raise `DamagedLog` if it is not an event.

    >>> from_line(to_line(Observed(seq=3, n=2, o=1, time=0.5)))
    Observed(seq=3, n=2, o=1, time=0.5)
    """
    try:
        columns = _decode_object(line)
        head = msgspec.convert(columns, _Head)
        payload = _encode({k: v for k, v in columns.items() if k not in _Head.__struct_fields__})
    except (ValueError, RecursionError) as error:
        raise DamagedLog(f"{line[:60]!r} is not an event of a log ({error})") from None
    return decode_row(Row(**asdict(head), payload=payload))


def check_history(events: Iterable[Event], start: int | None = 1) -> Iterator[Event]:
    """Iterate over the events and check that they form the history of one log from event `start`.

    Raise `DamagedLog` if an event is missing, if an answer or an amendment has no event to refer
    to, if two events answer or amend the same one, if two events have the same key, or if the log
    is created twice. If `start` is None, the first event may have any number, and events before it
    may be answered. The first event, or the one after event 1, may be `compacted`: then there are
    none before it.
    """
    first = expected = start
    sealed = 1
    keys: set[str] = set()
    # The decisions without an answer; the first answer by the number of the last amendment; events
    # before the first one that were answered or amended.
    decisions, answers, early = set[int](), dict[int, int](), set[int]()
    for event in events:
        if first is None or expected is None:
            first = expected = event.seq
        if type(event) is Compacted and expected == max(first, 2) <= event.seq:
            first, sealed = 1, event.seq  # no decision before it may be observed, except these
            decisions.update(decision.seq for decision in event.pending)
        elif event.seq != expected or type(event) is Compacted:
            found = "a sealed snapshot" if type(event) is Compacted else "event"
            raise DamagedLog(f"expected event {expected}, found {found} {event.seq}")
        expected = event.seq + 1
        if isinstance(event, Observed | Corrected | Withdrawn):
            n, answer = event.n, event.seq
            if isinstance(event, Observed):
                what, is_possible = "observes decision", n in decisions
                decisions.discard(n)
            else:
                what, answer = "amends event", event.answer
                is_possible = answers.pop(n, None) == answer
            if not is_possible and (n in early or not 1 <= n < first):
                raise DamagedLog(
                    f"event {event.seq} {what} {n}, which does not exist, or which another event "
                    "answers or amends"
                )
            answers[event.seq] = answer
            if n < first:
                early.add(n)
        elif isinstance(event, Decided | Aggregated):
            if event.key in keys:
                raise DamagedLog(f"event {event.seq} repeats the key {event.key!r}")
            if type(event) is Decided:
                decisions.add(event.seq)
            if event.key is not None:
                keys.add(event.key)
        elif type(event) is Refitted:
            if not sealed <= event.through < event.seq:
                raise DamagedLog(
                    f"event {event.seq} contains event {event.through}, which is later or compacted"
                )
        elif type(event) is Created and event.seq != 1:
            raise damaged_error(None, f"event {event.seq} is `created`, which only event 1 can be")
        yield event
