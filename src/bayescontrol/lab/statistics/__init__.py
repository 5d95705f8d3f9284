"""Means, intervals, bands, comparisons and tests over replicas.

means        mean_and_error, mean_interval (t, studentised bootstrap or Wilson: which fits)
curves       mean_interval point by point, mean_band for all points at once
bounded      wilson, bernstein, confidence_sequence (valid at every sample size at once)
agents       compare, compare_all: paired, tested and corrected before they say "better"
"""

from bayescontrol.lab.statistics.bootstrap import mean_band
from bayescontrol.lab.statistics.comparison import Comparison, Judgement, compare, compare_all
from bayescontrol.lab.statistics.means import (
    Method,
    fitting_method,
    mean_and_error,
    mean_interval,
)
from bayescontrol.lab.statistics.proportions import bernstein, wilson
from bayescontrol.lab.statistics.sample import Interval, InvalidSample, NoData
from bayescontrol.lab.statistics.sequences import anytime_p_value, confidence_sequence
from bayescontrol.lab.statistics.significance import holm, sign_flip_p_value

__all__ = [
    "Comparison",
    "Interval",
    "InvalidSample",
    "Judgement",
    "Method",
    "NoData",
    "anytime_p_value",
    "bernstein",
    "compare",
    "compare_all",
    "confidence_sequence",
    "fitting_method",
    "holm",
    "mean_and_error",
    "mean_band",
    "mean_interval",
    "sign_flip_p_value",
    "wilson",
]
