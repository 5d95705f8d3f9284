"""bayescontrol: one adaptive agent out of a class of experts, by the Bayesian control rule.

    P(a_t | âo_<t) = Σ_m P(a_t | m, x) P(m | âo_<t)

Draw a mode, do what it would do, and learn from observations alone.
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
    from bayescontrol.baselines.naive import NaiveMixture
    from bayescontrol.beliefs.finite import FiniteBelief
    from bayescontrol.beliefs.particles import ParticleBelief
    from bayescontrol.beliefs.weights import Floor
    from bayescontrol.interaction import interact, play
    from bayescontrol.modes import DiscreteMode, PairedMode, tailor
    from bayescontrol.problems.tabular import TabularModes
    from bayescontrol.record import Probe, Record
    from bayescontrol.rule import ControlRule
    from bayescontrol.seeding import Stream

__version__ = "0.1.0"

__all__ = [
    "BernoulliBandit",
    "CategoricalBandit",
    "ControlRule",
    "DiscreteMode",
    "ExponentialBandit",
    "FiniteBelief",
    "Floor",
    "GaussianBandit",
    "JointBandit",
    "LinearBandit",
    "LogisticBandit",
    "LogitNormalBandit",
    "NaiveMixture",
    "PairedMode",
    "ParticleBelief",
    "PoissonBandit",
    "Probe",
    "Record",
    "SharedLinearBandit",
    "Stream",
    "TabularModes",
    "interact",
    "play",
    "tailor",
]

# Where each public name lives. Names load when first used: importing the package costs nothing.
_HOMES = {
    "BernoulliBandit": "bandits",
    "CategoricalBandit": "bandits",
    "ControlRule": "rule",
    "DiscreteMode": "modes",
    "ExponentialBandit": "bandits",
    "FiniteBelief": "beliefs.finite",
    "Floor": "beliefs.weights",
    "GaussianBandit": "bandits",
    "JointBandit": "bandits",
    "LinearBandit": "bandits",
    "LogisticBandit": "bandits",
    "LogitNormalBandit": "bandits",
    "NaiveMixture": "baselines.naive",
    "PairedMode": "modes",
    "ParticleBelief": "beliefs.particles",
    "PoissonBandit": "bandits",
    "Probe": "record",
    "Record": "record",
    "SharedLinearBandit": "bandits",
    "Stream": "seeding",
    "TabularModes": "problems.tabular",
    "interact": "interaction",
    "play": "interaction",
    "tailor": "modes",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'bayescontrol' has no attribute {name!r}")
    value = getattr(import_module(f"bayescontrol.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
