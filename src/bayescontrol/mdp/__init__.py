"""Markov decision problems: tables, planning for average reward, grid-worlds, and the MDP agent."""

from bayescontrol.mdp.gibbs import GibbsBelief, GibbsPrior, QValues, mdp_agent
from bayescontrol.mdp.maze import Maze
from bayescontrol.mdp.modes import mdp_modes
from bayescontrol.mdp.planning import (
    Plan,
    gain_and_bias,
    policy_iteration,
    relative_value_iteration,
    stationary_distribution,
)
from bayescontrol.mdp.problem import GibbsMDP
from bayescontrol.mdp.structure import (
    is_communicating,
    is_unichain,
    is_weakly_communicating,
    require_communicating,
)
from bayescontrol.mdp.table import MDP, MDPEnvironment, Step, chain_mdp, random_mdp

__all__ = [
    "MDP",
    "GibbsBelief",
    "GibbsMDP",
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
