"""Information-directed sampling, compared with exact integrals and 30-digit arithmetic."""

import math
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import mpmath
import numpy as np
import pytest
from benchmarks.arena.agents import bandits as ids
from scipy import integrate, special  # type: ignore[import-untyped]

from bayescontrol._arrays import FloatArray
from bayescontrol.seeding import Stream

Polynomial = list[Fraction]


def times(f: Polynomial, g: Polynomial) -> Polynomial:
    out = [Fraction(0)] * (len(f) + len(g) - 1)
    for i, x in enumerate(f):
        for j, y in enumerate(g):
            out[i + j] += x * y
    return out


def antiderivative(f: Polynomial) -> Polynomial:
    return [Fraction(0)] + [c / (k + 1) for k, c in enumerate(f)]


def density(a: int, b: int) -> Polynomial:
    scale = a * math.comb(a + b - 1, a)
    down = [Fraction((-1) ** k * math.comb(b - 1, k)) for k in range(b)]
    return times([Fraction(0)] * (a - 1) + [Fraction(scale)], down)


def exact_information(a: list[int], b: list[int]) -> tuple[list[Any], list[Any], list[Any]]:
    """Return p, Δ and g of Beta(a, b) arms with integer parameters; only the logs are rounded."""
    arms = range(len(a))
    f = [density(*ab) for ab in zip(a, b, strict=True)]
    F = [antiderivative(f_j) for f_j in f]
    Q = [antiderivative(times([Fraction(0), Fraction(1)], f_j)) for f_j in f]  # ∫ x f
    m = [Fraction(x, x + y) for x, y in zip(a, b, strict=True)]

    def integral(i: int, j: int | None) -> Fraction:
        """∫ f_i Π F, times θ_j if j is given."""
        out = f[i] if j != i else times([Fraction(0), Fraction(1)], f[i])
        for k in arms:
            if k != i:
                out = times(out, Q[k] if k == j else F[k])
        return sum(antiderivative(out), Fraction(0))

    p = [integral(i, None) for i in arms]
    M = [[integral(i, j) / p[i] for j in arms] for i in arms]
    best = sum((p[i] * M[i][i] for i in arms), Fraction(0))
    gain = [sum(real(p[i]) * kl(real(M[i][j]), real(m[j])) for i in arms) for j in arms]
    return p, [best - m_j for m_j in m], gain


def real(x: Fraction) -> "mpmath.mpf":
    return mpmath.mpf(x.numerator) / x.denominator


def kl(p: "mpmath.mpf", q: "mpmath.mpf") -> "mpmath.mpf":
    return p * mpmath.log(p / q) + (1 - p) * mpmath.log((1 - p) / (1 - q))


def ours(a: Any, b: Any) -> FloatArray:
    """Return the scratch array of `information` for a prior of (1/2, 1/2) and matching counts."""
    a, b = np.array(a, float), np.array(b, float)
    work = np.full((ids.ROWS + a.size, a.size), np.nan)
    ids.information(0.5, 0.5, a + b - 1.0, a - 0.5, work)
    return work


def test_probabilities_regret_and_gain_are_exact_for_integer_parameters() -> None:
    rng = np.random.default_rng(0)
    with mpmath.workdps(40):
        for arms, most, cases in ((2, 40, 12), (3, 12, 8), (5, 5, 4)):
            for _ in range(cases):
                a, b = rng.integers(1, most, (2, arms)).tolist()
                work = ours(a, b)
                p, regret, gain = exact_information(a, b)
                assert work[ids.P] == pytest.approx([float(x) for x in p], abs=1e-13)
                assert work[ids.REGRET] == pytest.approx([float(x) for x in regret], abs=1e-13)
                assert work[ids.GAIN] == pytest.approx([float(x) for x in gain], abs=1e-13)


def test_two_uniform_arms_by_hand() -> None:
    """E max = 2/3, and E[θ_j | j best] = 2/3, E[θ_j | other best] = 1/3."""
    work = ours([1, 1], [1, 1])
    gain = 2 / 3 * math.log(4 / 3) + 1 / 3 * math.log(2 / 3)
    assert work[ids.P] == pytest.approx([0.5, 0.5], abs=1e-14)
    assert work[ids.REGRET] == pytest.approx([1 / 6, 1 / 6], abs=1e-14)
    assert work[ids.GAIN] == pytest.approx([gain, gain], abs=1e-14)


@pytest.mark.parametrize(
    ("a", "b"), [([0.5, 0.5], [0.5, 0.5]), ([0.6, 2.5], [1.5, 0.7]), ([30.5, 1.5], [20.5, 2.5])]
)
def test_fractional_parameters_agree_with_brute_force_integrals(
    a: list[float], b: list[float]
) -> None:
    with mpmath.workdps(25):

        def f(j: int, x: Any) -> Any:
            return (
                x ** (mpmath.mpf(a[j]) - 1)
                * (1 - x) ** (mpmath.mpf(b[j]) - 1)
                / mpmath.beta(a[j], b[j])
            )

        def F(j: int, x: Any, more: int = 0) -> Any:
            return mpmath.betainc(a[j] + more, b[j], 0, x, regularized=True)

        m = [mpmath.mpf(x) / (x + y) for x, y in zip(a, b, strict=True)]

        def three(i: int, j: int) -> list[Any]:
            """∫ f_i F_j, and the same times θ_i and times θ_j."""
            inside = (
                lambda x: f(i, x) * F(j, x),
                lambda x: x * f(i, x) * F(j, x),
                lambda x: f(i, x) * m[j] * F(j, x, 1),
            )
            return [mpmath.quad(g, [0, 0.5, 1]) for g in inside]

        both = [three(0, 1), three(1, 0)]
        p = [of[0] for of in both]
        M = [(of[1] / of[0], of[2] / of[0]) for of in both]
        best = p[0] * M[0][0] + p[1] * M[1][0]
        gain = [p[i] * kl(M[i][0], m[i]) + p[1 - i] * kl(M[1 - i][1], m[i]) for i in range(2)]
        work = ours(a, b)
        assert work[ids.P] == pytest.approx([float(x) for x in p], abs=1e-11)
        assert work[ids.REGRET] == pytest.approx([float(best - x) for x in m], abs=1e-11)
        assert work[ids.GAIN] == pytest.approx([float(x) for x in gain], abs=1e-11)


@pytest.mark.parametrize("arms", [2, 10, 60])
@pytest.mark.parametrize("most", [1e1, 1e3, 1e5])
def test_probabilities_sum_to_one_for_very_different_counts(arms: int, most: float) -> None:
    """Arms with one pull and arms with 1e5 pulls: panels must be narrow enough for all of them."""
    rng = np.random.default_rng(int(most) + arms)
    for _ in range(20):
        a, b = 0.5 + most ** rng.random((2, arms))
        work = ours(a, b)
        assert work[ids.P].sum() == pytest.approx(1.0, abs=1e-11)
        assert (work[ids.REGRET] >= 0.0).all()
        assert (work[ids.GAIN] >= 0.0).all()


@pytest.mark.parametrize("most", [1e3, 1e5])
def test_regret_is_the_expected_maximum_minus_the_mean(most: float) -> None:
    """E max = 1 - ∫ Π F dx, with SciPy's distribution functions and adaptive quadrature."""
    rng = np.random.default_rng(int(most))
    for _ in range(10):
        a, b = 0.5 + most ** rng.random((2, 4))
        m = a / (a + b)
        sd = np.sqrt(m * (1.0 - m) / (a + b))
        cuts = np.unique(np.clip([m + k * sd for k in (-8, -3, 0, 3, 8)], 0.0, 1.0))
        edges = [0.0, *cuts[(cuts > 0.0) & (cuts < 1.0)], 1.0]
        below = sum(
            integrate.quad(
                lambda x, a=a, b=b: special.betainc(a, b, x).prod(), low, high, epsabs=1e-14
            )[0]
            for low, high in pairwise(edges)
        )
        assert ours(a, b)[ids.REGRET] == pytest.approx(1.0 - below - m, abs=1e-10)


def test_gains_are_at_most_the_entropy_of_one_reward() -> None:
    rng = np.random.default_rng(9)
    for _ in range(50):
        a, b = 0.5 + 100.0 ** rng.random((2, 5))
        work = ours(a, b)
        p = work[ids.P]
        entropy = -(p[p > 0] * np.log(p[p > 0])).sum()
        assert (work[ids.GAIN] <= min(entropy, math.log(2.0)) + 1e-12).all()


def test_the_pair_beats_every_distribution_over_the_arms() -> None:
    rng = np.random.default_rng(1)
    steps = 20
    for _ in range(20):
        a, b = rng.integers(1, 30, (2, 3))
        work = ours(a, b)
        regret, gain = work[ids.REGRET], work[ids.GAIN]
        least = min(
            ids.best_ratio(regret[i], gain[i], regret[j], gain[j])[0]
            for i in range(3) for j in range(i)
        )  # fmt: skip
        assert (least <= regret**2 / gain * (1 + 1e-12)).all()
        for i, j in product(range(steps + 1), repeat=2):
            if i + j <= steps:
                pi = np.array([i, j, steps - i - j]) / steps
                assert least <= (pi @ regret) ** 2 / (pi @ gain) * (1 + 1e-12)


def test_the_weights_of_a_pair_minimise_its_ratio() -> None:
    rng = np.random.default_rng(2)
    w = np.linspace(0.0, 1.0, 2001)
    for _ in range(100):
        regret, gain = rng.random(2), rng.random(2)
        value, chance = ids.best_ratio(regret[0], gain[0], regret[1], gain[1])
        curve = (w * regret[0] + (1 - w) * regret[1]) ** 2 / (w * gain[0] + (1 - w) * gain[1])
        assert value <= curve.min() + 1e-15
        assert value == ids.ratio(regret[0], gain[0], regret[1], gain[1], chance)


def test_arms_of_a_pair_are_drawn_with_their_weights() -> None:
    """4,000 draws, five standard errors: a false alarm in 6e-7 of the seeds."""
    work = np.array([[1.0, 0.5], [1.0, 0.1]])
    _, w = ids.best_ratio(1.0, 1.0, 0.5, 0.1)
    state = Stream(0).state
    share = np.mean([ids.draw_pair(work, state) == 0 for _ in range(4000)])
    assert abs(share - w) < 5 * math.sqrt(w * (1 - w) / 4000)


def test_an_arm_that_is_certainly_best_is_pulled() -> None:
    state = Stream(0).state
    work = ours([1e6, 1.0], [1.0, 1e6])
    assert [ids.draw_pair(work, state) for _ in range(20)] == [0] * 20
    assert ids.draw_pair(ours([3.0], [2.0]), state) == 0
