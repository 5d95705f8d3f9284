"""Compile what the agents of a server need, before it is ready.

Opening an agent compiles what a decision needs, if the agent takes no situation and its log was
folded. This runs an agent of the same kind from creation to snapshot, in a store in memory.
"""

import time
from collections.abc import Iterable
from contextlib import closing

from bayescontrol.durable.agent import open_agent
from bayescontrol.durable.models import KINDS
from bayescontrol.durable.plain import from_plain
from bayescontrol.serve.requested_models import requested_model


def warm_up_kinds(kinds: Iterable[str]) -> float:
    """Compile the kernels of these kinds of models; return the seconds it took.

    The user's own models are left out: they have no example.

    >>> warm_up_kinds(["bernoulli-bandit", "mine"]) > 0.0
    True
    """
    began = time.perf_counter()
    for name in sorted(set(kinds) & set(KINDS)):
        kind = KINDS[name].model_kind
        model = requested_model(name, kind.example, {})
        with closing(open_agent("sqlite:///:memory:", name, model, seed=0)) as agent:
            decision = agent.act(from_plain(kind.situation), key="k")
            agent.observe(decision, from_plain(kind.observation))
            agent.posterior()
            agent.snapshot()
    return time.perf_counter() - began
