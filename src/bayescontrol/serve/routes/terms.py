"""Routes that amend feedback, and that change the arms and the configuration of an agent."""

from collections.abc import Mapping
from typing import Final

from litestar import get, post, put
from litestar.params import JSONBody

from bayescontrol.durable.events import ArmChange
from bayescontrol.durable.plain import as_plain
from bayescontrol.durable.requests import ChangeArm, Configure, ObserveTotals, Withdraw
from bayescontrol.errors import InvalidRequest
from bayescontrol.protocols import Totals
from bayescontrol.serve import bodies
from bayescontrol.serve.routes.decisions import situation_of
from bayescontrol.serve.routes.parameters import AGENT, READS, WRITES, Agent, RequiredKey
from bayescontrol.serve.values import value_of

#: What a request calls a change of an arm, and what an event calls it.
_CHANGES: Final[Mapping[bodies.ArmChange, ArmChange]] = {
    "add": "added", "pause": "paused", "resume": "resumed", "retire": "retired"
}  # fmt: skip


@post(AGENT + "/totals", status_code=200, responses=WRITES)
async def totals(
    agent: Agent, data: JSONBody[bodies.TotalsBody], key: RequiredKey
) -> bodies.Learned:
    """Learn the totals of many rewards of an arm that belong to no decision."""
    x = await situation_of(agent, data.situation)
    arm = value_of(data.arm, "the arm", InvalidRequest)
    sums = Totals(int(data.n), data.total, data.squares)
    return bodies.Learned(await agent.handle(ObserveTotals(arm, sums, x, key)))


@post(AGENT + "/withdraw", status_code=200, responses=WRITES)
async def withdraw(agent: Agent, data: JSONBody[bodies.WithdrawBody]) -> bodies.Withdrawal:
    """Take back a wrong observation. The decision may then be observed again."""
    return bodies.Withdrawal(await agent.handle(Withdraw(agent.number(data.id))))


@get(AGENT + "/arms", responses=READS)
async def arms(agent: Agent) -> bodies.ArmList:
    """The arms, whether each is active, paused or retired, and their prices."""
    states, prices = await agent.ask(lambda one: (one.arms(), one.prices()))
    return bodies.ArmList(
        [bodies.ArmInfo(as_plain(a, "an arm"), s, prices.get(a)) for a, s in states.items()]
    )


@post(AGENT + "/arms", status_code=200, responses=WRITES)
async def change_arm(agent: Agent, data: JSONBody[bodies.ArmBody]) -> bodies.Changed:
    """Add an arm, pause or resume it, or retire it for good."""
    arm, prior = (value_of(v, "the arm", InvalidRequest) for v in (data.arm, data.prior))
    return bodies.Changed(await agent.handle(ChangeArm(arm, _CHANGES[data.change], prior)))


@get(AGENT + "/configuration", responses=READS)
async def configuration(agent: Agent) -> bodies.ConfigurationBody:
    """What limits the decisions of the agent and their feedback."""
    return bodies.ConfigurationBody.of(await agent.ask(lambda one: one.configuration))


@put(AGENT + "/configuration", responses=WRITES)
async def configure(agent: Agent, data: JSONBody[bodies.ConfigurationBody]) -> bodies.Changed:
    """Replace the whole configuration, from the next decision on."""
    return bodies.Changed(await agent.handle(Configure(data.configuration())))
