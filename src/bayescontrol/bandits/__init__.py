"""Bandits: arms that pay, a belief over what they pay, and worlds to try it in."""

from bayescontrol.bandits.arms import ArmsBelief, MeanRewards
from bayescontrol.bandits.bandit import ArmsEnvironment, Bandit
from bayescontrol.bandits.contextual import (
    ContextualBandit,
    LinearBandit,
    LinearEnvironment,
    LogisticBandit,
    SharedLinearBandit,
)
from bayescontrol.bandits.discrete import Bernoulli, BernoulliBandit, Categorical, CategoricalBandit
from bayescontrol.bandits.gamma import (
    Exponential,
    ExponentialBandit,
    Poisson,
    PoissonBandit,
)
from bayescontrol.bandits.gaussian import Gaussian, GaussianBandit, NormalGamma
from bayescontrol.bandits.joint import JointBandit, LogitNormalBandit
from bayescontrol.bandits.linear_belief import LinearBelief, LinearWeights, SharedLinearBelief
from bayescontrol.bandits.regression import GaussianNoise, Logit, Outcome

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
