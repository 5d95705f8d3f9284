"""Index play in a compiled loop, as long as the table goes.

    a_t = arg max_j ν(r_j, f_j)

Beyond the table indices are computed one by one, by the readable agent.
"""

from typing import Any

import numpy as np

from bayescontrol import kernels
from bayescontrol.record import Record
from bayescontrol.seeding import Stream


def fused_loop(agent: Any, environment: Any) -> Any:
    """The compiled loop, if the environment has the agent's arms, and they pay 0 or 1.

    >>> from bayescontrol.baselines.gittins import GittinsAgent
    >>> from bayescontrol.bandits import BernoulliBandit
    >>> agent = GittinsAgent(2, discount=0.9, pulls=20)
    >>> fused_loop(agent, BernoulliBandit(2).draw(0)) is not None
    True
    """
    fits = (
        agent.arms == tuple(environment.labels)
        and environment.family.kind == kernels.arms.BERNOULLI
    )
    return _run if fits else None


def _run(agent: Any, environment: Any, steps: int, p: Stream, q: Stream) -> Record:
    family = environment.family
    actions, rewards = np.empty(steps, np.int64), np.empty(steps)
    nu, pulls, r, f = agent.loop_arrays()
    done = kernels.policies.interact_gittins(
        nu, pulls, r, f, family.kind, family.constants, environment.truth,
        p.state, q.state, actions, rewards,
    )  # fmt: skip
    for t in range(done, steps):
        a = agent.act(p)
        o = environment.respond(a, q)
        agent.observe(a, o)
        actions[t], rewards[t] = environment.labels.place(a), o
    return Record(environment.labels.column(actions), rewards)
