"""Markov decision problems: tables, planning for average reward, and grid-worlds."""

from bayescontrol.mdp.environment import MDPEnvironment, Step
from bayescontrol.mdp.evaluation import gain_and_bias, stationary_distribution
from bayescontrol.mdp.gibbs import GibbsBelief, mdp_agent
from bayescontrol.mdp.gibbs_prior import GibbsPrior
from bayescontrol.mdp.maze import Maze
from bayescontrol.mdp.modes import mdp_modes
from bayescontrol.mdp.planning import Plan, policy_iteration, relative_value_iteration
from bayescontrol.mdp.q_values import QValues
from bayescontrol.mdp.structure import (
    is_communicating,
    is_unichain,
    is_weakly_communicating,
    require_communicating,
)
from bayescontrol.mdp.table import MDP
from bayescontrol.mdp.zoo import chain_mdp, random_mdp

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
