"""Routes that create, list and describe agents."""

from typing import Annotated, Any

from litestar import Response, get, post
from litestar.datastructures import ResponseHeader
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import JSONBody, QueryParameter

from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.plain import as_plain
from bayescontrol.serve import bodies
from bayescontrol.serve.monitor import decisions_and_answers
from bayescontrol.serve.request_queue import ServedAgent
from bayescontrol.serve.routes.decisions import arms_of, situation_of
from bayescontrol.serve.routes.parameters import (
    AGENT,
    QUERIES,
    READS,
    SERVER,
    Agent,
    Agents,
    Limit,
    errors,
    from_query,
)


@get("/v1/agents", operation_id="list", responses=SERVER)
async def list_(
    agents: Agents,
    limit: Limit = 1000,
    after: Annotated[
        str, QueryParameter(description="Only names that come later: the `next` of a page.")
    ] = "",
) -> bodies.AgentList:
    """The names of the agents in the store, sorted."""
    names = [name for name in await agents.names() if name > after]
    return bodies.AgentList(names[:limit], names[limit - 1] if len(names) > limit else None)


@post(
    "/v1/agents",
    responses=errors(409, 413, 415, 422, 507)
    | {200: ResponseSpec(bodies.AgentInfo, generate_examples=False, description="It existed.")},
    response_headers=[ResponseHeader("Location", documentation_only=True)],
)
async def create(agents: Agents, data: JSONBody[bodies.CreateBody]) -> Response[bodies.AgentInfo]:
    """Create an agent. Repeating the request returns the same agent."""
    seed = None if data.seed is None else int(data.seed)
    agent, new = await agents.create(data.name, data.model, data.settings, seed)
    headers = {"Location": f"/v1/agents/{data.name}"}
    return Response(await _describe(agent), status_code=201 if new else 200, headers=headers)


@get(AGENT, responses=READS)
async def info(agent: Agent) -> bodies.AgentInfo:
    """The model and settings of an agent, and the size of its log."""
    return await _describe(agent)


async def _describe(served: ServedAgent) -> bodies.AgentInfo:
    """Describe an agent."""
    schema = None if served.schema is None else served.schema.json_schema()

    def read(agent: DurableAgent) -> bodies.AgentInfo:
        created = agent.created
        settings = {k: as_plain(v, "a setting") for k, v in created.settings.items()}
        feedback = "any time" if agent.accepts_late_feedback else "in turn"
        return bodies.AgentInfo(
            agent.name, created.model, created.version, settings, feedback, agent.head,
            *decisions_and_answers(agent), schema,
        )  # fmt: skip

    return await served.ask(read)


@get(AGENT + "/posterior", responses=READS)
async def posterior(agent: Agent) -> bodies.Posterior:
    """The current posterior, by arm or mode, and the last event that it includes."""
    return await agent.ask(lambda one: bodies.Posterior(one.head, one.posterior()))


@get(AGENT + "/probabilities", responses=QUERIES)
async def probabilities(
    agent: Agent,
    situation: Annotated[str | None, QueryParameter(description="As JSON.", examples=[])] = None,
    among: Annotated[
        str | None, QueryParameter(description="The eligible arms, a list as JSON.", examples=[])
    ] = None,
) -> bodies.Probabilities:
    """P(a | past) of every eligible action, if the agent acted now."""
    x = await situation_of(agent, from_query(situation, "situation"))
    found = await agent.probabilities(x, arms_of(from_query(among, "among", list[Any])))
    return bodies.Probabilities(None if found is None else bodies.probability_list(found))
