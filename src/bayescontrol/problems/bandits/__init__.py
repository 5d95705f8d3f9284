"""Bandits: arms that pay, a belief over what they pay, and worlds to try it in."""

from bayescontrol.problems.bandits.arms import ArmsBelief, MeanRewards
from bayescontrol.problems.bandits.bandit import ArmsEnvironment, Bandit
from bayescontrol.problems.bandits.bernoulli import Bernoulli, BernoulliBandit

__all__ = [
    "ArmsBelief",
    "ArmsEnvironment",
    "Bandit",
    "Bernoulli",
    "BernoulliBandit",
    "MeanRewards",
]
