"""The compiled loop of the Gibbs agent in an MDP.

The kernel works on the ledger's arrays until a state is new or room runs out; that one step is
then learnt by the readable code, which makes room, and the kernel goes on.
"""

from typing import Any

import numpy as np

from bayescontrol import kernels
from bayescontrol.errors import UnknownState
from bayescontrol.mdp.environment import MDPEnvironment, Step, advance
from bayescontrol.mdp.gibbs import next_state
from bayescontrol.mdp.gibbs_prior import LARGEST
from bayescontrol.record import Record, as_rows, select
from bayescontrol.schedules import every_step
from bayescontrol.seeding import Stream


def fused_loop(agent: Any, environment: Any) -> Any:
    """The compiled loop, if the agent draws anew at each step and is where the world is.

    >>> from bayescontrol.mdp import chain_mdp
    >>> from bayescontrol.mdp.gibbs import mdp_agent
    >>> fused_loop(mdp_agent(2, start=0), chain_mdp(2).environment()) is not None
    True
    """
    mdp = environment.mdp
    try:
        together = mdp.states.place(agent.x) == environment.at
    except UnknownState:
        together = False
    fits = (
        together
        and agent.schedule is every_step
        and agent.advance in (next_state, advance)
        and list(agent.belief.ledger.actions) == list(mdp.actions)
        and bool((np.abs(mdp.rewards) <= LARGEST).all())
    )
    return _run if fits else None


def _run(agent: Any, environment: MDPEnvironment, steps: int, p: Stream, q: Stream) -> Record:
    mdp, belief, start = environment.mdp, agent.belief, agent.x
    labels = list(belief.ledger.actions)
    actions, rewards, states = np.empty(steps, np.int64), np.empty(steps), np.empty(steps, np.int64)
    number = np.array([_number(belief, x) for x in mdp.states], np.int64)

    def situation(s: int) -> Any:
        return mdp.states[states[s - 1]] if s else start

    t = 0
    if number[environment.at] < 0:  # the start enters with the first step out of it
        a = agent.act(p)
        here, o = environment.at, environment.respond(a, q)
        agent.observe(a, o)
        actions[0], rewards[0], states[0] = mdp.actions.place(a), o.reward, environment.at
        for y in (here, environment.at):
            number[y] = _number(belief, mdp.states[y])
        t = 1
    while t < steps:
        begun, ledger = t, belief.ledger
        t, environment.at, why = kernels.mdp_loops.interact(
            ledger.evidence, ledger.chain, belief.how, len(ledger), mdp.tables, number,
            environment.at, t, p.state, q.state, actions, rewards, states,
        )  # fmt: skip
        belief.fast_forward()
        acted = why in (kernels.mdp_loops.NOT_LEARNT, kernels.mdp_loops.NOT_OFFERED)
        last = t if acted else t - 1
        if last >= begun:
            agent.fast_forward(last + 1 - begun, situation(last), situation(t))
        if why == kernels.mdp_loops.DONE:
            break
        # What is left to do for this step is the readable code's, errors included.
        if why == kernels.mdp_loops.LOST:
            belief.check_chain()
        if why == kernels.mdp_loops.NOT_OFFERED:
            environment.respond(labels[actions[t]], q)
        agent.observe(labels[actions[t]], Step(float(rewards[t]), environment.x))
        number[environment.at] = _number(belief, environment.x)
        t += 1
    return Record(
        select(labels, actions),
        as_rows({"reward": rewards, "state": select(list(mdp.states), states)}),
    )


def _number(belief: Any, x: Any) -> int:
    place = belief.ledger.place(x)
    return -1 if place is None else place
