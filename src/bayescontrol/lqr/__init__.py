"""Linear plants with quadratic costs: learn the system by regression, draw one, and solve it.

y = A x + B u + w          c = xᵀQx + uᵀRu          u = -K(m) x,  m ~ P(m | âo_<t)
"""

from bayescontrol.lqr.agent import DeterminantDoubling as DeterminantDoubling
from bayescontrol.lqr.agent import LinearAgent as LinearAgent
from bayescontrol.lqr.belief import ChangingSystemBelief as ChangingSystemBelief
from bayescontrol.lqr.belief import LinearMode as LinearMode
from bayescontrol.lqr.belief import SystemBelief as SystemBelief
from bayescontrol.lqr.matrices import riccati as riccati
from bayescontrol.lqr.problem import LinearQuadratic as LinearQuadratic
from bayescontrol.lqr.regression import CostBelief as CostBelief
from bayescontrol.lqr.regression import SystemPrior as SystemPrior
from bayescontrol.lqr.regulator import RegulatorAgent as RegulatorAgent
from bayescontrol.lqr.regulator import RegulatorBelief as RegulatorBelief
from bayescontrol.lqr.regulator import RegulatorMode as RegulatorMode
from bayescontrol.lqr.system import PLANTS as PLANTS
from bayescontrol.lqr.system import Costs as Costs
from bayescontrol.lqr.system import LinearPlant as LinearPlant
from bayescontrol.lqr.system import LinearSystem as LinearSystem
from bayescontrol.lqr.system import Measured as Measured
from bayescontrol.lqr.system import aircraft as aircraft
from bayescontrol.lqr.system import double_integrator as double_integrator
from bayescontrol.lqr.system import laplacian as laplacian
from bayescontrol.lqr.system import random_stable as random_stable
from bayescontrol.lqr.system import random_system as random_system
from bayescontrol.lqr.system import random_unstable as random_unstable

# Type checkers read the imports, which re-export every name.
__all__ = ["PLANTS"]
__all__ += sorted(name for name, value in list(globals().items()) if callable(value))
