"""Exact screening: bounds hold, tails are exact, and actions have the right probabilities.

Chi-square tests have a false-alarm rate of 1e-6 each. Seeds are fixed.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import special as sc  # type: ignore[import-untyped]
from tests.chance import chi_square

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.bandits.best_arm import beta_best
from bayescontrol.kernels import screening
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


def prepared(rows: FloatArray, kernel: Any = screening) -> FloatArray:
    cache = np.full((kernel.ROWS, len(rows)), np.nan)
    for j, (alpha, beta) in enumerate(rows):
        kernel.prepare(alpha, beta, cache, j)
    return cache


def random_rows(rng: np.random.Generator, size: int, most: float) -> FloatArray:
    return np.floor(np.exp(rng.uniform(0.0, math.log(most), (size, 2))))


# -- bounds and tails ----------------------------------------------------------------------------


def small_and_large() -> Iterator[tuple[float, float]]:
    yield from ((float(a), float(b)) for a in range(1, 81) for b in range(1, 81))
    for alpha, beta in random_rows(np.random.default_rng(1), 2000, 1e6):
        yield float(alpha), float(beta)
    yield from ((1.0, 1e9), (1e9, 1.0), (1e9, 1e9), (5.0, 1e9), (1e9, 5.0))


def test_the_bound_is_above_the_tail_everywhere() -> None:
    """P(X > h) ≤ b for all whole numbers up to 80, for random ones up to 1e6, and for 1e9."""
    pairs = np.array(list(small_and_large()))
    cache = prepared(pairs)
    raise_ceiling = screening._raise_ceiling
    for j, (alpha, beta) in enumerate(pairs):
        raise_ceiling(alpha, beta, cache, j)
    h, bound = cache[screening.CEILING], cache[screening.BOUND]
    tails = sc.betaincc(pairs[:, 0], pairs[:, 1], h)
    assert (h > 0.0).all()
    assert (h <= 1.0).all()
    assert (tails <= bound * (1.0 + 1e-9)).all()
    # A ceiling is useful only if little mass lies above it.
    assert (bound < 0.2).all()
    assert np.median(bound) < 0.02
    rng = np.random.default_rng(2)
    for alpha, beta in pairs[rng.permutation(len(pairs))[:2000]]:
        for v in rng.random(5):
            exact = sc.betaincc(alpha, beta, v)
            assert exact <= screening.tail_bound(alpha, beta, v) * (1.0 + 1e-12), (alpha, beta, v)


def exact_tail(alpha: float, beta: float, v: float) -> mpmath.mpf:
    """Σ_{k<α} C(n, k) v^k (1 - v)^(n-k) in 40 digits, from the term at α - 1 down."""
    n, k, x = int(alpha + beta) - 1, int(alpha) - 1, mpmath.mpf(v)
    term = mpmath.binomial(n, k) * x**k * (1 - x) ** (n - k)
    total, odds = term, (1 - x) / x
    while k > 0 and term > total * mpmath.mpf(10) ** -25:
        term *= mpmath.mpf(k) / (n - k + 1) * odds
        total += term
        k -= 1
    return total


def test_the_tails_are_exact_to_1e_12() -> None:
    rng = np.random.default_rng(3)
    small = np.array([(a, b) for a in range(1, 41) for b in range(1, 41)], float)
    v = rng.random((len(small), 4))
    reference = sc.betaincc(small[:, :1], small[:, 1:], v)
    for (alpha, beta), places, tails in zip(small, v, reference, strict=True):
        for x, exact in zip(places, tails, strict=True):
            assert screening.beta_tail(alpha, beta, x) == pytest.approx(exact, rel=1e-12)
    with mpmath.workdps(40):
        for alpha, beta in [*random_rows(rng, 60, 1e6), (1e6, 1e6), (1.0, 1e9), (1e9, 1.0)]:
            n = alpha + beta
            mean, sd = alpha / n, math.sqrt(alpha * beta / n**3)
            for z in (0.5, 2.5, 6.0):
                x = mean + z * sd if mean + z * sd < 1.0 else (mean + 1.0) / 2.0
                exact = exact_tail(alpha, beta, x)
                assert abs(screening.beta_tail(alpha, beta, x) / exact - 1) < 1e-12


def test_tails_end_with_the_support_and_decrease() -> None:
    assert screening.beta_tail(3.0, 4.0, 0.0) == 1.0
    assert screening.beta_tail(3.0, 4.0, 1.0) == 0.0
    assert screening.beta_tail(1e6, 1e6, 0.1) == 1.0
    assert screening.beta_tail(1e6, 1e6, 0.9) == 0.0
    for alpha, beta in ((1.0, 1.0), (7.0, 3.0), (500.0, 2.0), (1e5, 1e5)):
        tails = [screening.beta_tail(alpha, beta, v) for v in np.linspace(0.0, 1.0, 501)]
        assert all(a >= b for a, b in itertools.pairwise(tails))


# -- action probabilities --------------------------------------------------------------------------


def p_value_of_draws(
    kernel: Any,
    rows: FloatArray,
    draws: int,
    active: IntArray | None = None,
    probabilities: FloatArray | None = None,
) -> float:
    """The p-value of the actions drawn by screening, given exact probabilities."""
    active = np.arange(len(rows)) if active is None else active
    cache, undrawn, state = prepared(rows, kernel), np.empty(len(rows), np.int64), Stream(7).state
    chosen = [kernel.draw_action(rows, cache, active, undrawn, state) for _ in range(draws)]
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


def ceilings(rows: FloatArray, kernel: Any = screening) -> FloatArray:
    """A cache in which every ceiling is known."""
    cache = prepared(rows, kernel)
    for j, (alpha, beta) in enumerate(rows):
        kernel._raise_ceiling(alpha, beta, cache, j)
    return cache


def p_value_of_exceeding(kernel: Any, rows: FloatArray, above: float, draws: int) -> float:
    """The p-value of the slow branch only: U is always below the bound, and all arms are undrawn.

    V is the highest ceiling plus a share `above` of its distance to 1. Arm j must have the
    probability P(X_j largest and above V) / Σ b, the leader (-1) the remaining probability.
    """
    cache, places = ceilings(rows, kernel), np.arange(len(rows))
    v = cache[kernel.CEILING].max()
    v += above * (1.0 - v)
    bound, state = min(cache[kernel.BOUND].sum(), 1.0), Stream(8).state
    found = [
        kernel._exceeding(rows, cache, places.copy(), -1, v, u, state)
        for u in Stream(9).random(draws) * bound
    ]
    counts = np.bincount(np.array(found) + 1, minlength=len(rows) + 1).astype(float)
    p = winners(rows, v) / bound
    return chi_square(counts, draws * np.concatenate([[1.0 - p.sum()], p]))


EXCEEDING = {
    "one arm": np.array([[30.0, 70.0]]),
    "alike": np.array([[30.0, 70.0]] * 4),
    "untried": np.ones((7, 2)),
    "too many for one uniform number": np.ones((60, 2)),
    "unlike": np.array([[30.0, 70.0], [1.0, 2.0], [300.0, 200.0], [2.0, 1.0], [5.0, 2.0]]),
    "one of two far below": np.array([[1.0, 99.0], [50.0, 60.0]]),
    "large counts": np.array([[3e5, 7e5], [3e5, 7e5], [3e3, 7e3], [300.0, 700.0]]),
}


@pytest.mark.parametrize("above", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("name", EXCEEDING)
def test_the_slow_branch_has_the_exact_probabilities(name: str, above: float) -> None:
    assert p_value_of_exceeding(screening, EXCEEDING[name], above, 20_000) > RATE


def interpreted(*changes: tuple[str, str]) -> Any:
    """The module with some lines changed, interpreted, with the other kernels compiled."""
    assert screening.__file__
    source = Path(screening.__file__).read_text(encoding="utf-8")
    decorators = "from bayescontrol.kernels._jit import inlined, leaf"
    assert decorators in source
    source = source.replace(decorators, "inlined = leaf = lambda kernel: kernel")
    for old, new in changes:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    module = ModuleType("changed_screening")
    exec(compile(source, "changed_screening", "exec"), module.__dict__)
    return module


CLOSE = np.array([[300.0, 200.0], [270.0, 230.0], [268.0, 230.0], [55.0, 50.0]])
RIVALS = np.array([[2.0, 1.0]] * 8)


def test_every_path_through_the_slow_branch_is_tested() -> None:
    """U and V are set by hand; the state decides about rivals."""
    plain, cache, v, best = interpreted(), ceilings(RIVALS), 0.99, -1
    tail, bound = screening.beta_tail(2.0, 1.0, v), screening.tail_bound(2.0, 1.0, v)
    assert tail < bound < cache[screening.BOUND, 0]
    reached = 1.0 - (1.0 - tail) ** 8

    def at(u: float, seed: int = 0, where: float = v) -> int:
        state = Stream(seed).state
        return int(plain._exceeding(RIVALS, cache, np.arange(8), best, where, u, state))

    assert at(8 * bound * 1.001) == best  # excluded by the bounds at V
    assert at(0.9 * 8 * bound + 0.1 * reached) == best  # excluded by some tails
    assert at(reached + 1e-12) == best  # excluded only by all tails
    assert at(0.0, where=1.0) == best  # nothing exceeds 1
    chosen = [at(0.5 * tail, seed) for seed in range(300)]
    assert chosen.count(0) > 200  # the first arm that exceeds V
    assert set(range(1, 8)) & set(chosen)  # or a rival
    assert best not in chosen
    assert 0 not in {at(1.5 * tail, seed) for seed in range(300)}  # the first is excluded
    assert at(reached - 1e-12) == 7  # all but the last are excluded


def test_the_interpreted_module_equals_the_compiled_one() -> None:
    plain, undrawn = interpreted(), np.empty(4, np.int64)
    one, two = prepared(CLOSE), prepared(CLOSE)
    p, q = Stream(1), Stream(1)
    for _ in range(500):
        a = screening.draw_action(CLOSE, one, np.arange(4), undrawn, p.state)
        assert plain.draw_action(CLOSE, two, np.arange(4), undrawn, q.state) == a
    assert p == q


PLANTED: dict[str, tuple[tuple[str, str], Callable[[Any], float]]] = {
    "the undrawn are cleared without a look": (
        ("if u < bound:", "if u < -1.0:"),
        lambda kernel: p_value_of_draws(kernel, np.ones((40, 2)), 10_000),
    ),
    "a bound is a third of what it should be": (
        ("u >= bound * SAFETY:", "u >= bound * 0.33:"),
        lambda kernel: p_value_of_exceeding(kernel, RIVALS, 0.0, 20_000),
    ),
    "the first to exceed wins over every rival": (
        ("return int(rival)", "return int(j)"),
        lambda kernel: p_value_of_exceeding(kernel, RIVALS, 0.0, 20_000),
    ),
    "each tail counts from zero": (
        ("reached += (1.0 - reached) * tail", "reached = tail"),
        lambda kernel: p_value_of_exceeding(kernel, RIVALS, 0.0, 20_000),
    ),
    "arms below their ceiling are not drawn": (
        ("if v < cache[CEILING, j]:", "if v < cache[MEAN, j]:"),
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
    rows, cache = np.ones((2, 2)), prepared(np.ones((2, 2)))
    for r in (1.0, 0.0, 1.0, 1.0):
        screening._raise_ceiling(rows[1, 0], rows[1, 1], cache, 1)
        screening.learn(rows, cache, 1, r)
    assert rows.tolist() == [[1.0, 1.0], [4.0, 2.0]]
    saved = slice(screening.D_ALPHA, screening.CEILING + 1)
    assert cache[saved].tobytes() == prepared(rows)[saved].tobytes()
