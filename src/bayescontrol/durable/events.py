"""What happens to an agent, as events 1, 2, 3, … of its log.

    created    which model, of which version, with which settings; the seed
    decided    in situation x the action a was taken, which had probability p
    observed   decision n was answered by o

The log is the truth and the belief its fold: P(m | âo_≤t) is what the observations before make of
the prior. Event seq = n is a function of the events before it and of the stream (seed, n), so
every action can be drawn again.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias
from zlib import crc32

import msgspec

from bayescontrol.durable.plain import as_plain, from_plain, shown
from bayescontrol.durable.store import Log, Row
from bayescontrol.errors import DamagedLog, NewerFormat

#: The format of payloads and checksums that this release writes; it reads every earlier one.
FORMAT: Final = 1


class Created(msgspec.Struct, frozen=True, kw_only=True):
    """Event 1: the model by name, version and settings, never its code; and the seed.

    >>> Created(seq=1, format=1, model="coin", version=3, settings={}, seed=7, time=0.0).model
    'coin'
    """

    seq: int
    format: int
    model: str
    version: int
    settings: dict[str, Any]
    seed: int
    time: float
    #: Of a model with code of its own: what its agent was like before the first event.
    fingerprint: str | None = None


class Decided(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """a ~ P(a | âo_<n) in situation x; `p` is P(a | âo_<n) where it is known exactly.

    >>> Decided(seq=2, x=None, a="red", p=0.5, key=None, time=0.0).a
    'red'
    """

    seq: int
    x: Any
    a: Any
    p: float | None
    key: str | None
    time: float


class Observed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """o, what came of decision n.

    >>> Observed(seq=3, n=2, o=1, time=0.0).n
    2
    """

    seq: int
    n: int
    o: Any
    time: float


Event: TypeAlias = Created | Decided | Observed


class _CreatedBody(msgspec.Struct, omit_defaults=True):
    format: int
    model: str
    version: int
    settings: Any
    seed: str  # up to 128 bits, more than a JSON number holds
    time: float
    fingerprint: str | None = None


class _Head(msgspec.Struct):
    """The columns of a row, as a line has them beside its payload."""

    seq: int
    kind: str
    checksum: int
    n: int | None = None
    key: str | None = None


class _DecidedBody(msgspec.Struct, omit_defaults=True, gc=False):
    x: Any
    a: Any
    time: float
    p: float | None = None


class _ObservedBody(msgspec.Struct, gc=False):
    o: Any
    time: float


_COLUMNS: Final = frozenset(_Head.__struct_fields__)
_BEGIN: Final = {"created": 0x63726561, "decided": 0x64656369, "observed": 0x6F627365}
_encode: Final = msgspec.json.Encoder().encode
_created: Final = msgspec.json.Decoder(_CreatedBody).decode
_decided: Final = msgspec.json.Decoder(_DecidedBody).decode
_observed: Final = msgspec.json.Decoder(_ObservedBody).decode
_format: Final = msgspec.json.Decoder(dict[str, Any]).decode


def checksum_of(seq: int, kind: str, n: int | None, key: str | None, payload: bytes) -> int:
    """CRC-32 of the payload, begun with a word made of all the rest.

    >>> row = as_row(Observed(seq=3, n=2, o=1, time=0.5))
    >>> checksum_of(3, "observed", 2, None, row.payload) == row.checksum
    True
    """
    start = seq * 2654435761 + (n or 0) * 2246822519 + _BEGIN.get(kind, 0) & 0xFFFFFFFF
    return crc32(payload, start if key is None else crc32(key.encode(), start))


def as_row(event: Event) -> Row:
    """The event as a store keeps it.

    >>> as_row(Observed(seq=3, n=2, o=1, time=0.5))
    Row(seq=3, kind='observed', n=2, key=None, payload=b'{"o":1,"time":0.5}', checksum=...)
    """
    n = key = None
    if type(event) is Decided:
        kind, key = "decided", event.key
        x, a = as_plain(event.x, "the situation"), as_plain(event.a, "the action")
        body: Any = _DecidedBody(x, a, event.time, event.p)
    elif type(event) is Observed:
        kind, n = "observed", event.n
        body = _ObservedBody(as_plain(event.o, "the observation"), event.time)
    else:
        assert isinstance(event, Created)
        kind = "created"
        settings = as_plain(event.settings, "a setting of the model")
        body = _CreatedBody(
            event.format, event.model, event.version, settings, str(event.seed), event.time,
            event.fingerprint,
        )  # fmt: skip
    payload = _encode(body)
    return Row(event.seq, kind, n, key, payload, checksum_of(event.seq, kind, n, key, payload))


def event_of(row: Row, log: str | None = None) -> Event:
    """The event that a row holds; `DamagedLog` if its checksum is wrong or it cannot be read.

    `log` is the name of the log, for the message.

    >>> event_of(as_row(Observed(seq=3, n=2, o=(1.0, "b"), time=0.5)))
    Observed(seq=3, n=2, o=(1.0, 'b'), time=0.5)
    """
    seq, kind, n, key, payload, checksum = row
    where = f"event {seq}" if log is None else f"log {log!r}: event {seq}"
    try:
        if checksum != checksum_of(seq, kind, n, key, payload):
            raise DamagedLog(
                f"{where} is not what was written: its checksum is wrong; restore a backup"
            )
        if kind == "observed" and n is not None:
            o = _observed(payload)
            return Observed(seq=seq, n=n, o=from_plain(o.o), time=o.time)
        if kind == "decided":
            d = _decided(payload)
            x, a = from_plain(d.x), from_plain(d.a)
            return Decided(seq=seq, x=x, a=a, p=d.p, key=key, time=d.time)
        if kind == "created":
            return _as_created(seq, payload)
    except (ValueError, RecursionError, TypeError, AttributeError) as error:
        raise DamagedLog(f"{where} cannot be read: {error}; restore a backup") from None
    raise DamagedLog(f"{where} is of the unknown kind {kind!r}; restore a backup")


def _as_created(seq: int, payload: bytes) -> Created:
    written = _format(payload).get("format")
    if isinstance(written, int) and written > FORMAT:
        raise NewerFormat(
            f"the log is written in format {written}, this release reads up to {FORMAT}: "
            "install a later one"
        )
    c = _created(payload)
    settings, seed = from_plain(c.settings), int(c.seed)
    named = type(settings) is dict and all(isinstance(name, str) for name in settings)
    if not named or not 0 <= seed < 2**128:
        raise DamagedLog(f"event {seq}: settings {shown(settings)} and seed {seed} make no agent")
    return Created(
        seq=seq, format=c.format, model=c.model, version=c.version, settings=settings, seed=seed,
        time=c.time, fingerprint=c.fingerprint,
    )  # fmt: skip


def events_of(log: Log, start: int = 1, stop: int | None = None) -> Iterator[Event]:
    """The events of a log in order, each checked, none missing.

    >>> from bayescontrol.durable.store import open_store
    >>> log = open_store("sqlite:///:memory:").log("checkout")
    >>> log.append([as_row(Decided(seq=1, x=None, a="red", p=0.5, key=None, time=0.0))])
    >>> [event.a for event in events_of(log)]
    ['red']
    """
    expected = start
    for row in log.read(start, stop):
        if row.seq != expected:
            raise DamagedLog(
                f"log {log.name!r}: after event {expected - 1} comes {row.seq}; restore a backup"
            )
        yield event_of(row, log.name)
        expected += 1


def to_line(event: Event) -> str:
    """The event as one line of JSON, with its checksum.

    >>> to_line(Observed(seq=3, n=2, o=1, time=0.5))
    '{"seq":3,"kind":"observed","n":2,"o":1,"time":0.5,"checksum":...}'
    """
    row = as_row(event)
    head: dict[str, Any] = {"seq": row.seq, "kind": row.kind}
    head |= {name: v for name, v in (("n", row.n), ("key", row.key)) if v is not None}
    body: dict[str, Any] = msgspec.json.decode(row.payload)
    return msgspec.json.encode(head | body | {"checksum": row.checksum}).decode()


def from_line(line: str) -> Event:
    """The event of a line.

    >>> from_line(to_line(Observed(seq=3, n=2, o=1, time=0.5)))
    Observed(seq=3, n=2, o=1, time=0.5)
    """
    try:
        body = msgspec.json.decode(line, type=dict[str, Any])
        head = msgspec.convert(body, _Head)
        payload = _encode({name: v for name, v in body.items() if name not in _COLUMNS})
    except (ValueError, RecursionError) as error:
        raise DamagedLog(f"{line[:60]!r} is not a line of a log ({error})") from None
    return event_of(Row(head.seq, head.kind, head.n, head.key, payload, head.checksum))


def numbered(events: Iterable[Event], start: int | None = 1) -> Iterator[Event]:
    """The same events, if they are a history: start, start + 1, …, and no two contradict.

    `DamagedLog` if one is missing, if a decision is answered twice or does not exist, if a key
    stands for two decisions, or if a log is created twice. Without `start` the first event may
    have any number; an answer to a decision before it is then accepted, once.

    >>> list(numbered([Observed(seq=3, n=2, o=1, time=0.5)]))
    Traceback (most recent call last):
    bayescontrol.errors.DamagedLog: event 3 stands where event 1 should be
    """
    first = expected = start
    keys: set[str] = set()
    open_, early = set[int](), set[int]()  # decisions without an answer; answered ones before first
    for event in events:
        if first is None or expected is None:
            first = expected = event.seq
        if event.seq != expected:
            raise DamagedLog(f"event {event.seq} stands where event {expected} should be")
        if type(event) is Observed:
            n = event.n
            if n not in open_ and (n >= first or n in early):
                raise DamagedLog(
                    f"event {event.seq} answers decision {n}, which does not exist or has an answer"
                )
            open_.discard(n)
            if n < first:
                early.add(n)
        elif type(event) is Decided:
            if event.key in keys:
                raise DamagedLog(f"event {event.seq} is a second decision under key {event.key!r}")
            open_.add(event.seq)
            if event.key is not None:
                keys.add(event.key)
        elif event.seq != 1:
            raise DamagedLog(f"event {event.seq}: a log is created once, by its first event")
        yield event
        expected += 1
