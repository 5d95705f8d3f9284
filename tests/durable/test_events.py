"""Events: rows and lines that are checked before they are believed."""

import dataclasses

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol.durable.events import (
    FORMAT,
    Created,
    Decided,
    Event,
    Observed,
    as_row,
    event_of,
    events_of,
    from_line,
    to_line,
)
from bayescontrol.durable.store import Row, open_store
from bayescontrol.errors import DamagedLog, NewerFormat

CREATED = Created(
    seq=1, format=FORMAT, model="shop", version=2, settings={"arms": ["red"], "k": (1, 2)},
    seed=2**127 + 1, time=1.5,
)  # fmt: skip
DECIDED = Decided(seq=2, x=(1, "home"), a="red", p=1 / 3, key="visit ✓", time=2.5)
OBSERVED = Observed(seq=3, n=2, o=(0.1, "b"), time=3.5)
EVENTS: list[Event] = [CREATED, DECIDED, OBSERVED]


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_an_event_comes_back_from_its_row_and_from_its_line(event: Event) -> None:
    assert event_of(as_row(event)) == event
    assert from_line(to_line(event)) == event
    assert "\n" not in to_line(event)


def test_a_probability_that_is_not_known_is_not_written() -> None:
    row = as_row(msgspec.structs.replace(DECIDED, p=None))
    assert b'"p"' not in row.payload
    event = event_of(row)
    assert isinstance(event, Decided)
    assert event.p is None


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_every_bit_of_a_payload_counts(event: Event) -> None:
    row = as_row(event)
    for place in range(len(row.payload)):
        for bit in (1, 64):
            payload = bytearray(row.payload)
            payload[place] ^= bit
            with pytest.raises(DamagedLog):
                event_of(row._replace(payload=bytes(payload)))


def test_every_other_column_counts_too() -> None:
    row = as_row(OBSERVED)
    for wrong in (
        row._replace(seq=4),
        row._replace(n=3),
        row._replace(n=None),
        row._replace(kind="decided"),
        row._replace(key="visit"),
        row._replace(checksum=row.checksum ^ 1),
        as_row(DECIDED)._replace(key=None),
        as_row(DECIDED)._replace(key="visit"),
    ):
        with pytest.raises(DamagedLog):
            event_of(wrong)


def test_a_later_format_is_told_from_damage() -> None:
    later = msgspec.structs.replace(CREATED, format=FORMAT + 1)
    with pytest.raises(NewerFormat, match=f"format {FORMAT + 1}.*install a later"):
        event_of(as_row(later))


def test_a_missing_event_is_damage() -> None:
    log = open_store("sqlite:///:memory:").log("shop")
    log.append([as_row(event) for event in EVENTS])
    rows = list(log.read())

    class Gap:
        name = "shop"

        def read(self, start: int, stop: int | None) -> list[Row]:
            return [rows[0], rows[2]]

    with pytest.raises(DamagedLog, match="after event 1 comes 3"):
        list(events_of(Gap()))  # type: ignore[arg-type]


@pytest.mark.parametrize("line", ["", "{}", "[1]", "not json", '{"seq":1}', "null"])
def test_a_line_that_is_none_is_damage(line: str) -> None:
    with pytest.raises(DamagedLog, match="not a line of a log"):
        from_line(line)


@given(st.binary(max_size=40), st.sampled_from(["created", "decided", "observed", "other"]))
def test_no_bytes_whatever_make_an_event_raise_anything_else(payload: bytes, kind: str) -> None:
    row = as_row(OBSERVED)._replace(kind=kind, payload=payload)
    with pytest.raises(DamagedLog):
        event_of(row)


def test_events_cannot_be_changed() -> None:
    with pytest.raises((AttributeError, dataclasses.FrozenInstanceError)):
        DECIDED.a = "blue"  # type: ignore[misc]
