"""Routes that read the past of an agent: its decisions page by page or as CSV, and its log."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Annotated, Final, Literal, TypeVar
from urllib.parse import quote

import msgspec
from litestar import get
from litestar.datastructures import ResponseHeader
from litestar.params import QueryParameter
from litestar.response import Stream

from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.decisions import Answer
from bayescontrol.durable.events import Decision, Event, to_line
from bayescontrol.serve import bodies
from bayescontrol.serve.request_queue import ServedAgent
from bayescontrol.serve.routes.parameters import AGENT, READS, Agent, Limit, Start

T = TypeVar("T")
#: Events of a log, or rows of a table, that are read and sent at once.
_BATCH: Final = 500
_COLUMNS: Final = (
    "id", "time", "action", "probability", "situation", "observation", "observed at", "default",
    "session", "holdout",
)  # fmt: skip
#: A spreadsheet takes text that begins with one of these for a formula.
_FORMULA: Final = ("=", "+", "-", "@")
_Row = tuple[Decision, Answer | None]


@get(AGENT + "/decisions", responses=READS)
async def decisions(
    agent: Agent,
    start: Annotated[
        int, QueryParameter(ge=0, le=2**53, description="The `next` of a page; 0: the first page.")
    ] = 0,
    limit: Limit = 100,
    order: Annotated[
        Literal["asc", "desc"], QueryParameter(description="Oldest or newest first.")
    ] = "asc",
) -> bodies.DecisionPage:
    """Decisions with their observations, a page at a time.

    `next` is the `start` of the next page; null if this is the last one.
    """

    def read(one: DurableAgent) -> list[_Row]:  # and the first row of the next page
        rows = _newest_first(one, start) if order == "desc" else one.decisions(start or 1)
        return list(islice(rows, limit + 1))

    rows = await agent.read(read)
    records = [bodies.DecisionRecord.of(*row, agent.tag, agent.schema) for row in rows[:limit]]
    return bodies.DecisionPage(records, int(rows[limit][0].id) if len(rows) > limit else None)


def _newest_first(agent: DurableAgent, last: int) -> Iterator[_Row]:
    """Iterate backwards over the decisions up to event `last`; 0 for all."""
    last = min(last or agent.head, agent.head)
    for stop in range(last, 0, -_BATCH):
        yield from reversed([*agent.decisions(max(stop - _BATCH + 1, 1), stop)])


@get(AGENT + "/decisions.csv", responses=READS, media_type="text/csv")
async def decisions_csv(agent: Agent, start: Start = 1) -> Stream:
    """All decisions so far with their observations, as a table for spreadsheets.

    Situations and values that are not text are JSON. Text that a spreadsheet would take for a
    formula begins with an apostrophe.
    """
    rows = await agent.read(lambda one: one.decisions(start))
    records = (bodies.DecisionRecord.of(*row, agent.tag, agent.schema) for row in rows)
    table = chain([_COLUMNS], map(_cells, records))
    return _stream(agent, table, _csv, "decisions.csv", "text/csv; charset=utf-8")


def _csv(rows: Iterable[Sequence[str]]) -> bytes:
    """Encode rows of cells."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _cells(record: bodies.DecisionRecord) -> list[str]:
    """Return the cells of a decision, in the order of `_COLUMNS`."""
    d, answered = record.decision, ("", "", "")
    if record.answered:
        date = _date(record.observed_at or 0.0)
        answered = _cell(record.observation), date, _json(record.is_default)
    return [
        d.id, _date(d.time), _cell(d.action), "" if d.probability is None else repr(d.probability),
        "" if d.situation is None else _json(d.situation), *answered,
        "" if d.session is None else _cell(d.session), _json(d.holdout),
    ]  # fmt: skip


def _date(time: float) -> str:
    """Format seconds since 1970."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _json(plain: object) -> str:
    return msgspec.json.encode(plain).decode()


def _cell(value: object) -> str:
    """Return text itself, unless it looks like a formula, and other values as JSON."""
    if not isinstance(value, str):
        return _json(value)
    return f"'{value}" if value.lstrip().startswith(_FORMULA) else value


@get(
    AGENT + "/log",
    responses=READS,
    media_type=bodies.LINES,
    response_headers=[ResponseHeader("Link", documentation_only=True)],
)
async def log(
    agent: Agent,
    start: Start = 1,
    limit: Annotated[int, QueryParameter(ge=0, le=2**31, description="Most events; 0: all.")] = 0,
) -> Stream:
    """The events of the log so far, each a line of JSON.

    With a `limit`, the header Link has the address of the next page, if there is one.
    """
    head = await agent.ask(lambda one: one.head)
    last = min(start + limit - 1, head) if limit else head
    events = await agent.read(lambda one: one.log(start, last))
    stream = _stream(agent, events, _lines, "log.jsonl", bodies.LINES)
    if last < head:
        name = quote(agent.agent.name, safe="")
        page = f"/v1/agents/{name}/log?start={last + 1}&limit={limit}"
        stream.headers["Link"] = f'<{page}>; rel="next"'
    return stream


def _lines(events: Iterable[Event]) -> bytes:
    """Encode events as lines of JSON."""
    return "".join(f"{to_line(event)}\n" for event in events).encode()


def _stream(
    agent: ServedAgent, items: Iterator[T], encode: Callable[[Iterable[T]], bytes], file: str,
    media_type: str,
) -> Stream:  # fmt: skip
    """Return the answer with the encoded items; a thread reads `_BATCH` of them at a time."""

    async def parts() -> AsyncIterator[bytes]:
        while part := await agent.read(lambda _: encode(islice(items, _BATCH))):
            yield part

    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    return Stream(parts(), media_type=media_type, headers=headers)
