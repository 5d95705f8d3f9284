"""Agents to compare the control rule with, from the paper and from the literature."""

from bayescontrol.baselines.bandits import (
    KLUCB,
    UCB1,
    CountingAgent,
    EpsilonGreedy,
    Oracle,
    Softmax,
    UniformLevers,
)
from bayescontrol.baselines.bayes_optimal import (
    BanditPlan,
    BayesOptimal,
    BayesOptimalBandit,
    BayesPlan,
    PlanTooLarge,
    expected_total,
)
from bayescontrol.baselines.gittins import GittinsAgent
from bayescontrol.baselines.gittins_solver import NotCertified, gittins_bounds, gittins_index
from bayescontrol.baselines.gittins_table import DamagedCache, GittinsTable
from bayescontrol.baselines.linear import (
    CertaintyEquivalence,
    ForgettingLinearBelief,
    ForgettingSystemBelief,
    OptimalController,
)
from bayescontrol.baselines.naive import NaiveMixture
from bayescontrol.baselines.reference import (
    FixedExperts,
    OptimalPolicy,
    UniformSystem,
    dithered_mean,
    mean_action,
    vote,
)
from bayescontrol.baselines.td_learning import QLearning, RLearning, TabularLearner

__all__ = [
    "KLUCB",
    "UCB1",
    "BanditPlan",
    "BayesOptimal",
    "BayesOptimalBandit",
    "BayesPlan",
    "CertaintyEquivalence",
    "CountingAgent",
    "DamagedCache",
    "EpsilonGreedy",
    "FixedExperts",
    "ForgettingLinearBelief",
    "ForgettingSystemBelief",
    "GittinsAgent",
    "GittinsTable",
    "NaiveMixture",
    "NotCertified",
    "OptimalController",
    "OptimalPolicy",
    "Oracle",
    "PlanTooLarge",
    "QLearning",
    "RLearning",
    "Softmax",
    "TabularLearner",
    "UniformLevers",
    "UniformSystem",
    "dithered_mean",
    "expected_total",
    "gittins_bounds",
    "gittins_index",
    "mean_action",
    "vote",
]
