"""Means, intervals, bands, comparisons and tests over replicas.

means        mean_and_error; mean_interval chooses t, studentised bootstrap or Wilson
curves       mean_interval point by point, mean_band for all points at once
bounded      wilson, bernstein, confidence_sequence (valid at every sample size at once)
agents       compare_pair, compare_pairs: paired, tested and corrected for the number of comparisons
"""

from bayescontrol.statistics.comparison import Comparison, compare_pair, compare_pairs, holm
from bayescontrol.statistics.intervals import (
    Interval,
    InvalidSample,
    NoData,
    bernstein,
    mean_and_error,
    mean_band,
    mean_interval,
    wilson,
)
from bayescontrol.statistics.sequences import confidence_sequence

__all__ = [
    "Comparison",
    "Interval",
    "InvalidSample",
    "NoData",
    "bernstein",
    "compare_pair",
    "compare_pairs",
    "confidence_sequence",
    "holm",
    "mean_and_error",
    "mean_band",
    "mean_interval",
    "wilson",
]
