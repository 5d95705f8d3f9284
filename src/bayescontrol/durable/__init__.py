"""Agents that survive: every decision and observation is on disk before it is acknowledged.

agent = open_agent("sqlite:///shop.db", "checkout", BernoulliBandit(["red", "blue"]))
d = agent.act()             Decision(id, action, probability, …)
agent.observe(d.id, o)      in any order, twice, days later, or never
"""

from bayescontrol.durable.agent import DurableAgent
from bayescontrol.durable.decision import Decision
from bayescontrol.durable.events import Created, Decided, Observed
from bayescontrol.durable.explain import Explanation
from bayescontrol.durable.models import Model, named_model
from bayescontrol.durable.off_policy import Estimate
from bayescontrol.durable.opening import open_agent
from bayescontrol.durable.replay import Replay, export_log, read_log, replay
from bayescontrol.durable.requests import Act, Observe
from bayescontrol.durable.snapshots import DamagedSnapshot, SnapshotNotKept
from bayescontrol.durable.store import Log, Store, open_store
from bayescontrol.durable.what_if import WhatIf, what_if

__all__ = [
    "Act",
    "Created",
    "DamagedSnapshot",
    "Decided",
    "Decision",
    "DurableAgent",
    "Estimate",
    "Explanation",
    "Log",
    "Model",
    "Observe",
    "Observed",
    "Replay",
    "SnapshotNotKept",
    "Store",
    "WhatIf",
    "export_log",
    "named_model",
    "open_agent",
    "open_store",
    "read_log",
    "replay",
    "what_if",
]
