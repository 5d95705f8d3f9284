"""Agents to compare the control rule with, from the paper and from the literature."""

from bayescontrol.baselines.bandits import KLUCB as KLUCB
from bayescontrol.baselines.bandits import UCB1 as UCB1
from bayescontrol.baselines.bandits import CountingAgent as CountingAgent
from bayescontrol.baselines.bandits import EpsilonGreedy as EpsilonGreedy
from bayescontrol.baselines.bandits import Oracle as Oracle
from bayescontrol.baselines.bandits import Softmax as Softmax
from bayescontrol.baselines.bandits import UniformLevers as UniformLevers
from bayescontrol.baselines.bayes_optimal import BanditPlan as BanditPlan
from bayescontrol.baselines.bayes_optimal import BayesOptimal as BayesOptimal
from bayescontrol.baselines.bayes_optimal import BayesOptimalBandit as BayesOptimalBandit
from bayescontrol.baselines.bayes_optimal import BayesPlan as BayesPlan
from bayescontrol.baselines.bayes_optimal import PlanTooLarge as PlanTooLarge
from bayescontrol.baselines.bayes_optimal import expected_total as expected_total
from bayescontrol.baselines.gittins import GittinsAgent as GittinsAgent
from bayescontrol.baselines.gittins_solver import NotCertified as NotCertified
from bayescontrol.baselines.gittins_solver import gittins_bounds as gittins_bounds
from bayescontrol.baselines.gittins_solver import gittins_index as gittins_index
from bayescontrol.baselines.gittins_table import GittinsTable as GittinsTable
from bayescontrol.baselines.linear import CertaintyEquivalence as CertaintyEquivalence
from bayescontrol.baselines.linear import ForgettingLinearBelief as ForgettingLinearBelief
from bayescontrol.baselines.linear import ForgettingSystemBelief as ForgettingSystemBelief
from bayescontrol.baselines.linear import OptimalController as OptimalController
from bayescontrol.baselines.naive import NaiveMixture as NaiveMixture
from bayescontrol.baselines.reference import FixedExperts as FixedExperts
from bayescontrol.baselines.reference import OptimalPolicy as OptimalPolicy
from bayescontrol.baselines.reference import UniformSystem as UniformSystem
from bayescontrol.baselines.reference import dithered_mean as dithered_mean
from bayescontrol.baselines.reference import mean_action as mean_action
from bayescontrol.baselines.reference import vote as vote
from bayescontrol.baselines.td_learning import QLearning as QLearning
from bayescontrol.baselines.td_learning import RLearning as RLearning
from bayescontrol.baselines.td_learning import TabularLearner as TabularLearner

# Type checkers read the imports, which re-export every name.
__all__ = sorted(name for name, value in list(globals().items()) if callable(value))
