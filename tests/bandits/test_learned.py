"""Bandits that learn their prior: exact answers by quadrature, invariance, laws.

Stochastic tests fix their seed; over seeds each raises a false alarm with the rate it states.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats  # type: ignore[import-untyped]

from bayescontrol import (
    BernoulliBandit,
    ExponentialBandit,
    GaussianBandit,
    PoissonBandit,
    interact,
)
from bayescontrol._arrays import FloatArray
from bayescontrol._compiled import find_loop
from bayescontrol.bandits import Bandit, LearnedArmsBelief
from bayescontrol.bandits import gaussian as gaussian_module
from bayescontrol.errors import BadEvidence, InvalidPrior
from bayescontrol.schedules import Every
from bayescontrol.seeding import Stream
from bayescontrol.testing import (
    check_acting,
    check_bad_evidence,
    check_deterministic,
    check_fused,
    check_merge,
    check_order,
    check_resume,
    check_same_seed,
    check_save,
    same_bits,
)

COLOURS = ["red", "blue", "green"]
#: Rewards of three arms, the last of which has none.
REWARDS = {"red": [3.1, 4.7, 3.3], "blue": [6.2, 5.1]}
RATIOS = 2.0 ** np.arange(-4, 5)


def learned(bandit: Bandit, rewards: dict[Any, list[float]]) -> LearnedArmsBelief:
    belief = bandit.belief()
    assert isinstance(belief, LearnedArmsBelief)
    for arm, paid in rewards.items():
        for o in paid:
            belief.observe(None, arm, o)
    return belief


# -- Gaussian arms: exact answers by quadrature ----------------------------------------------------


class GaussianReference:
    """The posterior of Gaussian arms on a grid over (ρ, ln σ, μ₀), from the rewards themselves.

    m_j is integrated by the formula for two normal densities, all else by the trapezoidal rule,
    which converges faster than any power for such integrands.
    """

    def __init__(self, rewards: dict[Any, list[float]], arms: list[str]) -> None:
        self.rewards = [np.array(rewards.get(arm, [])) for arm in arms]
        values = np.concatenate(self.rewards)
        centre, size = values.mean(), values.std()
        log_sigma = np.linspace(math.log(size) - 3.0, math.log(size) + 18.0, 1201)
        t = np.linspace(-18.0, 18.0, 1801)  # μ₀ = centre + 2 size sinh(t): heavy tails
        self.sigma = np.exp(log_sigma)[:, None]
        self.mu0 = centre + 2.0 * size * np.sinh(t)
        log_jacobian = np.log(np.cosh(t))  # of μ₀; the prior 1/σ is flat in ln σ
        logs = [self.log_likelihood(rho) + log_jacobian for rho in RATIOS]
        largest = max(float(values.max()) for values in logs)
        self.p = np.array([np.exp(values - largest) for values in logs])
        self.p /= self.p.sum()

    def arm(self, rewards: FloatArray, rho: float) -> tuple[Any, Any, Any]:
        """Return the mean and variance of m given (ρ, σ, μ₀), and ln P(rewards | ρ, σ, μ₀)."""
        variance, prior = self.sigma**2, (rho * self.sigma) ** 2
        precision = 1.0 / prior + len(rewards) / variance
        mean = (self.mu0 / prior + rewards.sum() / variance) / precision
        log_p = 0.0 * mean
        for k, r in enumerate(rewards):  # one reward after the other
            before = 1.0 / prior + k / variance
            expected = (self.mu0 / prior + rewards[:k].sum() / variance) / before
            log_p = log_p + stats.norm.logpdf(r, expected, np.sqrt(variance + 1.0 / before))
        return mean, 1.0 / precision, log_p

    def log_likelihood(self, rho: float) -> Any:
        return sum(self.arm(rewards, rho)[2] for rewards in self.rewards)

    def weights(self) -> FloatArray:
        return np.asarray(self.p.sum((1, 2)))

    def average(self, of: Any) -> float:
        return sum(float((p * of(rho)).sum()) for p, rho in zip(self.p, RATIOS, strict=True))

    def mean(self, j: int) -> float:
        return self.average(lambda rho: self.arm(self.rewards[j], rho)[0])

    def predictive(self, j: int, r: float) -> float:
        def density(rho: float) -> Any:
            mean, variance, _ = self.arm(self.rewards[j], rho)
            return stats.norm.pdf(r, mean, np.sqrt(variance + self.sigma**2))

        return self.average(density)


@pytest.fixture(scope="module")
def reference() -> GaussianReference:
    return GaussianReference(REWARDS, COLOURS)


@pytest.fixture(scope="module")
def gaussian() -> LearnedArmsBelief:
    return learned(GaussianBandit(COLOURS), REWARDS)


def test_the_weights_of_the_ratios_equal_quadrature(
    gaussian: LearnedArmsBelief, reference: GaussianReference
) -> None:
    found = gaussian.hyperparameters()
    np.testing.assert_allclose([lam for (lam,) in found], RATIOS**-2.0)
    np.testing.assert_allclose(list(found.values()), reference.weights(), rtol=1e-10)


def test_expected_rewards_equal_quadrature(
    gaussian: LearnedArmsBelief, reference: GaussianReference
) -> None:
    exact = [reference.mean(j) for j in range(3)]
    np.testing.assert_allclose(list(gaussian.expected().values()), exact, rtol=1e-10)


@pytest.mark.parametrize(("arm", "r"), [("red", 2.0), ("blue", 5.5), ("green", 40.0)])
def test_the_predictive_density_equals_quadrature(
    gaussian: LearnedArmsBelief, reference: GaussianReference, arm: str, r: float
) -> None:
    exact = math.log(reference.predictive(COLOURS.index(arm), r))
    assert gaussian.log_predictive(None, arm, r) == pytest.approx(exact, abs=1e-10)


def test_many_arms_have_the_same_weights_as_in_logarithms() -> None:
    """With 300 arms Π_j (1 + n_j ρ²) is far above the largest double."""
    rng = np.random.default_rng(3)
    rewards = {j: rng.normal(j % 5, 2.0, 60).tolist() for j in range(300)}
    n, means = np.full(300, 60.0), np.array([np.mean(rewards[j]) for j in range(300)])
    within, logs = sum(np.var(rewards[j]) * 60.0 for j in range(300)), []
    for rho in RATIOS:
        v = n / (1.0 + n * rho**2)
        S = within + v @ (means - v @ means / v.sum()) ** 2
        logs.append(-0.5 * (np.log1p(n * rho**2).sum() + np.log(v.sum()) + 17_999 * np.log(S)))
    exact = np.exp(np.array(logs) - max(logs))
    found = learned(GaussianBandit(300), rewards).hyperparameters()
    np.testing.assert_allclose(list(found.values()), exact / exact.sum(), rtol=1e-7, atol=1e-300)


def test_the_predictive_density_integrates_to_one(gaussian: LearnedArmsBelief) -> None:
    for arm in COLOURS:
        mass, _ = integrate.quad(
            lambda t, arm=arm: (
                math.exp(gaussian.log_predictive(None, arm, 4.0 + math.sinh(t))) * math.cosh(t)
            ),
            -12.0,
            12.0,
            limit=200,
        )
        assert mass == pytest.approx(1.0, abs=1e-7)


def test_action_probabilities_equal_nested_quadrature() -> None:
    """Given (ρ, σ, μ₀) two arms compare by a normal distribution function; the rest as above."""
    rewards = {"red": REWARDS["red"], "blue": REWARDS["blue"]}
    reference = GaussianReference(rewards, ["red", "blue"])

    def red_is_best(rho: float) -> Any:
        (m0, v0, _), (m1, v1, _) = (reference.arm(paid, rho) for paid in reference.rewards)
        return stats.norm.cdf((m0 - m1) / np.sqrt(v0 + v1))

    exact = reference.average(red_is_best)
    found = learned(GaussianBandit(["red", "blue"]), rewards).action_probabilities()
    assert found["red"] == pytest.approx(exact, abs=1e-7)


@pytest.mark.parametrize(("arms", "steps"), [(2, 6), (3, 10), (10, 10), (10, 100), (3, 1000)])
def test_more_nodes_and_digits_give_the_same_probabilities(
    arms: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bandit = GaussianBandit(arms)
    agent = bandit.agent()
    interact(agent, bandit.environment([[50 + 3 * j % 7, 5] for j in range(arms)]), steps, seed=1)
    p = agent.action_probabilities()

    def chi_rule(nu: int, w: float, temperature: float) -> Any:
        return gaussian_module._chi_rule(nu, 12 + math.ceil(40 / math.sqrt(nu)))

    monkeypatch.setattr(gaussian_module, "chi_rule", chi_rule)
    monkeypatch.setattr(
        gaussian_module, "normal_nodes", lambda s, w: 12 + math.ceil(24 * s + 20 * s**4)
    )
    monkeypatch.setattr(gaussian_module, "NEGLIGIBLE", 0.0)
    monkeypatch.setattr(gaussian_module, "DIGITS", 12.0)
    assert agent.action_probabilities() == pytest.approx(p, abs=1e-7)


def test_quantiles_have_the_probabilities_of_draws(gaussian: LearnedArmsBelief) -> None:
    """100,000 draws; the binomial counts below each quantile are within 5 deviations (5e-6)."""
    tails = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    quantiles, rng = gaussian.mean_quantiles(tails), Stream(4)
    drawn = np.array([gaussian.sample(rng).means for _ in range(100_000)])
    for j, arm in enumerate(COLOURS):
        share = (drawn[:, [j]] < quantiles[arm]).mean(0)
        assert (np.abs(share - tails) < 5 * np.sqrt(tails * (1 - tails) / 1e5) + 1e-4).all()


# -- grids of prior rows: exact answers by quadrature ----------------------------------------------


@dataclass(frozen=True)
class Counted:
    """A learned bandit, rewards of its arms, and densities in t, the log-odds or logarithm of the
    unknown of an arm; the trapezoidal rule integrates over t.
    """

    bandit: Bandit
    rewards: dict[Any, list[float]]
    log_prior: Callable[[FloatArray, float, float], FloatArray]
    log_likelihood: Callable[[FloatArray, float], FloatArray]
    mean: Callable[[FloatArray], FloatArray]

    def integrals(self, arm: Any, more: float) -> FloatArray:
        """Return rows (P(rewards | h), E[m; rewards], P(rewards, more)) for every h."""
        t = np.linspace(-1500.0, 650.0, 107_501)
        log_likelihood = np.zeros_like(t)
        for r in self.rewards.get(arm, []):
            log_likelihood += self.log_likelihood(t, r)
        functions = [0.0 * t + 1.0, self.mean(t), np.exp(self.log_likelihood(t, more))]
        rows = []
        for a, b in self.bandit.family.grid:  # type: ignore[attr-defined]
            p = np.exp(log_likelihood + self.log_prior(t, a, b))
            rows.append([np.where(p > 0.0, p * f, 0.0).sum() * (t[1] - t[0]) for f in functions])
        return np.array(rows)


def _log_beta(t: FloatArray, a: float, b: float) -> FloatArray:
    logs = -a * np.logaddexp(0.0, -t) - b * np.logaddexp(0.0, t)
    return np.asarray(logs - special.betaln(a, b))


def _log_gamma(t: FloatArray, a: float, b: float) -> FloatArray:
    return np.asarray(a * (t + math.log(b)) - b * np.exp(t) - special.gammaln(a))


COUNTED = {
    "bernoulli": Counted(
        BernoulliBandit(COLOURS, prior="learned"),
        {"red": [1, 0, 1, 1], "blue": [0, 0, 0]},
        _log_beta,
        lambda t, r: -np.logaddexp(0.0, -t if r else t),
        special.expit,
    ),
    "poisson": Counted(
        PoissonBandit(COLOURS, prior="learned"),
        {"red": [4, 7, 5], "blue": [0, 1]},
        _log_gamma,
        lambda t, r: r * t - np.exp(t) - special.gammaln(r + 1.0),
        np.exp,
    ),
    "exponential": Counted(
        ExponentialBandit(COLOURS, prior="learned"),
        {"red": [40.0, 7.5, 22.0], "blue": [3.0, 0.5]},
        _log_gamma,
        lambda t, r: t - np.exp(t) * r,
        lambda t: np.exp(np.minimum(-t, 700.0)),
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_grid_of_priors_equals_quadrature(name: str) -> None:
    """Weights, expected rewards and predictions, each to 1e-10."""
    case, more = COUNTED[name], 1.0
    belief = learned(case.bandit, case.rewards)
    given = {arm: case.integrals(arm, more) for arm in COLOURS}
    w = np.prod([rows[:, 0] for rows in given.values()], axis=0)
    w /= w.sum()
    np.testing.assert_allclose(list(belief.hyperparameters().values()), w, rtol=1e-9, atol=1e-12)
    expected, some = belief.expected(), w > 0.0
    for arm, rows in given.items():
        _, mean, predicted = (rows[some] / rows[some, :1]).T
        assert expected[arm] == pytest.approx(w[some] @ mean, rel=1e-10)
        exact = math.log(w[some] @ predicted)
        assert belief.log_predictive(None, arm, more) == pytest.approx(exact, abs=1e-10)


def test_two_bernoulli_arms_have_the_probabilities_of_an_integral() -> None:
    """P(m_0 > m_1 | h) by SciPy, averaged over h with weights from betaln."""
    rewards: dict[Any, list[float]] = {"red": [1, 0, 1, 1], "blue": [0, 0, 0]}
    bandit = BernoulliBandit(["red", "blue"], prior="learned")
    logs, best = [], []
    for a, b in bandit.family.grid:  # type: ignore[attr-defined]
        red, blue = stats.beta(a + 3, b + 1), stats.beta(a, b + 3)
        evidence = special.betaln(a + 3, b + 1) + special.betaln(a, b + 3)
        logs.append(evidence - 2 * special.betaln(a, b))
        p = integrate.quad(lambda u: red.sf(blue.ppf(u)), 0, 1, epsabs=1e-13, limit=500)[0]  # noqa: B023
        best.append(p)
    w = np.exp(np.array(logs) - max(logs))
    found = learned(bandit, rewards).action_probabilities()["red"]
    assert found == pytest.approx(w @ np.array(best) / w.sum(), abs=1e-9)


def test_a_learned_prior_is_that_of_the_arms() -> None:
    """Thirty arms with biases from Beta(2, 126), the prior of clicks, and 2,000 rewards each."""
    bandit, rng = BernoulliBandit(30, prior="learned"), Stream(8)
    belief = learned(
        bandit, {j: (rng.random(2000) < rng.beta(2, 126)).astype(float).tolist() for j in range(30)}
    )
    scales = belief.scales()
    assert scales["prior mean"] == pytest.approx(1 / 64, rel=0.3)
    assert scales["strength"] == pytest.approx(128, rel=0.5)
    assert belief.predictive(None, 0)[1] == pytest.approx(
        math.exp(belief.log_predictive(None, 0, 1)), rel=1e-12
    )


# -- calibration -----------------------------------------------------------------------------------


def test_probabilities_are_those_of_drawn_actions(exact_learned: Bandit) -> None:
    """P(a) in deciles against 60,000 drawn actions of 60 beliefs; |z| ≤ 4 in each (7e-4)."""
    expected, drawn, rng = np.zeros(10), np.zeros(10), Stream(9)
    variance = np.zeros(10)
    for run in range(60):
        agent, world = exact_learned.agent(), world_of(exact_learned, run)
        interact(agent, world, 2 + run, seed=5, run=run)
        p = agent.action_probabilities()
        draws = 1000
        actions = agent.batch(draws, rng)
        for a, p_a in p.items():
            decile = min(int(10 * p_a), 9)
            expected[decile] += draws * p_a
            variance[decile] += draws * p_a * (1 - p_a)
            drawn[decile] += actions.count(a)
    z = (drawn - expected) / np.sqrt(np.maximum(variance, 1.0))
    assert (np.abs(z) <= 4.0).all()


def world_of(bandit: Bandit, run: int) -> Any:
    rng = Stream.named(3, run, "world")
    if isinstance(bandit, GaussianBandit):
        return bandit.environment([[20 + rng.normal(), 2.0] for _ in bandit.labels])
    return bandit.draw(rng)


LEARNED = {
    "gaussian": GaussianBandit(COLOURS),
    "bernoulli": BernoulliBandit(COLOURS, prior="learned"),
    "poisson": PoissonBandit(COLOURS, prior="learned"),
    "exponential": ExponentialBandit(COLOURS, prior="learned"),
}


@pytest.fixture(params=list(LEARNED.values()), ids=list(LEARNED))
def exact_learned(request: pytest.FixtureRequest) -> Any:
    return request.param


# -- invariance ------------------------------------------------------------------------------------


def history(factor: float, shift: float = 0.0) -> LearnedArmsBelief:
    rng, rewards = Stream(2), {}
    for j, arm in enumerate(COLOURS):
        rewards[arm] = [factor * (rng.normal() + 0.5 * j) + shift for _ in range(4 + 3 * j)]
    return learned(GaussianBandit(COLOURS), rewards)


@pytest.mark.parametrize("k", [-20, -1, 3, 20])
def test_a_power_of_two_changes_no_bit(k: int) -> None:
    one, other = history(1.0), history(2.0**k)
    assert one.action_probabilities() == other.action_probabilities()
    assert one.hyperparameters() == other.hyperparameters()
    p, q = Stream(1), Stream(1)
    for _ in range(100):
        assert (one.sample(p).means * 2.0**k).tobytes() == other.sample(q).means.tobytes()
        assert one.draw_action(None, p) == other.draw_action(None, q)


def test_a_run_in_other_units_takes_the_same_actions() -> None:
    bandit, truth = GaussianBandit(3), np.array([[0.1, 1.0], [0.5, 1.0], [0.3, 1.0]])
    one = interact(bandit.agent(), bandit.environment(truth), 500, seed=1)
    other = interact(bandit.agent(), bandit.environment(1024.0 * truth), 500, seed=1)
    assert one.actions.tobytes() == other.actions.tobytes()
    assert (1024.0 * one.observations).tobytes() == other.observations.tobytes()


@pytest.mark.parametrize(
    ("factor", "shift"), [(1e-6, 0.0), (0.3, 0.0), (1e6, 0.0), (1.0, 1e3), (1.0, -1e3), (1e6, 1e9)]
)
def test_units_and_shifts_change_probabilities_by_rounding_only(
    factor: float, shift: float
) -> None:
    one, other = history(1.0).action_probabilities(), history(factor, shift).action_probabilities()
    for arm in COLOURS:
        assert one[arm] == pytest.approx(other[arm], abs=1e-6)


# -- before the posterior is proper ----------------------------------------------------------------


@pytest.mark.parametrize(
    "rewards", [{}, {"red": [0.1]}, {"red": [0.1] * 3, "blue": [0.1] * 7, "green": [0.1]}]
)
def test_arms_are_chosen_uniformly_until_two_rewards_differ(rewards: Any) -> None:
    """3,000 draws; each count is within 5 deviations of a third (2e-6)."""
    belief, rng = learned(GaussianBandit(COLOURS), rewards), Stream(0)
    assert belief.action_probabilities() == dict.fromkeys(COLOURS, 1 / 3)
    assert belief.scales() == {}
    assert np.isnan(list(belief.expected().values())).all()
    assert belief.log_predictive(None, "red", 7.0) == 0.0
    actions = [belief.draw_action(None, rng) for _ in range(3000)]
    assert all(abs(actions.count(arm) - 1000) < 5 * math.sqrt(3000 * 2 / 9) for arm in COLOURS)
    belief.observe(None, "red", 0.2 if rewards else 0.1)
    if rewards:
        assert belief.scales()["noise"] > 0.0


# -- laws ------------------------------------------------------------------------------------------


def histories(bandit: Bandit) -> list[Any]:
    return [(None, a, o) for a, o in interact(bandit.agent(), world_of(bandit, 0), 40, seed=3)]


def test_the_laws_hold(exact_learned: Bandit) -> None:
    def world() -> Any:
        return world_of(exact_learned, 1)

    assert find_loop(exact_learned.agent(), world()) is not None
    for seed, steps in product(range(2), (0, 1, 2, 200)):
        check_fused(exact_learned.agent, world, steps, seed=seed)
    check_resume(exact_learned.agent, world)
    check_resume(lambda: exact_learned.agent(schedule=Every(3)), world, 20, at=8)
    check_same_seed(exact_learned.agent, world)
    check_acting(exact_learned.agent, world)
    events = histories(exact_learned)
    check_deterministic(exact_learned.belief, events)
    check_save(exact_learned.belief, events)
    check_order(exact_learned.belief, events)
    check_merge(exact_learned.belief, events)
    invalid: list[Any] = [math.nan, math.inf, None, "1", [], 1e200]
    bad = [(None, exact_learned.labels[0], o) for o in invalid]
    check_bad_evidence(exact_learned.belief, events, [*bad, (None, "nobody", 1.0)])


def test_a_sum_that_overflows_is_refused_and_changes_nothing() -> None:
    belief = GaussianBandit(1).belief()
    belief.load({**belief.save(), "rows": np.array([[0.0, 2.0, 1.0, np.finfo(float).max]])})
    before = belief.save()
    with pytest.raises(BadEvidence, match="too large"):
        belief.observe(None, 0, 1e150)
    assert same_bits(before, belief.save())


def test_late_rewards_give_the_same_belief(exact_learned: Bandit) -> None:
    events = histories(exact_learned)
    one, other = exact_learned.belief(), exact_learned.belief()
    for x, a, o in events:
        one.observe(x, a, o)
    for arm in exact_learned.labels:
        for x, a, o in events:
            if a == arm:
                other.observe(x, a, o)
    assert one.action_probabilities() == other.action_probabilities()
    assert one.sample(Stream(1)).means.tobytes() == other.sample(Stream(1)).means.tobytes()


def test_arms_can_be_added_and_retired(exact_learned: Bandit) -> None:
    belief = exact_learned.belief()
    for x, a, o in histories(exact_learned):
        belief.observe(x, a, o)
    belief.add("new")
    assert sum(belief.action_probabilities().values()) == pytest.approx(1.0, abs=1e-12)
    assert math.isfinite(belief.expected()["new"])  # the other arms teach about a new one
    belief.retire("red")
    assert set(belief.action_probabilities()) == {"blue", "green", "new"}
    scales = belief.scales()  # type: ignore[attr-defined]
    belief.observe(None, "red", 1)
    assert belief.scales() != scales  # type: ignore[attr-defined]
    with pytest.raises(InvalidPrior, match="share a prior that is learned"):
        belief.add("other", prior=(1, 1))
    assert "other" not in belief.labels


def test_the_belief_shows_the_learned_scales() -> None:
    bandit = GaussianBandit(8)
    agent, rng = bandit.agent(), Stream(6)
    world = bandit.environment([[50 + 10 * rng.normal(), 5.0] for _ in range(8)])
    interact(agent, world, 3000, seed=0)
    scales = agent.belief.scales()
    assert scales["noise"] == pytest.approx(5.0, rel=0.1)
    assert 3.0 < scales["spread"] < 30.0
    assert 35.0 < scales["location"] < 65.0
    assert "noise 5." in repr(agent.belief) or "noise 4.9" in repr(agent.belief)


# -- settings --------------------------------------------------------------------------------------


REFUSED: list[tuple[Any, str]] = [
    (lambda: GaussianBandit(2, sd=1.0), "give both"),
    (lambda: GaussianBandit(2, sd=None), "give both"),
    (lambda: GaussianBandit(2, prior=(0, 1)), "give both"),
    (lambda: GaussianBandit(2, sd="unknown"), "or 'learned'"),
    (lambda: GaussianBandit(2, prior="flat"), "or 'learned'"),
    (lambda: BernoulliBandit(2, prior="flat"), "or 'learned'"),
    (lambda: GaussianBandit(2).draw(0), "no world can be drawn"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_incomplete_settings_are_refused(call: Any, words: str) -> None:
    with pytest.raises(InvalidPrior, match=words):
        call()


def test_settings_describe_the_bandit() -> None:
    assert PoissonBandit(2, prior="learned").settings() == {"arms": [0, 1], "prior": "learned"}
    settings = GaussianBandit(2).settings()
    assert settings == {"arms": [0, 1], "sd": "learned", "prior": "learned"}
    assert GaussianBandit(**settings).settings() == settings
