"""Which agent is better, on common random numbers.

    d_i = a_i - b_i        run i of both agents met the same luck: same seed, same run number
    Var d = Var a + Var b - 2 Cov(a, b)      pairing removes 1 - Var d / (Var a + Var b)

The word "better" is printed when two locks open: the corrected test says p̃ ≤ α, and the
interval of the mean difference leaves 0 out. The test is of sign flips for a number of runs
fixed beforehand; with `bounds` it is the anytime-valid bet, and one may look after every run
and stop at will. Otherwise the verdict is "undecided", which is not "equal".
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.lab.statistics.means import fitting_method, mean_interval
from bayescontrol.lab.statistics.sample import (
    Interval,
    InvalidSample,
    as_sample,
    check_level,
    shown,
)
from bayescontrol.lab.statistics.sequences import anytime_p_value, confidence_sequence
from bayescontrol.lab.statistics.significance import holm, sign_flip_p_value
from bayescontrol.seeding import Stream

Judgement: TypeAlias = Literal["better", "worse", "undecided"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Agent names[0] against names[1]: the mean of d = a - b, its p-value, and a verdict.

    >>> one = Comparison(("new", "old"), 40, Interval(*map(np.array, (1.0, 0.4, 1.6)), 0.05, "t"),
    ...                  p_value=0.002, corrected_p_value=0.002, family=1, removed=0.75,
    ...                  higher_is_better=True, test="sign flips")
    >>> one.verdict
    'better'
    >>> print(one)
    new is better than old by 1.00 (95 % interval 0.40 to 1.60, p = 0.002 by sign flips, 40 paired
    runs; pairing removed 75 % of the variance).
    """

    names: tuple[str, str]
    #: The number of paired runs.
    n: int
    #: The mean difference a - b, with the interval of this comparison alone.
    difference: Interval
    p_value: float
    #: Corrected by Holm for `family` comparisons; the same where there is one.
    corrected_p_value: float
    family: int
    #: 1 - Var(a - b) / (Var a + Var b): the share of the variance that pairing removed.
    removed: float
    higher_is_better: bool
    test: Literal["sign flips", "betting"]

    @property
    def verdict(self) -> Judgement:
        """better, if p̃ ≤ α and the interval lies on the good side of 0; worse; or undecided.

        >>> compare([1.0, 2.0, 3.0], [0.0, 1.0, 2.0]).verdict
        'undecided'
        """
        d = self.difference
        if self.corrected_p_value > d.alpha or d.low <= 0 <= d.high:
            return "undecided"
        return "better" if (d.mean > 0) == self.higher_is_better else "worse"

    @property
    def sentence(self) -> str:
        """The verdict with its numbers, fit to be printed.

        >>> compare([1.0, 2.0, 3.0], [0.0, 1.0, 2.0], names=("new", "old")).sentence
        'new and old are not told apart: the difference is 1 (95 % interval 1 to 1, p = 0.25 ...'
        """
        d, (a, b) = self.difference, self.names
        mean, low, high = shown(d.mean, d.low, d.high)
        by = mean.removeprefix("-")
        said = {
            "better": f"{a} is better than {b} by {by}",
            "worse": f"{a} is worse than {b} by {by}",
            "undecided": f"{a} and {b} are not told apart: the difference is {mean}",
        }[self.verdict]
        level = f"{100 * (1 - d.alpha):g} % interval {low} to {high}"
        holm_ = f", corrected for {self.family} comparisons" if self.family > 1 else ""
        test = "by betting, valid at any time" if self.test == "betting" else "by sign flips"
        pairing = "" if np.isnan(self.removed) else f"; {_pairing(self.removed)}"
        return (
            f"{said} ({level}, p = {self.corrected_p_value:.2g} {test}{holm_}, "
            f"{self.n} paired runs{pairing})."
        )

    def __str__(self) -> str:
        return self.sentence


def compare(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    names: tuple[str, str] = ("a", "b"),
    higher_is_better: bool = True,
    alpha: float = 0.05,
    bounds: tuple[float, float] | None = None,
    rng: int | Stream = 0,
) -> Comparison:
    """Run by run, a_i against b_i: mean of d_i = a_i - b_i, interval, p-value and verdict.

    Without `bounds` the number of runs must have been fixed before looking. With `bounds`,
    the least and greatest value that a run of either agent can have, interval and p-value
    hold at every number of runs at once.

    >>> luck = Stream(1).normal(size=30)
    >>> twins = compare(luck + 0.3 + 0.1 * Stream(2).normal(size=30), luck, names=("new", "old"))
    >>> print(twins)
    new is better than old by 0.299 (95 % interval 0.247 to 0.351, p = 0.0001 by sign flips,
    30 paired runs; pairing removed 99 % of the variance).
    """
    x, y = (as_sample(values, least=2) for values in (a, b))
    if x.ndim != 1 or x.shape != y.shape:
        raise InvalidSample(
            f"{names[0]} has shape {x.shape} and {names[1]} {y.shape}: a paired comparison needs "
            "one value a run of each, the same runs in the same order"
        )
    check_level(alpha)
    if bounds is None:
        interval, p = _fixed(x - y, alpha, rng)
    else:
        for name, values in zip(names, (x, y), strict=True):
            _check_within(name, values, bounds)
        interval, p = _anytime(x - y, bounds[1] - bounds[0], alpha)
    return Comparison(
        names=names,
        n=len(x),
        difference=interval,
        p_value=p,
        corrected_p_value=p,
        family=1,
        removed=_removed(x, y),
        higher_is_better=higher_is_better,
        test="sign flips" if bounds is None else "betting",
    )


def compare_all(
    values: Mapping[str, npt.ArrayLike],
    *,
    baseline: str | None = None,
    higher_is_better: bool = True,
    alpha: float = 0.05,
    bounds: tuple[float, float] | None = None,
    rng: int | Stream = 0,
) -> tuple[Comparison, ...]:
    """Every pair of agents, or every agent against `baseline`, corrected by Holm for all.

    P(some verdict other than "undecided" between equally good agents) ≤ α.

    >>> luck = Stream(1).normal(size=30)
    >>> noise = Stream(2).normal(scale=0.1, size=(3, 30))
    >>> agents = {"new": luck + 0.3 + noise[0], "old": luck + noise[1], "older": luck + noise[2]}
    >>> [(c.names, c.verdict) for c in compare_all(agents)]
    [(('new', 'old'), 'better'), (('new', 'older'), 'better'), (('old', 'older'), 'undecided')]
    """
    if baseline is not None and baseline not in values:
        raise InvalidSample(f"no agent is called {baseline!r}: there are {', '.join(values)}")
    if len(values) < 2:
        raise InvalidSample(f"{len(values)} agents: a comparison needs at least two")
    pairs = [
        pair for pair in itertools.combinations(values, 2) if baseline is None or baseline in pair
    ]
    if baseline is not None:
        pairs = [(a if b == baseline else b, baseline) for a, b in pairs]
    alone = [
        compare(
            values[a],
            values[b],
            names=(a, b),
            higher_is_better=higher_is_better,
            alpha=alpha,
            bounds=bounds,
            rng=rng,
        )
        for a, b in pairs
    ]
    corrected = holm([one.p_value for one in alone])
    return tuple(
        replace(one, corrected_p_value=float(p), family=len(alone))
        for one, p in zip(alone, corrected, strict=True)
    )


def _fixed(d: FloatArray, alpha: float, rng: int | Stream) -> tuple[Interval, float]:
    # Differences that are 0 or 1 are no proportion: -1 could have come as well.
    method = fitting_method(d)
    interval = mean_interval(d, alpha=alpha, method="t" if method == "Wilson" else method, rng=rng)
    return interval, sign_flip_p_value(d, rng=rng)


def _anytime(d: FloatArray, width: float, alpha: float) -> tuple[Interval, float]:
    """A difference of values in an interval of width w lies in [-w, w]."""
    seen = confidence_sequence(d, (-width, width), alpha)
    mean, low, high = (np.asarray(values[-1]) for values in (seen.mean, seen.low, seen.high))
    p = anytime_p_value(d, (-width, width), 0.0, alpha)
    return Interval(mean, low, high, alpha, seen.method), p


def _check_within(name: str, values: FloatArray, bounds: tuple[float, float]) -> None:
    if values.min() < bounds[0] or values.max() > bounds[1]:
        raise InvalidSample(
            f"{name} has values from {values.min():g} to {values.max():g}, outside the bounds "
            f"{bounds}: give bounds that no run can leave"
        )


def _removed(x: FloatArray, y: FloatArray) -> float:
    apart = x.var(ddof=1) + y.var(ddof=1)
    return float(1 - (x - y).var(ddof=1) / apart) if apart > 0 else float("nan")


def _pairing(removed: float) -> str:
    if removed >= 0:
        return f"pairing removed {100 * removed:.0f} % of the variance"
    return f"pairing added {-100 * removed:.0f} % to the variance"
