"""Contextual bandits that learn their noise and prior, against independent computations."""

from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats  # type: ignore[import-untyped]

from bayescontrol import LinearBandit, LogisticBandit, SharedLinearBandit, Stream, interact
from bayescontrol._arrays import FloatArray
from bayescontrol._compiled import find_loop
from bayescontrol.bandits.contexts.regression import Logit
from bayescontrol.bandits.contexts.weights import LearnedScales
from bayescontrol.errors import IncompatibleState, InvalidPrior, InvalidTable, MissingCapability
from bayescontrol.interaction import both_streams
from bayescontrol.kernels.scales import NEGLIGIBLE
from bayescontrol.record import Probe, Record
from bayescontrol.testing import (
    check_bad_evidence,
    check_deterministic,
    check_save,
    same_bits,
)

Events = list[tuple[Any, Any, float]]


def history(
    arms: int, d: int, n: int, seed: int = 0, noise: float = 0.5, size: float = 1.0
) -> Events:
    """Rewards of random arms, with weights N(0, size²/d)."""
    rng = np.random.default_rng(seed)
    W = size * rng.normal(size=(arms, d)) / np.sqrt(d)
    events = []
    for _ in range(n):
        x, a = rng.normal(size=d), int(rng.integers(arms))
        events.append((x, a, float(W[a] @ x + noise * rng.normal())))
    return events


def trained(belief: Any, events: Events) -> Any:
    for x, a, r in events:
        belief.observe(x, a, r)
    return belief


def scales_of(X: FloatArray) -> FloatArray:
    """The largest |x_i| of all contexts, rounded up to a power of 2; 1 for features that are 0."""
    largest = np.abs(X).max(0)
    return np.where(largest > 0, 2.0 ** np.ceil(np.log2(np.where(largest > 0, largest, 1))), 1.0)


class Exact:
    """The posterior by dense linear algebra: the marginal likelihood of all rewards for each ρ.

    r = Xw + s z, w ~ N(0, ρ² s² I) for features in units of their scales, so r ~ N(0, s² C),
    C = I + ρ² K, K_ij = x_i·x_j if both rewards are of the same arm. The integral over s with ds/s
    is |C|^-½ (rᵀC⁻¹r)^(-n/2), up to a constant. P(ρ) ∝ ρ².
    """

    def __init__(self, events: Events, d: int, powers: Any = range(-3, 6)) -> None:
        X, arms, r = (np.array(part) for part in zip(*events, strict=True))
        self.c = scales_of(X)
        X = X / self.c
        self.X, self.arms, self.r, self.n = X, arms, r, len(r)
        self.rho = 2.0 ** np.array(powers) / np.sqrt(d)
        K = (X @ X.T) * (arms[:, None] == arms)
        self.C = [np.eye(self.n) + rho**2 * K for rho in self.rho]
        self.S = np.array([r @ np.linalg.solve(C, r) for C in self.C])
        log_p = [
            2 * np.log(rho) - 0.5 * np.linalg.slogdet(C)[1] - 0.5 * self.n * np.log(S)
            for rho, C, S in zip(self.rho, self.C, self.S, strict=True)
        ]
        self.p = special.softmax(log_p)

    def scores(self, x: FloatArray, arm: int) -> tuple[FloatArray, FloatArray]:
        """Mean of x·w_a, and its variance over s², for each ρ."""
        x = x / self.c
        k = (self.X @ x) * (self.arms == arm)
        means, variances = [], []
        for rho, C in zip(self.rho, self.C, strict=True):
            solved = np.linalg.solve(C, k)
            means.append(rho**2 * solved @ self.r)
            variances.append(rho**2 * (x @ x) - rho**4 * k @ solved)
        return np.array(means), np.array(variances)

    def p_best(self, x: FloatArray, arms: int) -> FloatArray:
        """P(a) by trapezoidal sums: over ln s, and over the score of arm a."""
        total = np.zeros(arms)
        scores = [self.scores(x, a) for a in range(arms)]
        u = np.linspace(-9.0, 9.0, 361)
        for h in np.flatnonzero(self.p > 1e-12):
            m, q = np.array([mean[h] for mean, _ in scores]), np.array([v[h] for _, v in scores])
            noise = stats.invgamma(0.5 * self.n, scale=0.5 * self.S[h])
            low, high = np.log(noise.ppf([1e-13, 1 - 1e-13])) / 2
            t = np.linspace(low, high, 1501)
            sd = np.exp(t)[:, None] * np.sqrt(q)
            density = noise.pdf(np.exp(2 * t)) * 2 * np.exp(2 * t)
            for a in range(arms):
                y = m[a] + sd[:, a, None] * u
                below = np.prod(
                    [special.ndtr((y - m[b]) / sd[:, b, None]) for b in range(arms) if b != a], 0
                )
                given_s = integrate.trapezoid(stats.norm.pdf(u) * below, u)
                total[a] += self.p[h] * integrate.trapezoid(density * given_s, t)
        return total


# -- the posterior -----------------------------------------------------------------------------


#: Units of five features.
UNITS = np.array([1e6, 1.0, 1e-6, 3e-3, 70.0])


@pytest.mark.parametrize(
    ("arms", "d", "n", "units"),
    [(1, 1, 3, 1.0), (3, 2, 12, 1.0), (2, 5, 40, 1.0), (2, 5, 40, UNITS), (2, 5, 300, UNITS)],
)
def test_the_posterior_equals_the_enumeration_over_all_ratios(
    arms: int, d: int, n: int, units: Any
) -> None:
    events = [(units * x, a, r) for x, a, r in history(arms, d, n, seed=n)]
    belief = trained(LinearBandit(arms, d).belief(), events)
    exact, ratios = Exact(events, d), belief.ratios()
    in_use = np.array([rho in ratios for rho in exact.rho.tolist()])
    np.testing.assert_allclose(list(ratios), exact.rho[in_use])
    assert exact.p[~in_use].sum() < 9 * NEGLIGIBLE
    p = exact.p[in_use] / exact.p[in_use].sum()
    np.testing.assert_allclose(list(ratios.values()), p, rtol=1e-10, atol=1e-12)
    x, r = units * np.linspace(-1.0, 2.0, d), 0.3
    for a in range(arms):
        m, q = (part[in_use] for part in exact.scores(x, a))
        S = exact.S[in_use]
        assert belief.expected(x)[a] == pytest.approx(p @ m, rel=1e-10, abs=1e-12)
        density = p @ stats.t(n, m, np.sqrt(S / n * (1 + q))).pdf(r)
        assert belief.log_predictive(x, a, r) == pytest.approx(np.log(density), abs=1e-10)
        score = stats.t(n, m, np.sqrt(S / n * q))
        tails = np.array([0.025, 0.5, 0.9])
        quantiles = belief.mean_quantiles(tails, x)[a]
        np.testing.assert_allclose([p @ score.cdf(y) for y in quantiles], tails, rtol=1e-9)
        if n > 2:
            mean, sd = belief.scores(x)
            variance = p @ (S / (n - 2) * q + m**2) - (p @ m) ** 2
            np.testing.assert_allclose([mean[a], sd[a] ** 2], [p @ m, variance], rtol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_action_probabilities_equal_a_nested_quadrature(n: int) -> None:
    events, x = history(3, 2, n, seed=1), np.array([1.0, -0.5])
    belief = trained(LinearBandit(3, 2).belief(), events)
    exact = Exact(events, 2)
    exact.p *= [rho in belief.ratios() for rho in exact.rho.tolist()]
    exact.p /= exact.p.sum()
    found = list(belief.action_probabilities(x).values())
    np.testing.assert_allclose(found, exact.p_best(x, 3), atol=1e-8 if n == 1 else 1e-10)
    belief.retire(2)  # two arms have a closed form
    found = list(belief.action_probabilities(x).values())
    np.testing.assert_allclose(found, exact.p_best(x, 2), atol=1e-8 if n == 1 else 1e-10)


def test_action_probabilities_are_the_frequencies_of_actions_and_of_modes() -> None:
    """Two times 20,000 draws over 4 arms, |z| ≤ 4.5: false alarms 6e-5."""
    n, x = 20_000, np.array([1.0, -0.5])
    belief = trained(LinearBandit(4, 2).belief(), history(4, 2, 10, seed=2))
    p = np.array(list(belief.action_probabilities(x).values()))
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    rng = Stream(3)
    of_scores = [belief.draw_action(x, rng) for _ in range(n)]
    of_modes = [belief.sample(rng).act(x, rng) for _ in range(n)]
    for draws in (of_scores, of_modes):
        counts = np.bincount(draws, minlength=4)
        assert np.abs((counts - n * p) / np.sqrt(n * p * (1 - p))).max() <= 4.5


def test_action_probabilities_are_calibrated() -> None:
    """In worlds drawn from the prior, P(a) is the chance that a is the best arm.

    4,000 pairs in ten groups, |z| ≤ 4: false alarms 6e-4.
    """
    bandit = LinearBandit(3, 2)
    found: list[float] = []
    best: list[bool] = []
    for run in range(4000 // 3 + 1):
        noise = 10.0 ** np.random.default_rng(run).uniform(-3, 3)
        world, rng = bandit.draw(run, sd=noise), np.random.default_rng(10_000 + run)
        belief = bandit.belief()
        for _ in range(6):  # features of scale 1
            x, a = rng.uniform(0.6, 1.0, 2) * rng.choice([-1, 1], 2), int(rng.integers(3))
            belief.observe(x, a, float(world.means(x)[a] + noise * rng.normal()))
        x = rng.normal(size=2)
        found += belief.action_probabilities(x).values()
        best += (np.arange(3) == world.means(x).argmax()).tolist()
    p, is_best = np.array(found), np.array(best)
    for part in np.array_split(np.argsort(p), 10):
        expected, variance = p[part].sum(), (p[part] * (1 - p[part])).sum()
        assert abs(is_best[part].sum() - expected) <= 4 * np.sqrt(variance)


def test_before_a_reward_other_than_zero_arms_are_drawn_uniformly() -> None:
    """300 draws each: one of three arms is missed with probability 1e-52."""
    belief: Any = LinearBandit(3, 2).belief()
    rng, x = Stream(0), np.array([1.0, -0.5])
    for _ in range(2):
        assert list(belief.action_probabilities(x).values()) == [1 / 3] * 3
        assert {belief.draw_action(x, rng) for _ in range(300)} == {0, 1, 2}
        assert {belief.sample(rng).act(x, rng) for _ in range(300)} == {0, 1, 2}
        assert belief.log_predictive(x, 0, 5.0) == 0.0
        assert belief.scales() == {}
        belief.observe(x, 0, 0.0)
    belief.observe(x, 0, 2.0)
    assert belief.scales()["noise"] > 0.0
    # A context of zeros says nothing about the arms.
    assert list(belief.action_probabilities([0.0, 0.0]).values()) == [1 / 3] * 3


# -- invariance, order, merging ----------------------------------------------------------------


@pytest.mark.parametrize("factor", [2.0**-20, 2.0**17, 1e-6, 3.7e-3, 1e6])
def test_the_unit_of_rewards_does_not_matter(factor: float) -> None:
    exponent = np.log2(factor)
    exact, x = exponent == int(exponent), np.array([1.0, -0.5, 0.3])
    events = history(3, 3, 300, seed=5)
    plain = trained(LinearBandit(3, 3).belief(), events)
    scaled = trained(LinearBandit(3, 3).belief(), [(x, a, factor * r) for x, a, r in events])
    p, q = plain.action_probabilities(x), scaled.action_probabilities(x)
    assert p == q if exact else p == pytest.approx(q, abs=1e-6)
    if exact:
        one, two = Stream(0), Stream(0)
        for _ in range(50):
            assert plain.draw_action(x, one) == scaled.draw_action(x, two)
    assert scaled.scales()["noise"] == pytest.approx(factor * plain.scales()["noise"], rel=1e-6)


@pytest.mark.parametrize("kind", [LinearBandit, LogisticBandit])
def test_multiplying_features_by_powers_of_two_changes_no_decision(kind: Any) -> None:
    """From the first learned context with a feature on: until then its scale counts as 1.

    The third feature is 0 in the first 60 contexts, so that a logistic bandit learns it late.
    """
    units, rng = 2.0 ** np.array([20, -17, 3, 0]), np.random.default_rng(1)
    plain, scaled = kind(3, 4).agent(), kind(3, 4).agent()
    for t in range(150):
        x = rng.standard_t(3, 4) * [1, 1, t >= 60, 1]
        a = 0
        if t not in (0, 60):
            a = plain.decide(x, Stream(t))[1]
            assert scaled.decide(units * x, Stream(t))[1] == a
        r = float(x[a] > 0)
        plain.learn(x, a, r)
        scaled.learn(units * x, a, r)
    p, q = plain.belief.action_probabilities(x), scaled.belief.action_probabilities(units * x)
    assert p == q
    c, largest = plain.belief.save()["feature_scales"], scaled.belief.save()["feature_scales"]
    np.testing.assert_array_equal(units * c, largest)


def test_the_scales_of_a_logistic_bandit_are_frozen_after_50_contexts() -> None:
    """Until then the posterior is that of an agent that has known the scales from the start."""
    rng = np.random.default_rng(2)
    events: Events = [
        (t * rng.normal(size=2), int(rng.integers(2)), int(rng.integers(2))) for t in range(90)
    ]
    c = scales_of(np.array([x for x, _, _ in events[:50]]))
    learned = trained(LogisticBandit(2, 2).belief(), events)
    np.testing.assert_array_equal(learned.save()["feature_scales"], c)
    known = LearnedScales(Logit(), 2, 2, np.ones(2, bool))
    for x, a, r in events:
        known.learn(a, x / c, r)
    assert learned.ratios() == known.ratios()
    np.testing.assert_array_equal(c * learned.mean(0), known.mean(0))


@pytest.mark.parametrize(("n", "error"), [(30, 1e-11), (400, 1e-5)])
def test_late_feedback_is_as_good_as_feedback_in_time(n: int, error: float) -> None:
    """With 400 rewards ratios are dropped, at times that depend on the order."""
    units = np.array([1e6, 1.0, 1e-6])
    events = [(units * x, a, r) for x, a, r in history(3, 3, n, seed=6)]
    x = units * np.array([1.0, -0.5, 0.3])
    order = np.random.default_rng(0).permutation(len(events))
    in_time = trained(LinearBandit(3, 3).belief(), events)
    late = trained(LinearBandit(3, 3).belief(), [events[i] for i in order])
    assert late.action_probabilities(x) == pytest.approx(in_time.action_probabilities(x), abs=error)
    np.testing.assert_allclose(units * late.mean(0), units * in_time.mean(0), atol=error)


def test_the_laws_of_beliefs_hold() -> None:
    def make() -> Any:
        return LinearBandit(3, 2).belief()

    def make_logistic() -> Any:
        return LogisticBandit(3, 2).belief()

    events = history(3, 2, 40)
    bad: list[Any] = [([1.0], 0, 1.0), ([1.0, np.nan], 0, 1.0), ([1.0, 2.0], 7, 1.0)]
    bad += [([1.0, 2.0], 0, 1e300), ([1.0, 2.0], 0, None)]
    for kind, rewards in (
        (make, events),
        (make_logistic, [(x, a, int(r > 0)) for x, a, r in events]),
    ):
        check_deterministic(kind, rewards)
        check_save(kind, rewards)
        check_bad_evidence(kind, rewards, bad)
    with pytest.raises(IncompatibleState, match="depends on earlier rewards"):
        make_logistic().merge(make_logistic())


def test_merged_evidence_equals_one_belief_that_saw_all() -> None:
    """The first belief met the features in smaller units, and one of them not at all."""
    units, x = np.array([1e-3, 0.0, 1e-6]), np.array([1.0, -0.5, 0.3])
    events = [
        (x * units if t % 2 == 0 else x, a, r) for t, (x, a, r) in enumerate(history(2, 3, 90))
    ]
    one, two = (trained(LinearBandit(2, 3).belief(), events[k::2]) for k in range(2))
    saved = two.save()
    one.merge(two)
    exact = Exact(events, 3)
    for rho, p in one.ratios().items():
        assert p == pytest.approx(exact.p[np.argmin(abs(exact.rho - rho))], abs=1e-5)
    together = trained(LinearBandit(2, 3).belief(), events)
    assert one.action_probabilities(x) == pytest.approx(together.action_probabilities(x), abs=1e-5)
    assert one.pulls == together.pulls
    assert same_bits(saved, two.save())
    empty = LinearBandit(2, 3).belief()
    empty.merge(LinearBandit(2, 3).belief())
    assert empty.count == 0
    empty.merge(two)
    assert empty.action_probabilities(x) == pytest.approx(two.action_probabilities(x), abs=1e-5)
    for other in (LinearBandit(2, 3, sd=1, prior=(0, 1)), LinearBandit(2, 2), LogisticBandit(2, 3)):
        with pytest.raises(IncompatibleState):
            one.merge(other.belief())


def test_a_dropped_ratio_returns_when_the_rewards_ask_for_it() -> None:
    """First the rewards are pure noise, so that large ratios are dropped; then they are not."""
    noise = history(2, 4, 1000, seed=9, size=0.0)
    belief = trained(LinearBandit(2, 4).belief(), noise)
    before = max(belief.ratios())
    assert before < 4.0
    signal = history(2, 4, 1000, seed=10, size=8.0)
    belief = trained(belief, signal)
    assert max(belief.ratios()) > 2.0 * before
    exact = Exact(noise + signal, 4)
    for rho, p in belief.ratios().items():
        assert p == pytest.approx(exact.p[np.argmin(abs(exact.rho - rho))], abs=1e-5)


# -- arms, worlds, loops -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [LinearBandit, LogisticBandit])
@pytest.mark.parametrize("steps", [1, 2, 700])
def test_the_compiled_loop_equals_the_readable_one(kind: Any, steps: int) -> None:
    """700 steps of 3 arms with 4 features pass several checks of dropped ratios."""
    bandit, ends = kind(["red", "blue", "green"], 4), []
    for compiled in (True, False):
        agent, world = bandit.agent([1.0, 2.0, 0.0, -1.0]), bandit.draw(3)
        agent.belief.retire("blue")
        p, q = both_streams(5, 0)
        if compiled:
            loop = find_loop(agent, world)
            assert loop is not None
            record = loop(agent, world, steps, p, q)
        else:
            read = interact(
                agent, world, steps, streams=(p, q), probes={"looked": Probe(lambda *_: True)}
            )
            record = Record(read.actions, read.observations)
        ends.append((record, agent.save(), agent.act(p)))
    (fused, state, then), (readable, other, later) = ends
    assert fused == readable
    assert same_bits(state, other)
    assert then == later


def test_arms_are_added_retired_and_restored() -> None:
    belief = trained(LinearBandit(["red", "blue"], 2).belief(), [([1.0, 0.0], "red", 2.0)])
    belief.add("green")
    with pytest.raises(InvalidPrior, match="learned prior; omit `prior`"):
        belief.add("white", prior=(0.0, 1.0))
    assert belief.labels == ("red", "blue", "green")
    np.testing.assert_array_equal(belief.mean("green"), [0.0, 0.0])
    belief.retire("red")
    assert "red" not in {belief.draw_action([1.0, 1.0], Stream(k)) for k in range(50)}
    belief.observe([0.0, 1.0], "red", 4.0)
    belief.restore("red")
    resumed = LinearBandit(7, 2).belief()
    resumed.load(belief.save())
    assert same_bits(resumed.save(), belief.save())
    resumed.observe([0.0, 1.0], "green", 1.0)
    belief.observe([0.0, 1.0], "green", 1.0)
    assert same_bits(resumed.save(), belief.save())


def test_a_damaged_state_is_refused_and_changes_nothing() -> None:
    belief = trained(LinearBandit(2, 2).belief(), history(2, 2, 5))
    good = belief.save()
    zero = np.zeros(len(good["residuals"]))
    damages: list[Any] = [
        LinearBandit(2, 2, sd=1, prior=(0, 1)).belief().save(),
        LogisticBandit(2, 2).belief().save(),
        good | {"factor": -good["factor"]},
        good | {"target": good["target"][:, :1]},
        good | {"residuals": zero - 1.0},
        good | {"ratio_probabilities": zero},
        good | {"ratio_probabilities": zero - 1.0},
        good | {"ratios": zero},
        good | {"rewards": np.array([-1, 5])},
        good | {"feature_scales": 0.0 * good["feature_scales"]},
    ]
    for damage in damages:
        with pytest.raises(IncompatibleState):
            belief.load(damage)
        assert same_bits(good, belief.save())
    logistic = LogisticBandit(2, 2).belief()
    with pytest.raises(IncompatibleState, match="of the arms"):
        logistic.load(logistic.save() | {"events": np.full((50, 4), 2.0)})


def test_worlds_have_a_noise_of_their_own() -> None:
    bandit = LinearBandit(2, 2)
    assert bandit.environment(np.eye(2)).link.sd == 1.0
    assert bandit.environment(np.eye(2), sd=0.1).link.sd == 0.1
    drawn = bandit.draw(1, sd=1e-3)
    assert drawn.link.sd == 1e-3
    np.testing.assert_allclose(drawn.truth, 1e-3 * bandit.draw(1).truth)
    assert LinearBandit(2, 2, sd=0.3, prior=(0, 1)).environment(np.eye(2)).link.sd == 0.3
    with pytest.raises(InvalidTable, match="have no noise"):
        LogisticBandit(2, 2).environment(np.eye(2), sd=0.1)


def test_both_scales_are_given_or_both_are_learned() -> None:
    settings: Any
    for settings in ({"sd": 0.5}, {"prior": (0, 1)}):
        with pytest.raises(InvalidPrior, match="give both"):
            LinearBandit(2, 2, **settings)
        with pytest.raises(InvalidPrior, match="give both"):
            SharedLinearBandit(2, lambda x, a: [x], 1, **settings)
    wrong: Any
    for wrong in ("Learned", "unknown"):
        with pytest.raises(InvalidPrior):
            LinearBandit(2, 2, sd=wrong)
        with pytest.raises(InvalidPrior):
            LogisticBandit(2, 2, prior=wrong)
    with pytest.raises(MissingCapability, match="given noise and prior"):
        LinearBandit(2, 2, sd=1, prior=(0, 1)).belief().scales()


def test_repr_shows_the_learned_scales() -> None:
    belief = trained(LinearBandit(2, 2).belief(), history(2, 2, 400, noise=0.5))
    assert ", noise 0.497" in repr(belief)
    assert ", weights " in repr(belief)
    assert "noise" not in repr(LinearBandit(2, 2).belief()).lower().replace("gaussiannoise", "")


# -- shared weights and rewards 0 and 1 ----------------------------------------------------------


def test_shared_weights_learn_their_scales() -> None:
    """One weight vector: the exact posterior is that of one arm, whose context is φ(x, a)."""

    def phi(x: float, a: int) -> list[float]:
        return [1.0, x * a]

    bandit = SharedLinearBandit([1, 2], phi, 2)
    belief, rng, rows = bandit.belief(), np.random.default_rng(0), []
    for _ in range(12):
        x, a = rng.normal(), int(rng.integers(1, 3))
        r = float(0.3 + 0.7 * x * a + 0.2 * rng.normal())
        belief.observe(x, a, r)
        rows.append((np.array(phi(x, a)), 0, r))
    exact = Exact(rows, 2)
    for rho, p in belief.ratios().items():
        assert p == pytest.approx(exact.p[np.argmin(abs(exact.rho - rho))], abs=1e-5)
    m, q = exact.scores(np.array([0.0, -0.1]), 0)
    t = stats.t(12).cdf(m / np.sqrt(exact.S / 12 * q))
    assert belief.action_probabilities(0.1)[1] == pytest.approx(exact.p @ t, abs=1e-5)
    assert belief.copy().save().keys() == belief.save().keys()


def test_the_ratios_of_a_logistic_bandit_are_close_to_the_exact_ones() -> None:
    """One weight, 60 rewards: exact evidence by quadrature over the weight. Off by 0.07 at most."""
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=60), 1.5
    r = (rng.random(60) < special.expit(w * x)).astype(int)
    belief = LogisticBandit(1, 1).belief()
    for c, o in zip(x, r, strict=True):
        belief.observe([c], 0, int(o))
    grid = np.linspace(-60, 60, 4001)
    logs = special.log_expit(np.outer(np.where(r == 1, 1, -1) * x, grid)).sum(0)
    likelihood = np.exp(logs - logs.max())
    ratios = belief.ratios()
    sds = np.array(list(ratios)) / scales_of(x[:50, None])  # frozen after 50 contexts
    evidence = np.array([
        integrate.trapezoid(likelihood * stats.norm(0, s).pdf(grid), grid)
        for s in sds
    ])  # fmt: skip
    np.testing.assert_allclose(list(ratios.values()), evidence / evidence.sum(), atol=0.1)
    assert set(belief.scales()) == {"weights"}
    p = belief.predictive([1.0], 0)
    assert sum(p.values()) == pytest.approx(1.0)
    assert belief.log_predictive([1.0], 0, 1) == pytest.approx(np.log(p[1]))
    assert belief.expected([1.0])[0] == pytest.approx(p[1])
