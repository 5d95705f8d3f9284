"""Exact screening: bounds hold, proposals are exact, actions have the right probabilities.

Chi-square tests have a false-alarm rate of 1e-6 each. Seeds are fixed.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from scipy import special as sc  # type: ignore[import-untyped]
from tests.chance import chi_square

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.bandits.best_arm import beta_best
from bayescontrol.kernels import screening
from bayescontrol.kernels.random import exponential
from bayescontrol.seeding import Stream

RATE = 1e-6
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
STEPS = np.array([*range(-40, -12, 4), *range(-12, 13), *range(16, 41, 4)])


# -- exact values by quadrature -------------------------------------------------------------------


def winners(rows: FloatArray, v: float = 0.0) -> FloatArray:
    """P(X_j is the largest, and above v): ∫_v^1 f_j Π F_i, panels one standard deviation wide."""
    alpha, beta = rows.T[:, :, None]
    n = alpha + beta
    mean, sd = alpha / n, np.sqrt(alpha * beta / (n * n * (n + 1.0)))
    v = max(v, float((mean - 40.0 * sd).max()))  # below this, one of the F is negligible
    cuts = (mean + sd * STEPS).ravel()
    edges = np.unique(np.concatenate([[v], cuts[(cuts > v) & (cuts < 1.0)], [1.0]]))
    half = np.diff(edges)[:, None] / 2.0
    x = (edges[:-1, None] + half + half * NODES).ravel()
    log_f = sc.xlogy(alpha - 1.0, x) + sc.xlog1py(beta - 1.0, -x) - sc.betaln(alpha, beta)
    ones = np.ones((1, x.size))
    F = sc.betainc(alpha, beta, x)
    before = np.cumprod(np.vstack([ones, F[:-1]]), 0)
    after = np.cumprod(np.vstack([ones, F[:0:-1]]), 0)[::-1]
    return np.asarray((np.exp(log_f) * before * after) @ (half * WEIGHTS).ravel())


class Prepared(NamedTuple):
    """The arguments of `draw_action` but for the stream."""

    rows: FloatArray
    cache: FloatArray
    leader: IntArray


def prepared(rows: FloatArray, active: IntArray | None = None, kernel: Any = screening) -> Prepared:
    """The kernel's arguments for copies of these posteriors."""
    cache = np.full((kernel.ROWS, len(rows)), np.nan)
    arms = Prepared(rows.copy(), cache, np.zeros(1, np.int64))
    active = np.arange(len(rows)) if active is None else active
    kernel.prepare(arms.rows, active, arms.cache, arms.leader)
    return arms


def random_rows(rng: np.random.Generator, size: int, most: float) -> FloatArray:
    return np.floor(np.exp(rng.uniform(0.0, math.log(most), (size, 2))))


# -- bounds and proposals --------------------------------------------------------------------------


def small_and_large() -> Iterator[tuple[float, float]]:
    yield from ((float(a), float(b)) for a in range(1, 81) for b in range(1, 81))
    for alpha, beta in random_rows(np.random.default_rng(1), 2000, 1e6):
        yield float(alpha), float(beta)
    yield from ((1.0, 1e9), (1e9, 1.0), (1e9, 1e9), (5.0, 1e9), (1e9, 5.0))
    yield from ((2.0**32, 1.0), (1.0, 2.0**32), (2.0**32, 2.0**32))


def nu(cache: FloatArray, v: FloatArray | float) -> FloatArray:
    """ν_j(v) of every arm j, from its line."""
    y = cache[screening.INTERCEPT] - cache[screening.SLOPE] * v
    return np.asarray(np.clip(y, 0.0, screening.TOP).astype(np.int64).view(np.float64))


def first_undrawn(cache: FloatArray) -> FloatArray:
    """The v with ν_j(v) = LEVEL: above it, arm j is not drawn."""
    level = np.float64(screening.LEVEL).view(np.int64)
    return np.asarray((cache[screening.INTERCEPT] - level) / cache[screening.SLOPE])


def test_the_bound_is_above_the_tail_everywhere() -> None:
    """P(X > v) ≤ m(v) and -ln(1 - m) ≤ ν for all v for which the arm would not be drawn.

    The pairs are all whole numbers up to 80, random ones up to 1e6, and large ones.
    """
    pairs = np.array(list(small_and_large()))
    cache = prepared(pairs).cache
    first = first_undrawn(cache)
    # That is useful only if most of the mass lies below it.
    tails = sc.betaincc(*pairs.T, np.minimum(first, 1.0))
    assert tails.max() < 0.1
    assert np.median(tails) < 0.05
    for share in (1e-6, 1e-3, 0.03, 0.2, 0.5, 0.9):
        v = first + share * (1.0 - first)
        bound = nu(cache, v)
        undrawn = (bound <= screening.LEVEL) & (v < 1.0)
        assert undrawn.sum() > 0.9 * len(pairs)
        for j in np.flatnonzero(undrawn):
            m = screening.proposal_probability(pairs[j, 0], pairs[j, 1], v[j])
            assert sc.betaincc(*pairs[j], v[j]) <= m * (1.0 + 1e-12) + 1e-300, (pairs[j], v[j])
            assert -math.log1p(-m) <= bound[j] + 1e-300, (pairs[j], v[j])


def excess(e: FloatArray) -> FloatArray:
    """e - ln(1 + e), by its series where e is small."""
    series = e * e * (0.5 - e / 3.0 + e * e / 4.0)
    return np.where(np.abs(e) < 1e-4, series, e - np.log1p(e))


def remainder(x: FloatArray) -> FloatArray:
    """Δ(x) of Stirling's formula, by its series where x is large."""
    small = sc.gammaln(x) - (x - 0.5) * np.log(x) + x - 0.5 * math.log(2.0 * math.pi)
    return np.where(x < 100.0, small, 1.0 / (12.0 * x))


def constants_of_the_bound(alpha: FloatArray, beta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ln c and S of the module's docstring; 1 - low and 1 - h without cancellation near 1."""
    n, k = alpha + beta - 1.0, alpha - 1.0
    p, q, half = (alpha - 0.5) / n, (beta - 0.5) / n, 0.5 * screening.Z**2 / n
    root = np.sqrt(half * (half + 2.0 * p * q))
    low, above_low = (p + half + root) / (1.0 + 2.0 * half), q * q / (q + half + root)
    step = screening.STEP * np.sqrt(low / (n * above_low))
    above_h = above_low * (1.0 + step) / (1.0 + 2.0 * step)
    h = low + (above_low - above_h)
    gap = (beta * h - k * above_h) / n
    some = np.where(k > 0.0, k, 1.0)  # successes; the case k = 0 is simpler
    log_binomial = -some * excess(gap * n / some) - beta * excess(-gap * n / beta)
    log_binomial += 0.5 * np.log(n / (2.0 * math.pi * some * beta))
    log_binomial += remainder(n) - remainder(some) - remainder(beta)
    log_binomial = np.where(k > 0.0, log_binomial, beta * np.log(above_h))
    S = (beta - k * above_h / h) / above_h
    return log_binomial + S * (h - low) - np.log1p(-k / beta * above_low / low), S


def test_the_lines_are_bounds_for_all_counts() -> None:
    """c ≤ .95 (1 - exp(-LEVEL)) for all pairs up to 400 and on a grid up to 2^32.

    c is smooth in 1/α and 1/β, so that a grid with this margin suffices.
    """
    pairs = np.array(list(small_and_large())[:6400])
    _, S = constants_of_the_bound(*pairs.T)
    slope = prepared(pairs).cache[screening.SLOPE] / screening.UNIT / math.log2(math.e)
    np.testing.assert_allclose(slope, S, rtol=1e-10)
    grid = np.floor(np.geomspace(1.0, 2.0**32, 500))
    for counts in (np.arange(1.0, 401.0), grid):
        log_c, _ = constants_of_the_bound(counts[:, None], counts[None, :])
        assert log_c.max() <= math.log(0.95 * -math.expm1(-screening.LEVEL))


def exact_m(alpha: float, beta: float, v: float) -> mpmath.mpf:
    """P(Bin(n, v) = k) β v / (n v - k) in 40 digits."""
    n, k, x = int(alpha + beta) - 1, int(alpha) - 1, mpmath.mpf(v)
    term = mpmath.binomial(n, k) * x**k * (1 - x) ** (n - k)
    return term * int(beta) * x / (n * x - k)


def test_the_probability_of_a_proposal_is_exact_to_1e_12() -> None:
    rng = np.random.default_rng(3)
    small = [(float(a), float(b)) for a in range(1, 31) for b in range(1, 31)]
    with mpmath.workdps(40):
        for alpha, beta in [*small, *random_rows(rng, 60, 1e6), (1e6, 1e6), (1.0, 1e9), (1e9, 1.0)]:
            n = alpha + beta
            mean, sd = alpha / n, math.sqrt(alpha * beta / n**3)
            for z in (1.0, 2.5, 6.0):
                v = mean + z * sd if mean + z * sd < 1.0 else (mean + 1.0) / 2.0
                exact = exact_m(alpha, beta, v)
                assert abs(screening.proposal_probability(alpha, beta, v) / exact - 1) < 1e-12


@pytest.mark.parametrize(
    ("alpha", "beta", "v"),
    [(1.0, 1.0, 0.9), (1.0, 7.0, 0.3), (2.0, 1.0, 0.97), (9.0, 1.0, 0.995), (5.0, 4.0, 0.75),
     (30.0, 70.0, 0.36), (3e5, 7e5, 0.3008), (1e9, 1e9, 0.50002)],
)  # fmt: skip
def test_accepted_proposals_have_the_distribution_of_the_tail(
    alpha: float, beta: float, v: float
) -> None:
    """P(accepted) = P(X > v)/m(v), and P(X > x | X > v) of accepted x is uniform."""
    state, draws = Stream(10).state, 20_000
    x = np.array([screening._propose(alpha, beta, v, state) for _ in range(draws)])
    tail, accepted = sc.betaincc(alpha, beta, v), x[x > v]
    expected = draws * tail / screening.proposal_probability(alpha, beta, v)
    # For k = 0 every proposal is accepted, and the expected number is exact but for rounding.
    spread = math.sqrt(max(expected * (1.0 - expected / draws), 0.0))
    assert abs(accepted.size - expected) <= 4.9 * spread + 1e-6 * draws
    uniform = sc.betaincc(alpha, beta, accepted) / tail
    counts = np.histogram(uniform, 50, (0.0, 1.0))[0].astype(float)
    assert chi_square(counts, np.full(50, accepted.size / 50)) > RATE


# -- action probabilities --------------------------------------------------------------------------


def p_value_of_draws(
    kernel: Any,
    rows: FloatArray,
    draws: int,
    active: IntArray | None = None,
    probabilities: FloatArray | None = None,
) -> float:
    """The p-value of the actions drawn by screening, given exact probabilities."""
    arms, state = prepared(rows, active, kernel), Stream(7).state
    active = np.arange(len(rows)) if active is None else active
    chosen = [kernel.draw_action(*arms, state) for _ in range(draws)]
    counts = np.bincount(chosen, minlength=len(rows)).astype(float)
    assert counts[np.setdiff1d(np.arange(len(rows)), active)].sum() == 0.0
    p = winners(rows[active]) if probabilities is None else probabilities
    return chi_square(counts[active], draws * p)


def posteriors() -> Iterator[FloatArray]:
    """Small and large counts, arms close together, many arms, and every mixture."""
    rng = np.random.default_rng(4)
    for size, most in ((2, 5), (3, 20), (5, 100), (10, 1000), (10, 1e5), (4, 1e6)):
        for _ in range(6):
            yield random_rows(rng, size, most)
    for size in (2, 3, 10, 80):
        # Means within two standard deviations of each other: the slow branch is taken often.
        centre = np.array([3000.0, 2000.0]) + rng.normal(0.0, 50.0, (size, 2))
        yield np.floor(centre)
    yield np.ones((100, 2))
    yield np.array([[900.0, 100.0], *[[80.0, 20.0]] * 20, *[[1.0, 1.0]] * 3])


def test_the_exact_values_of_this_file_and_of_the_library_agree() -> None:
    for rows in posteriors():
        exact = winners(rows)
        assert abs(exact.sum() - 1.0) < 1e-8  # ln B(1e6, 1e6) has no more digits in SciPy
        np.testing.assert_allclose(beta_best(*rows.T), exact, atol=1e-8)


def test_screening_chooses_with_the_exact_probabilities() -> None:
    for rows in posteriors():
        assert p_value_of_draws(screening, rows, 20_000) > RATE, rows


def p_value_of_proposals(kernel: Any, rows: FloatArray, above: float, draws: int) -> float:
    """The p-value of the arms that exceed V by proposals, when no arm has to be drawn.

    V is the highest v at which an arm is drawn, plus a share `above` of its distance to 1. Arm j
    must have the probability P(X_j largest and above V), no arm (-1) the remaining one.
    """
    (rows, cache, _), state = prepared(rows, kernel=kernel), Stream(8).state
    V = float(first_undrawn(prepared(rows).cache).max())
    V += (above + 1e-6) * (1.0 - V)
    cache[kernel.NU] = nu(cache, V)
    all_arms = (0, len(rows))
    found = [
        kernel._propose_in_block(rows, cache, all_arms, -1, V, exponential(state), state)[0]
        for _ in range(draws)
    ]
    counts = np.bincount(np.array(found) + 1, minlength=len(rows) + 1).astype(float)
    p = winners(rows, V)
    return chi_square(counts, draws * np.concatenate([[1.0 - p.sum()], p]))


PROPOSED = {
    "one arm": np.array([[30.0, 70.0]]),
    "alike": np.array([[30.0, 70.0]] * 4),
    "untried": np.ones((7, 2)),
    "untried and many": np.ones((60, 2)),
    "unlike": np.array([[30.0, 70.0], [1.0, 2.0], [300.0, 200.0], [2.0, 1.0], [5.0, 2.0]]),
    "one of two far below": np.array([[1.0, 99.0], [50.0, 60.0]]),
    "large counts": np.array([[3e5, 7e5], [3e5, 7e5], [3e3, 7e3], [300.0, 700.0]]),
}


@pytest.mark.parametrize("above", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("name", PROPOSED)
def test_arms_exceed_a_value_with_the_exact_probabilities(name: str, above: float) -> None:
    assert p_value_of_proposals(screening, PROPOSED[name], above, 40_000) > RATE


def interpreted(*changes: tuple[str, str]) -> Any:
    """The module with some lines changed, interpreted, with the other kernels compiled."""
    assert screening.__file__
    source = Path(screening.__file__).read_text(encoding="utf-8")
    decorators = "from bayescontrol.kernels._jit import direct, inlined, leaf"
    assert decorators in source
    source = source.replace(decorators, "direct = inlined = leaf = lambda kernel, *name: kernel")
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    module = ModuleType("changed_screening")
    exec(compile(source, "changed_screening", "exec"), module.__dict__)
    return module


CLOSE = np.array([[300.0, 200.0], [270.0, 230.0], [268.0, 230.0], [55.0, 50.0]])
RIVALS = np.array([[50.0, 30.0]] * 8)


def test_every_path_through_the_proposals_is_tested() -> None:
    """E and V are set by hand; the state decides what is accepted."""
    plain, best, v = interpreted(), -1, 0.74
    rows, cache, _ = prepared(RIVALS)
    share, taken = -math.log1p(-plain.proposal_probability(*RIVALS[0], v)), plain._nu(cache, 0, v)
    assert 0.0 < share < taken < plain.LEVEL
    cache[plain.NU] = taken

    def at(e: float, v: float = v, seed: int = 0) -> tuple[int, float, float]:
        state = Stream(seed).state
        found = plain._propose_in_block(rows, cache, (0, 8), best, v, e, state)
        return int(found[0]), float(found[1]), float(found[2])

    assert at(10.0)[:2] == (best, v)  # E lasts for all
    assert at(10.0)[2] == pytest.approx(10.0 - 8 * taken)
    first = [at(0.99 * share, seed=seed) for seed in range(300)]
    assert {j for j, *_ in first} >= {best, 0}  # the proposal is accepted or rejected
    assert all(x > v if j >= 0 else x == v for j, x, _ in first)
    # Without a proposal only the other arms may exceed V, by a new E.
    assert 0 not in {at(1.01 * share, seed=seed)[0] for seed in range(300)}
    assert {at(taken + 0.5 * share, seed=seed)[0] for seed in range(300)} >= {best, 1}
    assert at(0.0, 1.0)[:2] == (best, 1.0)  # nothing exceeds 1


def test_the_interpreted_module_equals_the_compiled_one() -> None:
    plain, one, two = interpreted(), prepared(CLOSE), prepared(CLOSE)
    p, q = Stream(1), Stream(1)
    for _ in range(500):
        a = screening.draw_action(*one, p.state)
        assert plain.draw_action(*two, q.state) == a
    assert p == q


PLANTED: dict[str, tuple[tuple[str, str], Callable[[Any], float]]] = {
    "the undrawn are cleared without a look": (
        ("if total < e:", "if total < 1e9:"),
        lambda kernel: p_value_of_draws(kernel, CLOSE, 20_000),
    ),
    "a bound is a fifth of what it should be": (
        ("math.log2(LEVEL)", "math.log2(LEVEL / 5)"),
        lambda kernel: p_value_of_proposals(kernel, RIVALS, 0.0, 20_000),
    ),
    "every proposal is accepted": (
        ("if k > 0.0 and exponential(rng_state) <", "if k > 0.0 and 1e9 <"),
        lambda kernel: p_value_of_proposals(kernel, RIVALS, 0.0, 60_000),
    ),
    "every arm that E does not reach gets a proposal": (
        ("if v < 1.0 and e < -log_one_plus(", "if v < 1.0 and 0.0 < -log_one_plus("),
        lambda kernel: p_value_of_proposals(kernel, RIVALS, 0.0, 20_000),
    ),
    "the rest of E serves the later arms": (
        ("            e = exponential(rng_state)\n", "            e = 0.0\n"),
        lambda kernel: p_value_of_proposals(kernel, RIVALS, 0.0, 20_000),
    ),
    "arms with a large ν are not drawn": (
        ("x, nu = _beta(rng_state, cache, j), 0.0", "x, nu = 0.0, 0.0"),
        lambda kernel: p_value_of_draws(kernel, CLOSE, 20_000),
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_detected(name: str) -> None:
    change, distribution = PLANTED[name]
    assert distribution(interpreted()) > RATE
    assert distribution(interpreted(change)) < RATE


# -- hard cases ------------------------------------------------------------------------------------


LARGE = np.array([[5e8 + 15_000, 5e8], [5e8, 5e8]])
#: Φ of the difference of the means, accurate to 1e-4 for a billion pulls; the share to 1e-2.
FIRST = sc.ndtr(
    np.subtract(*LARGE[:, 0] / LARGE.sum(1)) / math.sqrt((LARGE.prod(1) / LARGE.sum(1) ** 3).sum())
)


@pytest.mark.parametrize(
    ("rows", "probabilities"),
    [
        *((np.array([row] * n), np.full(n, 1.0 / n)) for row, n in (
            ([1e9, 1e9], 3), ([1.0, 1e9], 4), ([1e9, 1.0], 4), ([2.0, 1e6], 30), ([1.0, 1.0], 2),
            ([2.0**32, 2.0**32], 2),
        )),
        (LARGE, np.array([FIRST, 1.0 - FIRST])),
    ],
)  # fmt: skip
def test_arms_with_any_counts_are_chosen_with_their_probabilities(
    rows: FloatArray, probabilities: FloatArray
) -> None:
    assert p_value_of_draws(screening, rows, 20_000, probabilities=probabilities) > RATE


def test_one_two_and_retired_arms_are_supported() -> None:
    one = np.array([[3.0, 4.0]])
    assert p_value_of_draws(screening, one, 100) > 0.99
    assert p_value_of_draws(screening, CLOSE[:2], 20_000) > RATE
    for active in ([0, 2], [1, 3], [1, 2, 3], [3]):
        assert p_value_of_draws(screening, CLOSE, 20_000, np.array(active)) > RATE


def test_learning_updates_the_cache_of_an_arm() -> None:
    """The next draws are those of a new cache, whichever arm leads; also with a retired arm."""
    rng, active, state = np.random.default_rng(5), np.array([0, 1, 3, 4]), Stream(11).state
    arms = prepared(np.ones((5, 2)), active)
    for t in range(400):
        screening.learn(*arms, int(rng.integers(5)), float(rng.random() < 0.7))
        new, twin = prepared(arms.rows, active), state.copy()
        assert screening.draw_action(*arms, state) == screening.draw_action(*new, twin)
        assert state.tobytes() == twin.tobytes()
        assert arms.leader[0] == active[(arms.rows[:, 0] / arms.rows.sum(1))[active].argmax()]
        saved = slice(screening.D_ALPHA, screening.MEAN + 1)
        assert arms.cache[saved].tobytes() == new.cache[saved].tobytes(), t


# -- many arms -------------------------------------------------------------------------------------


def test_two_thousand_arms_are_chosen_with_their_exact_probabilities() -> None:
    """Three kinds of arms: P(kind) = ∫ n_g f_g/F_g Π F_h^n_h; within a kind all arms are alike."""
    kinds = np.array([[1.0, 1.0], [30.0, 1.0], [900.0, 2.0]])
    sizes = np.array([1900, 80, 20])
    y = np.exp(np.linspace(math.log(1e-12), math.log(0.1), 100_001))  # 1 - x
    log_F = np.log(sc.betaincc(*kinds.T[::-1, :, None], y))  # F(x) = P(1 - X > y)
    log_f = sc.xlog1py(kinds[:, :1] - 1.0, -y) + sc.xlogy(kinds[:, 1:] - 1.0, y)
    log_f -= sc.betaln(*kinds.T)[:, None]
    density = sizes[:, None] * np.exp(log_f - log_F + sizes @ log_F + np.log(y))
    p = density.sum(1) * np.log(y[1] / y[0])
    assert abs(p.sum() - 1.0) < 1e-6
    assert p.min() > 0.1
    kind = np.random.default_rng(6).permutation(np.repeat(np.arange(3), sizes))
    arms, state, draws = prepared(kinds[kind]), Stream(12).state, 60_000
    counts = np.bincount(
        [screening.draw_action(*arms, state) for _ in range(draws)], minlength=2000
    )
    assert chi_square(np.bincount(kind, counts, 3), draws * p) > RATE
    for g in range(3):
        of_kind = counts[kind == g].astype(float)
        assert chi_square(of_kind, np.full(sizes[g], of_kind.sum() / sizes[g])) > RATE
