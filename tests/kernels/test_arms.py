"""Kernels of every family: drawn means, learned rows and rewards, compared with exact values.

Kolmogorov-Smirnov tests compare √n sup|F_n - F| with 2.69, chi-square tests the statistic with
its quantile: false-alarm rate 1e-6 each. The seeds are fixed, so results are
reproducible.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import special as sc  # type: ignore[import-untyped]
from tests.chance import chi_square, distance

from bayescontrol import bandits, kernels
from bayescontrol._arrays import FloatArray
from bayescontrol.bandits.discrete import Bernoulli, Categorical
from bayescontrol.bandits.gamma import Exponential, Poisson
from bayescontrol.bandits.gaussian import GaussianRewards, NormalGamma
from bayescontrol.kernels import arms, families
from bayescontrol.kernels.families import FAMILIES, number
from bayescontrol.seeding import Stream

BERNOULLI, GAUSSIAN, NORMAL_GAMMA = map(number, ("bernoulli", "gaussian", "normal_gamma"))
POISSON, EXPONENTIAL, CATEGORICAL = map(number, ("poisson", "exponential", "categorical"))
GEOMETRIC = number("geometric")
LIMIT, RATE, N = 2.69, 1e-6, 50_000
NONE = np.empty(0)
Cdf = Callable[[FloatArray], FloatArray]


def drawn(kind: int, constants: FloatArray, row: FloatArray, n: int = N) -> FloatArray:
    state = Stream(1).state
    return np.array([arms.draw(kind, constants, row, state) for _ in range(n)])


def responses(kind: int, constants: FloatArray, truth: list[float], n: int = N) -> FloatArray:
    state, row = Stream(2).state, np.array(truth)
    return np.array([arms.respond(kind, constants, row, state) for _ in range(n)])


def test_families_and_kernels_use_the_same_numbers() -> None:
    kinds = {
        "bernoulli": Bernoulli(), "gaussian": GaussianRewards(), "normal_gamma": NormalGamma(),
        "poisson": Poisson(), "exponential": Exponential(), "categorical": Categorical([0, 1]),
    }  # fmt: skip
    assert {FAMILIES[family.kind]: family for family in kinds.values()} == kinds


def test_every_kernel_file_is_listed_and_belongs_to_a_bandit() -> None:
    files = {path.stem for path in Path(families.__file__).parent.glob("[a-z]*.py")}
    assert files == set(FAMILIES)
    used = {bandit(**bandit.model_kind.example).family.kind for bandit in bandits.FAMILIES}
    assert used | {NORMAL_GAMMA} == set(range(len(FAMILIES)))


DRAWS: dict[str, tuple[int, FloatArray, list[float], Cdf]] = {
    "Beta": (BERNOULLI, NONE, [2.5, 4.0], lambda x: sc.betainc(2.5, 4.0, x)),
    "normal": (GAUSSIAN, np.array([3.0]), [1.0, 4.0], lambda x: sc.ndtr((x - 1.0) * 2.0)),
    "Student": (
        NORMAL_GAMMA,
        NONE,
        [1.0, 2.0, 1.5, 3.0],
        lambda x: sc.stdtr(3.0, x - 1.0),  # scale² β/ακ = 1
    ),
    "Gamma": (POISSON, NONE, [0.7, 2.0], lambda x: sc.gammainc(0.7, 2.0 * x)),
    "inverse Gamma": (EXPONENTIAL, NONE, [2.5, 3.0], lambda x: sc.gammaincc(2.5, 3.0 / x)),
    "odds of a Beta": (
        GEOMETRIC,
        NONE,
        [6.5, 40.0],
        lambda x: sc.betaincc(6.5, 40.0, 1.0 / (1.0 + x)),
    ),
    "odds of a Beta, small shapes": (
        GEOMETRIC,
        NONE,
        [0.7, 0.6],
        lambda x: sc.betaincc(0.7, 0.6, 1.0 / (1.0 + x)),
    ),
    "Dirichlet, two values": (
        CATEGORICAL,
        np.array([-1.0, 3.0]),
        [2.0, 0.5],
        lambda x: sc.betainc(0.5, 2.0, (x + 1.0) / 4.0),
    ),
    # With all α = 1 the mean of the values 0, 1, 2 has a triangular density.
    "Dirichlet, three values": (
        CATEGORICAL,
        np.array([0.0, 1.0, 2.0]),
        [1.0, 1.0, 1.0],
        lambda x: np.where(x < 1.0, 0.5 * x**2, 1.0 - 0.5 * (2.0 - x) ** 2),
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_mean_reward_is_drawn_with_the_distribution_of_its_row(name: str) -> None:
    """A planted bug, a last parameter that is a fifth too large, is detected."""
    kind, constants, row, cdf = DRAWS[name]
    x = drawn(kind, constants, np.array(row))
    assert distance(x, cdf) < LIMIT
    other = np.array(row)
    other[-1] *= 1.2
    assert distance(drawn(kind, constants, other), cdf) > LIMIT


@pytest.mark.parametrize("alpha", [0.099, 1e-3, 1e-12, 1e-300, 5e-324])
def test_a_dirichlet_with_tiny_alphas_is_in_its_corners_with_the_right_probabilities(
    alpha: float,
) -> None:
    values, row = np.array([-1.0, 0.0, 4.0]), np.array([1.0, 2.0, 3.0]) * alpha
    x = drawn(CATEGORICAL, values, row)
    assert np.isfinite(x).all()
    assert (x >= -1.0).all()
    assert (x <= 4.0).all()
    # E[m] = Σ v α / Σ α, Var[m] = (Σ v² α / Σ α - E²)/(1 + Σ α); |z| < 5: false alarms 6e-7.
    mean = float(values @ row / row.sum()) if alpha > 1e-300 else 11.0 / 6.0
    variance = (49.0 / 6.0 - mean**2) / (1.0 + row.sum())
    assert abs(x.mean() - mean) < 5.0 * math.sqrt(variance / N)
    if alpha < 1e-9:
        counts = np.array([(x == v).sum() for v in values], float)
        assert chi_square(counts, N * np.array([1.0, 2.0, 3.0]) / 6.0) > RATE


def test_both_ways_of_drawing_a_dirichlet_agree() -> None:
    """Two-sample Kolmogorov-Smirnov test: 2.69 for the scaled distance, false alarm 1e-6."""
    values = np.array([0.0, 1.0, 5.0])
    below, above = np.array([0.0999999, 0.05, 0.09]), np.array([0.1000001, 0.05, 0.09])
    one, two = (np.sort(drawn(CATEGORICAL, values, row)) for row in (below, above))
    grid = np.concatenate([one, two])
    f, g = (np.searchsorted(x, grid, "right") / N for x in (one, two))
    assert np.abs(f - g).max() * math.sqrt(N / 2) < LIMIT


def posteriors() -> Iterator[tuple[str, int, FloatArray, list[float], list[float], list[Fraction]]]:
    """Yield a row, rewards, and the posterior row by the closed form for all rewards."""
    F = Fraction
    zeros_ones = [1.0, 0.0, 1.0, 1.0]
    yield "Beta", BERNOULLI, NONE, [1.0, 2.0], zeros_ones, [F(4), F(3)]
    x = [1.5, -2.25, 4.0, 1000.0]
    n, total = len(x), sum(map(F, x), F(0))
    lam = F(1, 2) + F(n, 4)
    yield (
        "normal", GAUSSIAN, np.array([2.0]), [3.0, 0.5], x,
        [(F(3) / 2 + total / 4) / lam, lam],
    )  # fmt: skip
    kappa = F(1, 2) + n
    mu = (F(3) / 2 + total) / kappa
    square = F(1, 2) * F(3) ** 2 + sum(F(r) ** 2 for r in x) - kappa * mu**2
    yield (
        "normal-gamma", NORMAL_GAMMA, NONE, [3.0, 0.5, 1.0, 2.0], x,
        [mu, kappa, F(1) + F(n, 2), F(2) + square / 2],
    )  # fmt: skip
    yield "Poisson", POISSON, NONE, [1.5, 0.25], [0.0, 3.0, 7.0], [F(23, 2), F(13, 4)]
    yield "exponential", EXPONENTIAL, NONE, [1.5, 0.25], [0.5, 3.0], [F(7, 2), F(15, 4)]
    yield (
        "Dirichlet", CATEGORICAL, np.array([-1.0, 0.0, 2.5]), [1.0, 0.5, 2.0], [2.5, -0.0, 2.5],
        [F(1), F(3, 2), F(4)],
    )  # fmt: skip


@pytest.mark.parametrize("case", list(posteriors()), ids=lambda case: case[0])
def test_learning_one_by_one_gives_the_row_of_all_rewards_at_once(
    case: tuple[str, int, FloatArray, list[float], list[float], list[Fraction]],
) -> None:
    _, kind, constants, row, rewards, exact = case
    learned = np.array(row)
    for r in rewards:
        arms.learn(kind, constants, learned, r)
    for ours, wanted in zip(learned, exact, strict=True):
        assert abs(Fraction(float(ours)) / wanted - 1) < 1e-14


REWARDS: dict[str, tuple[int, FloatArray, list[float], Cdf]] = {
    "normal": (GAUSSIAN, np.array([2.0]), [1.0], lambda x: sc.ndtr((x - 1.0) / 2.0)),
    "normal, own spread": (NORMAL_GAMMA, NONE, [1.0, 0.5], lambda x: sc.ndtr((x - 1.0) / 0.5)),
    "exponential": (EXPONENTIAL, NONE, [3.0], lambda x: -np.expm1(-x / 3.0)),
}


@pytest.mark.parametrize("name", REWARDS)
def test_continuous_rewards_follow_their_distribution(name: str) -> None:
    kind, constants, truth, cdf = REWARDS[name]
    x = responses(kind, constants, truth)
    assert distance(x, cdf) < LIMIT
    assert distance(1.05 * x, cdf) > LIMIT, "rewards that are 5 % too large should be detected"


def test_finite_rewards_follow_their_distribution() -> None:
    ones = responses(BERNOULLI, NONE, [0.3]).sum()
    assert chi_square(np.array([ones, N - ones]), N * np.array([0.3, 0.7])) > RATE
    values, p = np.array([5.0, -2.0, 0.0]), [0.5, 0.3, 0.2]
    x = responses(CATEGORICAL, values, p)
    counts = np.array([(x == v).sum() for v in values], float)
    assert chi_square(counts, N * np.array(p)) > RATE
    x, k = responses(POISSON, NONE, [4.0]), np.arange(30.0)  # `test_counts` tests other means
    counts = np.bincount(x.astype(int), minlength=30).astype(float)
    assert chi_square(counts, N * np.exp(k * math.log(4.0) - 4.0 - sc.gammaln(k + 1.0))) > RATE


def test_only_active_arms_are_drawn_and_chosen() -> None:
    rows, means = np.array([[1.0, 1.0], [1e6, 1.0], [1.0, 1.0]]), np.full(3, np.nan)
    state, active = Stream(3).state, np.array([0, 2])
    chosen = {arms.draw_action(BERNOULLI, NONE, rows, active, means, state) for _ in range(100)}
    assert chosen == {0, 2}
    assert np.isnan(means[1])


@pytest.mark.parametrize(
    ("kind", "row"), [(BERNOULLI, [1e-4, 1e-4]), (POISSON, [1e-4, 1.0]), (EXPONENTIAL, [1e-4, 1.0])]
)
def test_arms_equal_in_double_precision_are_chosen_equally_often(
    kind: int, row: list[float]
) -> None:
    """Beta(1e-4, 1e-4) draws 0 or 1: the first of equal arms must not win every tie.

    `draw_action` compares logarithms here, which are rarely equal; `largest_mean` breaks ties.
    """
    rows, means, state = np.array([row] * 4), np.empty(4), Stream(4).state
    active = np.arange(4)
    for choose in (arms.draw_action, arms.largest_mean):
        chosen = [choose(kind, NONE, rows, active, means, state) for _ in range(N)]
        counts = np.bincount(chosen, minlength=4).astype(float)
        assert chi_square(counts, np.full(4, N / 4)) > RATE


def test_the_loop_equals_calling_the_kernels_in_turn() -> None:
    rows, truth = np.ones((3, 2)), np.array([[0.2], [0.5], [0.8]])
    actions, rewards = np.empty(200, np.int64), np.empty(200)
    p, q = Stream(5), Stream(6)
    streams = kernels.random.Streams(p.copy().state, q.copy().state)
    posterior = arms.ArmRows(BERNOULLI, NONE, rows, np.arange(3), np.empty(3))
    arms.interact(posterior, posterior.rows, 1.0, truth, streams, actions, rewards)
    again, means = np.ones((3, 2)), np.empty(3)
    for a, r in zip(actions, rewards, strict=True):
        assert arms.draw_action(BERNOULLI, NONE, again, np.arange(3), means, p.state) == a
        assert arms.respond(BERNOULLI, NONE, truth[a], q.state) == r
        arms.learn(BERNOULLI, NONE, again[a], r)
    assert again.tobytes() == rows.tobytes()


def test_compiled_and_interpreted_kernels_agree_bit_for_bit() -> None:
    """Draws and rewards of every family, with and without the compiler."""
    cases = [(kind, constants, np.array(row)) for kind, constants, row, _ in DRAWS.values()] + [
        (CATEGORICAL, np.array([0.0, 1.0]), np.array([1e-3, 1e-5]))
    ]
    python = getattr(kernels.arms.draw, "py_func")  # noqa: B009
    for kind, constants, row in cases:
        one, two = Stream(7).state, Stream(7).state
        for _ in range(20):
            assert python(kind, constants, row, one) == arms.draw(kind, constants, row, two)
