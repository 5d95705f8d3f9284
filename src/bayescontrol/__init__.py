"""bayescontrol: one adaptive agent from a class of experts, by the Bayesian control rule.

    P(a_t | âo_<t) = Σ_m P(a_t | m, x) P(m | âo_<t)

Draw a mode, do what it would do, and learn only from observations. For bandits this is Thompson
sampling.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayescontrol.bandits import (
        BernoulliBandit,
        CategoricalBandit,
        ExponentialBandit,
        GaussianBandit,
        JointBandit,
        LinearBandit,
        LogisticBandit,
        LogitNormalBandit,
        PoissonBandit,
        SharedLinearBandit,
    )
    from bayescontrol.baselines import NaiveMixture
    from bayescontrol.beliefs.finite import FiniteBelief
    from bayescontrol.beliefs.particles import ParticleBelief
    from bayescontrol.beliefs.weights import Floor
    from bayescontrol.errors import BayesControlError
    from bayescontrol.finite.parametric import ParametricModes
    from bayescontrol.finite.tabular import TabularModes
    from bayescontrol.interaction import interact, play, warm_start
    from bayescontrol.lab.agent_comparison import compare
    from bayescontrol.lab.warm_up import warm_up
    from bayescontrol.modes import DiscreteMode, PairedMode, tailor
    from bayescontrol.protocols import MISSING
    from bayescontrol.record import Probe, Record
    from bayescontrol.rule import ControlRule
    from bayescontrol.seeding import Stream
    from bayescontrol.situations import follows_state, stay

__version__ = "0.1.0"

__all__ = [
    "MISSING", "BayesControlError", "BernoulliBandit", "CategoricalBandit", "ControlRule",
    "DiscreteMode", "ExponentialBandit", "FiniteBelief", "Floor", "GaussianBandit", "JointBandit",
    "LinearBandit", "LogisticBandit", "LogitNormalBandit", "NaiveMixture", "PairedMode",
    "ParametricModes", "ParticleBelief", "PoissonBandit", "Probe", "Record", "SharedLinearBandit",
    "Stream", "TabularModes", "compare", "follows_state", "interact", "play", "stay", "tailor",
    "warm_start", "warm_up",
]  # fmt: skip

# The module of each public name. Modules load on first use, so that the import is fast.
_MODULES = {
    **dict.fromkeys((name for name in __all__ if name.endswith("Bandit")), "bandits"),
    "MISSING": "protocols",
    "BayesControlError": "errors",
    "ControlRule": "rule",
    "DiscreteMode": "modes",
    "FiniteBelief": "beliefs.finite",
    "Floor": "beliefs.weights",
    "NaiveMixture": "baselines.naive",
    "PairedMode": "modes",
    "ParametricModes": "finite.parametric",
    "ParticleBelief": "beliefs.particles",
    "Probe": "record",
    "Record": "record",
    "Stream": "seeding",
    "TabularModes": "finite.tabular",
    "compare": "lab.agent_comparison",
    "follows_state": "situations",
    "interact": "interaction",
    "play": "interaction",
    "stay": "situations",
    "tailor": "modes",
    "warm_start": "interaction",
    "warm_up": "lab.warm_up",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'bayescontrol' has no attribute {name!r}")
    value = getattr(import_module(f"bayescontrol.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
