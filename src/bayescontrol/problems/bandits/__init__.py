"""Bandits: arms that pay, a belief over what they pay, and worlds to try it in."""

from bayescontrol.problems.bandits.arms import ArmsBelief
from bayescontrol.problems.bandits.bandit import ArmsEnvironment, Bandit
from bayescontrol.problems.bandits.bernoulli import Bernoulli, BernoulliBandit
from bayescontrol.problems.bandits.categorical import Categorical, CategoricalBandit
from bayescontrol.problems.bandits.contexts import Outcome
from bayescontrol.problems.bandits.contextual import ContextualBandit
from bayescontrol.problems.bandits.counts import (
    Exponential,
    ExponentialBandit,
    Poisson,
    PoissonBandit,
)
from bayescontrol.problems.bandits.gaussian import Gaussian, GaussianBandit, NormalGamma
from bayescontrol.problems.bandits.joint import JointBandit
from bayescontrol.problems.bandits.linear import GaussianNoise, LinearBandit
from bayescontrol.problems.bandits.linear_belief import LinearBelief
from bayescontrol.problems.bandits.linear_weights import LinearWeights
from bayescontrol.problems.bandits.linear_world import LinearEnvironment
from bayescontrol.problems.bandits.logistic import LogisticBandit, Logit
from bayescontrol.problems.bandits.logit_normal import LogitNormalBandit
from bayescontrol.problems.bandits.mean_rewards import MeanRewards
from bayescontrol.problems.bandits.shared import SharedLinearBandit, SharedLinearBelief

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
