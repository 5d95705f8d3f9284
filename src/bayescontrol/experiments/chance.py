"""What chance may do to the means of runs, and how results are told.

    z = |mean - expected| / (s/√n)          off by so many standard errors
    z ≤ t_{n-1} quantile of 1 - α/(2 k)     what chance may do to k means, false alarms at rate α

What is the same in all runs has no standard error: it is told as a number alone, and must be
right to 1e-9.

Where theory gives no value, a pilot does: N runs made beforehand on another seed. The mean of n new
runs is then within t_{N-1} s √(1/n + 1/N) of the pilot's mean, within Bernstein's margins where
values lie in [0, 1], and their number of successes has a Beta-binomial distribution.
"""

import math
from typing import Final, NamedTuple

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.lab.statistics import bernstein, mean_and_error
from bayescontrol.lab.statistics.intervals import t_quantile
from bayescontrol.report.tables import with_error

#: How the settings explain the smallest number of runs.
FEW: Final = "number of replicas; with fewer, no claim could be told from chance"
#: Rounding, relative to the size of a value.
_ROUNDING: Final = 1e-12
_EXACT: Final = 1e-9
#: Weights below this are told as such.
_SMALL: Final = 1e-12
#: Of errors below this one digit is enough.
_TINY: Final = 1e-6
#: So many standard errors are beyond chance, where one mean is said to exceed another.
_BEYOND: Final = 2.0


class Compared(NamedTuple):
    """How far the worst of some means is from what was expected, in standard errors.

    The false alarms in the words are those of all claims of an experiment together.

    >>> Compared(1.23, 4.5, 1).words
    'z = 1.2 standard errors off; up to 4.5 is chance (false alarms: 1 in 1000)'
    """

    z: float
    allowed: float
    means: int

    @property
    def holds(self) -> bool:
        """Whether chance may have done it."""
        return self.z <= self.allowed

    @property
    def words(self) -> str:
        """The comparison for people to read."""
        worst = f", the worst of {self.means} means" if self.means > 1 else ""
        return (
            f"z = {self.z:.1f} standard errors off{worst}; up to {self.allowed:.1f} is chance "
            "(false alarms: 1 in 1000)"
        )


class Pilot(NamedTuple):
    """Mean and standard deviation over the runs of a pilot.

    >>> pilot = Pilot(0.9, 0.05, 20)
    >>> round(pilot.margin(2, 1e-3), 3), round(pilot.bounded_margin(200, 1e-3), 3)
    (0.144, 0.318)
    """

    mean: float
    sd: float
    runs: int

    def margin(self, n: int, alarms: float) -> float:
        """How far the mean of n new runs may be off, at this rate of false alarms."""
        t = float(t_quantile(1 - alarms / 2, self.runs - 1))
        return t * self.sd * math.sqrt(1 / n + 1 / self.runs)

    def bounded_margin(self, n: int, alarms: float) -> float:
        """The same for values in [0, 1] that are far from normal, by Bernstein's inequality."""
        return float(sum(bernstein(self.sd**2, size, alarms / 2) for size in (n, self.runs)))


def least_successes(n: int, pilot: tuple[int, int], alarms: float) -> int:
    """The fewest successes in n new runs that chance explains, given (successes, runs) of a pilot.

    With a uniform prior on the share, fewer have a probability of at most `alarms`.

    >>> least_successes(8, (30, 40), 0.01), least_successes(200, (200, 200), 0.001)
    (2, 191)
    """
    a, b = pilot[0] + 1, pilot[1] - pilot[0] + 1
    log_p = [
        _log_beta(k + a, n - k + b) - _log_beta(a, b) - _log_beta(k + 1, n - k + 1)
        for k in range(n + 1)
    ]
    p = np.exp(log_p) / (n + 1)
    return int(np.searchsorted(p.cumsum(), alarms, side="right"))


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def compare(runs: FloatArray, expected: FloatArray, alarms: float) -> Compared:
    """The means over the first axis, the independent runs, against what is expected of them.

    False alarms come at a rate of `alarms` over all means together: the experiment's share.

    >>> runs = np.array([[0.1, 0.5], [0.3, 0.5]] * 5)
    >>> compare(runs, np.array([0.2, 0.5]), 0.01).z, compare(runs, np.array([0.2, 0.6]), 0.01).z
    (0.0, inf)
    """
    mean, error = mean_and_error(runs)
    gap = np.abs(mean - expected)
    gap = np.where(gap <= _EXACT, 0.0, gap)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(gap == 0.0, 0.0, gap / error)
    allowed = t_quantile(1 - alarms / (2 * gap.size), len(runs) - 1)
    return Compared(float(z.max()), float(allowed), int(gap.size))


def beyond_chance(differences: FloatArray) -> bool:
    """Whether the mean difference is positive by more than two standard errors.

    >>> beyond_chance(np.array([0.1, 0.2, 0.3])), beyond_chance(np.array([-0.2, 0.2, 0.3]))
    (True, False)
    """
    mean, error = mean_and_error(differences)
    return bool(mean > _BEYOND * error)


def measured(runs: FloatArray) -> tuple[float, float | None]:
    """Mean and standard error of the runs; no error where they agree, or where there is one.

    >>> measured(np.array([1.0, 2.0, 3.0]))[0], measured(np.array([0.1 + 0.2, 0.3]))
    (2.0, (0.3, None))
    """
    mean, error = (float(value) for value in mean_and_error(runs))
    if np.ptp(runs) <= _ROUNDING * max(1.0, abs(mean)):
        return round(mean, 12) if abs(mean) > _SMALL else mean, None
    if error < _TINY:
        return (mean if abs(mean) > 1e3 * error else float(f"{mean:.1g}")), float(f"{error:.1g}")
    return mean, error if math.isfinite(error) else None


def told(runs: FloatArray) -> str:
    """Mean ± standard error for a table; one number where all runs agree.

    >>> told(np.array([1.0, 2.0, 3.0])), told(np.array([0.5, 0.5])), told(np.array([0, 1e-90]))
    ('2.00 ± 0.58', '0.5', 'below 1e-12')
    """
    mean, error = measured(runs)
    if 0.0 < abs(mean) < _SMALL:
        return small(mean)
    return with_error(mean, error)


def small(weight: float) -> str:
    """A weight that may be as good as nothing, to two digits.

    >>> small(0.01234), small(1e-232), small(0.0)
    ('0.012', 'below 1e-12', 'below 1e-12')
    """
    return f"{weight:.2g}" if weight >= _SMALL else f"below {_SMALL:.0e}"
