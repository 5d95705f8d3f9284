"""Gymnasium environments for our agents, and our environments for Gymnasium.

    Continuing    a Gymnasium environment as one endless stream, for `interact`
    drive         one agent in one environment, or in all lanes of a vector environment
    episodic_agent    the MDP agent with settings for episodes
    register      registers bayescontrol/Bandit-v0 and others; this import calls it

Gymnasium is an optional dependency: pip install 'bayescontrol[gym]'.
"""

from bayescontrol.gym.running import Continuing, drive, episodic_agent, set_situation
from bayescontrol.gym.worlds import WORLDS, BoxSpace, FiniteSpace, as_space, register

__all__ = [
    "WORLDS", "BoxSpace", "Continuing", "FiniteSpace", "as_space", "drive", "episodic_agent",
    "register", "set_situation",
]  # fmt: skip

register()
