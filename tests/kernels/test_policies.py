"""Every index, compared with its formula in plain Python or 30 digits; the resulting choices."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest

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


@pytest.mark.parametrize("seed", range(10))
def test_ucb1_equals_its_formula(seed: int) -> None:
    n, s, _ = counts(seed, whole=seed < 5)
    exact = s / n + np.sqrt(2 * np.log(n.sum()) / n)
    assert filled(policies.ucb1, n.sum(), n, s) == pytest.approx(exact, rel=1e-14)


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


# -- choices ------------------------------------------------------------------------------------


def pull(
    kind: int,
    parameters: Sequence[float],
    n: Any,
    s: Any,
    q: Any,
    draws: int,
    *,
    home: Any = policies,
    rows: int = 1,
) -> FloatArray:
    """Return how often the policy `kind` of the module `home` chooses each arm."""
    arms = len(n)
    state, chosen, scratch = Stream(0).state, np.zeros(arms), np.empty((rows, arms))
    counts, values = np.array([n, s, q], float), np.array(parameters, float)
    for _ in range(draws):
        chosen[home.choose(kind, values, counts, scratch, state)] += 1
    return chosen / draws


def assert_shares(shares: FloatArray, distribution: Sequence[float], draws: int) -> None:
    """Each share is within five standard errors: false alarm 6e-7 for each arm."""
    p = np.array(distribution)
    assert (np.abs(shares - p) <= 5.0 * np.sqrt(p * (1.0 - p) / draws) + 1e-12).all()


EVERY: list[tuple[int, list[float]]] = [
    (policies.UNIFORM, []),
    (policies.ORACLE, [0.5] * 4),
    (policies.EPSILON_GREEDY, [0.1, 0.9]),
    (policies.SOFTMAX, [0.1, 0.9]),
    (policies.UCB1, []),
    (policies.KL_UCB, [0.0]),
]


@pytest.mark.parametrize(("kind", "parameters"), EVERY)
@pytest.mark.parametrize("observed", [0.0, 6.0])
def test_equal_arms_are_chosen_equally_often(
    kind: int, parameters: list[float], observed: float
) -> None:
    n = np.full(4, observed)
    shares = pull(kind, parameters, n, n / 3, n / 3, 4000)
    assert_shares(shares, [0.25] * 4, 4000)


@pytest.mark.parametrize("kind", [policies.UCB1, policies.KL_UCB])
def test_untried_arms_come_first_in_any_order(kind: int) -> None:
    shares = pull(kind, [100.0], [3, 0, 5, 0], [3, 0, 5, 0], [3, 0, 5, 0], 4000)
    assert_shares(shares, [0.0, 0.5, 0.0, 0.5], 4000)


def test_the_arm_with_the_largest_value_is_found_without_random_numbers_if_unique() -> None:
    rng, state = np.random.default_rng(0), Stream(0).state
    for _ in range(200):
        values = rng.choice([0.0, 0.5, 1.0, math.inf, -1.0], rng.integers(1, 6))
        before = state.copy()
        assert values[policies.arg_max(values, state)] == values.max()
        assert (values == values.max()).sum() > 1 or (state == before).all()


@pytest.mark.parametrize(("paid", "shares"), [(2, [0.0, 1.0, 0.0]), (3, [1.0, 0.0, 0.0])])
def test_epsilon_greedy_assumes_a_mean_of_one_half_for_untried_arms(
    paid: int, shares: list[float]
) -> None:
    s = [paid, 0, 2]
    assert pull(policies.EPSILON_GREEDY, [0.0, 1.0], [5, 0, 5], s, s, 500).tolist() == shares


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


def test_each_support_accepts_its_rewards() -> None:
    values = [-1.0, -0.0, 0.0, 0.5, 1.0, 1.0 + 1e-15, math.inf, math.nan, 1e151]
    taken = {
        policies.BINARY: [-0.0, 0.0, 1.0],
        policies.UNIT: [-0.0, 0.0, 0.5, 1.0],
        policies.FINITE: [-1.0, -0.0, 0.0, 0.5, 1.0, 1.0 + 1e-15],
    }
    for support, accepted in taken.items():
        assert [r for r in values if policies.accepts(support, r)] == accepted
