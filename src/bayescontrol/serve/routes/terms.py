"""Routes that amend feedback, and that change the arms and the configuration of an agent."""

from typing import Annotated, Any

from litestar import get, post, put
from litestar.params import HeaderParameter, JSONBody

from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.plain import as_plain
from bayescontrol.durable.requests import ChangeArm, Configure, ObserveTotals, Withdraw
from bayescontrol.errors import InvalidRequest
from bayescontrol.protocols import Totals
from bayescontrol.serve import bodies
from bayescontrol.serve.routes.decisions import situation_of
from bayescontrol.serve.routes.parameters import AGENT, READS, WRITES, Agents, Name
from bayescontrol.serve.values import value_of

#: What a request calls a change of an arm, and what an event calls it.
_CHANGES = {"add": "added", "pause": "paused", "resume": "resumed", "retire": "retired"}


@post(AGENT + "/totals", status_code=200, responses=WRITES)
async def totals(
    agents: Agents,
    name: Name,
    data: JSONBody[bodies.TotalsBody],
    key: Annotated[
        str,
        HeaderParameter(
            name="Idempotency-Key",
            description="A name for these totals: a repeated request counts once.",
            pattern=bodies.KEY,
        ),
    ],
) -> bodies.Learned:
    """Learn the totals of many rewards of an arm that belong to no decision."""
    agent = await agents.get(name)
    x = await situation_of(agent, data.situation)
    arm = value_of(data.arm, "the arm", InvalidRequest)
    sums = Totals(int(data.n), data.total, data.squares)
    return bodies.Learned(await agent.handle(ObserveTotals(arm, sums, x, key)))


@post(AGENT + "/withdraw", status_code=200, responses=WRITES)
async def withdraw(
    agents: Agents, name: Name, data: JSONBody[bodies.WithdrawBody]
) -> bodies.Withdrawal:
    """Take back a wrong observation. The decision may then be observed again."""
    agent = await agents.get(name)
    return bodies.Withdrawal(await agent.handle(Withdraw(agent.number(data.id))))


@get(AGENT + "/arms", responses=READS)
async def arms(agents: Agents, name: Name) -> bodies.ArmList:
    """The arms, whether each is active, paused or retired, and their prices."""

    def read(agent: DurableAgent) -> tuple[dict[Any, str], dict[Any, float]]:
        return agent.ask(lambda _: (agent.arms(), agent.prices()))

    agent = await agents.get(name)
    states, prices = await agent.read(read)
    return bodies.ArmList(
        [bodies.ArmInfo(as_plain(a, "an arm"), s, prices.get(a)) for a, s in states.items()]
    )


@post(AGENT + "/arms", status_code=200, responses=WRITES)
async def change_arm(agents: Agents, name: Name, data: JSONBody[bodies.ArmBody]) -> bodies.Changed:
    """Add an arm, pause or resume it, or retire it for good."""
    agent = await agents.get(name)
    arm, prior = (value_of(v, "the arm", InvalidRequest) for v in (data.arm, data.prior))
    change = ChangeArm(arm, _CHANGES[data.change], prior)
    return bodies.Changed(await agent.handle(change))


@get(AGENT + "/configuration", responses=READS)
async def configuration(agents: Agents, name: Name) -> bodies.ConfigurationBody:
    """What limits the decisions of the agent and their feedback."""
    agent = await agents.get(name)
    found = await agent.read(lambda one: one.ask(lambda _: one.configuration))
    return bodies.ConfigurationBody.of(found)


@put(AGENT + "/configuration", responses=WRITES)
async def configure(
    agents: Agents, name: Name, data: JSONBody[bodies.ConfigurationBody]
) -> bodies.Changed:
    """Replace the whole configuration, from the next decision on."""
    agent = await agents.get(name)
    return bodies.Changed(await agent.handle(Configure(data.configuration())))
