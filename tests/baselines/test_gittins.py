"""Gittins indices, compared with published values, exact arithmetic and each other."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray
from bayescontrol._compiled import find_loop
from bayescontrol.bandits import BernoulliBandit
from bayescontrol.baselines import GittinsAgent, GittinsTable, gittins_bounds, gittins_index
from bayescontrol.baselines.gittins_solver import GittinsProblem, march
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidPrior, UnknownArm
from bayescontrol.kernels.gittins import Band, Passes
from bayescontrol.seeding import Stream
from bayescontrol.testing import check_fused, check_resume, check_same_seed, same_bits

STATES = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (1, 3), (3, 1)]
PUBLISHED = {
    0.5: [0.55902, 0.37582, 0.70597, 0.53587, 0.52577, 0.28022, 0.77723],
    0.7: [0.60460, 0.41182, 0.73580, 0.56500, 0.54718, 0.30751, 0.79846],
    0.9: [0.70289, 0.50013, 0.80006, 0.63463, 0.60100, 0.37963, 0.84520],
    0.99: [0.86986, 0.70054, 0.91018, 0.78436, 0.73079, 0.56710, 0.92850],
}


def excess(
    alpha: float, beta: float, gamma: float, lam: float, levels: int, *, theta_known: bool = False
) -> float:
    """D of the first state by the plain equation: a lower bound, or an upper one if θ is known."""
    m = alpha + beta + levels
    mu = (alpha + np.arange(levels + 1.0)) / m
    y = mu - lam
    v = mu * (1.0 - mu) / (m + 1.0)
    d = 0.5 * (np.sqrt(v + y * y) + y) if theta_known else np.maximum(y, 0.0)
    D = d
    for n in range(levels - 1, -1, -1):
        mu = (alpha + np.arange(n + 1.0)) / (alpha + beta + n)
        D = (1.0 - gamma) * (mu - lam) + gamma * (mu * d[1 : n + 2] + (1.0 - mu) * d[: n + 1])
        d = np.maximum(D, 0.0)
    return float(D[0])


def index_with_many_digits(alpha: float, beta: float, gamma: float, levels: int) -> mpmath.mpf:
    """ν to more than thirty digits: the root of the plain equation in 40-digit arithmetic."""
    with mpmath.workdps(40):
        a, b, g = mpmath.mpf(alpha), mpmath.mpf(beta), mpmath.mpf(gamma)

        def D(lam: mpmath.mpf) -> mpmath.mpf:
            d = [max((a + s) / (a + b + levels) - lam, 0) for s in range(levels + 1)]
            v = d
            for n in range(levels - 1, -1, -1):
                mu = [(a + s) / (a + b + n) for s in range(n + 1)]
                v = [
                    (1 - g) * (mu[s] - lam) + g * (mu[s] * d[s + 1] + (1 - mu[s]) * d[s])
                    for s in range(n + 1)
                ]
                d = [max(x, 0) for x in v]
            return v[0]

        low, high = a / (a + b), mpmath.mpf(1)
        D_low, D_high = D(low), D(high)
        while high - low > 1e-25:  # chords from both sides: D is convex, and linear near the root
            lam = low + (high - low) * D_low / (D_low - D_high)
            step = min((high - low) / 4, mpmath.mpf(10) ** -20)
            for x in (lam - step, lam + step, (low + high) / 2):
                if low < x < high:
                    value = D(x)
                    if value > 0:
                        low, D_low = x, value
                    else:
                        high, D_high = x, value
        return (low + high) / 2


@pytest.mark.parametrize("gamma", PUBLISHED)
def test_the_published_values_are_met(gamma: float) -> None:
    assert abs(gittins_index(1, 1, 0.999) - 0.9537564919) < 6e-11
    table = GittinsTable(gamma, 4, tolerance=1e-7, cache=False)
    for (alpha, beta), nu in zip(STATES, PUBLISHED[gamma], strict=True):
        assert abs(gittins_index(alpha, beta, gamma) - nu) < 6e-6
        assert abs(table.index(alpha - 1, beta - 1) - nu) < 6e-6


@pytest.mark.parametrize(
    ("alpha", "beta", "gamma", "levels"),
    [(1.0, 1.0, 0.5, 50), (0.3, 2.7, 0.5, 50), (5.5, 3.25, 0.6, 65)],
)
def test_the_bounds_contain_the_index_in_forty_digit_arithmetic(
    alpha: float, beta: float, gamma: float, levels: int
) -> None:
    nu = index_with_many_digits(alpha, beta, gamma, levels)
    low, high = gittins_bounds(alpha, beta, gamma)
    assert low < nu < high
    assert high - low < 2e-12


@settings(max_examples=25)
@given(
    alpha=st.floats(0.05, 40.0),
    beta=st.floats(0.05, 40.0),
    gamma=st.one_of(st.floats(0.01, 0.9), st.floats(0.9, 0.98)),
)
def test_the_bounds_hold_for_any_prior(alpha: float, beta: float, gamma: float) -> None:
    low, high = gittins_bounds(alpha, beta, gamma)
    levels = 40 + math.ceil(-math.log(1e-13) / -math.log(gamma))
    assert alpha / (alpha + beta) <= low <= high <= 1.0
    assert high - low < 2e-12
    assert excess(alpha, beta, gamma, low - 1e-12, levels, theta_known=True) > 0.0
    assert excess(alpha, beta, gamma, high + 1e-12, levels) <= 1e-16


@pytest.mark.parametrize(("gamma", "levels", "margin"), [(0.999, 6000, 1e-5), (0.9999, 7000, 3e-3)])
def test_the_bounds_hold_for_discounts_near_one(gamma: float, levels: int, margin: float) -> None:
    low, high = gittins_bounds(1.5, 2.0, gamma)
    assert high - low < (4e-12 if gamma < 0.9995 else 4e-11)
    assert excess(1.5, 2.0, gamma, low - margin, levels) > 0.0
    assert excess(1.5, 2.0, gamma, high + margin, levels, theta_known=True) < 0.0


# -- tables ---------------------------------------------------------------------------------


def wrong_states(table: GittinsTable, states: int, seed: int) -> list[tuple[int, int]]:
    """Return the states, out of a random sample, whose index is outside the bounds of the table."""
    rng, p = np.random.default_rng(seed), table.problem
    found = []
    for _ in range(states):
        n = int(rng.integers(0, table.pulls + 1))
        s = int(rng.integers(0, n + 1))
        left = None if p.lookahead is None else p.lookahead - n
        low, high = gittins_bounds(p.alpha + s, p.beta + n - s, p.gamma, lookahead=left)
        lower, upper = table.bounds(s, n - s)
        if not lower <= high or not low <= upper or upper - lower > 2.0001 * table.error:
            found.append((s, n - s))
    return found


@pytest.mark.parametrize(
    ("gamma", "pulls", "prior", "tolerance", "lookahead"),
    [
        (0.5, 40, (1.0, 1.0), 1e-4, None),
        (0.9, 120, (0.4, 2.3), 1e-5, None),
        (0.9, 60, (1.0, 1.0), 1e-4, 90),
        (0.99, 150, (1.0, 1.0), 1e-4, None),
        (0.99, 90, (35.5, 4.0), 1e-4, 90),
        (0.05, 60, (1.0, 1.0), 1e-6, None),
        (0.999, 60, (1.0, 1.0), 1e-3, None),
    ],
)
def test_the_stated_error_bounds_the_true_error(
    gamma: float,
    pulls: int,
    prior: tuple[float, float],
    tolerance: float,
    lookahead: int | None,
) -> None:
    table = GittinsTable(gamma, pulls, prior, tolerance, lookahead, cache=False)
    assert table.states == (pulls + 1) * (pulls + 2) // 2
    assert 0.0 < table.error <= tolerance
    assert wrong_states(table, 150 if gamma < 0.995 else 15, seed=pulls) == []


def test_a_table_that_ignores_the_gap_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(e: FloatArray, band: Band, passes: Passes) -> None:
        passes.e[:] = 0.0

    monkeypatch.setattr(kernels.gittins, "gap", careless)
    table = GittinsTable(0.99, 150, cache=False)
    monkeypatch.undo()
    assert wrong_states(table, 150, seed=1) != []


@pytest.fixture(scope="module")
def paper_table() -> GittinsTable:
    return GittinsTable(0.999, 1300, cache=False)


def test_the_table_of_the_paper_is_certified_and_correct(paper_table: GittinsTable) -> None:
    table = paper_table
    assert table.states == 846_951
    assert table.error <= 1e-4
    assert wrong_states(table, 20, seed=3) == []
    assert_monotone(table)
    assert abs(table.index(0, 0) - 0.9537564919) <= 1e-4


def assert_monotone(table: GittinsTable) -> None:
    """No bracket contradicts ν(s, f+1) < ν(s, f) < ν(s+1, f); all indices are above the mean."""
    p = table.problem
    levels = [slice(n * (n + 1) // 2, (n + 1) * (n + 2) // 2) for n in range(table.pulls + 1)]
    for n, (now, then) in enumerate(pairwise(levels)):
        nu, radius = table.nu[now], table.radii[now]
        assert (table.nu[then][:-1] - table.radii[then][:-1] <= nu + radius).all()
        assert (table.nu[then][1:] + table.radii[then][1:] >= nu - radius).all()
        assert (nu + radius >= (p.alpha + np.arange(n + 1)) / (p.m0 + n)).all()


def test_an_index_grows_with_the_discount_and_with_the_lookahead() -> None:
    growing = [gittins_index(2, 3, gamma) for gamma in (0.2, 0.5, 0.9, 0.99)]
    assert growing == sorted(growing)
    further = [gittins_index(2, 3, 0.9, lookahead=n) for n in (0, 1, 2, 5, 20)]
    assert further == sorted(further)
    assert further[0] == 0.4
    # D = (1-γ)(⅖ - λ) + γ ⅖ (½ - λ) = 0 for λ between ⅖ and ½
    assert further[1] == pytest.approx((0.1 * 0.4 + 0.36 * 0.5) / 0.46, abs=1e-12)
    assert further[-1] < gittins_index(2, 3, 0.9)


def test_truncating_the_lookahead_has_the_known_cost(paper_table: GittinsTable) -> None:
    """At .999 and s + f ≤ 1300 the error is 7.4e-3 for 1,300 pulls in all, 1.8e-5 for 3,000, and
    5.2e-7 for 5,000.
    """
    short = GittinsTable(0.999, 1300, lookahead=1300, cache=False)
    cost = paper_table.nu - short.nu
    assert 7.0e-3 < cost.max() < 7.6e-3
    last = 1300 * 1301 // 2
    assert cost.argmax() >= last
    s = int(cost.argmax()) - last
    full = gittins_index(1 + s, 1301 - s, 0.999)
    costs = [full - gittins_index(1 + s, 1301 - s, 0.999, lookahead=n) for n in (1700, 3700)]
    assert 1.8e-5 < costs[0] < 1.85e-5
    assert 5.1e-7 < costs[1] < 5.3e-7


def test_tables_with_one_state_and_with_a_strong_prior_are_computed() -> None:
    assert abs(GittinsTable(0.9, 0, cache=False).index(0, 0) - 0.702889) < 1e-4
    table = GittinsTable(0.99, 10, (9e5, 1e5), cache=False)
    assert abs(table.index(5, 5) - 0.9) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("gamma", "pulls"), [(0.9999, 300), (0.999, 3000), (0.99, 1300)])
def test_the_stated_error_of_large_tables_bounds_the_true_error(gamma: float, pulls: int) -> None:
    table = GittinsTable(gamma, pulls, cache=False)
    assert table.error <= 1e-4
    assert wrong_states(table, 40, seed=pulls) == []
    assert_monotone(table)


def test_bounds_hold_for_the_exact_index_also_in_the_last_digit() -> None:
    """At the last level of the look-ahead the index is the posterior mean, a fraction."""
    problem = GittinsProblem(1.0, 1.0, 0.9, pulls=6, lookahead=6)
    lower, upper = march(problem, 1e-6)
    for k in range(7):
        exact = Fraction(1 + k, 8)
        assert Fraction(lower[21 + k]) < exact < Fraction(upper[21 + k])
    lower, upper = march(GittinsProblem(1.0, 2.0, 0.9, pulls=3, lookahead=3), 1e-6)
    assert all(
        Fraction(lower[6 + k]) < Fraction(1 + k, 6) < Fraction(upper[6 + k]) for k in range(4)
    )


def test_beyond_the_table_an_index_is_computed() -> None:
    assert GittinsTable(0.9, 5, cache=False).index(4, 4) == gittins_index(5, 5, 0.9)
    assert GittinsTable(0.9, 5, lookahead=6, cache=False).index(4, 4) == 0.5


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: GittinsTable(0.9, 5, cache=False).bounds(4, 4), BadEvidence, "beyond the 5 pulls"),
        (lambda: GittinsTable(0.9, 5, cache=False).index(-1, 0), BadEvidence, "not be negative"),
        *((lambda d=d: gittins_index(1, 1, d), ValueError, "discount=") for d in (0.0, math.nan)),
        *((lambda d=d: GittinsTable(d, 10), ValueError, "discount=") for d in (-0.5, 1, 0.99991)),
        *(
            (lambda p=p: GittinsTable(0.9, 10, p), InvalidPrior, "must be above 0")
            for p in ((0.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (math.inf, 1.0))
        ),
        (lambda: GittinsTable(0.9, -1), ValueError, "pulls=-1"),
        (lambda: GittinsTable(0.9, 20_000), ValueError, "pulls=20000"),
        (lambda: GittinsTable(0.9, 10, lookahead=5), ValueError, "lookahead=5"),
        (lambda: GittinsTable(0.9, 10, tolerance=0.0), ValueError, "tolerance=0"),
    ],
)
def test_invalid_arguments_are_refused(wrong: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        wrong()


# -- the agent ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table() -> GittinsTable:
    return GittinsTable(0.9, 30, cache=False)


def test_it_pulls_the_arm_with_the_highest_index(table: GittinsTable) -> None:
    agent, rng = GittinsAgent(3, table), np.random.default_rng(2)
    for _ in range(60):
        a, o = int(rng.integers(3)), int(rng.random() < 0.4)
        agent.observe(a, o)
        nu = agent.indices()
        best = max(nu.values())
        assert nu[agent.act(Stream(0))] == best
    assert agent.count == 60


def test_a_run_that_outgrows_the_table_goes_on() -> None:
    table = GittinsTable(0.9, 3, cache=False)
    agent, rng = GittinsAgent(2, table), Stream(4)
    for t in range(12):
        agent.observe(agent.act(rng), t % 3 == 0)
    assert max(agent.pulls.values()) > 3
    for j, (n, r, _) in enumerate(agent.save()["counts"].T):
        assert abs(agent.indices()[j] - gittins_index(1 + r, 1 + n - r, 0.9)) <= table.error


def test_runs_are_functions_of_their_seed_and_can_be_resumed(table: GittinsTable) -> None:
    bandit = BernoulliBandit(3)
    check_same_seed(lambda: GittinsAgent(3, table), lambda: bandit.draw(1))
    check_resume(lambda: GittinsAgent(3, table), lambda: bandit.draw(1))


def test_it_earns_as_much_as_optimal_play() -> None:
    """Two arms, γ = .5: by enumeration, following the indices earns the optimal discounted reward.

    The optimum is V(state) = max over arms, ten pulls deep.
    """
    table, depth, gamma = GittinsTable(0.5, 12, tolerance=1e-7, cache=False), 10, 0.5
    memo: dict[tuple[tuple[int, ...], int], tuple[float, float]] = {}

    def values(state: tuple[int, ...], left: int) -> tuple[float, float]:
        if left == 0:
            return 0.0, 0.0
        if (state, left) not in memo:
            q = []
            for j in (0, 2):
                mu = (state[j] + 1) / (state[j] + state[j + 1] + 2)
                win = tuple(x + (i == j) for i, x in enumerate(state))
                lose = tuple(x + (i == j + 1) for i, x in enumerate(state))
                w, x = values(win, left - 1), values(lose, left - 1)
                q.append([mu + gamma * (mu * w[k] + (1 - mu) * x[k]) for k in (0, 1)])
            index = 0 if table.index(*state[:2]) >= table.index(*state[2:]) else 1
            memo[state, left] = max(q[0][0], q[1][0]), q[index][1]
        return memo[state, left]

    best, ours = values((0, 0, 0, 0), depth)
    assert abs(best - ours) < 2.0 * gamma**depth


@pytest.mark.parametrize("pulls", [5, 400])
@pytest.mark.parametrize("arms", [3, ["red", "green", "blue"]])
def test_the_compiled_loop_equals_the_readable_one(arms: Any, pulls: int) -> None:
    """With five pulls the run outgrows the table, and the readable agent continues."""
    table = GittinsTable(0.9, pulls, cache=False)
    bandit = BernoulliBandit(arms)

    def make() -> GittinsAgent:
        return GittinsAgent(arms, table)

    def world() -> Any:
        return bandit.environment([0.2, 0.5, 0.45])

    assert find_loop(make(), world()) is not None
    check_fused(make, world, 60, seed=1)
    check_same_seed(make, world, 60, seed=1)


#: Pulls and successes that no arm can have.
UNREACHABLE = ((-1.0, 0.0), (0.5, 0.0), (1.0, 0.5), (1.0, 2.0), (math.nan, 0.0))


def test_bad_input_is_refused_and_changes_nothing(table: GittinsTable) -> None:
    agent = GittinsAgent(["red", "blue"], table)
    for o in (True, np.int64(1), 1.0, np.float64(1.0)):
        agent.observe("red", o)
    agent.act(Stream(1))
    saved = agent.save()
    assert saved["counts"].tolist() == [[4.0, 0.0]] * 3
    wrong: list[Any] = [2, -1, 0.5, math.nan, math.inf, "1", None, [1], np.array([1, 0])]
    for reward in wrong:
        with pytest.raises(BadEvidence, match="0 or 1"):
            agent.observe("red", reward)
    with pytest.raises(UnknownArm, match="green"):
        agent.observe("green", 1)
    changes: list[dict[str, Any]] = [
        {"arms": np.array("['x', 'y']")},
        {"table": np.array("another")},
        {"counts": np.ones((3, 1))},
        *({"counts": np.array([[1.0, n], [0.0, r], [0.0, r]])} for n, r in UNREACHABLE),
        {"counts": np.full((3, 2), "a")},
    ]
    for change in changes:
        with pytest.raises(IncompatibleState):
            agent.load(saved | change)
    with pytest.raises(IncompatibleState, match=r"lacks|saved with"):
        agent.load({"arms": np.array("[0, 1]")})
    assert same_bits(saved, agent.save())
    with pytest.raises(UnknownArm):
        GittinsAgent(0, table)
    with pytest.raises(ValueError, match="not a GittinsTable"):
        GittinsAgent(2, "table")  # type: ignore[arg-type]
