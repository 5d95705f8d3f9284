"""Bandits: arms that pay, a belief over what they pay, and worlds to try it in."""

from bayescontrol.bandits.arms import ArmsBelief
from bayescontrol.bandits.bandit import ArmsEnvironment, Bandit
from bayescontrol.bandits.bernoulli import Bernoulli, BernoulliBandit
from bayescontrol.bandits.categorical import Categorical, CategoricalBandit
from bayescontrol.bandits.contexts import Outcome
from bayescontrol.bandits.contextual import ContextualBandit
from bayescontrol.bandits.counts import (
    Exponential,
    ExponentialBandit,
    Poisson,
    PoissonBandit,
)
from bayescontrol.bandits.gaussian import Gaussian, GaussianBandit, NormalGamma
from bayescontrol.bandits.joint import JointBandit
from bayescontrol.bandits.linear import GaussianNoise, LinearBandit
from bayescontrol.bandits.linear_belief import LinearBelief
from bayescontrol.bandits.linear_weights import LinearWeights
from bayescontrol.bandits.linear_world import LinearEnvironment
from bayescontrol.bandits.logistic import LogisticBandit, Logit
from bayescontrol.bandits.logit_normal import LogitNormalBandit
from bayescontrol.bandits.mean_rewards import MeanRewards
from bayescontrol.bandits.shared import SharedLinearBandit, SharedLinearBelief

__all__ = [
    "ArmsBelief",
    "ArmsEnvironment",
    "Bandit",
    "Bernoulli",
    "BernoulliBandit",
    "Categorical",
    "CategoricalBandit",
    "ContextualBandit",
    "Exponential",
    "ExponentialBandit",
    "Gaussian",
    "GaussianBandit",
    "GaussianNoise",
    "JointBandit",
    "LinearBandit",
    "LinearBelief",
    "LinearEnvironment",
    "LinearWeights",
    "LogisticBandit",
    "Logit",
    "LogitNormalBandit",
    "MeanRewards",
    "NormalGamma",
    "Outcome",
    "Poisson",
    "PoissonBandit",
    "SharedLinearBandit",
    "SharedLinearBelief",
]
