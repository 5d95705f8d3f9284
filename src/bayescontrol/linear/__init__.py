"""Linear plants with quadratic costs: learn the system by regression, draw one, and solve it.

y = A x + B u + w          c = xᵀQx + uᵀRu          u = -K(m) x,  m ~ P(m | âo_<t)
"""

from bayescontrol.linear.agent import DeterminantDoubling, LinearAgent
from bayescontrol.linear.belief import LinearMode, SystemBelief
from bayescontrol.linear.changing import ChangingSystemBelief
from bayescontrol.linear.costs import CostBelief
from bayescontrol.linear.matrices import average_cost, lyapunov, riccati
from bayescontrol.linear.output import OutputMode, OutputPlant
from bayescontrol.linear.problem import LinearQuadratic
from bayescontrol.linear.regression import SystemPrior
from bayescontrol.linear.regulator import RegulatorAgent, RegulatorBelief, RegulatorMode
from bayescontrol.linear.system import (
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
    "OutputMode",
    "OutputPlant",
    "RegulatorAgent",
    "RegulatorBelief",
    "RegulatorMode",
    "SystemBelief",
    "SystemPrior",
    "aircraft",
    "average_cost",
    "double_integrator",
    "laplacian",
    "lyapunov",
    "random_stable",
    "random_system",
    "random_unstable",
    "riccati",
]
