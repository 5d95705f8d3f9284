"""Linear plants with quadratic costs: unknown systems, drawn from a regression and solved.

y = A x + B u + w          c = xᵀQx + uᵀRu          u = -K(m) x,  m ~ P(m | âo_<t)
"""

from bayescontrol.problems.linear.agent import LinearAgent
from bayescontrol.problems.linear.belief import SystemBelief
from bayescontrol.problems.linear.costs import CostBelief
from bayescontrol.problems.linear.mode import LinearMode
from bayescontrol.problems.linear.output import OutputMode, OutputPlant
from bayescontrol.problems.linear.plant import LinearPlant, Measured
from bayescontrol.problems.linear.plants import (
    PLANTS,
    aircraft,
    double_integrator,
    laplacian,
    random_stable,
    random_system,
    random_unstable,
)
from bayescontrol.problems.linear.prior import SystemPrior
from bayescontrol.problems.linear.riccati import average_cost, lyapunov, riccati
from bayescontrol.problems.linear.schedule import DeterminantDoubling
from bayescontrol.problems.linear.system import Costs, LinearSystem

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
