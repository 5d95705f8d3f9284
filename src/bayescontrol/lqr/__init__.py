"""Linear plants with quadratic costs: learn the system by regression, draw one, and solve it.

y = A x + B u + w          c = xᵀQx + uᵀRu          u = -K(m) x,  m ~ P(m | âo_<t)
"""

from bayescontrol.lqr.agent import DeterminantDoubling, LinearAgent
from bayescontrol.lqr.belief import ChangingSystemBelief, LinearMode, SystemBelief
from bayescontrol.lqr.matrices import riccati
from bayescontrol.lqr.problem import LinearQuadratic
from bayescontrol.lqr.regression import CostBelief, SystemPrior
from bayescontrol.lqr.regulator import RegulatorAgent, RegulatorBelief, RegulatorMode
from bayescontrol.lqr.system import (
    PLANTS,
    Costs,
    LinearPlant,
    LinearSystem,
    Measured,
    aircraft,
    double_integrator,
    laplacian,
    random_stable,
    random_system,
    random_unstable,
)

__all__ = [
    "PLANTS",
    "ChangingSystemBelief",
    "CostBelief",
    "Costs",
    "DeterminantDoubling",
    "LinearAgent",
    "LinearMode",
    "LinearPlant",
    "LinearQuadratic",
    "LinearSystem",
    "Measured",
    "RegulatorAgent",
    "RegulatorBelief",
    "RegulatorMode",
    "SystemBelief",
    "SystemPrior",
    "aircraft",
    "double_integrator",
    "laplacian",
    "random_stable",
    "random_system",
    "random_unstable",
    "riccati",
]
