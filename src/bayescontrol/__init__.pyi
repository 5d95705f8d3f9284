"""The public names: type checkers read this file, and `__init__.py` loads the names from it."""

# isort: off
from bayescontrol import (
    alarms as alarms, audit as audit, bandits as bandits, bank as bank,
    baselines as baselines, beliefs as beliefs, causal as causal, cli as cli,
    convergence as convergence, durable as durable, entropy as entropy, errors as errors,
    exploration as exploration, finite as finite, gym as gym, interaction as interaction,
    kernels as kernels, lab as lab, lqr as lqr, mdp as mdp, metrics as metrics, modes as modes,
    offpolicy as offpolicy, plot as plot, pomdp as pomdp, protocols as protocols,
    record as record, report as report, rule as rule, schedules as schedules, seeding as seeding,
    serve as serve, simulators as simulators, situations as situations,
    statistics as statistics, systems as systems, testing as testing, trees as trees,
)  # fmt: skip
from bayescontrol.bandits.families import *  # noqa: F403 - one name for each family
from bayescontrol.bandits.contexts.problems import (
    LinearBandit as LinearBandit, LogisticBandit as LogisticBandit,
    SharedLinearBandit as SharedLinearBandit,
)  # fmt: skip
from bayescontrol.bandits.joint import (
    JointBandit as JointBandit, LogitNormalBandit as LogitNormalBandit,
)  # fmt: skip
from bayescontrol.bank.bank import Bank as Bank
from bayescontrol.baselines.naive import NaiveMixture as NaiveMixture
from bayescontrol.beliefs.draws import DrawsBelief as DrawsBelief
from bayescontrol.beliefs.finite import FiniteBelief as FiniteBelief
from bayescontrol.beliefs.particles import ParticleBelief as ParticleBelief
from bayescontrol.beliefs.switching import SwitchingBelief as SwitchingBelief
from bayescontrol.beliefs.weights import Floor as Floor
from bayescontrol.errors import BayesControlError as BayesControlError
from bayescontrol.finite.parametric import ParametricModes as ParametricModes
from bayescontrol.finite.tabular import TabularModes as TabularModes
from bayescontrol.interaction import (
    interact as interact, play as play, warm_start as warm_start,
)  # fmt: skip
from bayescontrol.lab.agent_comparison import compare as compare
from bayescontrol.lab.warm_up import warm_up as warm_up
from bayescontrol.lqr.problem import LinearQuadratic as LinearQuadratic
from bayescontrol.mdp.dirichlet import DirichletMDP as DirichletMDP
from bayescontrol.mdp.gibbs import GibbsMDP as GibbsMDP
from bayescontrol.modes import (
    DiscreteMode as DiscreteMode, PairedMode as PairedMode, tailor as tailor,
)  # fmt: skip
from bayescontrol.pomdp.model import POMDP as POMDP
from bayescontrol.pomdp.modes import POMDPModes as POMDPModes
from bayescontrol.protocols import MISSING as MISSING
from bayescontrol.record import Probe as Probe, Record as Record
from bayescontrol.rule import ControlRule as ControlRule
from bayescontrol.seeding import Stream as Stream
from bayescontrol.situations import follows_state as follows_state, stay as stay
from bayescontrol.trees.problem import ContextTrees as ContextTrees

__version__: str
