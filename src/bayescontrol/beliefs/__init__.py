"""Beliefs P(m | âo_<t): finite, changing, and made of particles or draws."""

from bayescontrol.beliefs.change_points import ChangePointBelief as ChangePointBelief
from bayescontrol.beliefs.changing_problem import Changing as Changing
from bayescontrol.beliefs.changing_problem import ChangingEnvironment as ChangingEnvironment
from bayescontrol.beliefs.draws import Draw as Draw
from bayescontrol.beliefs.draws import DrawsBelief as DrawsBelief
from bayescontrol.beliefs.draws import stack_draws as stack_draws
from bayescontrol.beliefs.finite import FiniteBelief as FiniteBelief
from bayescontrol.beliefs.interacting import InteractingBelief as InteractingBelief
from bayescontrol.beliefs.interacting import mix_gaussians as mix_gaussians
from bayescontrol.beliefs.particles import Particle as Particle
from bayescontrol.beliefs.particles import ParticleBelief as ParticleBelief
from bayescontrol.beliefs.particles import ResampleMoveBelief as ResampleMoveBelief
from bayescontrol.beliefs.switching import FadingBelief as FadingBelief
from bayescontrol.beliefs.switching import SwitchingBelief as SwitchingBelief
from bayescontrol.beliefs.weights import Floor as Floor

# Type checkers read the imports, which re-export every name.
__all__ = sorted(name for name, value in list(globals().items()) if callable(value))
