"""Bernoulli arms: the posterior of the paper, compared with counts, a grid and exact fractions.

Categorical arms: posteriors compared with a grid, predictions, edge cases.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy import special as sc  # type: ignore[import-untyped]
from tests.chance import distance

from bayescontrol import BernoulliBandit, CategoricalBandit, interact
from bayescontrol.bandits.discrete import Bernoulli, Categorical
from bayescontrol.errors import BadEvidence, InvalidPrior, InvalidTable, MissingCapability
from bayescontrol.seeding import Stream
from bayescontrol.testing import check_fused, check_merge, check_order, check_resume


def test_the_posterior_counts_pulls_with_and_without_reward() -> None:
    bandit = BernoulliBandit(4)
    agent = bandit.agent()
    record = interact(agent, bandit.environment([0.1, 0.5, 0.7, 0.8]), 500, seed=0)
    for j, (alpha, beta) in enumerate(agent.belief.posterior()):
        rewards = record.observations[record.actions == j]
        assert alpha == 1 + rewards.sum()
        assert beta == 1 + (1 - rewards).sum()
    assert agent.belief.count == 500


def test_beta_posterior_agrees_with_a_grid() -> None:
    """P(m | past) ∝ Π m^r (1-m)^(1-r) on 20,001 points, for a prior with fractional parameters."""
    rewards = [1, 0, 0, 1, 1, 1, 0, 1]
    belief = BernoulliBandit(1, prior=(2.5, 1.5)).belief()
    m = np.linspace(0.0, 1.0, 20_001)[1:-1]
    log_v = 1.5 * np.log(m) + 0.5 * np.log1p(-m)
    for t, o in enumerate(rewards):
        v = np.exp(log_v - log_v.max())
        v /= v.sum()
        assert belief.predictive(None, 0)[1] == pytest.approx(v @ m, abs=1e-6), t
        log_v += np.log(m if o else 1.0 - m)
        belief.observe(None, 0, o)
    v = np.exp(log_v - log_v.max())
    v /= v.sum()
    alpha, beta = belief.posterior()[0]
    n = alpha + beta
    assert v @ m == pytest.approx(alpha / n, abs=1e-6)
    assert v @ m**2 == pytest.approx(alpha * (alpha + 1) / (n * (n + 1)), abs=1e-6)


def test_booleans_and_numpy_numbers_are_valid_rewards() -> None:
    belief = BernoulliBandit(1).belief()
    for o in (True, np.int64(1), np.float32(1.0), np.bool_(True), 1.0):
        belief.observe(None, 0, o)
    assert belief.posterior().tolist() == [[6.0, 1.0]]


def test_each_arm_can_have_its_own_prior() -> None:
    bandit = BernoulliBandit(["a", "b"], prior=[(1, 9), (30, 10)])
    assert bandit.belief().expected() == {"a": 0.1, "b": 0.75}
    assert bandit.prior.tolist() == [[1.0, 9.0], [30.0, 10.0]]


def test_predictions_of_extreme_posteriors_are_probabilities() -> None:
    family = Bernoulli()
    for row in ([1e-300, 1.0], [1e15, 1.0], [1e-5, 1e-5], [1e300, 1e-300]):
        p = family.predictive(np.array(row))
        assert sum(p.values()) == pytest.approx(1.0, abs=1e-15)
        assert all(0.0 <= q <= 1.0 for q in p.values())
        assert math.isfinite(family.log_predictive(np.array(row), 0.0))


@pytest.mark.parametrize("screening", [True, False])
@pytest.mark.parametrize("arms", [1, 2, 10, 70])
def test_the_compiled_loop_equals_the_readable_one_at_every_size(
    arms: int, screening: bool
) -> None:
    bandit = BernoulliBandit(arms)
    world = bandit.draw(1)
    check_fused(lambda: bandit.agent(screening=screening), lambda: world, 300)
    check_resume(lambda: bandit.agent(screening=screening), lambda: world, 60)


VALUES, PRIOR = [-1.0, 0.0, 2.0], (2.0, 3.0, 2.0)


def test_categorical_posterior_agrees_with_a_grid() -> None:
    """P(p | past) on a grid over the simplex, 800 points per side; the density is 0 at edges."""
    rewards = [2.0, 0.0, 0.0, 2.0, -1.0]
    belief = CategoricalBandit(1, VALUES, PRIOR).belief()
    p1, p2 = np.meshgrid(*[(np.arange(800) + 0.5) / 800] * 2)
    inside = p1 + p2 < 1.0
    p = np.array([p1[inside], p2[inside], 1.0 - p1[inside] - p2[inside]])
    log_v = (np.array([[1.0], [2.0], [1.0]]) * np.log(p)).sum(0)
    for r in rewards:
        belief.observe(None, 0, r)
        log_v += np.log(p[VALUES.index(r)])
    v = np.exp(log_v - log_v.max())
    v /= v.sum()
    alphas = belief.posterior()[0]
    assert alphas.tolist() == [3.0, 5.0, 4.0]
    np.testing.assert_allclose(p @ v, alphas / alphas.sum(), atol=1e-5)
    means = np.array(VALUES) @ p
    assert v @ means == pytest.approx(belief.expected()[0], abs=1e-5)
    drawn = np.array([belief.sample(rng).means[0] for rng in [Stream(1)] for _ in range(20_000)])
    spread = math.sqrt(v @ means**2 - (v @ means) ** 2)
    # |z| < 5: false alarm 6e-7.
    assert abs(drawn.mean() - v @ means) < 5.0 * spread / math.sqrt(drawn.size)


def test_with_two_values_it_equals_the_bernoulli_bandit() -> None:
    """Compare rows, predictions and drawn means (Kolmogorov-Smirnov, false alarm 1e-6)."""
    coin, two = BernoulliBandit(1).belief(), CategoricalBandit(1, [0, 1]).belief()
    for o in (1, 1, 0, 1):
        coin.observe(None, 0, o)
        two.observe(None, 0, o)
    assert two.posterior()[0].tolist() == coin.posterior()[0][::-1].tolist()
    assert two.predictive(None, 0) == pytest.approx(coin.predictive(None, 0), abs=1e-15)
    assert two.log_predictive(None, 0, 1) == pytest.approx(
        coin.log_predictive(None, 0, 1), abs=1e-15
    )
    n, rng = 20_000, Stream(2)
    x = np.array([two.sample(rng).means[0] for _ in range(n)])
    assert distance(x, lambda m: sc.betainc(4.0, 2.0, m)) < 2.69


def test_arms_are_chosen_as_often_as_with_numpys_dirichlet() -> None:
    """Against NumPy's Dirichlet, 40,000 draws each; two-sample chi-square, false alarm 1e-6."""
    bandit, n = CategoricalBandit(3, [0, 1, 5], (1, 2, 0.5)), 40_000
    agent = bandit.agent()
    interact(agent, bandit.draw(1), 10, seed=0)
    ours = np.bincount(agent.batch(n, Stream(1)), minlength=3)
    numpy, values = np.random.default_rng(1), np.array([0.0, 1.0, 5.0])
    means = np.array([numpy.dirichlet(row, n) @ values for row in agent.belief.posterior()])
    other = np.bincount(means.argmax(0), minlength=3)
    both = (ours + other) / 2.0
    statistic = ((ours - both) ** 2 / both + (other - both) ** 2 / both).sum()
    assert sc.chdtrc(2, statistic) > 1e-6
    with pytest.raises(MissingCapability, match="no exact action probabilities"):
        agent.action_probabilities()


def test_drawn_worlds_have_the_moments_of_the_prior() -> None:
    """E[p_k] = α_k/Σα, E[p_k²] = α_k(α_k + 1)/Σα(Σα + 1); |z| < 5, false alarms 6e-7 each."""
    n = 20_000
    for scale in (1.0, 0.05, 1e-5):
        alphas = scale * np.array([1.0, 2.0, 3.0])
        truth = CategoricalBandit(n, VALUES, alphas).draw(3).truth
        np.testing.assert_allclose(truth.sum(1), 1.0, atol=1e-12)
        total = alphas.sum()
        first, second = alphas / total, alphas * (alphas + 1.0) / (total * (total + 1.0))
        z = (truth.mean(0) - first) / np.sqrt((second - first**2) / n)
        assert (np.abs(z) < 5.0).all(), z
        z = ((truth**2).mean(0) - second) / ((truth**2).std(0) / math.sqrt(n))
        assert (np.abs(z) < 5.0).all(), z


@pytest.mark.parametrize("prior", [(1e-6, 1e-6, 1e-6), (1e-300, 1e-300, 1e-300), (1e9, 1.0, 1e-9)])
def test_the_laws_hold_for_extreme_priors(prior: tuple[float, ...]) -> None:
    bandit = CategoricalBandit(3, VALUES, prior)
    truth = [[0.2, 0.3, 0.5], [0.4, 0.3, 0.3], [0.0, 1.0, 0.0]]
    check_fused(bandit.agent, lambda: bandit.environment(truth), 100)
    events = [(None, a, o) for a, o in ((0, 2.0), (1, -1.0), (0, 0.0), (2, 0.0), (1, 2.0))]
    check_order(bandit.belief, events)
    check_merge(bandit.belief, events)
    assert np.isfinite(bandit.belief().sample(Stream(0)).means).all()


def test_values_may_have_any_order_and_scale() -> None:
    bandit = CategoricalBandit(2, [1e9, -5, 0.1], prior=[(1, 1, 1), (9, 1, 1)])
    belief = bandit.belief()
    belief.observe(None, 0, 0.1)
    assert belief.posterior()[0].tolist() == [1.0, 1.0, 2.0]
    assert list(belief.predictive(None, 0)) == [1e9, -5.0, 0.1]
    belief.observe(None, 0, -5)
    assert belief.posterior()[0].tolist() == [1.0, 2.0, 2.0]
    zero = CategoricalBandit(1, [-0.0, 1.0]).belief()
    for o in (0.0, -0.0):
        zero.observe(None, 0, o)
    assert zero.posterior()[0].tolist() == [3.0, 1.0]
    assert repr(zero.family) == "Categorical([0.0, 1.0])"


@pytest.mark.parametrize(
    "values",
    [[], [[0, 1]], 3, [1, 1], [0.0, -0.0], [math.nan, 1], [math.inf], ["a"], None, [1e200]],
)
def test_invalid_values_are_refused(values: Any) -> None:
    with pytest.raises(InvalidTable, match="values"):
        CategoricalBandit(2, values)


def test_a_single_value_is_always_paid() -> None:
    bandit = CategoricalBandit(2, [7.0])
    record = interact(bandit.agent(), bandit.draw(0), 50, seed=0)
    assert set(record.observations.tolist()) == {7.0}
    assert set(record.actions.tolist()) == {0, 1}, "equally good arms should be chosen at random"


def test_impossible_priors_and_rewards_are_refused() -> None:
    bandit = CategoricalBandit(1, VALUES)
    for prior in ((1, 1), (1, 1, 0), (1, -1, 1), (1, 1, 1e200)):
        with pytest.raises(InvalidPrior):
            CategoricalBandit(1, VALUES, prior)
    with pytest.raises(BadEvidence, match=r"one of -1, 0, 2"):
        bandit.belief().observe(None, 0, 1)
    with pytest.raises(BadEvidence, match="…"):
        Categorical(range(20)).reward(0.5)
