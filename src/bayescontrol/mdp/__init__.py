"""Markov decision problems: tables, planning for average reward, grid-worlds, and agents."""

from bayescontrol.mdp.dirichlet import DirichletAgent as DirichletAgent
from bayescontrol.mdp.dirichlet import DirichletBelief as DirichletBelief
from bayescontrol.mdp.dirichlet import DirichletMDP as DirichletMDP
from bayescontrol.mdp.dirichlet import SampledMDP as SampledMDP
from bayescontrol.mdp.dirichlet import tsde as tsde
from bayescontrol.mdp.gibbs import ADAPTIVE as ADAPTIVE
from bayescontrol.mdp.gibbs import GibbsBelief as GibbsBelief
from bayescontrol.mdp.gibbs import GibbsMDP as GibbsMDP
from bayescontrol.mdp.gibbs import GibbsPrior as GibbsPrior
from bayescontrol.mdp.gibbs import QValues as QValues
from bayescontrol.mdp.maze import Maze as Maze
from bayescontrol.mdp.modes import MDPModes as MDPModes
from bayescontrol.mdp.planning import Plan as Plan
from bayescontrol.mdp.planning import gain_and_bias as gain_and_bias
from bayescontrol.mdp.planning import policy_iteration as policy_iteration
from bayescontrol.mdp.planning import stationary_distribution as stationary_distribution
from bayescontrol.mdp.table import MDP as MDP
from bayescontrol.mdp.table import MDPEnvironment as MDPEnvironment
from bayescontrol.mdp.table import Step as Step
from bayescontrol.mdp.table import chain_mdp as chain_mdp
from bayescontrol.mdp.table import random_mdp as random_mdp

# Type checkers read the imports, which re-export every name.
__all__ = ["ADAPTIVE"]
__all__ += sorted(name for name, value in list(globals().items()) if callable(value))
