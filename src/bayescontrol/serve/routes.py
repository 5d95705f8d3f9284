"""The routes of the server; each calls one method of a durable agent.

POST /v1/agents                          create        GET /v1/agents/{name}/posterior
GET  /v1/agents                          list          GET /v1/agents/{name}/probabilities
POST /v1/agents/{name}/act               act           GET /v1/agents/{name}/decisions/{id}
POST /v1/agents/{name}/observe           observe       GET /v1/agents/{name}/log
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Annotated, Final

import msgspec
from litestar import HttpMethod, Response, get, post, route
from litestar.datastructures import ResponseHeader
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import HeaderParameter, JSONBody, PathParameter, QueryParameter
from litestar.response import Stream as StreamedResponse

from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.events import Event, to_line
from bayescontrol.durable.plain import as_plain
from bayescontrol.errors import BadEvidence, BadSituation, BayesControlError, StoreFailed
from bayescontrol.serve import schemas
from bayescontrol.serve.metrics import Metrics
from bayescontrol.serve.middleware import LARGE
from bayescontrol.serve.monitor import observation_count, split_events
from bayescontrol.serve.page import headers as page_headers
from bayescontrol.serve.page import page
from bayescontrol.serve.problems import MEDIA_TYPE, Problem, Refused
from bayescontrol.serve.registry import AgentRegistry
from bayescontrol.serve.request_queue import RequestQueue

#: Events of a log that are read and sent at once.
_BATCH: Final = 500

Registry = NamedDependency[AgentRegistry]
Name = Annotated[str, PathParameter(description="The agent's name.", min_length=1)]
Id = Annotated[str, PathParameter(description="The id that act returned.", min_length=1)]
Key = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description="A name for this request: a repeated request returns the same decision.",
        pattern=r"^[!-~]{1,200}\Z",
    ),
]


def _problems(*statuses: int) -> dict[int, ResponseSpec]:
    """Describe the problems of a route: those that every route may have, and these statuses."""
    return {
        status: ResponseSpec(
            Problem, media_type=MEDIA_TYPE, generate_examples=False, description="A problem."
        )
        for status in (401, 403, 408, 414, 421, 429, 431, 500, 503, *statuses)
    }


_AGENT: Final = "/v1/agents/{name:str}"
# The problems of routes that need no agent, that read an agent, also with a query, or that write.
_SERVER: Final = _problems()
_READS: Final = _problems(400, 404, 409)
_QUERIES: Final = _problems(400, 404, 409, 422)
_WRITES: Final = _problems(400, 404, 409, 413, 415, 422, 507)


@get("/v1/agents", operation_id="list", responses=_SERVER)
async def list_(registry: Registry) -> schemas.AgentList:
    """The names of all agents in the store."""
    return schemas.AgentList(await registry.names())


@post(
    "/v1/agents",
    responses=_problems(400, 409, 413, 415, 422, 507)
    | {200: ResponseSpec(schemas.AgentInfo, generate_examples=False, description="It existed.")},
    response_headers=[ResponseHeader("Location", documentation_only=True)],
)
async def create(
    registry: Registry, data: JSONBody[schemas.NewAgent]
) -> Response[schemas.AgentInfo]:
    """Create an agent. Repeating the request returns the same agent."""
    queue, new = await registry.create(data.name, data.model, data.settings, data.seed)
    headers = {"Location": f"/v1/agents/{data.name}"}
    return Response(await _info(queue), status_code=201 if new else 200, headers=headers)


@get(_AGENT, responses=_READS)
async def info(registry: Registry, name: Name) -> schemas.AgentInfo:
    """The model and settings of an agent, and the size of its log."""
    return await _info(await registry.queue(name))


async def _info(queue: RequestQueue) -> schemas.AgentInfo:
    def read(agent: DurableAgent) -> schemas.AgentInfo:
        head, count = agent.ask(lambda rule: (agent.head, observation_count(rule)))
        decisions, observations = split_events(agent, head, count)
        created = agent.created
        settings = {k: as_plain(v, "a setting") for k, v in created.settings.items()}
        feedback = "any time" if agent.accepts_late_feedback else "in turn"
        return schemas.AgentInfo(
            agent.name, created.model, created.version, settings, feedback,
            head, decisions, observations,
        )  # fmt: skip

    return await queue.read(read)


@post(_AGENT + "/act", status_code=200, responses=_WRITES)
async def act(
    registry: Registry, name: Name, data: JSONBody[schemas.Question | None] = None, key: Key = None
) -> schemas.DecisionInfo:
    """Draw the next action. The decision is on disk before the answer is sent."""
    queue = await registry.queue(name)
    x = None if data is None else await _value(data.situation, "the situation", BadSituation)
    return schemas.DecisionInfo.of(await queue.act(x, key))


@post(_AGENT + "/observe", status_code=200, responses=_WRITES)
async def observe(
    registry: Registry, name: Name, data: JSONBody[schemas.Answer]
) -> schemas.Learned:
    """Learn the observation of a decision. It is on disk before the answer is sent; idempotent."""
    queue = await registry.queue(name)
    o = await _value(data.observation, "the observation", BadEvidence)
    return schemas.Learned(await queue.observe(data.id, o))


async def _value(plain: object, what: str, error: type[BayesControlError]) -> object:
    """Decode a value of a request; in a thread if it is large, so that other requests go on."""
    if type(plain) in (list, dict) and len(msgspec.json.encode(plain)) > LARGE:
        return await asyncio.to_thread(schemas.value_of, plain, what, error)
    return schemas.value_of(plain, what, error)


@get(_AGENT + "/decisions/{decision:str}", responses=_QUERIES)
async def explain(registry: Registry, name: Name, decision: Id) -> schemas.ExplanationInfo:
    """Explain a decision: the posterior and the mode drawn, reproduced from the log."""
    queue = await registry.queue(name)
    return schemas.ExplanationInfo.of(await queue.explain(decision))


@get(_AGENT + "/posterior", responses=_READS)
async def posterior(registry: Registry, name: Name) -> schemas.Posterior:
    """The current posterior, by arm or mode, and the last event that it includes."""

    def read(agent: DurableAgent) -> schemas.Posterior:
        return agent.ask(lambda _: schemas.Posterior(agent.head, agent.posterior()))

    queue = await registry.queue(name)
    return await queue.read(read)


@get(_AGENT + "/probabilities", responses=_QUERIES)
async def probabilities(
    registry: Registry,
    name: Name,
    situation: Annotated[str | None, QueryParameter(description="As JSON.", examples=[])] = None,
) -> schemas.Probabilities:
    """P(a | past) of every action, if the agent acted now."""
    queue = await registry.queue(name)
    try:
        plain = None if situation is None else msgspec.json.decode(situation)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Refused("bad-request", f"situation is not JSON: {error}") from None
    x = await _value(plain, "the situation", BadSituation)
    found = await queue.probabilities(x)
    return schemas.Probabilities(None if found is None else schemas.probability_list(found))


@get(_AGENT + "/log", responses=_READS, media_type=schemas.LINES)
async def log(
    registry: Registry,
    name: Name,
    start: Annotated[int, QueryParameter(ge=1, le=2**53, description="The first event.")] = 1,
) -> StreamedResponse:
    """The events of the log so far, each a line of JSON."""
    queue = await registry.queue(name)
    events = await queue.read(lambda agent: agent.log(start))
    headers = {"Content-Disposition": 'attachment; filename="log.jsonl"'}
    return StreamedResponse(_lines(queue, events), media_type=schemas.LINES, headers=headers)


async def _lines(queue: RequestQueue, events: Iterator[Event]) -> AsyncIterator[bytes]:
    def next_lines(_: DurableAgent) -> bytes:
        return "".join(f"{to_line(event)}\n" for event in islice(events, _BATCH)).encode()

    while lines := await queue.read(next_lines):
        yield lines


@get("/v1/health/live", responses=_SERVER)
async def live() -> schemas.Status:
    """Whether the server answers at all."""
    return schemas.Status("ok")


@get("/v1/health/ready", responses=_SERVER)
async def ready(registry: Registry) -> schemas.Readiness:
    """Whether all agents have been opened, and the store answers and accepts writes."""
    if not registry.ready:
        kind = "shutting-down" if registry.closing else "not-ready"
        raise Refused(kind, "the server is not ready")
    try:
        await registry.check()
    except StoreFailed as error:  # a load balancer expects 503, whatever the cause
        raise StoreFailed(str(error)) from error
    failed = registry.failed
    # This route needs no token. If others do, it must not reveal names.
    return schemas.Readiness("ok", len(failed), [] if registry.needs_token else failed)


@get("/v1/metrics", responses=_SERVER)
async def metrics(registry: Registry) -> Response[str]:
    """Counters, histograms and gauges in the text format of Prometheus."""
    return Response(registry.metrics.text(), media_type=Metrics.MEDIA_TYPE)


@get("/events", include_in_schema=False)
async def events(registry: Registry) -> StreamedResponse:
    """The event stream of the live page."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = registry.monitor.listen(registry.queues)
    return StreamedResponse(stream, media_type="text/event-stream", headers=headers)


@get("/", include_in_schema=False)
async def index() -> Response[str]:
    """The live page."""
    return Response(page(), media_type="text/html", headers=page_headers())


@route("/v1/agents", http_method=HttpMethod.OPTIONS, status_code=204, include_in_schema=False)
async def methods() -> Response[None]:
    """Name all methods; Litestar names only one for a path with two handlers."""
    return Response(None, headers={"Allow": "GET, OPTIONS, POST"})


ROUTES: Final = (
    methods,
    list_, create, info, act, observe, explain, posterior, probabilities, log, live, ready, metrics,
)  # fmt: skip
PAGES: Final = (index, events)
