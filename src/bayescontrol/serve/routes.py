"""The routes of the server; each calls one method of a durable agent.

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
from bayescontrol.serve.metrics import Metrics
from bayescontrol.serve.monitor import event_counts
from bayescontrol.serve.page import headers as page_headers
from bayescontrol.serve.page import page
from bayescontrol.serve.problems import MEDIA_TYPE, Problem, Refused
from bayescontrol.serve.registry import Service
from bayescontrol.serve.request_queue import RequestQueue
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
    probability_list,
    value_of,
)

_logger = logging.getLogger("bayescontrol.serve")
#: Events of a log that are read at once.
_PORTION: Final = 500

Name = Annotated[str, PathParameter(description="The agent's name.", min_length=1)]
Id = Annotated[str, PathParameter(description="The id that act returned.", min_length=1)]
Key = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description="A name for this request: repeated with it, the decision is the same.",
        pattern=r"^[!-~]{1,200}\Z",
    ),
]


def _problems(*statuses: int) -> dict[int, ResponseSpec]:
    """Describe the problems of a route; those of every route come first."""
    return {
        status: ResponseSpec(
            Problem, media_type=MEDIA_TYPE, generate_examples=False, description="A problem."
        )
        for status in (401, 403, 408, 414, 421, 429, 431, 500, 503, *statuses)
    }


_WRITES: Final = (400, 404, 409, 413, 415, 422, 507)


@get("/v1/agents", operation_id="list", responses=_problems(), tags=["agents"])
async def list_(service: NamedDependency[Service]) -> AgentList:
    """The names of all agents in the store."""
    return AgentList(await service.registry.names())


@post(
    "/v1/agents",
    operation_id="create",
    responses=_problems(400, 409, 413, 415, 422, 507)
    | {200: ResponseSpec(AgentInfo, generate_examples=False, description="It existed.")},
    response_headers=[ResponseHeader("Location", documentation_only=True)],
    tags=["agents"],
)
async def create(
    service: NamedDependency[Service], data: JSONBody[NewAgent]
) -> Response[AgentInfo]:
    """Create an agent. Repeating the request returns the same agent."""
    queue, new = await service.registry.create(data.name, data.model, data.settings, data.seed)
    headers = {"Location": f"/v1/agents/{data.name}"}
    return Response(await _info(queue), status_code=201 if new else 200, headers=headers)


@get(
    "/v1/agents/{name:str}",
    operation_id="info",
    responses=_problems(400, 404, 409),
    tags=["agents"],
)
async def info(service: NamedDependency[Service], name: Name) -> AgentInfo:
    """The model and settings of an agent, and the size of its log."""
    return await _info(await service.registry.queue(name))


async def _info(queue: RequestQueue) -> AgentInfo:
    def read(agent: DurableAgent) -> AgentInfo:
        decisions, observations = event_counts(agent)
        created = agent.created
        settings = {k: as_plain(v, "a setting") for k, v in created.settings.items()}
        feedback = "any time" if agent.accepts_late_feedback else "in turn"
        head = 1 + decisions + observations
        return AgentInfo(
            agent.name, created.model, created.version, settings, feedback,
            head, decisions, observations,
        )  # fmt: skip

    return await queue.read(read)


@post(
    "/v1/agents/{name:str}/act",
    status_code=200,
    operation_id="act",
    responses=_problems(*_WRITES),
    tags=["agents"],
)
async def act(
    service: NamedDependency[Service],
    name: Name,
    data: JSONBody[Question | None] = None,
    key: Key = None,
) -> DecisionInfo:
    """Draw the next action. The decision is on disk before the answer is sent."""
    queue = await service.registry.queue(name)
    x = None if data is None else value_of(data.situation, "the situation", BadSituation)
    return DecisionInfo.of(await queue.act(x, key))


@post(
    "/v1/agents/{name:str}/observe",
    status_code=200,
    operation_id="observe",
    responses=_problems(*_WRITES),
    tags=["agents"],
)
async def observe(service: NamedDependency[Service], name: Name, data: JSONBody[Answer]) -> Learnt:
    """Learn the observation of a decision. It is on disk before the answer is sent; idempotent."""
    queue = await service.registry.queue(name)
    return Learnt(await queue.observe(data.id, value_of(data.observation, "the observation")))


@get(
    "/v1/agents/{name:str}/decisions/{decision:str}",
    operation_id="explain",
    responses=_problems(400, 404, 409, 422),
    tags=["agents"],
)
async def explain(service: NamedDependency[Service], name: Name, decision: Id) -> ExplanationInfo:
    """Explain a decision: the posterior and the mode drawn, reproduced from the log."""
    queue = await service.registry.queue(name)
    return ExplanationInfo.of(await queue.explain(decision))


@get(
    "/v1/agents/{name:str}/posterior",
    operation_id="posterior",
    responses=_problems(400, 404, 409),
    tags=["agents"],
)
async def posterior(service: NamedDependency[Service], name: Name) -> Posterior:
    """The current posterior, by arm or mode, and the last event that it includes."""

    def read(agent: DurableAgent) -> Posterior:
        return agent.ask(lambda _: Posterior(agent.head, agent.posterior()))

    queue = await service.registry.queue(name)
    return await queue.read(read)


@get(
    "/v1/agents/{name:str}/probabilities",
    operation_id="probabilities",
    responses=_problems(400, 404, 409, 422),
    tags=["agents"],
)
async def probabilities(
    service: NamedDependency[Service],
    name: Name,
    situation: Annotated[str | None, QueryParameter(description="As JSON.", examples=[])] = None,
) -> Probabilities:
    """P(a | past) of every action, if the agent acted now."""
    queue = await service.registry.queue(name)
    try:
        plain = None if situation is None else msgspec.json.decode(situation)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Refused("bad-request", f"situation is not JSON: {error}") from None
    x = value_of(plain, "the situation", BadSituation)
    found = await queue.probabilities(x)
    return Probabilities(None if found is None else probability_list(found))


@get(
    "/v1/agents/{name:str}/log",
    operation_id="log",
    responses=_problems(400, 404, 409),
    media_type=LINES,
    tags=["agents"],
)
async def log(
    service: NamedDependency[Service],
    name: Name,
    start: Annotated[int, QueryParameter(ge=1, le=2**53, description="The first event.")] = 1,
) -> Stream:
    """The events of the log so far, each a line of JSON."""
    queue = await service.registry.queue(name)
    events = await queue.read(lambda agent: agent.log(start))
    headers = {"Content-Disposition": 'attachment; filename="log.jsonl"'}
    return Stream(_lines(queue, events), media_type=LINES, headers=headers)


async def _lines(queue: RequestQueue, events: Iterator[Event]) -> AsyncIterator[bytes]:
    def portion(_: DurableAgent) -> bytes:
        return "".join(f"{to_line(event)}\n" for event in islice(events, _PORTION)).encode()

    while lines := await queue.read(portion):
        yield lines


@get("/v1/health/live", operation_id="live", tags=["server"], responses=_problems())
async def live() -> Status:
    """Whether the server answers at all."""
    return Status("ok")


@get("/v1/health/ready", operation_id="ready", tags=["server"], responses=_problems())
async def ready(service: NamedDependency[Service]) -> Readiness:
    """Whether all agents have been opened, and the store answers and accepts writes."""
    if not service.ready:
        kind = "shutting-down" if service.closing else "not-ready"
        raise Refused(kind, "the server is not ready", {"Retry-After": "1"})
    try:
        await service.registry.check()
    except StoreFailed as error:
        _logger.warning("the store does not answer: %s", error)
        raise Refused("store-failed", "the store does not answer") from error
    failed = service.failed
    # This route needs no token. If others do, it must not reveal names.
    return Readiness("ok", len(failed), [] if service.needs_token else failed)


@get("/v1/metrics", operation_id="metrics", tags=["server"], responses=_problems())
async def metrics(service: NamedDependency[Service]) -> Response[str]:
    """Counters, histograms and gauges in the text format of Prometheus."""
    return Response(service.metrics.text(), media_type=Metrics.MEDIA_TYPE)


@get("/events", include_in_schema=False)
async def events(service: NamedDependency[Service]) -> Stream:
    """The event stream of the live page."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = service.monitor.listen(service.registry.queues)
    return Stream(stream, media_type="text/event-stream", headers=headers)


@get("/", include_in_schema=False)
async def index() -> Response[str]:
    """The live page."""
    headers = page_headers()
    media = headers.pop("Content-Type").partition(";")[0]  # Litestar adds the character set
    return Response(page(), media_type=media, headers=headers)


@route("/v1/agents", http_method=HttpMethod.OPTIONS, status_code=204, include_in_schema=False)
async def methods() -> Response[None]:
    """Name all methods; Litestar names only one for a path with two handlers."""
    return Response(None, headers={"Allow": "GET, OPTIONS, POST"})


ROUTES: Final = (
    methods,
    list_, create, info, act, observe, explain, posterior, probabilities, log, live, ready, metrics,
)  # fmt: skip
PAGES: Final = (index, events)
