"""Tests of "no difference", exact and corrected for their number.

    sign flips   p = share of the 2^n sign patterns e with |Σ e_i d_i| ≥ |Σ d_i|
    Holm         p̃_(i) = max_{j≤i} min(1, (m - j + 1) p_(j)),  p_(1) ≤ … ≤ p_(m)

If two agents are equally good in the sense that swapping their names in a run changes no
law, then d_i and -d_i are equally likely whatever the law, and p is exact: P(p ≤ α) ≤ α for
every n. It needs no variance, so three equal differences prove nothing (p = 1/4), where
Student's t would be certain. Flips leave Σ d² alone, so this is the flip test of t as well,
and holds for large n also where d has mean 0 and is skewed. Holm keeps the probability of
even one false "better" among m below α, whatever their dependence.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.lab.statistics.sample import InvalidSample, as_sample
from bayescontrol.seeding import Stream, as_stream

_ALL_UP_TO: Final = 16
_FLIPS: Final = 9999
_CELLS: Final = 2**22


def sign_flip_p_value(differences: npt.ArrayLike, *, rng: int | Stream = 0) -> float:
    """p of "d and -d have the same law", two-sided.

    Up to 16 differences other than 0 all sign patterns are counted; beyond, 9,999 random
    ones and the observed, so that p is still exact, and at least 1/10,000.

    >>> sign_flip_p_value([0.1, 0.1, 0.1])
    0.25
    >>> sign_flip_p_value(np.ones(10)) == 2 / 2**10
    True
    """
    d = as_sample(differences)
    if d.ndim != 1:
        raise InvalidSample(f"a test needs one difference a run, the shape is {d.shape}")
    d = d[d != 0]  # flipping nothing changes nothing
    seen = abs(d.sum()) - 1e-12 * np.abs(d).sum()  # equal sums may differ by rounding
    if len(d) <= _ALL_UP_TO:
        sums = np.zeros(1)
        for d_i in d:
            sums = np.concatenate([sums + d_i, sums - d_i])
        return float((np.abs(sums) >= seen).mean())
    stream, reached = as_stream(rng), 1
    step = max(1, _CELLS // len(d))
    for start in range(0, _FLIPS, step):
        signs = 2 * stream.integers(2, size=(min(step, _FLIPS - start), len(d))) - 1
        reached += int((np.abs(signs @ d) >= seen).sum())
    return reached / (_FLIPS + 1)


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Holm's p-values: rejecting where p̃ ≤ α errs even once with probability ≤ α.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InvalidSample(f"p-values are a list of numbers between 0 and 1, not {p_values!r}")
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, np.arange(len(p), 0, -1) * p[order])
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted
