"""Means, intervals, bands, comparisons and tests over replicas.

means        mean_and_error; mean_interval chooses t, studentised bootstrap or Wilson
curves       mean_interval point by point, mean_band for all points at once
bounded      wilson, bernstein, confidence_sequence (valid at every sample size at once)
agents       compare_pair, compare_pairs: paired, tested and corrected for the number of comparisons
"""

from bayescontrol.statistics.comparison import Comparison as Comparison
from bayescontrol.statistics.comparison import compare_pair as compare_pair
from bayescontrol.statistics.comparison import compare_pairs as compare_pairs
from bayescontrol.statistics.comparison import holm as holm
from bayescontrol.statistics.intervals import Interval as Interval
from bayescontrol.statistics.intervals import InvalidSample as InvalidSample
from bayescontrol.statistics.intervals import NoData as NoData
from bayescontrol.statistics.intervals import bernstein as bernstein
from bayescontrol.statistics.intervals import mean_and_error as mean_and_error
from bayescontrol.statistics.intervals import mean_band as mean_band
from bayescontrol.statistics.intervals import mean_interval as mean_interval
from bayescontrol.statistics.intervals import wilson as wilson
from bayescontrol.statistics.sequences import confidence_sequence as confidence_sequence

# Type checkers read the imports, which re-export every name.
__all__ = sorted(name for name, value in list(globals().items()) if callable(value))
