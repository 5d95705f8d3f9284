"""Gymnasium environments for our agents, and our environments for Gymnasium.

    Continuing    a Gymnasium environment as one endless stream, for `interact`
    drive         one agent in one environment, or in all lanes of a vector environment
    episodic_agent    the MDP agent with settings for episodes
    context_trees     the class of context trees, for environments that hide their state
    register      registers bayescontrol/Bandit-v0 and others; this import calls it

Gymnasium is an optional dependency: pip install 'bayescontrol[gym]'.
"""

from bayescontrol.gym.running import (
    Continuing,
    context_trees,
    drive,
    episodic_agent,
    set_situation,
)
from bayescontrol.gym.worlds import WORLDS, BoxSpace, FiniteSpace, as_space, register

__all__ = [
    "WORLDS", "BoxSpace", "Continuing", "FiniteSpace", "as_space", "context_trees", "drive",
    "episodic_agent", "register", "set_situation",
]  # fmt: skip

register()
