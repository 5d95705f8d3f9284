"""Markov decision problems: tables, planning for average reward, and grid-worlds."""

from bayescontrol.problems.mdp.environment import MDPEnvironment, Step
from bayescontrol.problems.mdp.evaluation import gain_and_bias, stationary_distribution
from bayescontrol.problems.mdp.gibbs import GibbsBelief, mdp_agent
from bayescontrol.problems.mdp.gibbs_prior import GibbsPrior
from bayescontrol.problems.mdp.maze import Maze
from bayescontrol.problems.mdp.modes import mdp_modes
from bayescontrol.problems.mdp.planning import Plan, policy_iteration, relative_value_iteration
from bayescontrol.problems.mdp.q_values import QValues
from bayescontrol.problems.mdp.structure import (
    is_communicating,
    is_unichain,
    is_weakly_communicating,
    require_communicating,
)
from bayescontrol.problems.mdp.table import MDP
from bayescontrol.problems.mdp.zoo import chain_mdp, random_mdp

__all__ = [
    "MDP",
    "GibbsBelief",
    "GibbsPrior",
    "MDPEnvironment",
    "Maze",
    "Plan",
    "QValues",
    "Step",
    "chain_mdp",
    "gain_and_bias",
    "is_communicating",
    "is_unichain",
    "is_weakly_communicating",
    "mdp_agent",
    "mdp_modes",
    "policy_iteration",
    "random_mdp",
    "relative_value_iteration",
    "require_communicating",
    "stationary_distribution",
]
