"""The relative entropies D and C of the paper in bits, on trees of all histories.

    D(Pr) = Σ_m P(m) Σ_τ (D_m^{a_τ} + D_m^{o_τ})     histories weighted by P_m(ao_<τ)
    C(Pr) = Σ_m P(m) Σ_τ (C_m^{a_τ} + C_m^{o_τ})     past actions as interventions

The naive mixture minimises D; the control rule minimises C, whatever the weights of the
interventions. Both are also code lengths: bits used beyond what the expert of the true mode needs.
"""

from bayescontrol.entropy.bits import (
    Bits,
    code_length,
    entropy_of,
    learning_cost,
    mutual_information,
    relative_entropy,
)
from bayescontrol.entropy.tree import InteractionTree, TooManyHistories, Weighting, weigh

__all__ = [
    "Bits",
    "InteractionTree",
    "TooManyHistories",
    "Weighting",
    "code_length",
    "entropy_of",
    "learning_cost",
    "mutual_information",
    "relative_entropy",
    "weigh",
]
