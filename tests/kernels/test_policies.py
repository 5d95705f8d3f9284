"""Every index, compared with its formula in plain Python or 30 digits; the resulting choices."""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import mpmath
import numpy as np
import pytest
from benchmarks.arena.agents import bandits as arena
from benchmarks.arena.agents import optimism
from scipy import special  # type: ignore[import-untyped]

from bayescontrol._arrays import FloatArray
from bayescontrol.kernels import policies
from bayescontrol.seeding import Stream


def counts(seed: int, arms: int = 6, most: int = 200, whole: bool = True) -> Any:
    """n, s, q of arms that have all been pulled; rewards are 0 and 1, or real in [0, 1]."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, most, arms).astype(float)
    rewards = [rng.random(int(k)) < rng.random() if whole else rng.random(int(k)) for k in n]
    s = np.array([r.sum() for r in rewards], float)
    q = np.array([(np.asarray(r, float) ** 2).sum() for r in rewards])
    return n, s, q


def filled(kernel: Callable[..., None], *arguments: Any, arms: int = 6) -> FloatArray:
    out = np.empty(arms)
    kernel(*arguments, out)
    return out


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_ucb1_ucb_tuned_and_moss_equal_their_formulas(seed: int, whole: bool) -> None:
    n, s, q = counts(seed, whole=whole)
    t = n.sum()
    x = s / n
    assert filled(policies.ucb1, t, n, s) == pytest.approx(
        x + np.sqrt(2 * np.log(t) / n), rel=1e-14
    )
    V = q / n - x**2 + np.sqrt(2 * np.log(t) / n)
    assert filled(optimism.ucb_tuned, t, n, s, q) == pytest.approx(
        x + np.sqrt(np.log(t) / n * np.minimum(0.25, V)), rel=1e-13
    )
    assert filled(optimism.moss, 500.0, n, s) == pytest.approx(
        x + np.sqrt(np.maximum(np.log(500 / (6 * n)), 0) / n), rel=1e-14
    )


def test_ucb1_ucb_tuned_and_moss_agree_with_hand_calculations() -> None:
    """t = 8: √(2 ln 8 / 2) = √(ln 8), and so on."""
    n, s, q = np.array([2.0, 6.0]), np.array([1.0, 3.0]), np.array([1.0, 1.5])
    assert filled(policies.ucb1, 8.0, n, s, arms=2) == pytest.approx([1.942026, 1.332555])
    # The sample variances are 1/4 and 0; with √(2 ln 8 / n) added both exceed the limit of 1/4.
    assert filled(optimism.ucb_tuned, 8.0, n, s, q, arms=2) == pytest.approx(
        [0.5 + math.sqrt(math.log(8) / 8), 0.5 + math.sqrt(math.log(8) / 24)]
    )
    # T = 12: ln 12/(2·2) = ln 3 and ln 12/(2·6) = 0.
    assert filled(optimism.moss, 12.0, n, s, arms=2) == pytest.approx(
        [0.5 + math.sqrt(math.log(3) / 2), 0.5]
    )


def test_ucb_tuned_uses_the_variance_of_well_known_arms() -> None:
    n, s, q = np.full(2, 1e5), np.full(2, 5e4), np.array([5e4, 2.5e4])
    noisy, steady = filled(optimism.ucb_tuned, 2e5, n, s, q, arms=2)
    assert noisy - 0.5 == pytest.approx(math.sqrt(math.log(2e5) / 1e5 / 4), rel=1e-12)
    floor = math.sqrt(2 * math.log(2e5) / 1e5)
    assert steady - 0.5 == pytest.approx(math.sqrt(math.log(2e5) / 1e5 * floor), rel=1e-12)


@pytest.mark.parametrize("c", [0.0, 3.0])
def test_kl_ucb_agrees_with_the_root_in_thirty_digits(c: float) -> None:
    with mpmath.workdps(30):
        for seed in range(5):
            n, s, _ = counts(seed, whole=seed % 2 == 0)
            t = n.sum()
            level = mpmath.log(t + 1) + c * mpmath.log(mpmath.log(t + 1))
            for x, n_j, s_j in zip(filled(policies.kl_ucb, t, c, n, s), n, s, strict=True):
                p = mpmath.mpf(s_j) / n_j
                if p in (0, 1):
                    assert x == pytest.approx(float(1 - mpmath.exp(-level / n_j)) if p == 0 else 1)
                    continue

                def gap(x: Any, p: Any = p, n_j: float = n_j, level: Any = level) -> Any:
                    kl = p * mpmath.log(p / x) + (1 - p) * mpmath.log((1 - p) / (1 - x))
                    return n_j * kl - level

                inside = (p + (1 - p) * mpmath.mpf(10) ** -12, 1 - mpmath.mpf(10) ** -25)
                root = mpmath.findroot(gap, inside, solver="anderson", tol=1e-25, verify=False)
                assert abs(x - root) < 3e-16


def test_kl_ucb_omits_ln_ln_while_it_is_negative() -> None:
    n, s = np.array([1.0]), np.array([0.0])
    for c in (0.0, 3.0):
        out = filled(policies.kl_ucb, 1.0, c, n, s, arms=1)
        assert out == pytest.approx([0.5])  # ln 1/(1-x) = ln 2


@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.5, 2.5)])
@pytest.mark.parametrize("c", [0.0, 5.0])
def test_bayes_ucb_equals_the_quantile(c: float, prior: tuple[float, float]) -> None:
    for seed in range(5):
        n, s, _ = counts(seed)
        t = n.sum()
        tail = 1.0 / ((t + 1) * math.log(1000.0) ** c)
        out = filled(optimism.bayes_ucb, t, np.array([c, 1000.0, *prior]), n, s)
        exact = special.betainccinv(prior[0] + s, prior[1] + n - s, tail)
        assert out == pytest.approx(exact, abs=1e-12)


def gradient(n: FloatArray, s: FloatArray, prior: tuple[float, float], h: float) -> list[float]:
    """E max_i m_i after a reward of arm j, by summing over both rewards."""

    def means(n: FloatArray, s: FloatArray) -> FloatArray:
        return np.asarray((prior[0] + s) / (sum(prior) + n))

    m, out = means(n, s), []
    for j in range(n.size):
        one = np.eye(n.size)[j]
        after = m[j] * means(n + one, s + one).max() + (1 - m[j]) * means(n + one, s).max()
        out.append(m[j] + h * (after - m.max()))
    return out


@pytest.mark.parametrize(
    ("horizon", "discount", "h"),
    [
        (1000.0, 1.0, lambda t: max(999.0 - t, 0.0)),
        (math.inf, 0.99, lambda t: 99.0),
        (1000.0, 0.9, lambda t: sum(0.9**k for k in range(1, int(max(999 - t, 0)) + 1))),
        (10.0, 1.0, lambda t: 0.0),
    ],
)
def test_the_knowledge_gradient_equals_its_expectation(
    horizon: float, discount: float, h: Callable[[float], float]
) -> None:
    for seed in range(20):
        n, s, _ = counts(seed, arms=4, most=8)
        t = n.sum()
        out = filled(arena.knowledge_gradient, t, horizon, discount, 1.0, 2.0, n, s, arms=4)
        assert out == pytest.approx(gradient(n, s, (1.0, 2.0), h(t)), abs=1e-12)


def test_equal_arms_have_equal_knowledge_gradients_to_the_last_bit() -> None:
    for seed in range(20):
        n, s, _ = counts(seed, arms=1, most=30)
        n, s = np.repeat(n, 3), np.repeat(s, 3)
        out = filled(arena.knowledge_gradient, 3.0, 100.0, 1.0, 1.0, 1.0, n, s, arms=3)
        assert len(set(out.tolist())) == 1


def test_the_knowledge_gradient_of_a_single_arm_is_zero() -> None:
    one = np.array([5.0])
    out = filled(arena.knowledge_gradient, 5.0, 100.0, 1.0, 1.0, 1.0, one, 0 * one, arms=1)
    assert out == pytest.approx([1 / 7])


# -- choices ------------------------------------------------------------------------------------


def pull(
    kind: int, parameters: Sequence[float], n: Any, s: Any, q: Any, draws: int, seed: int = 0
) -> FloatArray:
    """Return how often each arm is chosen."""
    arms = len(n)
    scratch = np.empty((arena.ROWS + arms if kind == arena.INFORMATION else 1, arms))
    state, chosen = Stream(seed).state, np.zeros(arms)
    counts, values = np.array([n, s, q], float), np.array(parameters, float)
    home: Any = policies if kind <= policies.KL_UCB else optimism
    if kind in (arena.KNOWLEDGE_GRADIENT, arena.INFORMATION):
        home = arena
    for _ in range(draws):
        chosen[home.choose(kind, values, counts, scratch, state)] += 1
    return chosen / draws


def assert_shares(shares: FloatArray, distribution: Sequence[float], draws: int) -> None:
    """Each share is within five standard errors: false alarm 6e-7 for each arm."""
    p = np.array(distribution)
    assert (np.abs(shares - p) <= 5.0 * np.sqrt(p * (1.0 - p) / draws) + 1e-12).all()


EVERY = [
    (policies.UNIFORM, []),
    (policies.ORACLE, [0.5] * 4),
    (policies.EPSILON_GREEDY, [0.1, 0.9]),
    (policies.SOFTMAX, [0.1, 0.9]),
    (policies.UCB1, []),
    (optimism.UCB_TUNED, []),
    (optimism.MOSS_POLICY, [100.0]),
    (policies.KL_UCB, [0.0]),
    (optimism.BAYES_UCB, [0.0, 100.0, 1.0, 1.0]),
    (arena.KNOWLEDGE_GRADIENT, [100.0, 1.0, 1.0, 1.0]),
    (arena.INFORMATION, [1.0, 1.0]),
]


@pytest.mark.parametrize(("kind", "parameters"), EVERY)
@pytest.mark.parametrize("observed", [0.0, 6.0])
def test_equal_arms_are_chosen_equally_often(
    kind: int, parameters: list[float], observed: float
) -> None:
    n = np.full(4, observed)
    shares = pull(kind, parameters, n, n / 3, n / 3, 4000)
    assert_shares(shares, [0.25] * 4, 4000)


@pytest.mark.parametrize(
    "kind", [policies.UCB1, optimism.UCB_TUNED, optimism.MOSS_POLICY, policies.KL_UCB]
)
def test_untried_arms_come_first_in_any_order(kind: int) -> None:
    shares = pull(kind, [100.0], [3, 0, 5, 0], [3, 0, 5, 0], [3, 0, 5, 0], 4000)
    assert_shares(shares, [0.0, 0.5, 0.0, 0.5], 4000)


def test_epsilon_greedy_assumes_a_mean_of_one_half_for_untried_arms() -> None:
    assert_shares(
        pull(policies.EPSILON_GREEDY, [0.0, 1.0], [5, 0, 5], [2, 0, 2], [2, 0, 2], 500),
        [0.0, 1.0, 0.0],
        500,
    )
    assert_shares(
        pull(policies.EPSILON_GREEDY, [0.0, 1.0], [5, 0, 5], [3, 0, 2], [3, 0, 2], 500),
        [1.0, 0.0, 0.0],
        500,
    )


@pytest.mark.parametrize("decay", [1.0, 0.9])
def test_epsilon_greedy_explores_with_its_probability(decay: float) -> None:
    """After 6 rewards the seventh decision explores with probability ε α^7."""
    epsilon = 0.6 * decay**7
    shares = pull(policies.EPSILON_GREEDY, [0.6, decay], [2, 2, 2], [2, 1, 0], [2, 1, 0], 20000)
    assert_shares(shares, [1 - epsilon * 2 / 3, epsilon / 3, epsilon / 3], 20000)


@pytest.mark.parametrize("decay", [1.0, 0.9])
def test_softmax_has_the_boltzmann_distribution(decay: float) -> None:
    tau = 0.5 * decay**7
    distribution = np.exp(np.array([1.0, 0.5, 0.5]) / tau)
    shares = pull(policies.SOFTMAX, [0.5, decay], [2, 4, 0], [2, 2, 0], [2, 2, 0], 20000)
    assert_shares(shares, (distribution / distribution.sum()).tolist(), 20000)


def test_softmax_converges_to_the_best_arm() -> None:
    n = np.full(3, 1e5)
    shares = pull(policies.SOFTMAX, [0.5, 0.5], n, [0, 5e4, 4e4], [0, 5e4, 4e4], 100)
    assert shares.tolist() == [0.0, 1.0, 0.0]


def test_arg_max_finds_the_largest_value() -> None:
    rng = np.random.default_rng(0)
    state = Stream(0).state
    for _ in range(200):
        values = rng.choice([0.0, 0.5, 1.0, math.inf, -1.0], rng.integers(1, 6))
        j = policies.arg_max(values, state)
        assert values[j] == values.max()


def test_a_unique_maximum_uses_no_random_numbers() -> None:
    state = Stream(0).state
    before = state.copy()
    policies.arg_max(np.array([0.1, 0.3]), state)
    assert (state == before).all()


def test_each_support_accepts_its_rewards() -> None:
    values = [-1.0, -0.0, 0.0, 0.5, 1.0, 1.0 + 1e-15, math.inf, math.nan, 1e151]
    taken = {
        policies.BINARY: [-0.0, 0.0, 1.0],
        policies.UNIT: [-0.0, 0.0, 0.5, 1.0],
        policies.FINITE: [-1.0, -0.0, 0.0, 0.5, 1.0, 1.0 + 1e-15],
    }
    for support, accepted in taken.items():
        assert [r for r in values if policies.accepts(support, r)] == accepted


def test_no_two_policies_share_a_number() -> None:
    kinds = [kind for kind, _ in EVERY]
    assert all(one != two for one, two in combinations(kinds, 2))
