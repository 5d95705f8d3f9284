"""Passes bound a plain dynamic programme from above and below; the policy picks the best."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescontrol._arrays import FloatArray
from bayescontrol.baselines.gittins_solver import GittinsProblem, Workspace
from bayescontrol.kernels import gittins, policies
from bayescontrol.seeding import Stream


def plain(problem: GittinsProblem, levels: int, lam: float, terminal: str) -> list[FloatArray]:
    """D of all states below the last level by the plain equation, without band or bounds."""
    a, m0, g = problem.alpha, problem.m0, problem.gamma
    y = (a + np.arange(levels + 1.0)) / (m0 + levels) - lam
    if terminal == "keep":
        d = np.maximum(y, 0.0)
    else:  # E(θ - λ)⁺ ≤ (√(v + y²) + y) / 2 (Scarf 1958): as if θ were known
        mu = y + lam
        d = 0.5 * (np.sqrt(mu * (1.0 - mu) / (m0 + levels + 1.0) + y * y) + y)
    out = []
    for n in range(levels - 1, -1, -1):
        mu = (a + np.arange(n + 1.0)) / (m0 + n)
        D = (1.0 - g) * (mu - lam) + g * (mu * d[1 : n + 2] + (1.0 - mu) * d[: n + 1])
        d = np.maximum(D, 0.0)
        out.append(D)
    return out[::-1]


cases = given(
    alpha=st.floats(0.05, 30.0),
    beta=st.floats(0.05, 30.0),
    gamma=st.sampled_from([0.3, 0.5, 0.9, 0.97]),
    lam=st.floats(0.02, 0.98),
    ghost=st.sampled_from([1e-3, 1e-6, 1e-9]),
    ends=st.booleans(),
)


@settings(max_examples=40)
@cases
def test_a_pass_and_its_gap_enclose_the_plain_dynamic_programme(
    alpha: float, beta: float, gamma: float, lam: float, ghost: float, ends: bool
) -> None:
    rows, levels = 30, 80
    problem = GittinsProblem(alpha, beta, gamma, rows - 1, levels if ends else None)
    workspace = Workspace(problem, levels, ghost, lanes=3)
    passes = workspace.sweep((lam, lam + 0.004, lam + 0.01), gap=True)
    for k, now in enumerate(passes.lam):
        if ends:
            least = most = plain(problem, levels, now, "keep")
        else:
            least = plain(problem, 3 * levels, now, "keep")
            most = plain(problem, 3 * levels, now, "known")
        for n in range(rows):
            b, ref = int(passes.b[k, n]), int(passes.ref[n])
            assert ref <= b
            if 0 < b <= n + 1:
                assert least[n][b - 1] <= 1e-15
            for s in range(b, min(n + 1, ref + passes.near.shape[1])):
                near, e = passes.near[n, s - ref, k], passes.e[n, s - ref]
                if near >= 0.0:
                    assert least[n][s] <= near + 1e-15
                    assert near - e <= most[n][s] + 1e-15


@settings(max_examples=10)
@cases
def test_passes_do_not_depend_on_those_beside_them(
    alpha: float, beta: float, gamma: float, lam: float, ghost: float, ends: bool
) -> None:
    rows, levels = 30, 80
    problem = GittinsProblem(alpha, beta, gamma, rows - 1, levels if ends else None)
    together = Workspace(problem, levels, ghost, lanes=4).sweep(lam + np.arange(4) * 0.005)
    workspace = Workspace(problem, levels, ghost, lanes=2)
    for k in range(4):
        # The last λ sets the states that matter, so it is the same.
        one = workspace.sweep((together.lam[k], together.lam[3]))
        np.testing.assert_array_equal(one.b[0], together.b[k])
        for n in range(rows):
            for s in range(one.b[0, n], n + 1):
                i, j = s - one.ref[n], s - together.ref[n]
                if max(i, j) < one.near.shape[1]:
                    assert one.near[n, i, 0] == together.near[n, j, k]


@given(
    m=st.floats(0.1, 200.0),
    p=st.floats(0.01, 0.99),
    lam=st.floats(0.0, 1.0),
    gamma=st.floats(0.05, 0.999),
)
def test_the_bound_on_later_values_is_a_supersolution(
    m: float, p: float, lam: float, gamma: float
) -> None:
    """h ≥ λ - μ and h ≥ γ E h imply h ≥ g at every state."""
    kappa = gittins.rate(gamma) * (m + 1.0)

    def h(mu: float) -> float:
        x = lam - mu
        return x if x >= 1.0 / kappa else math.exp(min(kappa * x, 1.0) - 1.0) / kappa

    success, failure = (p * m + 1.0) / (m + 1.0), p * m / (m + 1.0)
    assert h(p) >= lam - p - 1e-12
    assert h(p) >= gamma * (p * h(success) + (1.0 - p) * h(failure)) - 1e-12


def three_levels(d: tuple[float, ...], e: float) -> gittins.Passes:
    """Four passes: (0, 0) continues for the first two λ, (1, 0) has d, and (2, 0) stops."""
    b = np.column_stack([[0, 0, 1, 1], [1 if value > 0.0 else 2 for value in d], np.full(4, 3)])
    near = np.broadcast_to(d, (3, 2, 4)).copy()
    lam, ref = np.array([0.6, 0.7, 0.8, 0.9]), np.array([0, 1, 3])
    return gittins.Passes(lam, ref, b, near, np.full((3, 2), e))


@pytest.mark.parametrize(
    ("values", "e", "bounds"),
    [
        # F = .1 (.5 - λ) + .45 D is .0755, .025, -.0075, -.022 for λ = .6 to .9
        ((0.19, 0.1, 0.05, 0.04), 0.0, (0.7 + 0.1 * 25 / 50.5, 0.7 + 0.1 * 25 / 32.5)),
        # with .1025 at .6 the chord from .8 to .9 is the better lower bound
        ((0.25, 0.1, 0.05, 0.04), 0.0, (0.8 - 0.1 * 7.5 / 14.5, 0.7 + 0.1 * 25 / 32.5)),
        # (1, 0) stops at .8, so D = .1 (2/3 - λ): F is .1025, .007, -.036, -.0505
        ((0.25, 0.06, 0.0, 0.0), 0.0, (0.7 + 0.1 * 7 / 95.5, 0.7 + 0.1 * 7 / 43)),
        # the lower bound of F at .7 is .0025, that at .8 is -.03
        ((0.19, 0.1, 0.05, 0.04), 0.05, (0.7 + 0.1 * 25 / 730, 0.7 + 0.1 * 25 / 32.5)),
        # the lower bound of F at .7 is -.002: the chord from .7 to .8 is extended downwards
        ((0.19, 0.1, 0.03, 0.02), 0.06, (0.7 - 0.1 * 2 / 14.5, 0.7 + 0.1 * 25 / 41.5)),
    ],
)
def test_chords_bound_the_index(
    values: tuple[float, ...], e: float, bounds: tuple[float, float]
) -> None:
    workspace = Workspace(GittinsProblem(1.0, 1.0, 0.9, 0), 2, 1e-6, lanes=4)
    workspace.sweep((0.6, 0.7, 0.8, 0.9))  # fills the band
    lower, upper = np.full(1, 0.5), np.ones(1)
    passes = three_levels(values, e)
    error = gittins.settle(lower, upper, workspace.band, passes, passes)
    assert (lower[0], upper[0]) == pytest.approx(bounds, abs=1e-12)
    assert error == pytest.approx(0.5 * (bounds[1] - bounds[0]))


def test_equal_indices_are_chosen_equally_often() -> None:
    """12,000 draws, chi-squared with 2 degrees of freedom below 20.7: false alarm 3e-5."""
    nu, counts, state = np.array([0.7, 0.5, 0.8]), np.zeros((3, 4)), Stream(5).state
    counts[0, 1] = 1.0  # a failure
    chosen = [policies.highest_index_arm(nu, counts, np.empty(4), state) for _ in range(12_000)]
    often = np.bincount(chosen, minlength=4)
    assert often[1] == 0
    assert ((often[[0, 2, 3]] - 4000) ** 2 / 4000).sum() < 20.7


def test_a_unique_best_arm_and_an_outgrown_table_use_no_random_numbers() -> None:
    nu, values, stream = np.array([0.7, 0.5, 0.8]), np.empty(2), Stream(5)
    before = stream.copy()
    for pulls, chosen in ((1.0, 1), (2.0, -1)):
        counts = np.array([[0.0, pulls], [0.0, 1.0]])
        assert policies.highest_index_arm(nu, counts, values, stream.state) == chosen
    assert stream == before
