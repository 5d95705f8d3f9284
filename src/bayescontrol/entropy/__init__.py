"""The relative entropies D and C of the paper in bits, on trees of all histories.

    D(Pr) = Σ_m P(m) Σ_τ (D_m^{a_τ} + D_m^{o_τ})     histories weighted by P_m(ao_<τ)
    C(Pr) = Σ_m P(m) Σ_τ (C_m^{a_τ} + C_m^{o_τ})     past actions as interventions

The naive mixture minimises D; the control rule minimises C, whatever the weights of the
interventions. Both are also code lengths: bits used beyond what the expert of the true mode needs.
"""

from bayescontrol.entropy.bits import Bits as Bits
from bayescontrol.entropy.bits import code_length as code_length
from bayescontrol.entropy.bits import entropy_of as entropy_of
from bayescontrol.entropy.bits import learning_cost as learning_cost
from bayescontrol.entropy.bits import mutual_information as mutual_information
from bayescontrol.entropy.bits import relative_entropy as relative_entropy
from bayescontrol.entropy.tree import InteractionTree as InteractionTree
from bayescontrol.entropy.tree import TooManyHistories as TooManyHistories
from bayescontrol.entropy.tree import Weighting as Weighting
from bayescontrol.entropy.tree import weigh as weigh

# Type checkers read the imports, which re-export every name.
__all__ = sorted(name for name, value in list(globals().items()) if callable(value))
