"""bayescontrol: one adaptive agent out of a class of experts, by the Bayesian control rule.

P(a_t | âo_<t) = Σ_m P(a_t | m, x) P(m | âo_<t)
"""

from bayescontrol.baselines.naive import NaiveMixture
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.beliefs.weights import Floor
from bayescontrol.interaction import interact, play
from bayescontrol.modes import DiscreteMode, PairedMode, tailor
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
    "interact",
    "play",
    "stream",
    "tailor",
]
