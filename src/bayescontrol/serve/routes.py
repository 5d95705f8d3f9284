"""The routes of the server; each calls one method of a durable agent.

POST /v1/agents                          create        GET /v1/agents/{name}/posterior
GET  /v1/agents                          list          GET /v1/agents/{name}/probabilities
POST /v1/agents/{name}/act               act           GET /v1/agents/{name}/decisions/{id}
POST /v1/agents/{name}/observe           observe       GET /v1/agents/{name}/log
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, MutableMapping
from itertools import islice
from typing import Annotated, Any, Final

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
from bayescontrol.serve import bodies
from bayescontrol.serve.agents import ServedAgent, ServedAgents
from bayescontrol.serve.backups import BACKUP_ROUTES
from bayescontrol.serve.http_errors import ERROR_KINDS, MEDIA_TYPE, ProblemDetails, Refused
from bayescontrol.serve.middleware import LARGE
from bayescontrol.serve.monitor import Metrics, observation_count, split_events
from bayescontrol.serve.page import headers as page_headers
from bayescontrol.serve.page import page

#: Events of a log that are read and sent at once.
_BATCH: Final = 500

#: A key that a header can hold.
_KEY: Final = r"^[!-~]{1,200}\Z"

Agents = NamedDependency[ServedAgents]
Name = Annotated[str, PathParameter(description="The agent's name.", min_length=1)]
Id = Annotated[str, PathParameter(description="The id that act returned.", min_length=1)]
Key = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        description="A name for this request: a repeated request returns the same decision.",
        pattern=_KEY,
    ),
]


def _errors(*statuses: int) -> dict[int, ResponseSpec]:
    """Describe the errors of a route: those that every route may have, and these statuses."""
    described = dict[int, ResponseSpec]()
    for status in (401, 403, 405, 408, 414, 421, 429, 431, 500, 503, *statuses):
        kinds = [(name, kind) for name, kind in ERROR_KINDS.items() if kind.status == status]
        text = "\n".join(f"- `{name}`: {kind.title}. {kind.next}" for name, kind in kinds)
        described[status] = ResponseSpec(
            ProblemDetails, media_type=MEDIA_TYPE, generate_examples=False, description=text
        )
    return described


_AGENT: Final = "/v1/agents/{name:str}"
# The errors of routes that need no agent, that read an agent, also with a query, or that write.
_SERVER: Final = _errors()
_READS: Final = _errors(400, 404, 409)
_QUERIES: Final = _errors(400, 404, 409, 422)
_WRITES: Final = _errors(400, 404, 409, 413, 415, 422, 507)


@get("/v1/agents", operation_id="list", responses=_SERVER)
async def list_(agents: Agents) -> bodies.AgentList:
    """The names of all agents in the store."""
    return bodies.AgentList(await agents.names())


@post(
    "/v1/agents",
    responses=_errors(400, 409, 413, 415, 422, 507)
    | {200: ResponseSpec(bodies.AgentInfo, generate_examples=False, description="It existed.")},
    response_headers=[ResponseHeader("Location", documentation_only=True)],
)
async def create(agents: Agents, data: JSONBody[bodies.CreateBody]) -> Response[bodies.AgentInfo]:
    """Create an agent. Repeating the request returns the same agent."""
    agent, new = await agents.create(data.name, data.model, data.settings, data.seed)
    headers = {"Location": f"/v1/agents/{data.name}"}
    about = await agent.read(_agent_info)
    return Response(about, status_code=201 if new else 200, headers=headers)


@get(_AGENT, responses=_READS)
async def info(agents: Agents, name: Name) -> bodies.AgentInfo:
    """The model and settings of an agent, and the size of its log."""
    agent = await agents.get(name)
    return await agent.read(_agent_info)


def _agent_info(agent: DurableAgent) -> bodies.AgentInfo:
    """Describe an agent; all its numbers are at the same event of its log."""
    head, count = agent.ask(lambda rule: (agent.head, observation_count(rule)))
    split, created = split_events(agent, head, count), agent.created
    settings = {k: as_plain(v, "a setting") for k, v in created.settings.items()}
    feedback = "any time" if agent.accepts_late_feedback else "in turn"
    return bodies.AgentInfo(
        agent.name, created.model, created.version, settings, feedback, head, *split
    )


@post(_AGENT + "/act", status_code=200, responses=_WRITES)
async def act(
    agents: Agents, name: Name, data: JSONBody[bodies.ActBody | None] = None, key: Key = None
) -> bodies.DecisionInfo:
    """Draw the next action. The decision is on disk before the answer is sent."""
    agent = await agents.get(name)
    x = None if data is None else await _value(data.situation, "the situation", BadSituation)
    return bodies.DecisionInfo.of(await agent.act(x, key))


@post(_AGENT + "/observe", status_code=200, responses=_WRITES)
async def observe(agents: Agents, name: Name, data: JSONBody[bodies.ObserveBody]) -> bodies.Learned:
    """Learn the observation of a decision. It is on disk before the answer is sent; idempotent."""
    agent = await agents.get(name)
    o = await _value(data.observation, "the observation", BadEvidence)
    return bodies.Learned(await agent.observe(data.id, o))


async def _value(plain: object, what: str, error: type[BayesControlError]) -> object:
    """Decode a value of a request; in a thread if it is large, so that other requests go on."""
    if type(plain) in (list, dict) and len(msgspec.json.encode(plain)) > LARGE:
        return await asyncio.to_thread(bodies.value_of, plain, what, error)
    return bodies.value_of(plain, what, error)


@get(_AGENT + "/decisions/{decision:str}", responses=_QUERIES)
async def explain(agents: Agents, name: Name, decision: Id) -> bodies.ExplanationInfo:
    """Explain a decision: the posterior and the mode drawn, reproduced from the log."""
    agent = await agents.get(name)
    return bodies.ExplanationInfo.of(await agent.explain(decision))


@get(_AGENT + "/posterior", responses=_READS)
async def posterior(agents: Agents, name: Name) -> bodies.Posterior:
    """The current posterior, by arm or mode, and the last event that it includes."""

    def read(agent: DurableAgent) -> bodies.Posterior:
        return agent.ask(lambda _: bodies.Posterior(agent.head, agent.posterior()))

    agent = await agents.get(name)
    return await agent.read(read)


@get(_AGENT + "/probabilities", responses=_QUERIES)
async def probabilities(
    agents: Agents,
    name: Name,
    situation: Annotated[str | None, QueryParameter(description="As JSON.", examples=[])] = None,
) -> bodies.Probabilities:
    """P(a | past) of every action, if the agent acted now."""
    agent = await agents.get(name)
    try:
        plain = None if situation is None else msgspec.json.decode(situation)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise Refused("bad-request", f"situation is not JSON: {error}") from None
    x = await _value(plain, "the situation", BadSituation)
    found = await agent.probabilities(x)
    return bodies.Probabilities(None if found is None else bodies.probability_list(found))


@get(_AGENT + "/log", responses=_READS, media_type=bodies.LINES)
async def log(
    agents: Agents,
    name: Name,
    start: Annotated[int, QueryParameter(ge=1, le=2**53, description="The first event.")] = 1,
) -> StreamedResponse:
    """The events of the log so far, each a line of JSON."""
    agent = await agents.get(name)
    events = await agent.read(lambda agent: agent.log(start))
    headers = {"Content-Disposition": 'attachment; filename="log.jsonl"'}
    return StreamedResponse(_lines(agent, events), media_type=bodies.LINES, headers=headers)


async def _lines(agent: ServedAgent, events: Iterator[Event]) -> AsyncIterator[bytes]:
    """Yield the events as lines of JSON; a thread reads `_BATCH` of them at a time."""

    def next_lines(_: DurableAgent) -> bytes:
        return "".join(f"{to_line(event)}\n" for event in islice(events, _BATCH)).encode()

    while lines := await agent.read(next_lines):
        yield lines


@get("/v1/health/live", responses=_SERVER)
async def live() -> bodies.Status:
    """Whether the server answers at all."""
    return bodies.Status("ok")


@get("/v1/health/ready", responses=_SERVER)
async def ready(agents: Agents) -> bodies.Readiness:
    """Whether all agents have been opened, and the store answers and accepts writes."""
    if not agents.ready:
        kind = "shutting-down" if agents.closing else "not-ready"
        raise Refused(kind, "the server is not ready")
    try:
        await agents.check()
    except StoreFailed as error:  # a load balancer expects 503, whatever the cause
        raise StoreFailed(str(error)) from error
    failed = agents.failed
    # This route needs no token. If others do, it must not reveal names.
    return bodies.Readiness("ok", len(failed), [] if agents.needs_token else failed)


@get("/v1/metrics", responses=_SERVER)
async def metrics(agents: Agents) -> Response[str]:
    """Counters, histograms and gauges in the text format of Prometheus."""
    return Response(agents.metrics.text(), media_type=Metrics.MEDIA_TYPE)


@get("/events", include_in_schema=False)
async def events(agents: Agents) -> StreamedResponse:
    """The event stream of the live page."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = agents.monitor.listen(agents.open)
    return StreamedResponse(stream, media_type="text/event-stream", headers=headers)


@get("/", include_in_schema=False)
async def index() -> Response[str]:
    """The live page."""
    return Response(page(), media_type="text/html", headers=page_headers())


@route("/v1/agents", http_method=HttpMethod.OPTIONS, status_code=204, include_in_schema=False)
async def methods() -> Response[None]:
    """Name all methods; Litestar names only one for a path with two handlers."""
    return Response(None, headers={"Allow": "GET, OPTIONS, POST"})


# -- without Litestar ------------------------------------------------------------------------------

_AGENTS: Final = "/v1/agents/"
#: The routes that need no Litestar: the function, the decoder of the body, and the most colons of a
#: body in which no key can occur twice, because the decoder requires or allows each of them once.
_DIRECT: Final[Mapping[str, tuple[Any, Callable[[bytes], Any], int]]] = {
    "act": (act.fn, msgspec.json.Decoder(bodies.ActBody | None).decode, 1),
    "observe": (observe.fn, msgspec.json.Decoder(bodies.ObserveBody).decode, 2),
}
_KEY_HEADER: Final = b"idempotency-key"


async def answer_directly(
    agents: ServedAgents, scope: MutableMapping[str, Any], body: bytes
) -> bytes | None:
    """Return the body of the answer to a plain act or observe; None for any other request.

    Litestar answers all other requests, and those that are malformed. It finds the route, converts
    the arguments and names what is wrong with them, which takes longer than a decision.
    """
    name, _, what = scope["path"].removeprefix(_AGENTS).partition("/")
    if not name or what not in _DIRECT or scope["method"] != "POST":
        return None
    function, decode, max_colons = _DIRECT[what]
    keys = [value for header, value in scope["headers"] if header == _KEY_HEADER]
    if len(body) > LARGE or body.count(b":") > max_colons or len(keys) > 1:
        return None
    arguments = {}
    if keys and what == "act":
        arguments["key"] = keys[0].decode("latin-1")
        if not re.match(_KEY, arguments["key"]):
            return None
    try:
        data = decode(body or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    scope["path_template"] = f"{_AGENTS}{{name}}/{what}"
    return msgspec.json.encode(await function(agents, name, data, **arguments))


ROUTES: Final = (
    methods,
    list_, create, info, act, observe, explain, posterior, probabilities, log, live, ready, metrics,
    *BACKUP_ROUTES,
)  # fmt: skip
PAGES: Final = (index, events)
