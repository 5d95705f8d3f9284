"""Partially observed Markov decision problems: tables, text files, bounds, and modes."""

from bayescontrol.pomdp.bounds import AlphaVectors as AlphaVectors
from bayescontrol.pomdp.bounds import fast_informed_bound as fast_informed_bound
from bayescontrol.pomdp.bounds import point_based as point_based
from bayescontrol.pomdp.bounds import qmdp as qmdp
from bayescontrol.pomdp.model import POMDP as POMDP
from bayescontrol.pomdp.model import Percept as Percept
from bayescontrol.pomdp.model import POMDPEnvironment as POMDPEnvironment
from bayescontrol.pomdp.modes import POMDPModes as POMDPModes
from bayescontrol.pomdp.modes import state_belief as state_belief
from bayescontrol.pomdp.text_format import read_pomdp as read_pomdp
from bayescontrol.pomdp.worlds import hallway as hallway
from bayescontrol.pomdp.worlds import shuttle as shuttle
from bayescontrol.pomdp.worlds import tiger as tiger

# Type checkers read the imports, which re-export every name.
__all__ = ["state_belief"]
__all__ += sorted(name for name, value in list(globals().items()) if callable(value))
