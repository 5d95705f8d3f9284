"""P(arm i is best) for independent arms, by adaptive quadrature with a check.

    P_i = ∫ f_i(y) Π_{j≠i} F_j(y) dy,      F_j(y) = 1 - ∫_y^∞ f_j,      f_j = Σ_s p_{j,s} f_{j,s}
    S   = Σ_i f_i Π_{j≠i} F_j = (Π_j F_j)'

The density of an arm is a mixture of components s; most arms have a single one with p = 1.

Panels are placed from the right, where every F_j is 1, to the left, until some F_j is 0. In a panel
of half-width h, K Gauss nodes give f and, through TO_RIGHT, also F: no distribution function is
called. A panel is accepted if

    h c_K (c_K / c_{K/2})² ≤ ε      for each f_j and for S
    |∫ S - [Π_j F_j]| ≤ ε           both sides are the same integral, computed in two ways

where c_n are Legendre coefficients: they fall at least geometrically, so that the left side is
about c_{2K}, the first that Gauss's rule misses. Otherwise it is narrowed. A panel never covers a
component that is too narrow for its nodes.

Arms with equal posteriors are computed once: c of them contribute the factor F_j^c.

A component has a row of numbers: mode, p times the density there, scale, LOW and HIGH between which
it has mass, and its logarithm around the middle of the panel. Also an arm has a row: HIGH, MASS in
the panel, and TAIL = 1 - F_j at its right end. The components of arm j are `first[j]` to
`first[j + 1] - 1`.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.elementary import exp, exp_split, log
from bayescontrol.kernels.posteriors import (
    BETA,
    COEFFICIENT,
    INVERSE_GAMMA,
    NODE,
    NORMAL,
    SMALL,
    STUDENT,
    TO_RIGHT,
    WEIGHT,
    K,
    fall,
    logit_tail,
    peak,
    reach,
    shape,
    small_fall,
    weight,
    widest,
)
from bayescontrol.kernels.regression import dot

#: The allowed error of a panel, and the logarithm of the mass that is omitted on either side.
EPSILON, T = 1e-14, 34.0
#: A panel with a mode in it is at most MAX_SCALES scales wide, and no arm falls by more than
#: e^-MAX_FALL from its middle to its end, so that the nodes resolve it.
MAX_SCALES, MAX_FALL = 2.5, 60.0

# The columns of the row of a component or an arm.
MODE, PEAK, SCALE, LOW, HIGH, TAIL, MASS, DROP, SLOPE, SIZE, AT_MODE = range(11)


class Components(NamedTuple):
    """The densities of all arms; those of arm j are the components `first[j]` to `first[j+1] - 1`.

    `a`, `b` and `nu` are the parameters in `posteriors`, and `p` the probabilities of the
    components. `multiplicity[j]` arms are equal to arm j, itself included; only one is listed.
    `rows` and `arms` hold a row of numbers for each component and each arm.
    """

    kind: int
    a: FloatArray
    b: FloatArray
    nu: FloatArray
    first: IntArray
    p: FloatArray
    multiplicity: IntArray
    rows: FloatArray
    arms: FloatArray


class Nodes(NamedTuple):
    """Values at the K nodes of a panel."""

    #: For each arm j: h f_j, F_j, h f_j times the product of the other F, and its sum over panels.
    f: FloatArray
    F: FloatArray
    part: FloatArray
    total: FloatArray
    #: D of `posteriors.shape`, the sum S of all parts, and scratch.
    D: FloatArray
    S: FloatArray
    scratch: FloatArray


@leaf
def max_or_nan(x: float, y: float) -> float:
    """Return max(x, y), or NaN if one of them is NaN, which rejects the panel.

    >>> max_or_nan(1.0, 2.0), max_or_nan(math.nan, 2.0)
    (2.0, nan)
    """
    return x if x >= y or x != x else y


@leaf
def rounded_up(x: float) -> float:
    """Round x up to 49 bits; the other 4 keep the middle of numbers of similar size exact.

    >>> rounded_up(0.1) - 0.1 < 1e-15, rounded_up(0.5)
    (True, 0.5)
    """
    _, e = math.frexp(x)
    return math.ldexp(np.ceil(math.ldexp(x, 49 - e)), e - 49)


@leaf
def gauss_error(f: FloatArray) -> float:
    """Estimate |c_2K|, the first coefficient that the rule with K nodes gets wrong.

    `f` holds the values of the function at the nodes. Its coefficients decrease about as fast from
    the last to c_2K as from the middle to the last.

    >>> gauss_error(np.ones(K)) < 1e-16, gauss_error(abs(NODE)) > 1e-4
    (True, True)
    """
    middle_0, middle_1, last_0, last_1 = 0.0, 0.0, 0.0, 0.0
    for k in range(K // 2):  # the polynomials of odd degree are odd, the others even
        even, odd = f[k] + f[K - 1 - k], f[k] - f[K - 1 - k]
        middle_0 += COEFFICIENT[0, k] * odd
        middle_1 += COEFFICIENT[1, k] * even
        last_0 += COEFFICIENT[2, k] * even
        last_1 += COEFFICIENT[3, k] * odd
    middle, last = max(abs(middle_0), abs(middle_1)), max(abs(last_0), abs(last_1))
    if not last < middle:  # no decrease, or NaN
        return last
    ratio = last / middle
    return last * max(ratio * ratio, 1e-6)  # a faster decrease is not trusted


@leaf
def fill_rows(components: Components, T: float = T) -> float:
    """Fill the rows of all components and arms; return the point below which some F_j is 0.

    At most e^-T of the mass of an arm is omitted on either side.

    >>> one, count, rows, arms = np.ones(2), np.ones(2, int), np.empty((2, K)), np.empty((2, K))
    >>> first = np.arange(3)
    >>> low = fill_rows(Components(NORMAL, 0.0 * one, one, one, first, one, count, rows, arms))
    >>> low == -math.sqrt(2.0 * T), bool(arms[0, HIGH] == -low)
    (True, True)
    """
    kind, a, b, nu, first, p, _, rows, arms = components
    N, M = arms.shape[0], a.shape[0]
    low, origin, narrowest = -math.inf, 0.0, math.inf
    for j in range(N):
        low_of_arm = math.inf
        for i in range(first[j], first[j + 1]):
            mode, density, scale = peak(kind, a[i], b[i], nu[i])
            rows[i, MODE], rows[i, PEAK], rows[i, SCALE] = mode, p[i] * density, scale
            d = reach(kind, a[i], b[i], nu[i], mode, scale, -1.0, T)
            rows[i, LOW] = max(-math.inf, mode - d)  # -inf if d is NaN
            low_of_arm = min(low_of_arm, rows[i, LOW])
            if kind == BETA and a[i] + b[i] < SMALL:
                rows[i, AT_MODE] = small_fall(a[i], b[i], mode, *logit_tail(mode))[0]
        low = max(low, low_of_arm)
    for i in range(M):
        mode, scale = rows[i, MODE], rows[i, SCALE]
        rows[i, HIGH] = low
        if mode >= low or fall(kind, a[i], b[i], nu[i], mode, low - mode)[0] <= T:
            rows[i, HIGH] = mode + reach(kind, a[i], b[i], nu[i], mode, scale, 1.0, T)
            if kind >= NORMAL and scale < narrowest:
                narrowest, origin = scale, mode
    low -= origin
    for j in range(N):
        arms[j, TAIL], arms[j, HIGH] = 0.0, low
        for i in range(first[j], first[j + 1]):
            # Relative to its mode the narrowest component loses no precision, however far from 0.
            rows[i, MODE], rows[i, HIGH] = rows[i, MODE] - origin, rows[i, HIGH] - origin
            rows[i, LOW] = rounded_up(rows[i, LOW] - origin)
            arms[j, HIGH] = max(arms[j, HIGH], rows[i, HIGH])
    return low


@leaf
def _limit_width(kind: int, a: float, b: float, row: FloatArray, left: float, y: float) -> float:
    """Return the left end, at least `left`, of a wide panel that resolves one component.

    In such a panel ln f is linear to within ε, or has no finer detail. Λ is linear except for e^-y
    or e^y, which varies on the scale 1 however slowly f does; near one end of the panel it can
    matter although the nodes do not resolve it.
    """
    if kind == NORMAL:
        return left
    if kind == STUDENT:  # falls as a power of the distance: a panel is about as wide as it is far
        distance = y - row[MODE]
        w = 0.7 * (distance + row[SCALE]) if distance > 0.0 else 4.0 * (row[SCALE] - distance)
        return float(max(left, y - w))
    tilt = 0.5 * (y - left) * row[SLOPE]  # ln f is concave: at the ends it is below the tangent
    n = a + b if kind == BETA else b
    if kind == INVERSE_GAMMA or (kind == BETA and y > 0.0):
        if left < 0.0 or n * row[PEAK] * exp(tilt - row[DROP] - left) > EPSILON:
            return max(left, min(log(n / EPSILON), y - widest(kind, y)))
    elif n * row[PEAK] * exp(y - tilt - row[DROP]) > EPSILON:
        return max(left, y - widest(kind, y))
    return left


@leaf
def place_panel(components: Components, left: float, y: float) -> float:
    """Return the left end, at least `left`, of a panel up to y that resolves every component.

    Returns NaN if there is none. Writes fall, slope and n in the middle of the panel for each
    component with mass in it.

    >>> one, count, rows = np.ones(2), np.ones(2, int), np.empty((2, 2, K))
    >>> two_arms = Components(NORMAL, 0.0 * one, one, one, np.arange(3), one, count, *rows)
    >>> low = fill_rows(two_arms)
    >>> place_panel(two_arms, low, -low)  # the core begins at one scale
    1.0
    """
    kind, a, b, nu, _, _, _, rows, _ = components
    M = a.shape[0]
    accepted = False
    while not accepted:
        i = 0
        while i < M:
            mode, scale = rows[i, MODE], rows[i, SCALE]
            low, high = rows[i, LOW], rows[i, HIGH]
            i += 1
            if high > left and low < y:
                w, c = y - left, 0.5 * (y + left)
                # End the panel where the component has no more mass, or at one scale from its mode.
                if high < c and w > 0.5 * (high - mode):
                    left, i = high, 0
                elif low > left and w > 0.5 * (mode - low):
                    left, i = low, 0
                elif w > MAX_SCALES * scale and left < mode + scale and y > mode - scale:
                    left, i = min(y - 0.99 * MAX_SCALES * scale, mode + scale), 0
        left = rounded_up(left)
        h = 0.5 * (y - left)
        c = y - h
        if not left < c < y:  # the panel has no width left, or NaN
            return math.nan
        accepted, i = True, 0
        q, log_1p = logit_tail(c)
        while accepted and i < M:
            if rows[i, HIGH] > left and rows[i, LOW] < y:
                mode = rows[i, MODE]
                if kind == BETA and a[i] + b[i] < SMALL:
                    drop, rows[i, SLOPE] = small_fall(a[i], b[i], c, q, log_1p)
                    rows[i, DROP] = drop - rows[i, AT_MODE]
                else:
                    rows[i, DROP], rows[i, SLOPE] = fall(kind, a[i], b[i], nu[i], mode, c - mode)
                rows[i, SIZE] = weight(kind, a[i], b[i], rows[i, SLOPE])
                narrower = left
                if not abs(rows[i, SLOPE]) * h <= MAX_FALL:
                    narrower = c
                elif y - left > widest(kind, y) or kind == STUDENT:
                    narrower = _limit_width(kind, a[i], b[i], rows[i], left, y)
                accepted = narrower == left
                left = narrower
            i += 1
    return left


@leaf
def densities(components: Components, left: float, y: float, product: float, nodes: Nodes) -> float:
    """Write h f_j at the nodes of [left, y] to nodes.f; return the largest error of Gauss's rule.

    The error of F_j is weighted by Π_{i≠j} F_i, which is at most product / F_j below y; `product`
    is Π_i F_i at y.

    >>> one, nodes = np.ones(1), Nodes(*np.empty((4, 1, K)), *np.empty((3, K)))
    >>> count, rows = np.ones(1, int), np.empty((2, 1, K))
    >>> arm = Components(NORMAL, 0.0 * one, one, one, np.arange(2), one, count, *rows)
    >>> low = fill_rows(arm)
    >>> left = place_panel(arm, -1.0, 1.0)
    >>> densities(arm, left, 1.0, 1.0, nodes) < 1e-15
    True
    >>> float((WEIGHT * nodes.f[0]).sum())  # P(|x| < 1)
    0.68268949213708...
    """
    kind, a, b, nu, first, _, _, rows, arms = components
    f, _, _, _, D, power, u = nodes
    power_bits = power.view(np.int64)  # 2^-k is written as bits, so that the loop is vectorised
    h = 0.5 * (y - left)
    c = y - h
    has_shape = shape(kind, c, h, D, nodes.scratch)
    worst = 0.0
    for j in range(arms.shape[0]):
        if arms[j, HIGH] <= left:
            continue
        f_j = f[j]
        f_j[:] = 0.0
        for i in range(first[j], first[j + 1]):
            if rows[i, HIGH] <= left or rows[i, LOW] >= y:
                continue
            height, drop = h * rows[i, PEAK], rows[i, DROP]
            slope, size = h * rows[i, SLOPE], rows[i, SIZE]
            if has_shape:
                for k in range(K):
                    u[k] = drop + slope * NODE[k] + size * D[k]
            else:
                mode = rows[i, MODE]
                for k in range(K):
                    u[k] = fall(kind, a[i], b[i], nu[i], mode, c - mode + h * NODE[k])[0]
            for k in range(K):
                u[k], exponent = exp_split(-min(u[k], 700.0))
                power_bits[k] = (np.int64(exponent) + 1023) << 52
            for k in range(K):
                f_j[k] += height * u[k] * power[k]
        others_product = min(product / max(1.0 - arms[j, TAIL], 1e-16), 1.0)
        worst = max_or_nan(worst, others_product * gauss_error(f_j))
    return worst


@leaf
def _power(x: float, n: int) -> float:
    """Return x^n for n ≥ 0, by repeated squaring.

    >>> _power(0.5, 3), _power(0.0, 0)
    (0.125, 1.0)
    """
    power = 1.0
    while n > 0:
        if n & 1:
            power *= x
        x *= x
        n >>= 1
    return power


@leaf
def products(arms: FloatArray, count: IntArray, left: float, nodes: Nodes) -> tuple[float, float]:
    """Write part_i = h f_i Π_{j≠i} F_j and their sum S at the nodes; return Π_j F_j at both ends.

    `nodes.F` becomes F_j^c, where c = count[j]. The right end comes first.

    >>> arms, nodes = np.zeros((1, K)), Nodes(*np.zeros((4, 1, K)), *np.zeros((3, K)))
    >>> arms[0, HIGH], nodes.f[:] = 1.0, 0.25  # half of the mass
    >>> at_right, at_left = products(arms, np.ones(1, int), 0.0, nodes)
    >>> at_right, round(at_left, 15), np.array_equal(nodes.S, nodes.f[0])
    (1.0, 0.5, True)
    """
    f, F, part, _, _, S, after = nodes
    N = arms.shape[0]
    at_right, at_left = 1.0, 1.0
    # First S is the product of the F_j before arm j; then `after` is that of the F_j after it.
    S[:], after[:] = 1.0, 1.0
    for j in range(N):
        if arms[j, HIGH] <= left:
            continue
        tail, mass = arms[j, TAIL], 0.0
        for i in range(K // 2):
            mass += WEIGHT[i] * (f[j, i] + f[j, K - 1 - i])
        for k in range(K):
            to_right = 0.0
            for i in range(K):
                to_right += TO_RIGHT[i, k] * f[j, i]
            F[j, k] = 1.0 - tail - to_right
        for k in range(K):
            part[j, k] = f[j, k] * S[k]
        if count[j] > 1:
            for k in range(K):
                equal_arms = _power(F[j, k], count[j] - 1)
                part[j, k] *= equal_arms
                F[j, k] *= equal_arms
        for k in range(K):
            S[k] *= F[j, k]
        arms[j, MASS] = mass
        at_right *= _power(1.0 - tail, count[j])
        at_left *= _power(1.0 - tail - mass, count[j])
    S[:] = 0.0
    for j in range(N - 1, -1, -1):
        if arms[j, HIGH] > left:
            for k in range(K):
                part[j, k] *= after[k]
                S[k] += count[j] * part[j, k]
                after[k] *= F[j, k]
    return at_right, at_left


# ------------------------------------------------------------------------------------------------
# The probabilities.

#: Results of `best`: success, no convergence, invalid parameters.
DONE, FAILED, INVALID = 0, 1, 2

#: `best` needs scratch of shape (ROWS · components + MORE_ROWS, NODES), and INTEGERS · components
#: integers.
ROWS, MORE_ROWS, NODES, INTEGERS = 7, 6, K, 6

#: Odd numbers whose multiples differ in their upper bits.
HASH_A, HASH_B = 0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9
#: The limit of panels: some tens are needed, hundreds if scales differ by many orders.
MAX_PANELS = 10_000
#: For a smaller ν, quantiles of Student's distribution overflow.
LEAST_NU = 0.25


@leaf
def _valid(kind: int, a: float, b: float, nu: float) -> bool:
    """Return whether the parameters of a component are in their ranges."""
    a_is_valid = -math.inf < a < math.inf if kind >= NORMAL else 0.0 < a < math.inf
    return a_is_valid and 0.0 < b < math.inf and (kind != STUDENT or LEAST_NU <= nu < math.inf)


@leaf
def group_equal(
    a: FloatArray, b: FloatArray, nu: FloatArray, rows: FloatArray, numbers: IntArray
) -> int:
    """Write the different (a, b, nu) to the first rows of `rows`, in order; return how many.

    Of `numbers`, the first N are the numbers of the rows of the N arms, and the next ones the
    numbers of arms for each row. The rest, up to 6 N, is a hash table, with which the time is
    linear in N.

    >>> rows, numbers = np.empty((3, 3)), np.empty(18, int)
    >>> group_equal(np.array([2.0, 1.0, 2.0]), np.ones(3), np.ones(3), rows, numbers)
    2
    >>> rows[0, :2], numbers[:3], numbers[3:5]
    (array([2., 1.]), array([0, 1, 0]), array([2, 1]))
    """
    N, different, bits = a.size, 0, 1
    while 1 << bits < 2 * N:
        bits += 1
    size = 1 << bits
    group, count, table = numbers[:N], numbers[N : 2 * N], numbers[2 * N : 2 * N + size]
    table[:] = -1
    a_bits, b_bits = a.view(np.int64), b.view(np.int64)
    for i in range(N):
        # The upper bits of a product depend on all bits; integers differ in the upper ones only.
        slot = ((a_bits[i] * HASH_A + b_bits[i] * HASH_B) >> (64 - bits)) & (size - 1)
        j = table[slot]
        while j >= 0 and not (rows[0, j] == a[i] and rows[1, j] == b[i] and rows[2, j] == nu[i]):
            slot = (slot + 1) & (size - 1)
            j = table[slot]
        if j < 0:
            j = table[slot] = different
            rows[0, j], rows[1, j], rows[2, j], count[j] = a[i], b[i], nu[i], 0
            different += 1
        group[i] = j
        count[j] += 1
    return different


@leaf
def _root(x: float) -> float:
    """Return x^(1/2K): a panel that is wider by this factor has a c_2K that is x times as large."""
    for _ in range(5):
        x = math.sqrt(x)
    return x


@leaf
def best(
    kind: int, a: FloatArray, b: FloatArray, nu: FloatArray, first: IntArray, p: FloatArray,
    P: FloatArray, scratch: FloatArray, numbers: IntArray, epsilon: float = EPSILON,
) -> int:  # fmt: skip
    """Write P(arm i is best) to P[i]; return DONE, or the reason of failure with P unchanged.

    The parameters are those of `posteriors`, one for each component; `nu` is for Student's
    distribution. p are the probabilities of the components of each arm. `epsilon` is the allowed
    error of a panel; the sum of all probabilities differs from 1 by at most 100 times as much.

    >>> import numpy as np
    >>> from bayescontrol.kernels.posteriors import BETA
    >>> a, b, P = np.array([2.0, 1.0]), np.array([1.0, 1.0]), np.empty(2)
    >>> scratch, numbers = np.empty((ROWS * 2 + MORE_ROWS, K)), np.empty(INTEGERS * 2, int)
    >>> best(BETA, a, b, b, np.arange(3), np.ones(2), P, scratch, numbers) == DONE, P.round(14)
    (True, array([0.66666667, 0.33333333]))
    """
    N, M = P.shape[0], a.shape[0]
    for i in range(M):
        if not _valid(kind, a[i], b[i], nu[i]):
            return INVALID
    group, count = numbers[:N], numbers[N : 2 * N]
    all_arms = N
    if M == N:  # one component for each arm
        width = (N + K - 1) // K  # in rows of the scratch
        unique = scratch[6 * N + 3 : 6 * N + 3 + 3 * width].reshape(3, width * K)
        N = M = group_equal(a, b, nu, unique, numbers)
        a, b, nu = unique[0, :N], unique[1, :N], unique[2, :N]
    else:
        for j in range(N):
            group[j], count[j] = j, 1
    f, F, part = scratch[:N], scratch[N : 2 * N], scratch[2 * N : 3 * N]
    total, arms, rows = scratch[3 * N : 4 * N], scratch[4 * N : 5 * N], scratch[5 * N : 5 * N + M]
    D, S, node_scratch = scratch[5 * N + M], scratch[5 * N + M + 1], scratch[5 * N + M + 2]
    nodes = Nodes(f, F, part, total, D, S, node_scratch)
    components = Components(kind, a, b, nu, first, p, count, rows, arms)
    low = rounded_up(fill_rows(components, T + log(EPSILON / epsilon)))
    total[:] = 0.0
    y = low
    for j in range(N):
        y = max(y, arms[j, HIGH])
    least_product, most_deviation = epsilon, 100.0 * epsilon
    epsilon += 4e-16 * all_arms  # the rounding of as many factors
    w, panels, product, narrowing = y - low, 0, 1.0, 0.5
    while y > low and product > least_product:
        panels += 1
        right = y
        left = place_panel(components, max(y - w, low), y)
        if not left < y or panels > MAX_PANELS:  # `left` can be NaN
            return FAILED
        error = densities(components, left, y, product, nodes)
        if error <= epsilon:
            at_right, at_left = products(arms, count, left, nodes)
            mass = dot(WEIGHT, S)
            error = max_or_nan(error, max_or_nan(abs(mass - (at_right - at_left)), gauss_error(S)))
            if error <= epsilon:
                for j in range(N):
                    if arms[j, HIGH] > left:
                        arms[j, TAIL] += arms[j, MASS]
                        for k in range(K):
                            total[j, k] += part[j, k]
                y, product = left, at_left
        if not error < math.inf:  # infinite or NaN
            return FAILED
        # The width at which the error is ε, less 10 %; it changes at most by the factor 3 or 0.3.
        factor = min(max(0.9 * _root(epsilon / max(error, 1e-300)), 0.3), 3.0)
        w = (right - left) * factor
        if y == right:  # rejected
            narrowing *= factor
        else:  # if this panel had to be narrowed, so will be the next one
            w, narrowing = w * narrowing, 1.0
    sum_P = 0.0
    for j in range(N):
        arms[j, MASS] = max(dot(WEIGHT, total[j]), 0.0)
        sum_P += count[j] * arms[j, MASS]
    if not abs(sum_P - 1.0) <= most_deviation:
        return FAILED
    for j in range(all_arms):
        P[j] = arms[group[j], MASS] / sum_P
    return DONE


@leaf
def best_of_each(
    kind: int, a: FloatArray, b: FloatArray, nu: FloatArray, first: IntArray, p: FloatArray,
    P: FloatArray, scratch: FloatArray, numbers: IntArray, epsilon: float = EPSILON,
) -> tuple[int, int]:  # fmt: skip
    """Run `best` on each row and stop at the first failure.

    Return (status, row): the failing row, or DONE and the last row.

    >>> import numpy as np
    >>> from bayescontrol.kernels.posteriors import NORMAL
    >>> mu, sd, P = np.array([[0.0, 0.0], [0.0, 9.0]]), np.ones((2, 2)), np.empty((2, 2))
    >>> scratch, numbers = np.empty((ROWS * 2 + MORE_ROWS, K)), np.empty(INTEGERS * 2, int)
    >>> best_of_each(NORMAL, mu, sd, sd, np.arange(3), np.ones(2), P, scratch, numbers), P.round(9)
    ((0, 1), array([[0.5, 0.5], [0. , 1. ]]))
    """
    for i in range(a.shape[0]):
        status = best(kind, a[i], b[i], nu[i], first, p, P[i], scratch, numbers, epsilon)
        if status != DONE:
            return status, i
    return DONE, a.shape[0] - 1
