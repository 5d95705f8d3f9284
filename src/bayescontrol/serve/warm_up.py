"""Compile what the agents of a server need, before it is ready.

Opening an agent compiles what a decision needs, if the agent takes no situation and its log was
folded. This runs an agent of the same kind from creation to snapshot, in a store in memory. The
user's own models are left out: they have no example.
"""

from contextlib import closing

from bayescontrol.durable.agent import open_agent
from bayescontrol.durable.models import KINDS
from bayescontrol.durable.plain import from_plain
from bayescontrol.serve.requested_models import requested_model


def warm_up_kind(name: str) -> None:
    """Compile the kernels that agents of this kind of model need.

    >>> warm_up_kind("bernoulli-bandit")
    """
    kind = KINDS[name].model_kind
    model = requested_model(name, kind.example, {})
    with closing(open_agent("sqlite:///:memory:", name, model, seed=0)) as agent:
        decision = agent.act(from_plain(kind.situation), key="k")
        agent.observe(decision, from_plain(kind.observation))
        agent.posterior()
        agent.snapshot()
