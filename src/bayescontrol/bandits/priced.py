"""The exact probability that each arm has the largest mean reward minus price.

    P_j = ∫ f_j(v + c_j) Π_{i≠j} F_i(v + c_i) dv          c_j the price of arm j

Prices only shift normal and Student's posteriors, which `best_arm` integrates. The mean rewards m
here have a lower end 0, and some an upper end 1, so that their supports are shifted against each
other. With y = ln m, or y = ln m/(1 - m) if m < 1, the densities are those of `kernels.posteriors`:

    BETA      m, or m/(1 + m), has a beta distribution
    GAMMA     m has a gamma distribution;  INVERSE_GAMMA: 1/m has
    NORMAL    y is normal

v runs through panels with K Gauss nodes, in each of which no density falls by much. A panel is
placed by the distance d from an end of a support, where densities may be singular, and has its
nodes at equal steps of ln d, so that d, and with it m, keeps all digits. F_i is the integral of f_i
up to a node. What is so near to an end that no more than e^-34 of the mass is nearer, or that no
double is, counts as equal to the end; ties are broken at random. All F_i and Σ P must reach 1.
"""

import math
from typing import Final, NamedTuple

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.bandits.best_arm import Mixture, single_components
from bayescontrol.errors import QuadratureFailed
from bayescontrol.kernels.posteriors import BETA, GAMMA, NODE, NORMAL, TO_RIGHT, WEIGHT, K

#: Points at which a density has fallen by z²/2, in standard deviations z if it is normal.
_POINTS: Final = (-8.25, -4.5, -1.5, 1.5, 4.5, 8.25)
#: The most that a panel covers: intervals between points, and the ratio of distances to an end.
_COVERED, _RATIO = 0.8, math.exp(3.0)
#: The largest |y|: beyond it m is not a double.
_FARTHEST: Final = 690.0
#: The upper end is singular if the last point is so much nearer to it than the fourth, or so near.
_NEARER, _NEAR = 0.4, 1e-3
#: The allowed errors of sums of P and of tails from SciPy, and the most panels times nodes times
#: arms.
_ERROR, _TAIL_ERROR, _MOST = 1e-9, 1e-5, 20_000_000


class _Panel(NamedTuple):
    """v = end + sign · d, with d from `near` to `far`."""

    end: float
    sign: float
    near: float
    far: float


def priced_best(
    kind: int,
    a: FloatArray,
    b: FloatArray,
    prices: FloatArray,
    mixture: Mixture | None = None,
    *,
    bounded: bool = False,
) -> FloatArray:
    """Return P(m_j - prices[j] is the largest) for every arm j; `kind` is that of the density of y.

    `bounded` says whether m < 1. Raises QuadratureFailed if the check fails.

    >>> priced_best(BETA, np.ones(2), np.ones(2), np.array([0.0, 0.5]), bounded=True).round(12)
    array([0.875, 0.125])
    """
    mixture = mixture or single_components(len(prices))
    of_arm = np.repeat(np.arange(len(prices)), np.diff(mixture.first))
    densities = _Densities(kind, bounded, a, b, prices[of_arm])
    with np.errstate(all="ignore"):  # the check finds what is not a number
        panels = densities.panels(mixture)
        if len(panels) * K * len(prices) > _MOST:
            raise QuadratureFailed(f"too many arms with different prices: {len(prices)}")
        P = _integrate(densities, panels, mixture, of_arm)
    if not abs(P.sum() - 1.0) <= _ERROR:
        raise QuadratureFailed(
            f"the probabilities of {len(prices)} arms with prices sum to {P.sum():.12g}: use "
            "prices and posteriors with closer scales"
        )
    return np.asarray(P / P.sum())


class _Densities:
    """The densities of the components of all arms; their supports are shifted by the prices."""

    def __init__(
        self, kind: int, bounded: bool, a: FloatArray, b: FloatArray, prices: FloatArray
    ) -> None:
        self.kind, self.bounded, self.a, self.b = kind, bounded, a, b
        #: The ends of the supports.
        self.left, self.right = -prices, 1.0 - prices if bounded else np.full(len(a), np.inf)
        peak, reach = kernels.posteriors.peak, kernels.posteriors.reach
        self.points, self.peak = np.empty((len(a), len(_POINTS))), np.empty(len(a))
        for i, ab in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            mode, self.peak[i], scale = peak(kind, *ab, 0.0)
            for k, z in enumerate(_POINTS):
                side = math.copysign(1.0, z)
                d = reach(kind, *ab, 0.0, mode, scale, side, 0.5 * z * z)
                self.points[i, k] = min(max(mode + side * d, -_FARTHEST), _FARTHEST)
        #: The smallest and the largest m with mass, and its distance from the upper end.
        self.low, self.high = self.mean(self.points[:, 0]), self.mean(self.points[:, -1])
        self.rest = self.mean(-self.points[:, -1])
        is_near = self.rest < np.maximum(_NEARER * self.mean(-self.points[:, 3]), _NEAR)
        self.singular_ends = np.where(bounded & is_near, self.right, np.nan)

    def mean(self, y: FloatArray) -> FloatArray:
        """Return m at y; if m is bounded, 1 - m at -y."""
        return np.asarray(np.exp(y) / (1.0 + np.exp(y)) if self.bounded else np.exp(y))

    def split(self, end: float, sign: float, d: float) -> tuple[FloatArray, FloatArray]:
        """Return m of all components and 1 - m at v = end + sign · d."""
        return (end - self.left) + sign * d, (self.right - end) - sign * d

    # -- where the panels are ------------------------------------------------------------------

    def panels(self, mixture: Mixture) -> list[_Panel]:
        """Return panels from the v where all arms have mass to the v where no arm has more."""
        end = float(self.left.max())
        d = float(np.minimum.reduceat(self.left - end + self.low, mixture.first[:-1]).max())
        last = end + d if self.bounded else -math.inf
        top, panels = float((self.left - end + self.high).max()), list[_Panel]()
        origin, ends = end, np.unique(self.singular_ends[self.singular_ends > last])
        for right in [*ends.tolist(), math.inf]:
            if math.isinf(right):
                self._place_up(end, d, top - (end - origin), panels)
            else:
                middle = max(0.5 * (right - end), d)
                self._place_up(end, d, middle, panels)
                self._place_down(right, (right - end) - middle, panels)
            end, d = right, 0.0
        return panels

    def _place_up(self, end: float, d: float, stop: float, panels: list[_Panel]) -> None:
        """Append panels from the distance d above an end up to `stop`."""
        while d < stop:
            m, _ = self.split(end, 1.0, d)
            far = d * _RATIO if d > 0.0 else 0.5 * float(m[m > 0.0].min())
            limits = self._following(end, 1.0, d) - (end - self.left)
            far = min(far, stop, float(limits.min()))
            if not far > d:  # also if it is NaN
                raise QuadratureFailed("the posteriors and prices have scales that differ too much")
            panels.append(_Panel(end, 1.0, d, far))
            d = far

    def _place_down(self, end: float, d: float, panels: list[_Panel]) -> None:
        """Append panels from the distance d below an end up to the end."""
        beyond = self.right - end
        nearest = min(
            float(self.rest[self.singular_ends == end].min()),
            0.5 * float(beyond[beyond > 0.0].min(initial=math.inf)),
        )
        while d > 0.0:
            limits = self._following(end, -1.0, d) - beyond
            near = max(float(limits.max()), nearest if d > nearest else 0.0)
            near = max(near, d / _RATIO) if near > 0.0 else 0.0
            if not near < d:
                raise QuadratureFailed("the posteriors and prices have scales that differ too much")
            panels.append(_Panel(end, -1.0, near, d))
            d = near

    def _following(self, end: float, sign: float, d: float) -> FloatArray:
        """Return how far a panel from v = end + sign · d may go: the m, or 1 - m if sign < 0.

        It is ∞, or -∞ for 1 - m, for a density that has no more mass.
        """
        m, rest = self.split(end, sign, d)
        y = np.where(rest > 0.0, np.log(m) - (np.log(rest) if self.bounded else 0.0), np.inf)
        points, steps = self.points, np.diff(self.points)
        tolerance = 1e-12 * (1.0 + np.abs(points))
        passed = (y[:, None] + tolerance[:, :-1] - points[:, :-1]) / np.maximum(
            steps, tolerance[:, :-1]
        )
        u = np.minimum(passed.clip(0.0, 1.0).sum(1) + _COVERED, steps.shape[1])
        k, i = np.minimum(u.astype(np.int64), steps.shape[1] - 1), np.arange(len(y))
        before = y < points[:, 0] - tolerance[:, 0]
        y_next = np.where(before, points[:, 0], points[i, k] + (u - k) * steps[i, k])
        is_over = y >= points[:, -1] - tolerance[:, -1]
        if sign > 0.0:
            return np.where(is_over, np.inf, self.mean(y_next))
        return np.where(is_over, -np.inf, self.mean(-y_next))

    # -- densities and distribution functions ----------------------------------------------------

    def density(self, i: int, m: FloatArray, rest: FloatArray) -> FloatArray:
        """Return the density of component i at m, where rest = 1 - m if m is bounded."""
        a, b = self.a[i], self.b[i]
        if self.kind == NORMAL:
            z = (np.log(m) - np.log(rest) - a) / b
            log_f = -0.5 * z * z
        elif self.kind == BETA:
            x, y = (m, rest) if self.bounded else (m / (1.0 + m), 1.0 / (1.0 + m))
            x0, y0 = a / (a + b), b / (a + b)
            d = x - x0 if a < b else y0 - y
            log_f = a * _log_ratio(x, d, x0) + b * _log_ratio(y, -d, y0)
        else:
            x, x0 = (m if self.kind == GAMMA else 1.0 / m), a / b
            log_f = a * (_log_ratio(x, x - x0, x0) - (x - x0) / x0)
        f = self.peak[i] * np.exp(log_f) / (m * rest if self.bounded else m)
        return np.where((m > 0.0) & (rest > 0.0), f, 0.0)

    def below(self, m: FloatArray, rest: FloatArray) -> FloatArray:
        """Return the probability of all components below m."""
        from scipy import special  # type: ignore[import-untyped]

        a, b = self.a, self.b
        if self.kind == NORMAL:
            F = special.ndtr((np.log(m) - np.log(rest) - a) / b)
        elif self.kind == BETA:
            x, y = (m, rest) if self.bounded else (m / (1.0 + m), 1.0 / (1.0 + m))
            F = np.where(x < y, special.betainc(a, b, x), 1.0 - special.betainc(b, a, y))
        elif self.kind == GAMMA:
            F = special.gammainc(a, b * m)
        else:
            F = special.gammaincc(a, b / m)
        return np.where(rest > 0.0, F, 1.0)

    def above(self, i: int, rest: float) -> float:
        """Return the probability of component i within a distance from the upper end."""
        from scipy import special

        if self.kind == NORMAL:
            return float(special.ndtr((self.a[i] - math.log1p(-rest) + math.log(rest)) / self.b[i]))
        return float(special.betainc(self.b[i], self.a[i], rest))


def _log_ratio(x: FloatArray, d: FloatArray, x0: float) -> FloatArray:
    """Return ln x/x0, where x = x0 + d; from d if it is small, without cancellation."""
    return np.where(np.abs(d) < 0.5 * x0, np.log1p(d / x0), np.log(x / x0))


def _integrate(
    densities: _Densities, panels: list[_Panel], mixture: Mixture, of_arm: IntArray
) -> FloatArray:
    """Return P of all arms, of which the sum is to be checked; NaN if some F_i does not reach 1."""
    end, sign, near, far = np.array(panels).T
    is_linear = near == 0.0
    middle = 0.5 * np.where(is_linear, far, np.log(far) + np.log(near))
    h = 0.5 * np.where(is_linear, far, np.log(far / near))
    d = middle[:, None] + (sign * h)[:, None] * NODE
    d = np.where(is_linear[:, None], d, np.exp(d))
    width = h[:, None] * np.where(is_linear[:, None], 1.0, d)
    start = end + np.where(sign > 0.0, near, -far)
    stop = end + np.where(sign > 0.0, far, -near)
    N = len(mixture.first) - 1
    f = np.zeros((N, 1 + len(panels), K))
    for i, p in enumerate(mixture.p.tolist()):
        left, right, j = densities.left[i], densities.right[i], of_arm[i]
        is_singular = densities.singular_ends[i] == right
        first = stop.searchsorted(left + densities.low[i])
        part = slice(
            first, start.searchsorted(right if is_singular else left + densities.high[i], "right")
        )
        x = sign[part, None] * d[part]
        m, rest = (end[part] - left)[:, None] + x, (right - end[part])[:, None] - x
        values = densities.density(i, m, rest) * width[part]
        if is_singular:
            at_right = is_linear[part] & (sign[part] < 0.0) & (end[part] == right)
            for k in np.flatnonzero(at_right).tolist():
                values[k] = 0.5 * densities.above(i, far[part][k])
        f[j, 1:][part] += p * values
    lowest = densities.below(*densities.split(end[0], sign[0], near[0] if sign[0] > 0 else far[0]))
    F_0 = np.add.reduceat(mixture.p * lowest, mixture.first[:-1])
    # The panel before the first holds what is equal to the largest lower end.
    at_end = densities.left[mixture.first[:-1]] == densities.left.max()
    f[at_end, 0] = 0.5 * F_0[at_end, None]
    mass = f @ WEIGHT
    total = np.where(at_end, 0.0, F_0) + mass.sum(1)
    allowed = np.where(F_0 < 1e-12, _ERROR, _TAIL_ERROR)  # SciPy: gammainc for a = 1e9
    if not (np.abs(total - 1.0) <= allowed).all():
        return np.full(N, np.nan)
    to_right = mass.sum(1, keepdims=True) - np.cumsum(mass, 1)
    F = (1.0 - to_right[:, :, None] - f @ TO_RIGHT).clip(0.0, 1.0)
    others = np.ones_like(F)
    np.cumprod(F[:-1], 0, out=others[1:])
    others[:-1] *= np.cumprod(F[:0:-1], 0)[::-1]
    return np.asarray(np.maximum(np.einsum("jpk,jpk,k->j", f, others, WEIGHT), 0.0))
