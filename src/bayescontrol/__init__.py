"""bayescontrol: one adaptive agent out of a class of experts, by the Bayesian control rule.

    P(a_t | âo_<t) = Σ_m P(a_t | m, x) P(m | âo_<t)

Draw a mode, do what it would do, and learn from observations alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayescontrol.baselines.naive import NaiveMixture
    from bayescontrol.beliefs.finite import FiniteBelief
    from bayescontrol.beliefs.weights import Floor
    from bayescontrol.interaction import interact, play
    from bayescontrol.modes import DiscreteMode, PairedMode, tailor
    from bayescontrol.problems.tabular import TabularModes
    from bayescontrol.record import Probe, Record
    from bayescontrol.rule import ControlRule
    from bayescontrol.seeding import Stream, stream

__version__ = "0.1.0"

__all__ = [
    "ControlRule",
    "DiscreteMode",
    "FiniteBelief",
    "Floor",
    "NaiveMixture",
    "PairedMode",
    "Probe",
    "Record",
    "Stream",
    "TabularModes",
    "interact",
    "play",
    "stream",
    "tailor",
]

# Where each public name lives. Names load when first used: importing the package costs nothing.
_HOMES = {
    "ControlRule": "rule",
    "DiscreteMode": "modes",
    "FiniteBelief": "beliefs.finite",
    "Floor": "beliefs.weights",
    "NaiveMixture": "baselines.naive",
    "PairedMode": "modes",
    "Probe": "record",
    "Record": "record",
    "Stream": "seeding",
    "TabularModes": "problems.tabular",
    "interact": "interaction",
    "play": "interaction",
    "stream": "seeding",
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
