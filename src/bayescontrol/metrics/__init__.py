"""From records to curves: the delusion meter, regret and the share of the best arm."""

from bayescontrol.metrics.meter import Delusion, delusion
from bayescontrol.metrics.pulls import best_share, regret

__all__ = ["Delusion", "best_share", "delusion", "regret"]
