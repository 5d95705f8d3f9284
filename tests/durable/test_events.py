"""Events are validated when they are decoded from rows and lines; decisions are values."""

import copy
import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol.durable import events
from bayescontrol.durable.stores.log import Row, open_store
from bayescontrol.errors import DamagedLog, NewerFormat

CREATED = events.Created(
    seq=1, format=events.FORMAT, model="shop", version=2, settings={"arms": ["red"], "k": (1, 2)},
    seed=2**127 + 1, time=1.5,
)  # fmt: skip
DECIDED = events.Decided(seq=2, x=(1, "home"), a="red", p=1 / 3, key="visit ✓", time=2.5)
OBSERVED = events.Observed(seq=3, n=2, o=(0.1, "b"), time=3.5)
REFITTED = events.Refitted(seq=4, through=3, draws=[[0.1, 1 / 3]], log_weights=[-0.5], time=4.5)
EVENTS: list[events.Event] = [CREATED, DECIDED, OBSERVED, REFITTED]


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_an_event_round_trips_through_its_row_and_its_line(event: events.Event) -> None:
    assert events.decode_row(events.encode_row(event)) == event
    assert events.from_line(events.to_line(event)) == event
    assert "\n" not in events.to_line(event)


def test_an_unknown_probability_is_not_written() -> None:
    row = events.encode_row(msgspec.structs.replace(DECIDED, p=None))
    assert b'"p"' not in row.payload
    event = events.decode_row(row)
    assert isinstance(event, events.Decided)
    assert event.p is None


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_a_flipped_bit_of_a_payload_is_detected(event: events.Event) -> None:
    row = events.encode_row(event)
    for place in range(len(row.payload)):
        for bit in (1, 64):
            payload = bytearray(row.payload)
            payload[place] ^= bit
            with pytest.raises(DamagedLog):
                events.decode_row(row._replace(payload=bytes(payload)))


def test_a_changed_column_is_detected() -> None:
    row = events.encode_row(OBSERVED)
    for wrong in (
        row._replace(seq=4),
        row._replace(n=3),
        row._replace(n=None),
        row._replace(kind="decided"),
        row._replace(key="visit"),
        row._replace(checksum=row.checksum ^ 1),
        events.encode_row(DECIDED)._replace(key=None),
        events.encode_row(DECIDED)._replace(key="visit"),
    ):
        with pytest.raises(DamagedLog):
            events.decode_row(wrong)


def test_a_later_format_is_distinguished_from_damage() -> None:
    later = msgspec.structs.replace(CREATED, format=events.FORMAT + 1)
    with pytest.raises(NewerFormat, match=f"format {events.FORMAT + 1}.*install a later"):
        events.decode_row(events.encode_row(later))


def test_a_missing_event_is_damage() -> None:
    log = open_store("sqlite:///:memory:").log("shop")
    log.append([events.encode_row(event) for event in EVENTS])
    rows = list(log.read())

    class Gap:
        name = "shop"

        def read(self, start: int, stop: int | None) -> list[Row]:
            return [rows[0], rows[2]]

        def find_sealed(self) -> None:
            return None

    with pytest.raises(DamagedLog, match="event 2 is missing before event 3"):
        list(events.read_events(Gap()))  # type: ignore[arg-type]


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "line",
    ["", "{}", "[1]", "not json", '{"seq":1}', "null", DEEP,
     '{"seq":1,"kind":"observed","checksum":0,"o":' + DEEP],
    ids=lambda line: line[:60],
)  # fmt: skip
def test_an_invalid_line_is_damage(line: str) -> None:
    with pytest.raises(DamagedLog, match="not an event of a log"):
        events.from_line(line)


#: Invalid values for each column of a line.
INVALID_COLUMNS: dict[str, list[Any]] = {
    "seq": ["x", 1.5, None, True, [1], {}],
    "kind": [["a"], None, 1],
    "n": ["z", 1.5, [2]],
    "key": [3, ["k"], {"k": 1}],
    "checksum": ["1", None, 0.5],
}


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(
    ("column", "wrong"), [(column, v) for column, values in INVALID_COLUMNS.items() for v in values]
)
def test_a_line_with_a_column_of_another_type_is_damage(
    event: events.Event, column: str, wrong: Any
) -> None:
    line = msgspec.json.decode(events.to_line(event)) | {column: wrong}
    with pytest.raises(DamagedLog, match="not an event of a log"):
        events.from_line(msgspec.json.encode(line).decode())


@pytest.mark.parametrize("n", [-1, 0, 1, 3, 9])
def test_an_observation_of_no_decision_is_damage(n: int) -> None:
    wrong = msgspec.structs.replace(OBSERVED, n=n)
    with pytest.raises(DamagedLog, match=f"observes decision {n}, which does not exist"):
        list(events.check_history([CREATED, DECIDED, wrong]))


def checked(kind: str, payload: bytes, n: int | None = None, key: str | None = None) -> Row:
    """A row with a valid checksum, so that its content is checked."""
    return Row(1, kind, n, key, None, payload, events._checksum(1, kind, n, key, None, payload))


def body(event: events.Event, **wrong: Any) -> bytes:
    """The payload of the event with some values replaced."""
    return msgspec.json.encode(msgspec.json.decode(events.encode_row(event).payload) | wrong)


#: Invalid values for each field of a `created` event.
INVALID_CREATED: dict[str, list[Any]] = {
    "seed": ["abc", "", "-1", str(2**128), "9" * 5000, 7, None, "1.5"],
    "settings": [[1], None, 3, "x", {"tuple": []}, {"dict": [[1, 2]]}],
    "format": ["x"],
    "version": ["x"],
    "time": ["x"],
    "model": [3],
    "fingerprint": [3],
}


@pytest.mark.parametrize(
    ("field", "wrong"), [(field, v) for field, values in INVALID_CREATED.items() for v in values]
)
def test_an_invalid_created_event_is_damage_although_its_checksum_is_valid(
    field: str, wrong: Any
) -> None:
    assert events.decode_row(checked("created", body(CREATED))) == CREATED
    with pytest.raises(DamagedLog):
        events.decode_row(checked("created", body(CREATED, **{field: wrong})))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tuple", "dict", "float", "int", "array", "shape", "dtype", "a"]),
            inner | st.sampled_from(["<f8", "|u1", "O", "U99999999", "f8,(", "nan", "7"]),
            max_size=3,
        )
    ),
    max_leaves=8,
)
FIELDS = ["format", "model", "version", "settings", "seed", "time", "x", "a", "p", "o"]


@given(
    kind=st.sampled_from(["created", "decided", "observed", "other"]),
    payload=st.binary(max_size=40)
    | JSON.map(msgspec.json.encode)
    | st.builds(
        lambda event, wrong: body(event, **wrong),
        st.sampled_from(EVENTS),
        st.dictionaries(st.sampled_from(FIELDS), JSON, min_size=1, max_size=2),
    ),
    n=st.none() | st.integers(),
    key=st.none() | st.text(st.characters(codec="utf-8"), max_size=4),
)
def test_any_row_decodes_to_an_event_or_is_damage(
    kind: str, payload: bytes, n: int | None, key: str | None
) -> None:
    try:
        event = events.decode_row(checked(kind, payload, n, key))
    except (DamagedLog, NewerFormat):
        return
    assert events.to_line(events.decode_row(events.encode_row(event))) == events.to_line(event)


@given(
    st.sampled_from(EVENTS),
    st.dictionaries(
        st.sampled_from([*FIELDS, "seq", "kind", "n", "key", "checksum"]), JSON, max_size=2
    ),
)
def test_any_line_decodes_to_an_event_or_is_damage(
    event: events.Event, wrong: dict[str, Any]
) -> None:
    line = msgspec.json.decode(events.to_line(event)) | wrong
    try:
        events.from_line(msgspec.json.encode(line).decode())
    except (DamagedLog, NewerFormat):
        return


def decision(**changes: object) -> events.Decision:
    result = {"id": "2", "action": "red", "probability": 0.5, "situation": None, "basis": 1}
    return events.Decision(**{**result, "time": 0.0, **changes})  # type: ignore[arg-type]


def test_decisions_are_equal_if_their_logged_fields_are() -> None:
    assert decision() == decision(probabilities={"red": 0.5, "blue": 0.5}, agent="shop")
    assert hash(decision()) == hash(decision(agent="shop"))
    for other in ({"id": "3"}, {"action": "blue"}, {"situation": 1}, {"time": 1.0}):
        assert decision() != decision(**other)
    assert decision() != "2"


def test_events_and_decisions_are_immutable() -> None:
    with pytest.raises(AttributeError):
        DECIDED.a = "blue"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        decision().action = "blue"  # type: ignore[misc]


def test_a_decision_can_be_pickled_and_copied() -> None:
    original = decision(probabilities={"red": 0.5, "blue": 0.5})
    for twin in (pickle.loads(pickle.dumps(original)), copy.deepcopy(original)):
        assert twin == original
        assert twin.probabilities == original.probabilities
