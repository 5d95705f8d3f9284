"""Bandits with joint draws of their mean rewards: likelihoods, exact answers, logs, errors.

Exact answers come from SciPy: distributions of rewards, and quadrature over posteriors.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats  # type: ignore[import-untyped]

from bayescontrol import (
    BernoulliBandit,
    CategoricalBandit,
    ExponentialBandit,
    GaussianBandit,
    GeometricBandit,
    LinearBandit,
    PoissonBandit,
    Stream,
    interact,
)
from bayescontrol.bandits import FAMILIES, ArmDrawsBelief, DrawsBandit
from bayescontrol.durable import export_log, open_agent, replay
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
    InvalidRequest,
    MissingCapability,
    UnknownArm,
)
from bayescontrol.offpolicy import what_if
from bayescontrol.testing import check_bad_evidence, same_bits

RNG = np.random.default_rng(0)
#: For each family: a bandit, the distribution of the rewards for a mean, and two rewards.
CASES: dict[str, tuple[Any, Any, tuple[float, float]]] = {
    "Bernoulli": (BernoulliBandit(2), lambda m: stats.bernoulli(m).logpmf, (1, 0)),
    "Poisson": (PoissonBandit(2), lambda m: stats.poisson(m).logpmf, (3, 0)),
    "exponential": (ExponentialBandit(2), lambda m: stats.expon(scale=m).logpdf, (0.7, 0.0)),
    # SciPy counts the trials up to the success.
    "geometric": (GeometricBandit(2), lambda m: stats.geom(1 / (1 + m), loc=-1).logpmf, (4, 0)),
    "Gaussian": (
        GaussianBandit(2, sd=0.3, prior=(0, 1)),
        lambda m: stats.norm(m, 0.3).logpdf,
        (0.4, -1.0),
    ),
}


@pytest.mark.parametrize(("bandit", "rewards", "observed"), CASES.values(), ids=CASES)
def test_the_weights_are_the_likelihoods_of_the_family(
    bandit: Any, rewards: Any, observed: tuple[float, float]
) -> None:
    draws = RNG.uniform(0.05, 0.95, size=(40, 2))
    belief = bandit.agent(draws=draws).belief
    expected = rewards(draws[:, 1])(observed[0])
    first = belief.log_predictive(None, 1, observed[0])
    assert first == pytest.approx(np.log(np.exp(expected).mean()), rel=1e-12)
    belief.observe(None, 1, observed[0])
    belief.observe(None, 0, observed[1])
    log_w = expected + rewards(draws[:, 0])(observed[1])
    w = np.exp(log_w - log_w.max())
    np.testing.assert_allclose(belief.posterior(), w / w.sum(), rtol=1e-12)


def test_every_family_is_tried_or_refused() -> None:
    refused = {CategoricalBandit}
    assert set(FAMILIES) == {type(bandit) for bandit, *_ in CASES.values()} | refused
    with pytest.raises(MissingCapability, match="mean reward does not determine"):
        CategoricalBandit(2, values=[0, 1, 2]).agent(draws=[[0.1, 0.2]])
    with pytest.raises(MissingCapability, match="log_likelihood of your own"):
        GaussianBandit(2).agent(draws=[[0.1, 0.2]])
    with pytest.raises(MissingCapability, match="no bandit with independent arms"):
        DrawsBandit(LinearBandit(2, features=2), [[0.1, 0.2]])
    with pytest.raises(MissingCapability, match="does not change"):
        BernoulliBandit(2).changing().agent(draws=[[0.1, 0.2]])


def test_draws_of_the_prior_agree_with_the_conjugate_agent() -> None:
    """Within four standard errors; the false-alarm rate over seeds is below 2e-4."""
    bandit = BernoulliBandit(["red", "green", "blue"])
    exact = bandit.agent()
    agent = bandit.agent(draws=RNG.uniform(size=(4000, 3)))
    for arm, reward in [("red", 1), ("red", 1), ("green", 0), ("blue", 1), ("red", 0)]:
        exact.observe(arm, reward)
        agent.observe(arm, reward)
    ours, theirs = agent.action_probabilities(), exact.action_probabilities()
    for arm, p in theirs.items():
        se = np.sqrt(p * (1 - p) / agent.belief.effective_size)
        assert abs(ours[arm] - p) < 4 * se
    assert agent.belief.expected() == pytest.approx(exact.belief.expected(), abs=0.02)


def test_correlated_arms_learn_from_each_other() -> None:
    """Jointly Gaussian means of correlation 0.9: arm 1 was never pulled; four standard errors."""
    rng = np.random.default_rng(3)
    covariance = np.array([[1.0, 0.9], [0.9, 1.0]])
    draws = rng.multivariate_normal([0.0, 0.2], covariance, size=4000)
    agent = GaussianBandit(2, sd=1.0, prior=(0, 1)).agent(draws=draws)
    agent.observe(0, -1.0)
    gain = covariance[:, 0] / 2.0  # the posterior given a reward of arm 0 with variance 1
    mean, cov = np.array([0.0, 0.2]) - gain, covariance - np.outer(gain, covariance[0])
    difference = stats.norm(mean[0] - mean[1], np.sqrt(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]))
    p, size = float(difference.sf(0.0)), agent.belief.effective_size
    assert abs(agent.action_probabilities()[0] - p) < 4 * np.sqrt(p * (1 - p) / size)
    assert abs(agent.belief.expected()[1] - mean[1]) < 4 * np.sqrt(cov[1, 1] / size)


def test_a_refit_of_poisson_arms_agrees_with_one_that_replays_all_events() -> None:
    """Against P(Gamma > Gamma) by quadrature; the false-alarm rate over seeds is below 2e-4."""
    rng, bandit = np.random.default_rng(4), PoissonBandit(2)
    rewards = [(0, 2), (1, 1), (0, 0), (1, 3), (0, 1), (1, 2)]
    prior = rng.gamma(1.0, size=(4000, 2))
    replayed, refitted = bandit.agent(draws=prior), bandit.agent(draws=prior[:9])
    for arm, reward in rewards:
        replayed.observe(arm, reward)
        refitted.observe(arm, reward)
    a, b = np.array([1.0 + 2 + 0, 1.0 + 1 + 3]), np.array([1.0 + 2, 1.0 + 2])  # after 4 events
    refitted.belief.refit(rng.gamma(a, size=(4000, 2)) / b, through=4)
    first, second = stats.gamma(1 + 3, scale=1 / 4), stats.gamma(1 + 6, scale=1 / 4)
    p = integrate.quad(lambda m: first.pdf(m) * second.cdf(m), 0, np.inf)[0]
    for agent in (replayed, refitted):
        se = np.sqrt(p * (1 - p) / agent.belief.effective_size)
        assert abs(agent.action_probabilities()[0] - p) < 4 * se
    assert refitted.belief.effective_size > replayed.belief.effective_size


def test_equal_mean_rewards_are_pulled_equally_often() -> None:
    """A chi-square test at level 1e-6 over 3,000 draws."""
    agent, rng = (
        PoissonBandit(3).agent(draws=[[2, 2, 1], [0, 1, 1], [3, 1, 2], [1, 1, 1]]),
        Stream(1),
    )
    p = agent.action_probabilities()
    assert p == pytest.approx({0: 1.5 / 4 + 1 / 12, 1: 1 / 4 + 1 / 12, 2: 0.5 / 4 + 1 / 12})
    drawn = [agent.act(rng) for _ in range(3000)]
    expected = [3000 * p[a] for a in range(3)]
    assert stats.chisquare([drawn.count(a) for a in range(3)], expected).pvalue > 1e-6


def test_quantiles_of_the_mean_rewards_are_those_of_the_exact_posterior() -> None:
    """Each Beta quantile within four standard errors; false alarms below 4e-4."""
    agent = BernoulliBandit(2).agent(draws=np.random.default_rng(7).uniform(size=(4000, 2)))
    for reward in (1, 1, 0):
        agent.observe(1, reward)
    tails = np.array([0.1, 0.5, 0.9])
    found = agent.belief.mean_intervals(tails)
    for arm, exact in enumerate((stats.beta(1, 1), stats.beta(3, 2))):
        se = np.sqrt(tails * (1 - tails) / agent.belief.effective_size)
        assert (np.abs(exact.cdf(found[arm]) - tails) < 4 * se).all()


def test_impossible_rewards_and_arms_change_nothing() -> None:
    def make() -> Any:
        return BernoulliBandit(2).agent(draws=[[0.0, 0.5], [0.0, 0.2]]).belief

    check_bad_evidence(make, [(None, 1, 1)], [(None, 0, 1), (None, 1, 0.5)])
    belief = make()
    before = belief.save()
    for error, (arm, reward) in {UnknownArm: (2, 1), BadEvidence: (0, 2)}.items():
        with pytest.raises(error):
            belief.observe(None, arm, reward)
    assert same_bits(before, belief.save())


def test_draws_outside_the_family_are_refused_also_by_a_refit() -> None:
    agent = BernoulliBandit(["red", "blue"]).agent(draws=[[0, 1]])
    wrong: list[tuple[Any, Any, str]] = [
        (BernoulliBandit(2), [[0.1, 1.1]], r"draws\[0, 1\] is 1.1: .* in \[0, 1\]"),
        (PoissonBandit(2), [[1.0, -1.0]], "arm 1 must be in"),
        (ExponentialBandit(2), [[0.0, 1.0]], r"draws\[0, 0\] is 0"),
        (GeometricBandit(2), [[0.1, np.inf]], "finite"),
        (BernoulliBandit(3), [[0.1, 0.2]], r"shape \(1, 2\) for 3 arms"),
        (BernoulliBandit(1), [0.1, 0.2], r"shape \(2,\) for 1 arm"),
    ]
    for bandit, draws, message in wrong:
        with pytest.raises(InvalidPrior, match=message):
            bandit.agent(draws=draws)
    with pytest.raises(InvalidPrior, match="arm 'red' must be"):
        agent.belief.refit([[2.0, 0.0]], through=0)


def test_a_state_of_other_arms_or_another_family_is_refused() -> None:
    belief = PoissonBandit(2).agent(draws=[[1.0, 2.0]]).belief
    for other, setting in (
        (PoissonBandit(["a", "b"]), "arms"),
        (GeometricBandit(2), "family"),
    ):
        with pytest.raises(IncompatibleState, match=f"saved with {setting}"):
            belief.load(other.agent(draws=[[1.0, 2.0]]).belief.save())


def test_an_agent_finds_the_best_arm() -> None:
    bandit = DrawsBandit(BernoulliBandit(["red", "blue"]), RNG.uniform(size=(4000, 2)))
    agent = bandit.agent()
    record = interact(agent, bandit.environment([0.2, 0.8]), 80, seed=2)
    assert (record.actions[-20:] == "blue").mean() > 0.8
    assert isinstance(agent.belief, ArmDrawsBelief)
    assert agent.belief.posterior_summary()["blue"]["mean"] > 0.6


# -- logs ------------------------------------------------------------------------------------------


def test_a_log_stores_the_draws_and_needs_no_model_to_reopen(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'shop.db'}"
    draws, log_weights = RNG.uniform(size=(200, 2)), np.linspace(0.0, 1.0, 200)
    bandit = DrawsBandit(BernoulliBandit(["red", "blue"]), draws, log_weights)
    with open_agent(store, "shop", bandit, seed=1) as agent:
        decisions = [agent.act() for _ in range(20)]
        for d in reversed(decisions):
            agent.observe(d, int(d.action == "blue"))
        probabilities, state = agent.probabilities(), agent.state()
        assert (
            decisions[0].probability == bandit.agent().action_probabilities()[decisions[0].action]
        )
    with open_agent(store, "shop") as agent:
        assert same_bits(state, agent.state())
        assert agent.probabilities() == probabilities
        assert np.array_equal(agent.ask(lambda rule: rule.belief.draws), draws)
        assert same_bits(replay(agent.log()).state, state)
        assert agent.ask(lambda rule: rule.belief.count) == 20


def test_a_durable_agent_is_refitted_like_a_plain_one(tmp_path: Path) -> None:
    bandit = DrawsBandit(BernoulliBandit(2), RNG.uniform(size=(50, 2)))
    plain, draws = bandit.agent(), RNG.uniform(size=(80, 2))
    store, file = f"sqlite:///{tmp_path / 'shop.db'}", tmp_path / "shop.jsonl"
    with open_agent(store, "shop", bandit, seed=1) as agent:
        decisions = [agent.act() for _ in range(30)]
        for d in reversed(decisions):
            agent.observe(d, int(d.id) % 2)
            plain.learn(None, d.action, int(d.id) % 2)
        assert agent.refit(draws, through=1 + 30 + 12) == agent.head == 62
        plain.belief.refit(draws, through=12)
        decisions += [agent.act() for _ in range(5)]
        assert decisions[-1].probabilities == plain.action_probabilities()
        for d in decisions[::10]:  # before the refit and after it
            assert agent.explain(d).decision.probability == d.probability
        assert same_bits(replay(agent).state, agent.state())
        assert export_log(agent, file) == agent.head
        weights, state = agent.ask(lambda rule: rule.belief.posterior()), agent.state()
        assert same_bits({"w": weights}, {"w": plain.belief.posterior()})
        assert what_if(agent, BernoulliBandit(2), bounds=(0, 1)).all_propensities
    assert same_bits(replay(file).state, state)
    with open_agent(store, "shop") as agent:
        assert same_bits(agent.state(), state)


def test_a_fit_of_the_first_events_agrees_with_one_that_replays_them() -> None:
    rng, exact = np.random.default_rng(3), BernoulliBandit(2).belief()
    bandit = DrawsBandit(BernoulliBandit(2), rng.uniform(size=(500, 2)))
    posterior = {1: exact.posterior()}  # after each event, as rows (α, β)
    with open_agent("sqlite:///:memory:", "shop", bandit, seed=1) as agent:
        for _ in range(40):
            d, o = agent.act(), int(rng.random() < 0.5)
            agent.observe(d, o)
            exact.observe(None, d.action, o)
            posterior[agent.head] = exact.posterior()
        for through in (81, 41, 1):  # contains all, half or no observations
            alpha, beta = posterior[through].T
            agent.refit(rng.beta(alpha, beta, size=(4000, 2)), through=through)
            size = agent.ask(lambda rule: rule.belief.effective_size)
            p = agent.probabilities() or {}
            # Four standard errors: a false alarm in one of 5,000 runs.
            assert abs(p[0] - exact.action_probabilities()[0]) <= 4.0 * 0.5 / np.sqrt(size)


@pytest.mark.parametrize(
    ("draws", "options", "error", "words"),
    [
        ([[0.1, 0.2]], {"through": 4}, InvalidRequest, "through=4: .* to 3"),
        ([[0.1, 0.2]], {"through": 0}, InvalidRequest, "through=0"),
        ([[0.1, 0.2]], {"through": True}, InvalidRequest, "through=True"),
        ([[0.1, 0.2, 0.3]], {"through": 1}, InvalidPrior, "for 2 arms"),
        ([[0.1, 1.2]], {"through": 1}, InvalidPrior, r"must be in \[0, 1\]"),
        ([[0.1, "x"]], {"through": 1}, InvalidPrior, "draws"),
        ([[0.1, 0.2]], {"through": 1, "log_weights": [0, 1]}, InvalidPrior, "one per draw"),
        ([[0.0, 0.0]], {"through": 1}, ImpossibleObservation, "draws"),
    ],
)
def test_an_invalid_refit_changes_nothing(
    draws: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    bandit = DrawsBandit(BernoulliBandit(2), [[0.1, 0.2], [0.3, 0.1]])
    with open_agent("sqlite:///:memory:", "shop", bandit) as agent:
        agent.observe(agent.act(), 1)
        state = agent.state()
        with pytest.raises(error, match=words):
            agent.refit(draws, **options)
        assert agent.head == 3
        assert same_bits(agent.state(), state)


def test_only_models_of_draws_are_refitted() -> None:
    with open_agent("sqlite:///:memory:", "shop", BernoulliBandit(2)) as agent:
        with pytest.raises(MissingCapability, match="such as DrawsBandit"):
            agent.refit([[0.1, 0.2]], through=1)
        assert agent.head == 1


def test_the_belief_of_a_durable_agent_is_not_refitted_without_its_log() -> None:
    bandit = DrawsBandit(BernoulliBandit(2), [[0.1, 0.2], [0.3, 0.1]])
    with (
        open_agent("sqlite:///:memory:", "shop", bandit) as agent,
        pytest.raises(MissingCapability, match="`refit` of the durable agent"),
    ):
        agent.ask(lambda rule: rule.belief.refit([[0.1, 0.2]], through=0))
