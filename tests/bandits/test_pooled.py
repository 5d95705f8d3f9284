"""Pooled bandits: exact answers by enumeration, calibration, laws.

Stochastic tests fix their seed; over seeds each raises a false alarm with the rate it states.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats  # type: ignore[import-untyped]

from bayescontrol import (
    BernoulliBandit,
    CategoricalBandit,
    ExponentialBandit,
    GaussianBandit,
    PoissonBandit,
)
from bayescontrol.bandits import PooledBelief
from bayescontrol.errors import (
    BadSituation,
    IncompatibleState,
    InvalidPrior,
    MissingCapability,
    UnknownArm,
)
from bayescontrol.schedules import Every
from bayescontrol.seeding import Stream
from bayescontrol.testing import (
    check_acting,
    check_bad_evidence,
    check_deterministic,
    check_merge,
    check_order,
    check_resume,
    check_same_seed,
    check_save,
    same_bits,
)

ARMS = ["red", "blue"]
SEGMENTS = ["de", "fr", ("it", 3)]
BANDITS = {
    "bernoulli": BernoulliBandit(ARMS),
    "poisson": PoissonBandit(ARMS),
    "gaussian": GaussianBandit(ARMS),
}
TRUTH: dict[str, Any] = {
    "bernoulli": [0.4, 0.6],
    "poisson": [2.0, 3.0],
    "gaussian": [[5.0, 1.0], [6.0, 1.0]],
}


def events(name: str, steps: int = 40, seed: int = 0) -> list[Any]:
    """Return rewards of all arms in all segments; segments differ by what they pay."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(steps):
        s, a = int(rng.integers(3)), int(rng.integers(2))
        match name:
            case "bernoulli":
                o = float(rng.random() < 0.2 + 0.2 * s + 0.1 * a)
            case "poisson":
                o = float(rng.poisson(2 + s + a))
            case _:
                o = float(rng.normal(50 + 5 * s + a, 3.0))
        found.append((SEGMENTS[s], ARMS[a], o))
    return found


def learned(name: str, given: list[Any]) -> PooledBelief:
    belief = BANDITS[name].pooled().belief()
    for event in given:
        belief.observe(*event)
    return belief


@pytest.fixture(params=list(BANDITS))
def name(request: pytest.FixtureRequest) -> Any:
    return request.param


# -- exact answers ---------------------------------------------------------------------------------


def bernoulli_posterior(given: list[Any], arm: str, x: Any) -> tuple[Any, Any, Any]:
    """Return P(h | past) of an arm, and α and β in segment x for every h, from the rewards."""
    belief = BANDITS["bernoulli"].pooled().belief()
    a, b = belief.family.grid.T
    log_w = np.zeros(len(a))
    ones, zeros = 0, 0
    for segment in SEGMENTS:
        paid = [o for s, k, o in given if s == segment and k == arm]
        r, f = int(sum(paid)), len(paid) - int(sum(paid))
        log_w += special.betaln(a + r, b + f) - special.betaln(a, b)
        if segment == x:
            ones, zeros = r, f
    w = np.exp(log_w - log_w.max())
    return w / w.sum(), a + ones, b + zeros


@pytest.mark.parametrize("x", ["fr", "new"])
def test_a_bernoulli_arm_in_a_segment_is_a_mixture_over_the_grid(x: str) -> None:
    given = events("bernoulli")
    belief = learned("bernoulli", given)
    for arm in ARMS:
        w, a, b = bernoulli_posterior(given, arm, x)
        mean = float(w @ (a / (a + b)))
        assert belief.expected(x)[arm] == pytest.approx(mean, rel=1e-10)
        assert math.exp(belief.log_predictive(x, arm, 1)) == pytest.approx(mean, rel=1e-10)
        assert belief.predictive(x, arm)[0] == pytest.approx(1 - mean, rel=1e-10)
        (median,) = belief.mean_quantiles(np.array([0.5]), x)[arm]
        assert w @ stats.beta.cdf(median, a, b) == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize("x", ["fr", "new"])
def test_action_probabilities_equal_the_integral_over_mixtures(x: str) -> None:
    given = events("bernoulli")
    (w0, a0, b0), (w1, a1, b1) = (bernoulli_posterior(given, arm, x) for arm in ARMS)

    def integrand(m: float) -> float:
        return float((w0 @ stats.beta.pdf(m, a0, b0)) * (w1 @ stats.beta.cdf(m, a1, b1)))

    exact = integrate.quad(integrand, 0, 1, epsabs=1e-12, limit=300)[0]
    found = learned("bernoulli", given).action_probabilities(x)["red"]
    assert found == pytest.approx(exact, abs=1e-8)


def test_the_segments_of_one_arm_are_the_arms_of_a_learned_bandit() -> None:
    """`test_learned` compares that bandit with quadrature."""
    given = events("gaussian")
    belief, other = learned("gaussian", given), GaussianBandit([*SEGMENTS, "new"]).belief()
    for x, a, o in given:
        if a == "red":
            other.observe(None, x, o)
    for x in (*SEGMENTS, "new"):
        assert belief.expected(x)["red"] == pytest.approx(other.expected()[x], rel=1e-12)
        exact = other.log_predictive(None, x, 55.0)
        assert belief.log_predictive(x, "red", 55.0) == pytest.approx(exact, abs=1e-9)


def test_actions_have_their_probabilities(name: str) -> None:
    """20,000 draws each by `draw_action` and by modes; |z| ≤ 4.5 (7e-6 each)."""
    belief, draws = learned(name, events(name, 25)), 20_000
    for x in ("de", "new"):
        p = belief.action_probabilities(x)["red"]
        assert 0.001 < p < 0.999
        limit = 4.5 * math.sqrt(draws * p * (1 - p))
        rng = Stream(1)
        actions = [belief.draw_action(x, rng) for _ in range(draws)]
        assert abs(actions.count("red") - draws * p) < limit
        actions = [belief.sample(rng).act(x, rng) for _ in range(draws)]
        assert abs(actions.count("red") - draws * p) < limit


def test_a_new_segment_starts_from_what_the_others_taught() -> None:
    belief = learned("bernoulli", [])
    for x in range(20):
        for _ in range(30):
            belief.observe(x, "red", 1)
            belief.observe(x, "blue", 0)
    assert belief.action_probabilities("new")["red"] > 0.99
    assert belief.segments == tuple(range(20))


def test_gaussian_arms_are_tried_until_two_of_their_rewards_differ() -> None:
    belief, rng = learned("gaussian", []), Stream(0)
    assert belief.action_probabilities("de") == {"red": 0.5, "blue": 0.5}
    assert {belief.draw_action("de", rng) for _ in range(50)} == set(ARMS)
    for o in (1.0, 2.0):
        belief.observe("de", "red", o)
    assert belief.action_probabilities("fr") == {"red": 0.0, "blue": 1.0}
    assert {belief.draw_action("fr", rng) for _ in range(50)} == {"blue"}
    assert {belief.sample(rng).act("fr", rng) for _ in range(50)} == {"blue"}
    assert math.isnan(belief.expected("fr")["blue"])


# -- laws ------------------------------------------------------------------------------------------


def test_the_laws_of_conditioning_hold(name: str) -> None:
    make, given = BANDITS[name].pooled().belief, events(name)
    check_deterministic(make, given)
    check_save(make, given)
    check_order(make, given)
    check_merge(make, given)
    invalid: list[Any] = [math.nan, math.inf, None, "1", [], 1e200]
    bad: list[Any] = [("de", "red", o) for o in invalid]
    bad += [("de", "nobody", 1.0), (None, "red", 1.0), ([], "red", 1.0)]
    check_bad_evidence(make, given, bad)


def test_the_laws_of_acting_hold(name: str) -> None:
    pooled = BANDITS[name].pooled()

    def world() -> Any:
        return pooled.environment(TRUTH[name])

    for schedule in ({}, {"schedule": Every(3)}):

        def make(schedule: Any = schedule) -> Any:
            return pooled.agent(start="de", **schedule)

        check_resume(make, world, 20, at=8)
        check_same_seed(make, world)
        check_acting(make, world)


def test_late_rewards_give_the_same_belief(name: str) -> None:
    given = events(name)
    late = sorted(given, key=lambda event: (str(event[0]), str(event[1])))
    one, other = learned(name, given), learned(name, late)
    for x in (*SEGMENTS, "new"):
        for arm, p in one.action_probabilities(x).items():
            assert other.action_probabilities(x)[arm] == pytest.approx(p, abs=1e-12)


def test_arms_can_be_added_and_retired(name: str) -> None:
    belief = learned(name, events(name))
    before = belief.expected("de")
    belief.add("green")
    assert belief.expected("de")["red"] == before["red"]
    belief.retire("red")
    assert set(belief.action_probabilities("de")) == {"blue", "green"}
    belief.observe("de", "red", 1)
    assert belief.pulls["red"] > 0
    with pytest.raises(InvalidPrior, match="learned"):
        belief.add("other", prior=(1, 1))


def test_damaged_and_foreign_states_are_refused(name: str) -> None:
    belief = learned(name, events(name))
    good, statistics = belief.save(), belief.save()["statistics"]
    bad: list[dict[str, Any]] = [
        {**good, "statistics": -np.abs(statistics) - 1.0},
        {**good, "statistics": statistics[:, :2]},
        {**good, "statistics": statistics[:1]},
        {**good, "statistics": statistics + 1.0},
        {**good, "drawn": np.ones((9, 2))},
        {**good, "segments": np.array("5")},
    ]
    for arrays in bad:
        with pytest.raises(IncompatibleState):
            belief.load(arrays)
        assert same_bits(good, belief.save())
    strangers: list[Any] = [3, BernoulliBandit(2).pooled().belief(), BernoulliBandit(2).belief()]
    for stranger in strangers:
        with pytest.raises(IncompatibleState):
            belief.merge(stranger)
        assert same_bits(good, belief.save())


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: BernoulliBandit(2, prior=(1, 1)).pooled(), MissingCapability, "without a prior"),
    (lambda: ExponentialBandit(2).pooled(), MissingCapability, "cannot be pooled"),
    (lambda: CategoricalBandit(2, [0, 1]).pooled(), MissingCapability, "cannot be pooled"),
    (lambda: GaussianBandit(2, sd=1, prior=(0, 1)).pooled(), MissingCapability, "without a prior"),
    (lambda: BernoulliBandit(2).pooled().changing(), MissingCapability, "cannot be changing"),
    (lambda: BernoulliBandit(2).changing().pooled(), MissingCapability, "cannot be pooled"),
    (
        lambda: PoissonBandit(2).pooled().belief().predictive("x", 0),
        MissingCapability,
        "infinitely",
    ),
    (lambda: BernoulliBandit(2).pooled().agent().act(Stream(0)), BadSituation, "no segment"),
    (lambda: BernoulliBandit(2).pooled().belief().expected([]), BadSituation, "a number, a text"),
    (lambda: BernoulliBandit(2).pooled().belief().expected(math.nan), BadSituation, "nan"),
    (lambda: BernoulliBandit(2).pooled().belief().observe("x", 7, 1), UnknownArm, "7"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_what_cannot_be_pooled_is_refused(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
