"""Exploration as a stated part of an agent: random actions, and policies that tell models apart."""

from bayescontrol.exploration.agent import ExploringRule as ExploringRule
from bayescontrol.exploration.agent import Falling as Falling
from bayescontrol.exploration.agent import Remedy as Remedy

__all__ = ["ExploringRule", "Falling", "Remedy"]
