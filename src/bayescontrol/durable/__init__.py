"""Durable agents: every decision and observation is on disk before it is acknowledged.

agent = open_agent("sqlite:///shop.db", "checkout", BernoulliBandit(["red", "blue"]))
d = agent.act()             # Decision(id, action, probability, …)
agent.observe(d.id, o)      # in any order, twice, days later, or never
"""

from bayescontrol.durable.agent import DurableAgent as DurableAgent
from bayescontrol.durable.agent import Explanation as Explanation
from bayescontrol.durable.archive import AgentSummary as AgentSummary
from bayescontrol.durable.archive import import_log as import_log
from bayescontrol.durable.archive import list_agents as list_agents
from bayescontrol.durable.archive import restore_logs as restore_logs
from bayescontrol.durable.configuration import Configuration as Configuration
from bayescontrol.durable.events import Aggregated as Aggregated
from bayescontrol.durable.events import ArmChanged as ArmChanged
from bayescontrol.durable.events import Compacted as Compacted
from bayescontrol.durable.events import Configured as Configured
from bayescontrol.durable.events import Corrected as Corrected
from bayescontrol.durable.events import Created as Created
from bayescontrol.durable.events import Decided as Decided
from bayescontrol.durable.events import Decision as Decision
from bayescontrol.durable.events import Observed as Observed
from bayescontrol.durable.events import Refitted as Refitted
from bayescontrol.durable.events import Withdrawn as Withdrawn
from bayescontrol.durable.models import Model as Model
from bayescontrol.durable.models import named_model as named_model
from bayescontrol.durable.opening import open_agent as open_agent
from bayescontrol.durable.replay import Replay as Replay
from bayescontrol.durable.replay import export_log as export_log
from bayescontrol.durable.replay import read_log as read_log
from bayescontrol.durable.replay import replay as replay
from bayescontrol.durable.requests import Act as Act
from bayescontrol.durable.requests import Observe as Observe
from bayescontrol.durable.requests import ObserveTotals as ObserveTotals
from bayescontrol.durable.requests import Withdraw as Withdraw
from bayescontrol.durable.stores.log import DamagedSnapshot as DamagedSnapshot
from bayescontrol.durable.stores.log import Log as Log
from bayescontrol.durable.stores.log import LogStore as LogStore
from bayescontrol.durable.stores.log import SnapshotNotKept as SnapshotNotKept
from bayescontrol.durable.stores.log import open_store as open_store

# Type checkers read the imports, which re-export every name.
__all__ = sorted(name for name, value in list(globals().items()) if callable(value))
