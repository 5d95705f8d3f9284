"""Temperature: what it does to draws and actions, and that nothing else depends on it.

Stochastic tests fix their seed; over seeds each raises a false alarm with the rate it states.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special  # type: ignore[import-untyped]
from tests.chance import chi_square, distance

from bayescontrol import (
    BernoulliBandit,
    CategoricalBandit,
    ControlRule,
    DiscreteMode,
    ExponentialBandit,
    FiniteBelief,
    GaussianBandit,
    LinearBandit,
    LogisticBandit,
    PoissonBandit,
    Stream,
)
from bayescontrol._compiled import find_loop
from bayescontrol.bandits import (
    DrawsBandit,
    GeometricBandit,
    JointBandit,
    LogitNormalBandit,
    SharedLinearBandit,
    gaussian,
)
from bayescontrol.durable import open_agent
from bayescontrol.errors import IncompatibleState, InvalidPrior, MissingCapability, ModelMismatch
from bayescontrol.finite.tabular import random_modes
from bayescontrol.kernels.average_reward import RewardLevels, draw_rewards
from bayescontrol.lqr import LinearQuadratic
from bayescontrol.mdp import DirichletMDP, GibbsMDP
from bayescontrol.serve.http_errors import BadSettings
from bayescontrol.serve.requested_models import requested_model
from bayescontrol.testing import check_fused, check_save

X = [1.0, -0.5]
COUNTS = [(None, t % 3, float(t % (2 + t % 3) == 0)) for t in range(12)]
NUMBERS = [(None, t % 3, 0.5 + (7 * t % 5) + 0.5 * (t % 3)) for t in range(12)]
SCORES = [([1.0, t % 4 - 1.5], t % 3, 0.3 * (7 * t % 5) + 0.2 * (t % 3)) for t in range(12)]
CLICKS = [(x, a, float(r > 0.6)) for x, a, r in SCORES]
SEGMENTS = [("uk" if t % 2 else "de", a, o) for t, (_, a, o) in enumerate(COUNTS)]


def phi(x: Any, a: int) -> list[float]:
    return [x[0], a * x[1]]


#: A problem, events, and the situation in which it acts.
CASES: dict[str, tuple[Any, list[Any], Any]] = {
    "Bernoulli": (BernoulliBandit(3), COUNTS, None),
    "Gaussian": (GaussianBandit(3, sd=3, prior=(1, 2)), NUMBERS, None),
    "unknown noise": (GaussianBandit(3, sd=None, prior=(1, 1, 2, 1)), NUMBERS, None),
    "Poisson": (PoissonBandit(3), COUNTS, None),
    "exponential": (ExponentialBandit(3), NUMBERS, None),
    "geometric": (GeometricBandit(3), COUNTS, None),
    "learned Bernoulli": (BernoulliBandit(3, prior="learned"), COUNTS, None),
    "learned Poisson": (PoissonBandit(3, prior="learned"), COUNTS, None),
    "learned Gaussian": (GaussianBandit(3), NUMBERS, None),
    "linear": (LinearBandit(3, 2, sd=0.5, prior=(0, 1)), SCORES, X),
    "learned linear": (LinearBandit(3, 2), SCORES, X),
    "logistic": (LogisticBandit(3, 2, prior=(0, 1)), CLICKS, X),
    "learned logistic": (LogisticBandit(3, 2), CLICKS, X),
    "shared": (SharedLinearBandit([1, 2], phi, 2), [(x, a % 2 + 1, o) for x, a, o in SCORES], X),
    "pooled": (BernoulliBandit(3).pooled(), SEGMENTS, "de"),
    "pooled Gaussian": (
        GaussianBandit(2).pooled(),
        [("ab"[t % 2], t // 2 % 2, float(7 * t % 5)) for t in range(12)],
        "a",
    ),
    "changing": (BernoulliBandit(3).changing(), COUNTS, None),
    "changing linear": (LinearBandit(3, 2, sd=0.5, prior=(0, 1)).changing(), SCORES, X),
    "tabular": (random_modes(4, seed=3), [(0, 0, 1), (0, 1, 1), (0, 0, 0)], 0),
    "joint": (
        JointBandit([[0.9, 0.1, 0.4], [0.1, 0.8, 0.2], [0.2, 0.3, 0.7]]),
        [(0, 0, 1), (0, 2, 0), (0, 0, 0)],
        0,
    ),
}
SEPARATE: dict[str, tuple[Any, list[Any], Any]] = {
    "per arm": (BernoulliBandit(3).changing(per_arm=True), COUNTS, None),
    "linear per arm": (
        LinearBandit(3, 2, sd=0.5, prior=(0, 1)).changing(per_arm=True),
        SCORES,
        X,
    ),
}


def taught(problem: Any, events: list[Any], **options: Any) -> Any:
    """Return an agent that has learned the events."""
    agent = problem.agent(**options)
    for x, a, o in events:
        agent.learn(x, a, o)
    return agent


def assert_calibrated(belief: Any, x: Any, p: dict[Any, float], draws: int = 20_000) -> None:
    """Actions, drawn directly and by way of modes, have the probabilities p; false alarm 2e-7."""
    rng = Stream(11)
    ways: list[Callable[[], Any]] = [lambda: belief.sample(rng).act(x, rng)]
    if hasattr(belief, "draw_action"):
        ways.append(lambda: belief.draw_action(x, rng))
    for draw in ways:
        found = [draw() for _ in range(draws)]
        counts = np.array([found.count(a) for a in p])
        assert counts.sum() == draws
        assert chi_square(counts, draws * np.array([*p.values()])) > 1e-7


@pytest.mark.parametrize("temperature", [0.25, 4.0])
@pytest.mark.parametrize("name", CASES)
def test_actions_have_their_probabilities(name: str, temperature: float) -> None:
    problem, events, x = CASES[name]
    agent = taught(problem, events, temperature=temperature)
    agent.x = x
    p = agent.action_probabilities()
    assert_calibrated(agent.belief, x, p)
    plain = taught(problem, events)
    plain.x = x
    bolder, rule = max(p.values()), max(plain.action_probabilities().values())
    assert bolder < rule - 0.01 if temperature > 1 else bolder > rule + 0.01


@pytest.mark.parametrize(
    ("name", "temperature"),
    [("per arm", 0.25), ("per arm", 2.0), ("linear per arm", 0.25), ("linear per arm", 4.0)],
)
def test_arms_that_change_separately_have_their_probabilities(
    name: str, temperature: float
) -> None:
    problem, events, x = SEPARATE[name]
    belief = taught(problem, events, temperature=temperature).belief
    assert_calibrated(belief, x, belief.action_probabilities(x))


@pytest.mark.parametrize("temperature", [0.25, 4.0])
def test_a_categorical_arm_with_two_values_is_a_bernoulli_arm(temperature: float) -> None:
    """A categorical arm has no exact probabilities of its own."""
    two = taught(CategoricalBandit(3, values=[0, 1]), COUNTS, temperature=temperature)
    one = taught(BernoulliBandit(3), COUNTS, temperature=temperature)
    assert_calibrated(two.belief, None, one.action_probabilities())


@pytest.mark.parametrize("name", ["Bernoulli", "learned Bernoulli", "learned Poisson", "pooled"])
def test_drawn_means_that_are_equal_as_doubles_are_compared_by_logarithms(name: str) -> None:
    """At T = 50 most drawn means are 0.0 or 1.0."""
    problem, events, x = CASES[name]
    belief = taught(problem, events, temperature=50.0).belief
    assert_calibrated(belief, x, belief.action_probabilities(x))


@pytest.mark.parametrize("name", CASES)
def test_beliefs_and_predictions_ignore_the_temperature(name: str) -> None:
    problem, events, x = CASES[name]
    plain, bold = (taught(problem, events, temperature=T).belief for T in (1.0, 4.0))
    _, a, o = events[0]
    assert bold.log_predictive(x, a, o) == plain.log_predictive(x, a, o)
    assert np.array_equal(bold.posterior(), plain.posterior())
    if hasattr(plain, "posterior_summary"):
        assert bold.posterior_summary() == plain.posterior_summary()
    if hasattr(plain, "mean_quantiles"):
        arms = bold.mean_quantiles(np.array([0.1, 0.9]), x)
        for arm, quantiles in plain.mean_quantiles(np.array([0.1, 0.9]), x).items():
            assert np.array_equal(quantiles, arms[arm])


@pytest.mark.parametrize("name", ["Bernoulli", "learned Gaussian", "learned linear", "tabular"])
def test_temperature_one_is_the_rule(name: str) -> None:
    problem, events, x = CASES[name]
    agents = [taught(problem, events, **options) for options in ({}, {"temperature": 1})]
    drawn = []
    for agent in agents:
        agent.x, rng = x, Stream(4)
        drawn.append([agent.act(rng) for _ in range(50)])
    assert drawn[0] == drawn[1]
    assert agents[0].action_probabilities() == agents[1].action_probabilities()


WORLDS: dict[str, Callable[[Any], Any]] = {
    "Bernoulli": lambda bandit: bandit.environment([0.2, 0.5, 0.6]),
    "unknown noise": lambda bandit: bandit.environment([[1, 1], [2, 1], [2.5, 1]]),
    "learned Gaussian": lambda bandit: bandit.environment([[1, 1], [2, 1], [2.5, 1]]),
    "learned Bernoulli": lambda bandit: bandit.environment([0.2, 0.5, 0.6]),
    "linear": lambda bandit: bandit.environment(np.eye(3, 2)),
    "learned linear": lambda bandit: bandit.environment(np.eye(3, 2)),
    "learned logistic": lambda bandit: bandit.environment(np.eye(3, 2)),
    "changing": lambda bandit: bandit.environment([0.2, 0.5, 0.6]),
    "tabular": lambda modes: modes.environment(0),
}


@pytest.mark.parametrize("temperature", [0.25, 4.0])
@pytest.mark.parametrize("name", WORLDS)
def test_compiled_loops_equal_the_readable_one(name: str, temperature: float) -> None:
    problem, world = CASES[name][0], WORLDS[name](CASES[name][0])
    start = (world.start,) if hasattr(world, "truth") and hasattr(world, "start") else ()

    def make() -> Any:
        return problem.agent(*start, temperature=temperature)

    has_loop = name not in ("changing", "tabular")
    assert (find_loop(make(), world) is not None) == has_loop
    check_fused(make, lambda: WORLDS[name](problem), 200)


@pytest.mark.parametrize("name", ["Bernoulli", "learned Gaussian", "learned linear", "pooled"])
def test_saved_and_copied_beliefs_keep_the_temperature(name: str) -> None:
    problem, events, x = CASES[name]
    careful = taught(problem, events, temperature=0.25).belief
    check_save(lambda: problem.agent(temperature=0.25).belief, events)
    loaded = problem.agent(temperature=0.25).belief
    loaded.load(careful.save())
    for other in (loaded, careful.copy()):
        assert other.temperature == 0.25
        assert other.action_probabilities(x) == careful.action_probabilities(x)
    with pytest.raises(IncompatibleState, match=r"temperature 0\.25, .* has temperature 1\.0"):
        problem.agent().belief.load(careful.save())


def test_finite_modes_are_drawn_by_a_power_of_their_probabilities() -> None:
    def mode(m: int, p: float) -> DiscreteMode[Any, Any, Any]:
        return DiscreteMode(lambda x: {m: 1.0}, lambda x, a: {0: p, 1: 1 - p})

    belief: Any = FiniteBelief([mode(0, 0.5), mode(1, 0.25)])
    for _ in range(2_000):
        belief.observe(None, 0, 0)  # 2^-2000 is below the smallest double
    belief.temperature = 1000.0
    p = ControlRule(belief).action_probabilities()
    assert p == pytest.approx({0: 0.8, 1: 0.2}, rel=1e-9)


def test_learned_gaussian_probabilities_are_exact_at_low_temperature(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The points for the location and for the noise suffice: many more change nothing."""
    cold = taught(GaussianBandit(3), NUMBERS[:5], temperature=0.01)
    cool = taught(GaussianBandit(3), NUMBERS, temperature=0.25)
    found = [agent.action_probabilities() for agent in (cold, cool)]
    monkeypatch.setattr(gaussian, "NEGLIGIBLE", 0.0)

    def dense(steepness: Any, w: float) -> Any:
        z = np.linspace(-8, 8, 4001)
        return z, np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()

    with monkeypatch.context() as patch:
        patch.setattr(gaussian, "location_rule", dense)
        assert cold.action_probabilities() == pytest.approx(found[0], abs=2e-7)
    monkeypatch.setattr(gaussian, "chi_rule", lambda nu, w, T: gaussian._chi_rule(nu, 60))
    assert cool.action_probabilities() == pytest.approx(found[1], abs=1e-7)


@pytest.mark.parametrize("temperature", [0.25, 4.0])
def test_models_of_an_mdp_are_tempered(temperature: float) -> None:
    """P ~ Dirichlet((α + n)/T), and the variance of R given its scales times T; false alarm 2e-6.

    R(x,a,y) of a pair without rewards has the variance S² + T², which is 5 here.
    """
    belief = DirichletMDP(2, 1, alpha=1.0).agent(temperature=temperature).belief
    for _ in range(3):
        belief.observe(0, 0, (1.0, 1))
    rng = Stream(5)
    p = np.array([belief.sample(rng).P[0, 0, 1] for _ in range(2_000)])
    assert distance(p, lambda v: special.betainc(4 / temperature, 1 / temperature, v)) < 2.69
    R = np.empty((2_000, 1, 1))
    level, spread = RewardLevels(7.0, 4.0, 1.0, 1.0), temperature**0.5
    draw_rewards(np.zeros(R.shape), R.copy(), level, R, rng.state, spread)
    assert distance(R.ravel(), lambda v: special.ndtr((v - 7.0) / spread / 5**0.5)) < 2.69


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        (GibbsMDP(2, start=0), {}),
        (LogitNormalBandit([0.0, 0.0], np.eye(2)), {}),
        (DrawsBandit(BernoulliBandit(2), [[0.2, 0.6], [0.8, 0.7]]), {}),
        (BernoulliBandit(2), {"draws": [[0.2, 0.6], [0.8, 0.7]]}),
        (LinearQuadratic(np.eye(1), np.eye(1)), {}),
    ],
    ids=["Gibbs", "particles", "draws", "bandit with draws", "linear plant"],
)
def test_draws_without_a_closed_form_have_no_temperature(problem: Any, options: Any) -> None:
    problem.agent(temperature=1, **options)
    with pytest.raises(MissingCapability, match=r"temperature=0\.5: .*use temperature=1"):
        problem.agent(temperature=0.5, **options)
    with pytest.raises(InvalidPrior, match="temperature=0: it must be in"):
        problem.agent(temperature=0, **options)


@pytest.mark.parametrize("temperature", [0, -1, float("nan"), float("inf"), 1e4, 1e-4, "hot", None])
def test_a_temperature_is_a_number_from_0001_to_1000(temperature: Any) -> None:
    for problem in (BernoulliBandit(2), LinearBandit(2, 1), BernoulliBandit(2).changing()):
        with pytest.raises(InvalidPrior, match=r"temperature=.*: it must be in"):
            problem.agent(temperature=temperature)


def test_arms_that_change_separately_need_draws_that_differ_as_doubles() -> None:
    with pytest.raises(InvalidPrior, match="times the temperature"):
        BernoulliBandit(2).changing(per_arm=True).agent(temperature=4)


def test_screening_is_off() -> None:
    assert "temperature 1, not 0.5" in BernoulliBandit(2).agent(temperature=0.5).belief.chooses


@pytest.mark.parametrize("name", ["Bernoulli", "learned linear", "changing"])
def test_durable_agents_store_it_and_log_exact_propensities(name: str) -> None:
    problem, events, x = CASES[name]
    with open_agent("sqlite:///:memory:", "shop", problem, seed=1, temperature=0.25) as agent:
        assert agent.model.settings["temperature"] == 0.25
        twin, rule = problem.agent(temperature=0.25), problem.agent()
        for _, _, o in events:
            decision = agent.act() if x is None else agent.act(x)
            agent.observe(decision.id, o)
            twin.x = x
            if name == "changing":
                twin.belief.begin()
            p = twin.action_probabilities()
            assert decision.probability == pytest.approx(p[decision.action], rel=1e-12)
            for other in (twin, rule):
                other.learn(x, decision.action, o)
    rule.x = x
    assert p != rule.action_probabilities()


def test_a_log_is_reopened_at_its_temperature(tmp_path: Any) -> None:
    url, bandit = f"sqlite:///{tmp_path}/shop.db", BernoulliBandit(["red", "blue"])
    open_agent(url, "shop", bandit, temperature=0.25).close()
    with open_agent(url, "shop") as agent:
        assert agent.model.settings["temperature"] == 0.25
    with pytest.raises(ModelMismatch, match=r"temperature: 0\.25 in the log, 1\.0 now"):
        open_agent(url, "shop", bandit)
    open_agent(url, "rule", bandit, temperature=1).close()
    open_agent(url, "rule", bandit).close()
    with pytest.raises(MissingCapability, match="use temperature=1"):
        open_agent(url, "maze", GibbsMDP(2, start=0), temperature=0.5)


def test_a_client_can_give_it() -> None:
    settings = {"arms": ["red", "blue"], "temperature": 0.5}
    model = requested_model("bernoulli-bandit", settings, {})
    assert model.driver().agent.belief.temperature == 0.5
    with pytest.raises(BadSettings, match=r"temperature='hot': it must be in \[0\.001"):
        requested_model("bernoulli-bandit", settings | {"temperature": "hot"}, {})
