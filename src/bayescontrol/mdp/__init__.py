"""Markov decision problems: tables, planning for average reward, grid-worlds, and agents."""

from bayescontrol.mdp.dirichlet import (
    DirichletAgent,
    DirichletBelief,
    DirichletMDP,
    SampledMDP,
    tsde,
)
from bayescontrol.mdp.gibbs import ADAPTIVE, GibbsBelief, GibbsMDP, GibbsPrior, QValues
from bayescontrol.mdp.maze import Maze
from bayescontrol.mdp.modes import MDPModes
from bayescontrol.mdp.planning import Plan, gain_and_bias, policy_iteration, stationary_distribution
from bayescontrol.mdp.table import MDP, MDPEnvironment, Step, chain_mdp, random_mdp

__all__ = [
    "ADAPTIVE",
    "MDP",
    "DirichletAgent",
    "DirichletBelief",
    "DirichletMDP",
    "GibbsBelief",
    "GibbsMDP",
    "GibbsPrior",
    "MDPEnvironment",
    "MDPModes",
    "Maze",
    "Plan",
    "QValues",
    "SampledMDP",
    "Step",
    "chain_mdp",
    "gain_and_bias",
    "policy_iteration",
    "random_mdp",
    "stationary_distribution",
    "tsde",
]
