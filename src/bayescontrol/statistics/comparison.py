"""Compare agents on common random numbers, with tests corrected for their number.

    differences   d_i = a_i - b_i; run i of both agents has the same seed and run number
    pairing       Var d = Var a + Var b - 2 Cov(a, b): removes 1 - Var d / (Var a + Var b)
    sign flips    p = share of the 2^n sign patterns e with |Σ e_i d_i| ≥ |Σ d_i|
    Holm          p̃_(i) = max_{j≤i} min(1, (m - j + 1) p_(j)),  p_(1) ≤ … ≤ p_(m)

A verdict is "better" or "worse" only if the corrected test says p̃ ≤ α and the interval of the mean
difference excludes 0. Otherwise it is "undecided", which does not mean equal. With a number of runs
fixed in advance, the test uses sign flips; with `bounds` it uses anytime-valid bets, and one may
look after every run and stop at any time.

If swapping the two agents in a run changes no distribution, then d_i and -d_i are equally likely,
and the sign-flip p is exact: P(p ≤ α) ≤ α for every n. It needs no variance, so three equal
differences prove nothing (p = 1/4), where Student's t would be certain. Flips do not change Σ d²,
so this is also the flip test of t, valid for large n where d has mean 0 and is skewed. Holm keeps
the probability of one false "better" among m comparisons below α, whatever their dependence.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, TypeAlias

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.seeding import SeedLike, as_stream
from bayescontrol.statistics import intervals
from bayescontrol.statistics.intervals import Interval, InvalidSample, as_sample, check_level
from bayescontrol.statistics.sequences import anytime_p_value, check_within, confidence_sequence

TestName: TypeAlias = Literal["sign flips", "betting"]

#: The sign-flip test counts all sign patterns of up to 16 differences, else this many random ones.
_COUNT_ALL_UP_TO: Final = 16
_RANDOM_FLIPS: Final = 9999
_CELLS: Final = 2**22  # limit on the size of temporary arrays


@dataclass(frozen=True, eq=False)
class Comparison:
    """The comparison of agents names[0] and names[1]: mean of d = a - b, p-value and verdict.

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
    #: The mean difference a - b, with an interval that is not corrected for `family`.
    difference: Interval
    p_value: float
    #: Corrected by Holm for `family` comparisons.
    corrected_p_value: float
    family: int
    #: 1 - Var(a - b) / (Var a + Var b): the share of the variance that pairing removed; NaN if
    #: nothing varies.
    removed: float
    higher_is_better: bool
    test: TestName

    @property
    def verdict(self) -> Literal["better", "worse", "undecided"]:
        """The verdict: better or worse if p̃ ≤ α and the interval excludes 0, else undecided.

        >>> compare_pair([1.0, 2.0, 3.0], [0.0, 1.0, 2.0]).verdict
        'undecided'
        """
        d = self.difference
        if self.corrected_p_value > d.alpha or d.low <= 0 <= d.high:
            return "undecided"
        return "better" if (d.mean > 0) == self.higher_is_better else "worse"

    @property
    def sentence(self) -> str:
        """The verdict and its numbers as a sentence."""
        d, (a, b) = self.difference, self.names
        bounds = d.mean, d.low, d.high
        if self.verdict != "undecided" and d.mean < 0:  # the verdict states the direction
            bounds = -d.mean, -d.high, -d.low
        mean, low, high = intervals.format_interval(*bounds)
        verdict = f"{a} is {self.verdict} than {b} by {mean}"
        if self.verdict == "undecided":
            verdict = f"{a} and {b} cannot be distinguished: the difference is {mean}"
        level = f"{100 * (1 - d.alpha):g} % interval {low} to {high}"
        correction = f", corrected for {self.family} comparisons" if self.family > 1 else ""
        test = "by betting, valid at any time" if self.test == "betting" else "by sign flips"
        share = f"{100 * abs(self.removed):.0f} %"
        effect = f"removed {share} of" if self.removed >= 0 else f"added {share} to"
        pairing = "" if np.isnan(self.removed) else f"; pairing {effect} the variance"
        return (
            f"{verdict} ({level}, p = {self.corrected_p_value:.2g} {test}{correction}, "
            f"{self.n} paired runs{pairing})."
        )

    def __str__(self) -> str:
        return self.sentence


def compare_pair(
    a: ArrayLike,
    b: ArrayLike,
    *,
    names: tuple[str, str] = ("a", "b"),
    higher_is_better: bool = True,
    alpha: float = 0.05,
    bounds: tuple[float, float] | None = None,
    seed: SeedLike = 0,
) -> Comparison:
    """Compare two agents run by run: mean of d_i = a_i - b_i, interval, p-value and verdict.

    Without `bounds`, the number of runs must be fixed before looking at results. With `bounds`,
    the least and greatest possible value of a run, interval and p-value are valid at every number
    of runs at once.

    >>> from bayescontrol import Stream
    >>> luck = Stream(1).normal(size=30)
    >>> new = luck + 0.3 + 0.1 * Stream(2).normal(size=30)
    >>> twins = compare_pair(new, luck, names=("new", "old"))
    >>> print(twins)
    new is better than old by 0.299 (95 % interval 0.247 to 0.351, p = 0.0001 by sign flips,
    30 paired runs; pairing removed 99 % of the variance).
    """
    x, y = (as_sample(values, least=2) for values in (a, b))
    if x.ndim != 1 or x.shape != y.shape:
        raise InvalidSample(
            f"{names[0]} has shape {x.shape} and {names[1]} has shape {y.shape}: pass one value "
            "per run for each agent, for the same runs in the same order"
        )
    check_level(alpha)
    if bounds is None:
        interval, p = _fixed_size_test(x - y, alpha, seed)
    else:
        for name, values in zip(names, (x, y), strict=True):
            check_within(f"values of {name}", values, bounds)
        interval, p = _anytime_test(x - y, bounds[1] - bounds[0], alpha)
    test: TestName = "sign flips" if bounds is None else "betting"
    unpaired = x.var(ddof=1) + y.var(ddof=1)
    removed = float(1 - (x - y).var(ddof=1) / unpaired) if unpaired > 0 else math.nan
    return Comparison(
        names, n=len(x), difference=interval, p_value=p, corrected_p_value=p, family=1,
        removed=removed, higher_is_better=higher_is_better, test=test,
    )  # fmt: skip


def compare_pairs(
    values: Mapping[str, ArrayLike],
    *,
    baseline: str | None = None,
    higher_is_better: bool = True,
    alpha: float = 0.05,
    bounds: tuple[float, float] | None = None,
    seed: SeedLike = 0,
) -> tuple[Comparison, ...]:
    """Compare every pair of agents, or every agent with `baseline`, corrected by Holm.

    P(any verdict other than "undecided" between equally good agents) ≤ α.

    >>> from bayescontrol import Stream
    >>> luck = Stream(1).normal(size=30)
    >>> noise = Stream(2).normal(scale=0.1, size=(3, 30))
    >>> agents = {"new": luck + 0.3 + noise[0], "old": luck + noise[1], "older": luck + noise[2]}
    >>> [(c.names, c.verdict) for c in compare_pairs(agents)]
    [(('new', 'old'), 'better'), (('new', 'older'), 'better'), (('old', 'older'), 'undecided')]
    """
    if baseline is not None and baseline not in values:
        raise InvalidSample(f"no agent is called {baseline!r}: there are {', '.join(values)}")
    if len(values) < 2:
        raise InvalidSample(f"{len(values)} agents: a comparison needs at least two")
    pairs = list(itertools.combinations(values, 2))
    if baseline is not None:
        pairs = [(name, baseline) for name in values if name != baseline]
    test = partial(
        compare_pair, higher_is_better=higher_is_better, alpha=alpha, bounds=bounds, seed=seed
    )
    comparisons = [test(values[a], values[b], names=(a, b)) for a, b in pairs]
    corrected = holm([comparison.p_value for comparison in comparisons])
    return tuple(
        replace(comparison, corrected_p_value=float(p), family=len(comparisons))
        for comparison, p in zip(comparisons, corrected, strict=True)
    )


def sign_flip_p_value(differences: ArrayLike, *, seed: SeedLike = 0) -> float:
    """Return the two-sided p-value of "d and -d have the same distribution".

    With at most 16 nonzero differences all sign patterns are counted. With more, 9,999 random
    patterns and the observed one are counted: p is still exact, and at least 1/10,000.

    >>> sign_flip_p_value([0.1, 0.1, 0.1])
    0.25
    >>> sign_flip_p_value(np.ones(10)) == 2 / 2**10
    True
    """
    d = as_sample(differences)
    if d.ndim != 1:
        raise InvalidSample(f"differences have shape {d.shape}: pass one difference per run")
    d = d[d != 0]  # the sign of 0 does not matter
    observed = abs(d.sum()) - 1e-12 * np.abs(d).sum()  # equal sums may differ by rounding
    if len(d) <= _COUNT_ALL_UP_TO:
        sums = np.zeros(1)
        for d_i in d:
            sums = np.concatenate([sums + d_i, sums - d_i])
        return float((np.abs(sums) >= observed).mean())
    stream, as_extreme = as_stream(seed), 1  # the observed pattern counts
    step = max(1, _CELLS // len(d))
    for start in range(0, _RANDOM_FLIPS, step):
        signs = 2 * stream.integers(2, size=(min(step, _RANDOM_FLIPS - start), len(d))) - 1
        as_extreme += int((np.abs(signs @ d) >= observed).sum())
    return as_extreme / (_RANDOM_FLIPS + 1)


def holm(p_values: ArrayLike) -> FloatArray:
    """Return p-values corrected by Holm: P(any true hypothesis has p̃ ≤ α) ≤ α.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InvalidSample(f"p_values is {p_values!r}: pass a list of numbers between 0 and 1")
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, np.arange(len(p), 0, -1) * p[order])  # (m - j + 1) p_(j)
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


def _fixed_size_test(d: FloatArray, alpha: float, seed: SeedLike) -> tuple[Interval, float]:
    """Return the interval and the p-value for a number of runs fixed in advance."""
    # Wilson's interval does not apply: differences of 0 and 1 may also be -1.
    method = intervals.fitting_method(d)
    method = "t" if method == "Wilson" else method
    interval = intervals.mean_interval(d, alpha=alpha, method=method, seed=seed)
    return interval, sign_flip_p_value(d, seed=seed)


def _anytime_test(d: FloatArray, width: float, alpha: float) -> tuple[Interval, float]:
    """Return an interval and a p-value that are valid at every number of runs.

    Both agents have values in an interval of this width, so d is between -width and width.
    """
    all_t = confidence_sequence(d, (-width, width), alpha)
    mean, low, high = (np.asarray(of_t[-1]) for of_t in (all_t.mean, all_t.low, all_t.high))
    p = anytime_p_value(d, (-width, width), 0.0, alpha)
    return Interval(mean, low, high, alpha, all_t.method), p
