"""Linear plants with quadratic costs: unknown systems, drawn from a regression and solved.

y = A x + B u + w          c = xᵀQx + uᵀRu          u = -K(m) x,  m ~ P(m | âo_<t)
"""

from bayescontrol.linear.agent import LinearAgent
from bayescontrol.linear.belief import SystemBelief
from bayescontrol.linear.costs import CostBelief
from bayescontrol.linear.mode import LinearMode
from bayescontrol.linear.output import OutputMode, OutputPlant
from bayescontrol.linear.plant import LinearPlant, Measured
from bayescontrol.linear.plants import (
    PLANTS,
    aircraft,
    double_integrator,
    laplacian,
    random_stable,
    random_system,
    random_unstable,
)
from bayescontrol.linear.prior import SystemPrior
from bayescontrol.linear.riccati import average_cost, lyapunov, riccati
from bayescontrol.linear.schedule import DeterminantDoubling
from bayescontrol.linear.system import Costs, LinearSystem

__all__ = [
    "PLANTS",
    "CostBelief",
    "Costs",
    "DeterminantDoubling",
    "LinearAgent",
    "LinearMode",
    "LinearPlant",
    "LinearSystem",
    "Measured",
    "OutputMode",
    "OutputPlant",
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
