"""Durable agents: every decision and observation is on disk before it is acknowledged.

agent = open_agent("sqlite:///shop.db", "checkout", BernoulliBandit(["red", "blue"]))
d = agent.act()             # Decision(id, action, probability, …)
agent.observe(d.id, o)      # in any order, twice, days later, or never
"""

from bayescontrol.durable.agent import DurableAgent, Explanation, open_agent
from bayescontrol.durable.events import Created, Decided, Decision, Observed, Refitted
from bayescontrol.durable.log import DamagedSnapshot, Log, LogStore, SnapshotNotKept, open_store
from bayescontrol.durable.models import Model, named_model
from bayescontrol.durable.replay import Replay, export_log, read_log, replay
from bayescontrol.durable.turn import Act, Observe

__all__ = [
    "Act",
    "Created",
    "DamagedSnapshot",
    "Decided",
    "Decision",
    "DurableAgent",
    "Explanation",
    "Log",
    "LogStore",
    "Model",
    "Observe",
    "Observed",
    "Refitted",
    "Replay",
    "SnapshotNotKept",
    "export_log",
    "named_model",
    "open_agent",
    "open_store",
    "read_log",
    "replay",
]
