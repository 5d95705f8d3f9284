"""Check whether an agent over a class of modes converges to the policy of the true mode.

The agent *settles* if, whichever mode is true, its policy becomes that of the true mode.

`check`, `advise`          exact verdict for a finite class, and what would help
`core`, `consistent`       the two conditions of the convergence theorem
`sampled_check`            the same for infinite classes, by simulation
`settling_times`           steps until the weights of wrong modes vanish
`divergences`, `sub_divergences`            d_t(m*‖m) along a record, split by the drawn mode
`simulate_divergences`, `bands`, `ville`    the same over many runs
"""

from bayescontrol.convergence.boundedness import bands, simulate_divergences, ville
from bayescontrol.convergence.core import consistent, core
from bayescontrol.convergence.divergence import divergences, sub_divergences
from bayescontrol.convergence.sampled import sampled_check
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
    "settling_times",
    "simulate_divergences",
    "sub_divergences",
    "ville",
]
