"""Will a class of modes settle, and who is to blame if not.

record            → d_t(m*‖m), its split by the mode in charge, the posterior bound
many runs         → boundedness bands, Ville's bound, steps until a wrong mode is dropped
finite class      → core, consistency, rates and verdict, exactly
any other class   → the same by simulation, with error bars
"""

from bayescontrol.convergence.boundedness import bands, simulate_divergences, ville
from bayescontrol.convergence.core import consistent, core
from bayescontrol.convergence.divergence import divergences, sub_divergences
from bayescontrol.convergence.sampled import sampled_check, sampled_rate
from bayescontrol.convergence.settling import settling_times
from bayescontrol.convergence.verdict import Outcome, PairVerdict, Reason, Verdict, advise, check

__all__ = [
    "Outcome",
    "PairVerdict",
    "Reason",
    "Verdict",
    "advise",
    "bands",
    "check",
    "consistent",
    "core",
    "divergences",
    "sampled_check",
    "sampled_rate",
    "settling_times",
    "simulate_divergences",
    "sub_divergences",
    "ville",
]
