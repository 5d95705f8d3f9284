"""What the MDP agent is measured against: learners of values, planners, and the oracle."""

from bayescontrol.baselines.mdp.bayesian_q import BayesianQ
from bayescontrol.baselines.mdp.oracle import OptimalPolicy
from bayescontrol.baselines.mdp.qlearning import QLearning
from bayescontrol.baselines.mdp.rlearning import RLearning

__all__ = ["BayesianQ", "OptimalPolicy", "QLearning", "RLearning"]
