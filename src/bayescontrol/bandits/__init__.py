"""Bandits: arms that pay, a belief over what they pay, and worlds to try it in.

The agents act by Thompson sampling, which is the Bayesian control rule for bandits.
"""

from bayescontrol.bandits.arms import ArmsBelief, MeanRewards
from bayescontrol.bandits.bandit import ArmsEnvironment, Bandit
from bayescontrol.bandits.changing import ChangingArmsBelief, PerArmBelief
from bayescontrol.bandits.contextual import (
    ContextualBandit,
    LinearBandit,
    LinearEnvironment,
    LogisticBandit,
    SharedLinearBandit,
)
from bayescontrol.bandits.discrete import Bernoulli, BernoulliBandit, Categorical, CategoricalBandit
from bayescontrol.bandits.gamma import Exponential, ExponentialBandit, Poisson, PoissonBandit
from bayescontrol.bandits.gaussian import GaussianBandit, GaussianRewards, NormalGamma
from bayescontrol.bandits.joint import JointBandit, LogitNormalBandit
from bayescontrol.bandits.linear_belief import LinearBelief, LinearWeights, SharedLinearBelief
from bayescontrol.bandits.regression import GaussianNoise, Logit, RewardAndContext

__all__ = [
    "ArmsBelief",
    "ArmsEnvironment",
    "Bandit",
    "Bernoulli",
    "BernoulliBandit",
    "Categorical",
    "CategoricalBandit",
    "ChangingArmsBelief",
    "ContextualBandit",
    "Exponential",
    "ExponentialBandit",
    "GaussianBandit",
    "GaussianNoise",
    "GaussianRewards",
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
    "PerArmBelief",
    "Poisson",
    "PoissonBandit",
    "RewardAndContext",
    "SharedLinearBandit",
    "SharedLinearBelief",
]
