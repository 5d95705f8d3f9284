"""Check whether an agent over a class of modes converges to the policy of the true mode.

The agent *settles* if, whichever mode is true, its policy becomes that of the true mode.

`check`, `advise`          exact verdict for a finite class, and what would help
`core`, `consistent`       the two conditions of the convergence theorem
`sampled_check`            the same for infinite classes, by simulation
`settling_times`           steps until the weights of wrong modes vanish
`divergences`, `sub_divergences`            d_t(m*‖m) along a record, split by the drawn mode
`simulate_divergences`, `bands`, `ville`    the same over many runs
"""

from bayescontrol.convergence.boundedness import bands as bands
from bayescontrol.convergence.boundedness import simulate_divergences as simulate_divergences
from bayescontrol.convergence.boundedness import ville as ville
from bayescontrol.convergence.core import consistent as consistent
from bayescontrol.convergence.core import core as core
from bayescontrol.convergence.divergence import divergences as divergences
from bayescontrol.convergence.divergence import sub_divergences as sub_divergences
from bayescontrol.convergence.sampled import sampled_check as sampled_check
from bayescontrol.convergence.settling import settling_times as settling_times
from bayescontrol.convergence.verdict import Outcome as Outcome
from bayescontrol.convergence.verdict import PairVerdict as PairVerdict
from bayescontrol.convergence.verdict import Reason as Reason
from bayescontrol.convergence.verdict import Verdict as Verdict
from bayescontrol.convergence.verdict import advise as advise
from bayescontrol.convergence.verdict import check as check

# Type checkers read the imports, which re-export every name.
__all__ = sorted(name for name, value in list(globals().items()) if callable(value))
