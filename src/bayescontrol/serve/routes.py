"""The paths of the server, each one verb of the durable agent.

POST /v1/agents                          create        GET /v1/agents/{name}/posterior
GET  /v1/agents                          list          GET /v1/agents/{name}/probabilities
POST /v1/agents/{name}/act               act           GET /v1/agents/{name}/decisions/{id}
POST /v1/agents/{name}/observe           observe       GET /v1/agents/{name}/log
"""

import logging
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Annotated, Final

import msgspec
from litestar import HttpMethod, Response, get, post, route
from litestar.datastructures import ResponseHeader
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import HeaderParameter, JSONBody, PathParameter, QueryParameter
from litestar.response import Stream

from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.events import Event, to_line
from bayescontrol.durable.plain import as_plain
from bayescontrol.errors import BadSituation, StoreFailed
from bayescontrol.serve import frames
from bayescontrol.serve.desk import Desk
from bayescontrol.serve.metrics import Metrics
from bayescontrol.serve.page import headers, page
from bayescontrol.serve.problems import MEDIA_TYPE, Problem, Refused
from bayescontrol.serve.schemas import (
    LINES,
    AgentInfo,
    AgentList,
    Answer,
    DecisionInfo,
    ExplanationInfo,
    Learnt,
    NewAgent,
    Posterior,
    Probabilities,
    Question,
    Readiness,
    Status,
    law_of,
    value_of,
)
from bayescontrol.serve.service import Service

_logger = logging.getLogger("bayescontrol.serve")
_PORTION: Final = 500

Name = Annotated[str, PathParameter(description="The agent's name.", min_length=1)]
Id = Annotated[str, PathParameter(description="What act gave as id.", min_length=1)]
Key = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description="A name for this question: asked again under it, the answer is the same.",
        pattern=r"^[!-~]{1,200}\Z",
    ),
]


def _may(*statuses: int) -> dict[int, ResponseSpec]:
    """The problems that a path may answer with; those of every path come first."""
    return {
        status: ResponseSpec(
            Problem, media_type=MEDIA_TYPE, generate_examples=False, description="A problem."
        )
        for status in (401, 403, 408, 414, 421, 429, 431, 500, 503, *statuses)
    }


_WRITES: Final = (400, 404, 409, 413, 415, 422, 507)


@get("/v1/agents", operation_id="list", responses=_may(), tags=["agents"])
async def list_(service: NamedDependency[Service]) -> AgentList:
    """The names of all agents in the store."""
    return AgentList(await service.house.names())


@post(
    "/v1/agents",
    operation_id="create",
    responses=_may(400, 409, 413, 415, 422, 507)
    | {200: ResponseSpec(AgentInfo, generate_examples=False, description="It was there.")},
    response_headers=[ResponseHeader("Location", documentation_only=True)],
    tags=["agents"],
)
async def create(
    service: NamedDependency[Service], data: JSONBody[NewAgent]
) -> Response[AgentInfo]:
    """Make an agent; the same again is the same agent."""
    desk, new = await service.house.create(data.name, data.model, data.settings, data.seed)
    heads = {"Location": f"/v1/agents/{data.name}"}
    return Response(await _info(desk), status_code=201 if new else 200, headers=heads)


@get("/v1/agents/{name:str}", operation_id="info", responses=_may(400, 404, 409), tags=["agents"])
async def info(service: NamedDependency[Service], name: Name) -> AgentInfo:
    """Its model and settings, and how much has happened."""
    return await _info(await service.house.desk(name))


async def _info(desk: Desk) -> AgentInfo:
    def told(agent: DurableAgent) -> AgentInfo:
        decided, observed = frames.counts(agent)
        about = agent.created
        settings = {k: as_plain(v, "a setting") for k, v in about.settings.items()}
        when = "any time" if agent.accepts_late_feedback else "in turn"
        head = 1 + decided + observed
        return AgentInfo(
            agent.name, about.model, about.version, settings, when, head, decided, observed
        )

    found: AgentInfo = await desk.read(told)
    return found


@post(
    "/v1/agents/{name:str}/act",
    status_code=200,
    operation_id="act",
    responses=_may(*_WRITES),
    tags=["agents"],
)
async def act(
    service: NamedDependency[Service],
    name: Name,
    data: JSONBody[Question | None] = None,
    key: Key = None,
) -> DecisionInfo:
    """What to do: drawn, and on disk before it is answered."""
    desk = await service.house.desk(name)
    x = None if data is None else value_of(data.situation, "the situation", BadSituation)
    return DecisionInfo.of(await desk.act(x, key))


@post(
    "/v1/agents/{name:str}/observe",
    status_code=200,
    operation_id="observe",
    responses=_may(*_WRITES),
    tags=["agents"],
)
async def observe(service: NamedDependency[Service], name: Name, data: JSONBody[Answer]) -> Learnt:
    """What came of a decision: learnt, and on disk before it is answered. Once is enough."""
    desk = await service.house.desk(name)
    return Learnt(await desk.observe(data.id, value_of(data.observation, "the observation")))


@get(
    "/v1/agents/{name:str}/decisions/{decision:str}",
    operation_id="explain",
    responses=_may(400, 404, 409, 422),
    tags=["agents"],
)
async def explain(service: NamedDependency[Service], name: Name, decision: Id) -> ExplanationInfo:
    """Why a decision was taken: drawn again from the log."""
    desk = await service.house.desk(name)
    return ExplanationInfo.of(await desk.explain(decision))


@get(
    "/v1/agents/{name:str}/posterior",
    operation_id="posterior",
    responses=_may(400, 404, 409),
    tags=["agents"],
)
async def posterior(service: NamedDependency[Service], name: Name) -> Posterior:
    """What is believed now, by arm or mode, and the event that the belief has got to."""

    def told(agent: DurableAgent) -> Posterior:
        return agent.ask(lambda _: Posterior(agent.head, agent.posterior()))

    desk = await service.house.desk(name)
    return await desk.read(told)


@get(
    "/v1/agents/{name:str}/probabilities",
    operation_id="probabilities",
    responses=_may(400, 404, 409, 422),
    tags=["agents"],
)
async def probabilities(
    service: NamedDependency[Service],
    name: Name,
    situation: Annotated[str | None, QueryParameter(description="As JSON.", examples=[])] = None,
) -> Probabilities:
    """P(a | past) of every action, if it were to act now."""
    desk = await service.house.desk(name)
    try:
        plain = None if situation is None else msgspec.json.decode(situation)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Refused("bad-request", f"situation is not JSON: {error}") from None
    x = value_of(plain, "the situation", BadSituation)
    law = await desk.probabilities(x)
    return Probabilities(None if law is None else law_of(law))


@get(
    "/v1/agents/{name:str}/log",
    operation_id="log",
    responses=_may(400, 404, 409),
    media_type=LINES,
    tags=["agents"],
)
async def log(
    service: NamedDependency[Service],
    name: Name,
    start: Annotated[int, QueryParameter(ge=1, le=2**53, description="The first event.")] = 1,
) -> Stream:
    """The events of the log, one line of JSON each, up to the head of now."""
    desk = await service.house.desk(name)
    events = await desk.read(lambda agent: agent.log(start))
    heads = {"Content-Disposition": 'attachment; filename="log.jsonl"'}
    return Stream(_lines(desk, events), media_type=LINES, headers=heads)


async def _lines(desk: Desk, events: Iterator[Event]) -> AsyncIterator[bytes]:
    def portion(_: DurableAgent) -> bytes:
        return "".join(f"{to_line(event)}\n" for event in islice(events, _PORTION)).encode()

    while lines := await desk.read(portion):
        yield lines


@get("/v1/health/live", operation_id="live", tags=["server"], responses=_may())
async def live() -> Status:
    """The server answers."""
    return Status("ok")


@get("/v1/health/ready", operation_id="ready", tags=["server"], responses=_may())
async def ready(service: NamedDependency[Service]) -> Readiness:
    """The agents are open, but for those it names; the store answers and takes writes."""
    if not service.ready:
        kind = "shutting-down" if service.closing else "not-ready"
        raise Refused(kind, "not ready", {"Retry-After": "1"})
    try:
        await service.house.check()
    except StoreFailed as error:
        _logger.warning("the store does not answer: %s", error)
        raise Refused("store-failed", "the store does not answer") from error
    failed = service.failed
    # Nobody needs a token here: where one is needed elsewhere, names are not given away.
    return Readiness("ok", len(failed), [] if service.secured else failed)


@get("/v1/metrics", operation_id="metrics", tags=["server"], responses=_may())
async def metrics(service: NamedDependency[Service]) -> Response[str]:
    """Counters and histograms, as Prometheus reads them."""
    return Response(service.metrics.text(), media_type=Metrics.MEDIA_TYPE)


@get("/events", include_in_schema=False)
async def events(service: NamedDependency[Service]) -> Stream:
    """What the live page listens to."""
    heads = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = service.monitor.listen(service.house.desks)
    return Stream(stream, media_type="text/event-stream", headers=heads)


@get("/", include_in_schema=False)
async def index() -> Response[str]:
    """The live page."""
    heads = headers()
    media = heads.pop("Content-Type").partition(";")[0]  # Litestar adds the character set
    return Response(page(), media_type=media, headers=heads)


@route("/v1/agents", http_method=HttpMethod.OPTIONS, status_code=204, include_in_schema=False)
async def methods() -> Response[None]:
    """What Litestar would say by itself for a path with two handlers names only the first."""
    return Response(None, headers={"Allow": "GET, OPTIONS, POST"})


ROUTES: Final = (
    methods,
    list_, create, info, act, observe, explain, posterior, probabilities, log, live, ready, metrics,
)  # fmt: skip
PAGES: Final = (index, events)
