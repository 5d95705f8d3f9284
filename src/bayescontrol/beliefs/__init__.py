"""Beliefs P(m | âo_<t): finite, changing, and made of particles or draws."""

from bayescontrol.beliefs.change_points import ChangePointBelief
from bayescontrol.beliefs.changing_problem import Changing, ChangingEnvironment
from bayescontrol.beliefs.draws import Draw, DrawsBelief, stack_draws
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.beliefs.interacting import InteractingBelief, mix_gaussians
from bayescontrol.beliefs.particles import Particle, ParticleBelief, ResampleMoveBelief
from bayescontrol.beliefs.switching import FadingBelief, SwitchingBelief
from bayescontrol.beliefs.weights import Floor

__all__ = [
    "ChangePointBelief",
    "Changing",
    "ChangingEnvironment",
    "Draw",
    "DrawsBelief",
    "FadingBelief",
    "FiniteBelief",
    "Floor",
    "InteractingBelief",
    "Particle",
    "ParticleBelief",
    "ResampleMoveBelief",
    "SwitchingBelief",
    "mix_gaussians",
    "stack_draws",
]
