"""Gymnasium both ways: its environments for our agents, our worlds for its users.

    Continuing    an environment as a world of one endless stream, for `interact`
    drive         one agent in one environment, or in all lanes of a vector environment
    register      bayescontrol/Bandit-v0 and its kin, done by this import

Gymnasium is an extra: pip install 'bayescontrol[gym]'.
"""

from bayescontrol.gym.running import Continuing, drive, place
from bayescontrol.gym.spaces import BoxSpace, FiniteSpace, as_space
from bayescontrol.gym.worlds import WORLDS, register

__all__ = [
    "WORLDS",
    "BoxSpace",
    "Continuing",
    "FiniteSpace",
    "as_space",
    "drive",
    "place",
    "register",
]

register()
