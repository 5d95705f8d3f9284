"""Will a class of modes settle, and who is to blame if not.

record          → d_t(m*‖m), its split by the mode in charge, the posterior bound
class of modes  → core, consistency, rates, verdict
"""

from bayescontrol.convergence.consistency import consistent
from bayescontrol.convergence.core import core
from bayescontrol.convergence.verdict import Outcome, PairVerdict, Reason, Verdict, check

__all__ = ["Outcome", "PairVerdict", "Reason", "Verdict", "check", "consistent", "core"]
