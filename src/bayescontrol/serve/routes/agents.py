"""Routes that create, list and describe agents."""

from typing import Annotated

import msgspec
from litestar import HttpMethod, Response, get, post, route
from litestar.datastructures import ResponseHeader
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody, QueryParameter

from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.plain import as_plain
from bayescontrol.serve import bodies
from bayescontrol.serve.agents import ServedAgent
from bayescontrol.serve.http_errors import Refused
from bayescontrol.serve.monitor import decisions_and_answers
from bayescontrol.serve.routes.decisions import situation_of
from bayescontrol.serve.routes.parameters import AGENT, QUERIES, READS, Agents, Name, errors


@get("/v1/agents", operation_id="list", responses=errors(400))
async def list_(
    agents: Agents,
    limit: Annotated[int, QueryParameter(ge=1, le=1000, description="Most names.")] = 1000,
    after: Annotated[
        str, QueryParameter(description="Only names that come later: the `next` of a page.")
    ] = "",
) -> bodies.AgentList:
    """The names of the agents in the store, sorted."""
    names = [name for name in await agents.names() if name > after]
    return bodies.AgentList(names[:limit], names[limit - 1] if len(names) > limit else None)


@post(
    "/v1/agents",
    responses=errors(400, 409, 413, 415, 422, 507)
    | {200: ResponseSpec(bodies.AgentInfo, generate_examples=False, description="It existed.")},
    response_headers=[ResponseHeader("Location", documentation_only=True)],
)
async def create(agents: Agents, data: JSONBody[bodies.CreateBody]) -> Response[bodies.AgentInfo]:
    """Create an agent. Repeating the request returns the same agent."""
    agent, new = await agents.create(data.name, data.model, data.settings, data.seed)
    headers = {"Location": f"/v1/agents/{data.name}"}
    return Response(await _describe(agent), status_code=201 if new else 200, headers=headers)


@get(AGENT, responses=READS)
async def info(agents: Agents, name: Name) -> bodies.AgentInfo:
    """The model and settings of an agent, and the size of its log."""
    return await _describe(await agents.get(name))


async def _describe(served: ServedAgent) -> bodies.AgentInfo:
    """Describe an agent."""
    schema = None if served.schema is None else served.schema.json_schema()

    def read(agent: DurableAgent) -> bodies.AgentInfo:
        created, head = agent.created, agent.ask(lambda _: agent.head)
        settings = {k: as_plain(v, "a setting") for k, v in created.settings.items()}
        feedback = "any time" if agent.accepts_late_feedback else "in turn"
        return bodies.AgentInfo(
            agent.name, created.model, created.version, settings, feedback, head,
            *decisions_and_answers(agent), schema,
        )  # fmt: skip

    return await served.read(read)


@get(AGENT + "/posterior", responses=READS)
async def posterior(agents: Agents, name: Name) -> bodies.Posterior:
    """The current posterior, by arm or mode, and the last event that it includes."""

    def read(agent: DurableAgent) -> bodies.Posterior:
        return agent.ask(lambda _: bodies.Posterior(agent.head, agent.posterior()))

    agent = await agents.get(name)
    return await agent.read(read)


@get(AGENT + "/probabilities", responses=QUERIES)
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
    found = await agent.probabilities(await situation_of(agent, plain))
    return bodies.Probabilities(None if found is None else bodies.probability_list(found))


@route(["/v1/agents", AGENT + "/arms"], http_method=HttpMethod.OPTIONS, status_code=204,
       include_in_schema=False)  # fmt: skip
async def methods() -> Response[None]:
    """Name all methods; Litestar names only one for a path with two handlers."""
    return Response(None, headers={"Allow": "GET, OPTIONS, POST"})


@route(AGENT + "/configuration", http_method=HttpMethod.OPTIONS, status_code=204,
       include_in_schema=False)  # fmt: skip
async def methods_of_configuration() -> Response[None]:
    """Name all methods, as `methods` does."""
    return Response(None, headers={"Allow": "GET, OPTIONS, PUT"})
