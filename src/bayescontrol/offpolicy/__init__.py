"""What another policy would have earned, estimated from the decisions that a log holds."""

from bayescontrol.offpolicy.estimators import RewardEstimate
from bayescontrol.offpolicy.what_if import WhatIf, what_if

__all__ = ["RewardEstimate", "WhatIf", "what_if"]
