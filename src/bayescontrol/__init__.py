"""bayescontrol: one adaptive agent from a class of experts, by the Bayesian control rule.

    P(a_t | âo_<t) = Σ_m P(a_t | m, x) P(m | âo_<t)

Draw a mode, do what it would do, and learn only from observations. For bandits this is Thompson
sampling.

All packages are attributes, `bayescontrol.plot` for example. They load on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # type checkers read these lines, Python reads _PUBLIC
    # isort: off
    from bayescontrol import (
        alarms as alarms, bandits as bandits, bank as bank, baselines as baselines,
        beliefs as beliefs, causal as causal, cli as cli, convergence as convergence,
        durable as durable, entropy as entropy, errors as errors, finite as finite, gym as gym,
        interaction as interaction, kernels as kernels, lab as lab, lqr as lqr, mdp as mdp,
        metrics as metrics, modes as modes, offpolicy as offpolicy, plot as plot,
        protocols as protocols, record as record, report as report, rule as rule,
        schedules as schedules, seeding as seeding, serve as serve, simulators as simulators,
        situations as situations, statistics as statistics, systems as systems,
        testing as testing,
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
    from bayescontrol.protocols import MISSING as MISSING
    from bayescontrol.record import Probe as Probe, Record as Record
    from bayescontrol.rule import ControlRule as ControlRule
    from bayescontrol.seeding import Stream as Stream
    from bayescontrol.situations import follows_state as follows_state, stay as stay

__version__ = "0.1.0"

# The public names of each module. Modules load on first use, so that the import is fast. The
# bandits of `bandits.families` are public too.
_PUBLIC = {
    "bandits.contexts.problems": ("LinearBandit", "LogisticBandit", "SharedLinearBandit"),
    "bandits.joint": ("JointBandit", "LogitNormalBandit"),
    "bank.bank": ("Bank",),
    "baselines.naive": ("NaiveMixture",),
    "beliefs.draws": ("DrawsBelief",),
    "beliefs.finite": ("FiniteBelief",),
    "beliefs.particles": ("ParticleBelief",),
    "beliefs.switching": ("SwitchingBelief",),
    "beliefs.weights": ("Floor",),
    "errors": ("BayesControlError",),
    "finite.parametric": ("ParametricModes",),
    "finite.tabular": ("TabularModes",),
    "interaction": ("interact", "play", "warm_start"),
    "lab.agent_comparison": ("compare",),
    "lab.warm_up": ("warm_up",),
    "lqr.problem": ("LinearQuadratic",),
    "mdp.dirichlet": ("DirichletMDP",),
    "mdp.gibbs": ("GibbsMDP",),
    "modes": ("DiscreteMode", "PairedMode", "tailor"),
    "protocols": ("MISSING",),
    "record": ("Probe", "Record"),
    "rule": ("ControlRule",),
    "seeding": ("Stream",),
    "situations": ("follows_state", "stay"),
}
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names}


def _families() -> list[str]:
    """Return the names of the bandits with independent arms."""
    return [n for n in vars(import_module(f"{__name__}.bandits.families")) if n.endswith("Bandit")]


def _subpackages() -> list[str]:
    """Return the names of the public packages and modules."""
    from pkgutil import iter_modules

    return [module.name for module in iter_modules(globals()["__path__"]) if module.name[0] != "_"]


def __getattr__(name: str) -> object:
    value: object
    if name == "__all__":
        return sorted([*_MODULE_OF, *_families()])
    if name in _MODULE_OF:
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    elif name.endswith("Bandit") and name in _families():
        value = getattr(import_module(f"{__name__}.bandits.families"), name)
    elif name[0] != "_" and name in _subpackages():
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*_MODULE_OF, *_families(), *_subpackages(), "__version__"])
