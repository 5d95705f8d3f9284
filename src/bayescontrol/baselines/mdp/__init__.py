"""What the MDP agent is measured against: learners of values, planners, and the oracle."""

from bayescontrol.baselines.mdp.bamcp import BAMCP
from bayescontrol.baselines.mdp.bayesian_q import BayesianQ
from bayescontrol.baselines.mdp.oracle import OptimalPolicy
from bayescontrol.baselines.mdp.posterior_sampling import PosteriorSampling
from bayescontrol.baselines.mdp.qlearning import QLearning
from bayescontrol.baselines.mdp.rlearning import RLearning
from bayescontrol.baselines.mdp.ucrl2 import UCRL2

__all__ = [
    "BAMCP",
    "UCRL2",
    "BayesianQ",
    "OptimalPolicy",
    "PosteriorSampling",
    "QLearning",
    "RLearning",
]
