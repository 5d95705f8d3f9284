"""Routes that read the past of an agent: its decisions page by page or as CSV, and its log."""

import csv
import io
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, Final, Literal

import msgspec
from litestar import get
from litestar.datastructures import ResponseHeader
from litestar.params import QueryParameter
from litestar.response import Stream

from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.decisions import Answer
from bayescontrol.durable.events import Decision, Event, to_line
from bayescontrol.durable.plain import as_plain
from bayescontrol.serve import bodies
from bayescontrol.serve.agents import ServedAgent
from bayescontrol.serve.routes.parameters import AGENT, READS, Agents, Name, Start
from bayescontrol.serve.values import encode_id, plain_situation

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
    agents: Agents,
    name: Name,
    start: Annotated[
        int, QueryParameter(ge=0, le=2**53, description="The `next` of a page; 0: the first page.")
    ] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=1000, description="Most decisions.")] = 100,
    order: Annotated[
        Literal["asc", "desc"], QueryParameter(description="Oldest or newest first.")
    ] = "asc",
) -> bodies.DecisionPage:
    """Decisions with their observations, a page at a time.

    `next` is the `start` of the next page; null if this is the last one.
    """
    agent = await agents.get(name)
    rows, following = await agent.read(lambda one: _page(one, start, limit, order == "desc"))
    records = [bodies.DecisionRecord.of(*row, agent.tag, agent.schema) for row in rows]
    return bodies.DecisionPage(records, following)


def _page(
    agent: DurableAgent, start: int, limit: int, newest_first: bool
) -> tuple[list[_Row], int | None]:
    """Return decisions from event `start` on, and where the next page starts."""
    head, step = agent.ask(lambda _: agent.head), 2 * limit
    rows: list[_Row] = []
    if newest_first:
        last = min(start or head, head)
        while last >= 1 and len(rows) < limit:
            rows += [*agent.decisions(max(last - step + 1, 1), last)][::-1][: limit - len(rows)]
            last -= step
        oldest = int(rows[-1][0].id) if rows else 1
        return rows, oldest - 1 if len(rows) == limit and oldest > 2 else None
    first = start or 1
    while first <= head and len(rows) < limit:
        last = min(first + step - 1, head)
        rows += islice(agent.decisions(first, last), limit - len(rows))
        first = last + 1
    newest = int(rows[-1][0].id) if rows else head
    return rows, newest + 1 if len(rows) == limit and newest < head else None


@get(AGENT + "/decisions.csv", responses=READS, media_type="text/csv")
async def decisions_csv(agents: Agents, name: Name, start: Start = 1) -> Stream:
    """All decisions so far with their observations, as a table for spreadsheets.

    Situations and values that are not text are JSON. Text that a spreadsheet would take for a
    formula begins with an apostrophe.
    """
    agent = await agents.get(name)
    rows = await agent.read(lambda one: one.decisions(start))
    headers = {"Content-Disposition": 'attachment; filename="decisions.csv"'}
    return Stream(_table(agent, rows), media_type="text/csv; charset=utf-8", headers=headers)


async def _table(agent: ServedAgent, rows: Iterator[_Row]) -> AsyncIterator[bytes]:
    """Yield the table; a thread reads `_BATCH` of its rows at a time."""
    yield _csv([_COLUMNS])
    while lines := await agent.read(
        lambda _: _csv([_cells(*row, agent) for row in islice(rows, _BATCH)])
    ):
        yield lines


def _csv(rows: Any) -> bytes:
    """Encode rows of cells."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _cells(decision: Decision, answer: Answer | None, agent: ServedAgent) -> list[str]:
    """Return the cells of a decision, in the order of `_COLUMNS`."""
    p, x, answered = decision.probability, decision.situation, ("", "", "")
    if answer is not None:
        answered = _cell(answer.o), _date(answer.last.time), _json(answer.is_default)
    return [
        encode_id(agent.tag, decision.id), _date(decision.time), _cell(decision.action),
        "" if p is None else repr(p), "" if x is None else _json(plain_situation(x, agent.schema)),
        *answered, "" if decision.session is None else _cell(decision.session),
        _json(decision.holdout),
    ]  # fmt: skip


def _date(time: float) -> str:
    """Format seconds since 1970."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _json(plain: Any) -> str:
    return msgspec.json.encode(plain).decode()


def _cell(value: Any) -> str:
    """Return text itself, unless it looks like a formula, and other values as JSON."""
    if not isinstance(value, str):
        return _json(as_plain(value, "a value"))
    return f"'{value}" if value.lstrip().startswith(_FORMULA) else value


@get(
    AGENT + "/log",
    responses=READS,
    media_type=bodies.LINES,
    response_headers=[ResponseHeader("Link", documentation_only=True)],
)
async def log(
    agents: Agents,
    name: Name,
    start: Start = 1,
    limit: Annotated[int, QueryParameter(ge=0, le=2**31, description="Most events; 0: all.")] = 0,
) -> Stream:
    """The events of the log so far, each a line of JSON.

    With a `limit`, the header Link has the address of the next page, if there is one.
    """
    agent = await agents.get(name)
    head = await agent.read(lambda one: one.ask(lambda _: one.head))
    last = min(start + limit - 1, head) if limit else head
    headers = {"Content-Disposition": 'attachment; filename="log.jsonl"'}
    if last < head:
        headers["Link"] = (
            f'</v1/agents/{agent.agent.name}/log?start={last + 1}&limit={limit}>; rel="next"'
        )
    events = await agent.read(lambda one: one.log(start, last))
    return Stream(_lines(agent, events), media_type=bodies.LINES, headers=headers)


async def _lines(agent: ServedAgent, events: Iterator[Event]) -> AsyncIterator[bytes]:
    """Yield the events as lines of JSON; a thread reads `_BATCH` of them at a time."""

    def next_lines(_: DurableAgent) -> bytes:
        return "".join(f"{to_line(event)}\n" for event in islice(events, _BATCH)).encode()

    while lines := await agent.read(next_lines):
        yield lines
