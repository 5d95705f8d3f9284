"""The probability of every decision, under eligibility, holdout, shares, prices and sessions.

Compared with integrals of the posteriors that this file computes from the log by itself, and with
the frequencies of what was drawn.
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats  # type: ignore[import-untyped]
from tests.chance import chi_square
from tests.durable.agents import MEMORY

from bayescontrol import (
    BernoulliBandit,
    ControlRule,
    FiniteBelief,
    GaussianBandit,
    LinearBandit,
    errors,
)
from bayescontrol.bandits import SharedLinearBandit
from bayescontrol.durable import Configuration, DurableAgent, named_model, open_agent, replay
from bayescontrol.durable.fold import Fold
from bayescontrol.finite.classes import make
from bayescontrol.seeding import Stream

ARMS = ["red", "blue", "green", "plain"]
SHOP = BernoulliBandit(ARMS)


def train(agent: DurableAgent, rewards: dict[Any, list[Any]], x: Any = None) -> None:
    """Let the agent observe these rewards of each arm, whatever it would choose."""
    for arm, values in rewards.items():
        for o in values:
            agent.observe(agent.act(x, among=[arm]), o)


# -- exact values ----------------------------------------------------------------------------------

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
#: Ends of intervals of quantiles, closer to each other near 0 and 1.
_NEAR = 10.0 ** np.arange(-12.0, -0.5)
ENDS = np.concatenate([[0.0], _NEAR, np.linspace(0.2, 0.8, 13), 1.0 - _NEAR[::-1], [1.0]])


def best(posteriors: dict[Any, Any], prices: dict[Any, float]) -> dict[Any, float]:
    """P(m_a - c_a is the largest) = ∫ Π_b F_b(q_a(u) - c_a + c_b) du, with the quantiles q_a."""
    width, middle = np.diff(ENDS) / 2, (ENDS[1:] + ENDS[:-1]) / 2
    u, du = (middle[:, None] + width[:, None] * NODES).ravel(), np.outer(width, WEIGHTS).ravel()
    P = {}
    for a, posterior in posteriors.items():
        v = posterior.ppf(u) - prices.get(a, 0.0)
        others = [d.cdf(v + prices.get(b, 0.0)) for b, d in posteriors.items() if b != a]
        P[a] = float(du @ np.prod(others, 0)) if others else 1.0
    return P


def clipped(P: dict[Any, float], shares: dict[Any, tuple[float, float]]) -> dict[Any, float]:
    """clip(c P, low, high) with sum 1: c by bisection of its logarithm."""
    low, high = np.array([shares.get(a, (0.0, 1.0)) for a in P]).T
    q = np.maximum(np.array([*P.values()]), 1e-300)

    def p(log_c: float) -> Any:
        return np.clip(np.exp(log_c) * q, low, high)

    log_c = optimize.brentq(lambda z: p(z).sum() - 1.0, -50.0, 690.0, xtol=1e-14)
    return dict(zip(P, p(log_c).tolist(), strict=True))


def beta(rewards: list[Any]) -> Any:
    return stats.beta(1 + sum(rewards), 1 + len(rewards) - sum(rewards))


def normal(rewards: list[Any]) -> Any:
    """Noise of standard deviation 0.8, prior N(0.3, 1.1²)."""
    precision = 1.1**-2 + len(rewards) * 0.8**-2
    return stats.norm((0.3 * 1.1**-2 + sum(rewards) * 0.8**-2) / precision, precision**-0.5)


def student(rewards: list[Any]) -> Any:
    """Normal-gamma prior with location 0.3, kappa 1.5, alpha 2 and beta 0.7."""
    r, n = np.array(rewards), len(rewards)
    kappa, alpha = 1.5 + n, 2.0 + n / 2
    scatter = ((r - r.mean()) ** 2).sum() / 2 + 1.5 * n * (r.mean() - 0.3) ** 2 / (2 * kappa)
    scale = np.sqrt((0.7 + scatter) / (alpha * kappa))
    return stats.t(2 * alpha, (1.5 * 0.3 + r.sum()) / kappa, scale)


#: A bandit, its rewards, and the posterior of the mean of an arm.
EXACT: dict[str, tuple[Any, Any, Any]] = {
    "bernoulli": (SHOP, lambda u: int(u < 0.6), beta),
    "gaussian": (GaussianBandit(ARMS, sd=0.8, prior=(0.3, 1.1)), lambda u: 2 * u - 1, normal),
    "gaussian, own noise": (
        GaussianBandit(ARMS, sd=None, prior=(0.3, 1.5, 2, 0.7)), lambda u: 2 * u - 1, student,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_probabilities_equal_integrals_of_the_posterior(name: str) -> None:
    """Eligibility, declared and reported prices, holdout and shares; all within 1e-9."""
    bandit, reward, posterior = EXACT[name]
    rng, shares = Stream(3), {"blue": (0.3, 0.6), "red": (0.0, 0.3), "plain": (0.05, 1.0)}
    rewards = {a: [reward(rng.random()) for _ in range(3 + 2 * i)] for i, a in enumerate(ARMS)}
    posteriors = {a: posterior(values) for a, values in rewards.items()}
    with open_agent(MEMORY, "shop", bandit, seed=1) as agent:
        train(agent, rewards)
        for cost in (0.3, 0.1, -0.2):
            agent.observe(agent.act(among=["green"]), rewards["green"][0], cost=cost)
        posteriors["green"] = posterior(rewards["green"] + [rewards["green"][0]] * 3)
        declared: dict[Any, Any] = {"red": -0.1, "plain": 0.15, "green": "reported"}
        prices = {"red": -0.1, "plain": 0.15, "green": 0.2 / 3}
        for among in (None, ["plain", "blue", "green"], ["red", "plain", "blue"], ["plain"]):
            eligible = [a for a in ARMS if among is None or a in among]
            for given, c in (({}, {}), (declared, prices)):
                P = best({a: posteriors[a] for a in eligible}, c)
                assert sum(P.values()) == pytest.approx(1.0, abs=1e-9)
                agent.configure(Configuration(prices=given))
                assert agent.probabilities(among=among) == pytest.approx(P, abs=1e-9)
                agent.configure(
                    Configuration(prices=given, shares=shares, holdout=0.2, control="blue")
                )
                control = ["blue"] if "blue" in eligible else eligible
                Q = {a: (a in control) / len(control) for a in eligible}
                own, of_holdout = clipped(P, shares), clipped(Q, shares)
                p = {a: 0.8 * own[a] + 0.2 * of_holdout[a] for a in eligible}
                assert agent.probabilities(among=among) == pytest.approx(p, abs=2e-9)
                d = agent.act(among=among)
                assert d.probability == pytest.approx(p[d.action], abs=2e-9)


def test_linear_probabilities_equal_those_of_a_regression() -> None:
    rng, x, sd = np.random.default_rng(2), np.array([0.7, -1.2]), 0.5
    bandit = LinearBandit(ARMS, features=2, sd=sd, prior=(0.0, 1.0))
    with open_agent(MEMORY, "shop", bandit, seed=1) as agent:
        scores = {}
        for arm in ARMS:
            X, r = rng.normal(size=(4, 2)), rng.normal(size=4)
            for features, o in zip(X.tolist(), r.tolist(), strict=True):
                agent.observe(agent.act(features, among=[arm]), o)
            covariance = np.linalg.inv(np.eye(2) + X.T @ X / sd**2)
            mean = x @ covariance @ X.T @ r / sd**2
            scores[arm] = stats.norm(mean, np.sqrt(x @ covariance @ x))
        prices = {"red": 0.4, "green": -0.3}
        agent.configure(Configuration(prices=prices))
        for among in (None, ["red", "green", "plain"]):
            P = best({a: scores[a] for a in among or ARMS}, prices)
            assert agent.probabilities(x.tolist(), among) == pytest.approx(P, abs=1e-9)


# -- special cases ---------------------------------------------------------------------------------


def drawn(fold: Fold, n: int, x: Any = None) -> tuple[Any, Any]:
    """Counts of n first draws of the next decision, and n times their probabilities."""
    counts, p = Counter[Any](), fold.probabilities(x)
    assert p is not None
    for i in range(n):
        action, probabilities, _ = fold.copy().draw(fold.seq + 1 + i, x)
        assert probabilities == p
        counts[action] += 1
    assert set(counts) <= set(p)
    return np.array([counts[a] for a in p]), n * np.array([*p.values()])


@pytest.mark.parametrize("per_arm", [False, True])
def test_shares_are_exact_although_time_goes_on_with_a_decision(per_arm: bool) -> None:
    """3,000 draws from a belief about arms that change often; false alarm 1e-6.

    If the shares applied to probabilities that are one decision later, red would be drawn with
    probability 0.57, and the chi-square, with two degrees of freedom, would be above 60.
    """
    bandit = BernoulliBandit(ARMS[:3]).changing(hazards=[0.3], per_arm=per_arm)
    with open_agent(MEMORY, "shop", bandit, seed=1) as agent:
        train(agent, {"blue": [0, 0, 0, 0], "green": [0, 0, 0, 0], "red": [1, 1, 1, 1]})
        agent.configure(Configuration(shares={"red": (0.0, 0.5)}))
        assert chi_square(*drawn(agent._fold, 3_000)) > 1e-6


def test_the_holdout_chooses_actions_of_the_situation() -> None:
    """The two modes use other actions in situation 1 than in the first situation, 0."""

    class Lever:
        def __init__(self, action: str) -> None:
            self.action = action

        def action_probabilities(self, x: int) -> dict[str, float]:
            return {self.action + str(x): 1.0}

        def act(self, x: int, rng: Any) -> str:
            return self.action + str(x)

        def likelihood(self, x: int, a: str, o: int) -> float:
            return 0.9 if (o == 1) == a.startswith(self.action) else 0.1

    def build() -> Any:
        return ControlRule(FiniteBelief([Lever("left"), Lever("right")]), 0, lambda x, a, o: x)

    model = named_model("levers", version=1, build=build, accepts_late_feedback=True)
    with open_agent(MEMORY, "shop", model, seed=1) as agent:
        agent.configure(Configuration(holdout=0.5))
        assert agent.probabilities(1) == {"left1": 0.5, "right1": 0.5}
        assert all(agent.act(1).probability == 0.5 for _ in range(20))


def test_probabilities_do_not_depend_on_earlier_questions() -> None:
    """With shared weights they are exact for two eligible arms, but not for three."""
    shared = SharedLinearBandit(3, lambda x, a: [x * a], features=1, sd=1, prior=(0, 1))
    model = named_model("shared", version=1, build=shared.agent)
    with open_agent(MEMORY, "shop", model, seed=1) as agent:
        assert agent.act(1.0).probability is None
        assert agent.act(1.0, among=[0, 1]).probability == 0.5
        assert agent.probabilities(1.0) is None
        assert replay(agent).drawn == 2


def test_rounding_of_tiny_probabilities_is_not_amplified() -> None:
    """A restored log may be read on a machine that rounds differently.

    Before their share the losers have probabilities of 1e-28 and 1e-26 with few correct digits.
    """
    for a in 180.0 * (1.0 + 2.3e-16 * np.arange(-4, 5)):
        bandit = BernoulliBandit(ARMS[:3], prior=[(a, 20), (80, 120), (84, 116)])
        with open_agent(MEMORY, "shop", bandit) as agent:
            agent.configure(Configuration(shares={"red": (0.0, 0.6)}))
            p = {"red": 0.6, "blue": 0.2, "green": 0.2}
            assert agent.probabilities() == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize("common", [1e9, -1e9, 1e17])
def test_a_common_price_changes_nothing_however_large(common: float) -> None:
    prices = {
        "red": common,
        "blue": common,
        "green": common + abs(common),
        "plain": 2.0 * abs(common),
    }
    with open_agent(MEMORY, "shop", SHOP, seed=1) as agent:
        train(agent, {"red": [1, 1, 0, 1], "blue": [0, 1, 0]})
        p = agent.probabilities(among=["red", "blue"])
        agent.configure(Configuration(prices=prices))
        assert p is not None
        assert agent.probabilities() == pytest.approx({**p, "green": 0.0, "plain": 0.0}, abs=1e-9)
        assert chi_square(*drawn(agent._fold, 1_000)) > 1e-6  # false alarm 1e-6


@pytest.mark.parametrize(
    ("model", "prices", "error"),
    [
        (SHOP, {"red": 1e151}, errors.InvalidRequest),
        (make("three-modes"), {0: 0.5}, errors.MissingCapability),
    ],
)
def test_prices_that_no_decision_could_use_are_refused(model: Any, prices: Any, error: Any) -> None:
    with open_agent(MEMORY, "shop", model) as agent:
        with pytest.raises(error):
            agent.configure(Configuration(prices=prices))
        with pytest.raises(errors.BadEvidence, match="within"):
            agent.observe(agent.act(), 1, cost=1e151)
        assert agent.act().probability is not None


def test_shares_and_control_of_arms_that_are_not_eligible_have_no_effect() -> None:
    shares = {"red": (0.4, 1.0), "blue": (0.0, 0.3)}
    with open_agent(MEMORY, "shop", SHOP, seed=1) as agent:
        agent.configure(Configuration(shares=shares, holdout=0.5, control="red"))
        assert agent.probabilities(among=["green"]) == {"green": 1.0}
        assert agent.probabilities(among=["green", "plain"]) == {"green": 0.5, "plain": 0.5}
        agent.configure(Configuration(shares=shares, holdout=0.5))
        agent.retire_arm("red")
        # The agent: blue .3, the others .35. The holdout: any of the three, the same.
        p = {"blue": 0.3, "green": 0.35, "plain": 0.35}
        assert agent.probabilities() == pytest.approx(p)
        head = agent.head
        with pytest.raises(errors.InvalidRequest, match="within their shares"):
            agent.act(among=["blue"])
        assert agent.head == head


def test_minimum_shares_that_sum_to_one_leave_no_choice() -> None:
    shares = {a: (0.1 * i, 1.0) for i, a in enumerate(ARMS, 1)}
    with open_agent(MEMORY, "shop", SHOP, seed=1) as agent:
        train(agent, {"red": [1] * 50, "plain": [0] * 50})
        agent.configure(Configuration(shares=shares))
        p = agent.probabilities()
        assert p == pytest.approx({a: low for a, (low, _) in shares.items()}, abs=1e-15)
