"""Changing bandits that learn their scale, compared with all change histories and all h."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats  # type: ignore[import-untyped]

from bayescontrol import (
    BernoulliBandit,
    ExponentialBandit,
    GaussianBandit,
    LinearBandit,
    LogisticBandit,
    PoissonBandit,
    Stream,
)
from bayescontrol.bandits import changing_learned
from bayescontrol.beliefs import ChangePointBelief
from bayescontrol.durable import open_agent
from bayescontrol.errors import (
    BadEvidence,
    IncompatibleState,
    InvalidPrior,
    MissingCapability,
    TooLate,
    UnknownArm,
)
from bayescontrol.protocols import MISSING
from bayescontrol.testing import (
    check_bad_evidence,
    check_deterministic,
    check_resume,
    check_same_seed,
    check_save,
    same_bits,
)

ARMS = ["red", "blue"]
HAZARDS, STEPS = [0.3, 0.05], 5
GAUSSIAN, COIN = GaussianBandit(ARMS), BernoulliBandit(ARMS, prior="learned")
LINEAR, LOGISTIC = LinearBandit(ARMS, features=2), LogisticBandit(ARMS, features=2)
PROBLEMS: dict[str, Any] = {
    "gaussian": GAUSSIAN, "coin": COIN, "linear": LINEAR, "logistic": LOGISTIC,
    "poisson": PoissonBandit(ARMS, prior="learned"),
    "exponential": ExponentialBandit(ARMS, prior="learned"),
}  # fmt: skip


def happened(problem: Any, steps: int = STEPS, seed: int = 4) -> list[tuple[Any, Any, Any]]:
    """Return random events with rewards of an unusual size; one of them is the same twice."""
    rng = np.random.default_rng(seed)
    x = (lambda: rng.normal(size=2)) if hasattr(problem, "features") else lambda: None
    rewards: dict[str, Any] = {
        "GaussianBandit": lambda: 5000.0 + 300.0 * rng.normal(),
        "LinearBandit": lambda: 300.0 * rng.normal(),
        "PoissonBandit": lambda: int(rng.poisson(9)),
        "ExponentialBandit": lambda: 50.0 * rng.exponential(),
    }
    reward = rewards.get(type(problem).__name__, lambda: int(rng.integers(2)))
    return [(x(), ARMS[rng.integers(2)], reward()) for _ in range(steps)]


def after(belief: Any, events: Any) -> Any:
    for event in events:
        belief.observe(*event)
    return belief


# -- independent enumeration -----------------------------------------------------------------------


class NormalArm:
    """Rewards x·w + noise in closed form: covariances of all rewards of a segment."""

    def __init__(self, problem: Any, scales: Any) -> None:
        self.mean, self.noise = scales.get("location", 0.0), scales["noise"]
        self.features = getattr(problem, "features", 1)
        self.sd = scales["spread" if "spread" in scales else "weights"]

    def posterior(self, seen: Any, x: Any) -> tuple[float, float]:
        """Return the mean and the variance of the mean reward in context x."""
        X = np.array([np.ones(1) if v is None else v for v, _ in seen]).reshape(-1, self.features)
        x = np.ones(1) if x is None else x
        K = X @ X.T * self.sd**2 + np.eye(len(X)) * self.noise**2
        k = X @ x * self.sd**2
        r = np.array([r for _, r in seen]) - self.mean
        gain = np.linalg.solve(K, k) if len(X) else np.zeros(0)
        return self.mean + float(gain @ r), float(x @ x * self.sd**2 - gain @ k)

    def density(self, seen: Any, x: Any, r: float) -> float:
        mean, variance = self.posterior(seen, x)
        return float(stats.norm.pdf(r, mean, math.sqrt(variance + self.noise**2)))

    def p_red(self, red: Any, blue: Any, x: Any) -> float:
        (m, v), (n, u) = self.posterior(red, x), self.posterior(blue, x)
        return float(stats.norm.cdf((m - n) / math.sqrt(v + u)))


class CoinArm:
    def __init__(self, problem: Any, scales: Any) -> None:
        mean, n = scales["prior mean"], scales["strength"]
        self.a, self.b = mean * n, n - mean * n

    def row(self, seen: Any) -> tuple[float, float]:
        ones = sum(r for _, r in seen)
        return self.a + ones, self.b + len(seen) - ones

    def density(self, seen: Any, x: Any, r: float) -> float:
        a, b = self.row(seen)
        return (a if r else b) / (a + b)

    def p_red(self, red: Any, blue: Any, x: Any) -> float:
        (a, b), (c, d) = self.row(red), self.row(blue)
        node, w = special.roots_legendre(400)
        angle = (node + 1.0) * math.pi / 4.0  # m = sin² removes the singularities at 0 and 1
        m, slope = np.sin(angle) ** 2, np.sin(2.0 * angle) * math.pi / 4.0
        return float(w @ (stats.beta.pdf(m, a, b) * stats.beta.cdf(m, c, d) * slope))


def histories(arm: Any, events: Any, arms: list[str]) -> dict[int, float]:
    """Return P(rewards of these arms, last change) by the first step of the last segment."""
    found: dict[int, float] = {}
    for h, changes in itertools.product(HAZARDS, itertools.product((0, 1), repeat=len(events))):
        p, start = 1.0 / len(HAZARDS), 0
        for t, (x, a, r) in enumerate(events):
            if a in arms:
                p *= arm.density([(v, q) for v, b, q in events[start:t] if b == a], x, r)
            p *= h if changes[t] else 1.0 - h
            start = t + 1 if changes[t] else start
        found[start] = found.get(start, 0.0) + p
    return found


@pytest.mark.parametrize("per_arm", [False, True])
@pytest.mark.parametrize("name", ["gaussian", "coin", "linear"])
def test_the_belief_equals_an_enumeration_of_all_changes_and_scales(
    name: str, per_arm: bool
) -> None:
    """P(h | past), the prediction of a reward, and P(a)."""
    problem: Any = PROBLEMS[name]
    events = happened(problem)
    belief = after(problem.changing(per_arm=per_arm, hazards=HAZARDS).belief(), events)
    x, r = (None, 1) if name == "coin" else (events[0][0], events[1][2])
    location, unit = problem.find_unit([r for _, _, r in events])
    evidence, density, p_red = [], [], []
    for given in problem.given_each(location / unit):
        scales = {n: v if name == "coin" else v * unit for n, v in given.scales.items()}
        arm: Any = (CoinArm if name == "coin" else NormalArm)(problem, scales)
        groups = [["red"], ["blue"]] if per_arm else [ARMS]
        by_start = [histories(arm, events, group) for group in groups]
        total, predicted, red_best = 0.0, 0.0, 0.0
        for starts in itertools.product(*by_start):
            p = math.prod(found[s] for found, s in zip(by_start, starts, strict=True))
            seen = {
                a: [(v, q) for v, b, q in events[starts[-1 if a == "blue" else 0] :] if b == a]
                for a in ARMS
            }
            total += p
            predicted += p * arm.density(seen["red"], x, r)
            red_best += p * arm.p_red(seen["red"], seen["blue"], x)
        evidence.append(total)
        density.append(predicted)
        p_red.append(red_best)
    w = np.array(evidence) / sum(evidence)
    np.testing.assert_allclose(list(belief.hyperparameters().values()), w, rtol=0, atol=1e-10)
    log_density = math.log(sum(density) / sum(evidence))
    assert belief.log_predictive(x, "red", r) == pytest.approx(log_density, abs=1e-10)
    p = sum(p_red) / sum(evidence)
    assert belief.action_probabilities(x) == pytest.approx({"red": p, "blue": 1 - p}, abs=1e-10)


def test_logistic_scales_are_weighted_by_the_evidence_of_their_filters() -> None:
    events = happened(LOGISTIC, 30)
    belief, logs = after(LOGISTIC.changing().belief(), events), []
    for v in LOGISTIC.belief().ratios():
        fixed, log = LogisticBandit(ARMS, 2, prior=(0, 1 / v**2)).changing().belief(), 0.0
        for event in events:
            log += fixed.log_predictive(*event)
            fixed.observe(*event)
        logs.append(log)
    w = np.exp(logs) / np.exp(logs).sum()
    assert list(belief.hyperparameters().values()) == pytest.approx(w.tolist(), abs=1e-10)


# -- late answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("per_arm", [False, True])
@pytest.mark.parametrize("name", ["gaussian", "coin", "linear"])
def test_late_answers_give_the_belief_of_answers_in_time(name: str, per_arm: bool) -> None:
    """Also of the first decisions, which give the unit; decisions 1 and 25 have no answer."""
    problem: Any = PROBLEMS[name]
    events = happened(problem, 60)
    changing = problem.changing(window=10, per_arm=per_arm, starts=6)
    in_time, late = changing.belief(), changing.belief()
    order = np.random.default_rng(1).permutation(10).tolist()
    for first in range(0, 60, 10):
        for n in range(first, first + 10):
            event = events[n]
            in_time.begin()
            in_time.skip(*event[:2]) if n in (1, 25) else in_time.observe(*event)
            late.begin()
        for n in (first + i for i in order):
            x, a, o = events[n]
            late.answer(n, x, a, MISSING if n in (1, 25) else o)
        two = late.save()
        assert same_bits(in_time.save(), two), first
    with pytest.raises(TooLate):
        late.answer(40, *events[40])
    with pytest.raises(BadEvidence, match="already"):
        late.answer(55, *events[55])
    assert same_bits(late.save(), two)


def test_a_durable_agent_learns_late_and_continues_after_it_was_opened_again(
    tmp_path: Path,
) -> None:
    url, problem = f"sqlite:///{tmp_path}/log.db", GAUSSIAN.changing(window=9)
    rng = np.random.default_rng(3)
    agent = open_agent(url, "a", problem)
    decisions = [agent.act() for _ in range(3)]
    for t in range(40):
        if t == 20:
            agent.close()
            agent = open_agent(url, "a", problem)
        oldest = decisions.pop(0)
        agent.observe(oldest.id, 1e4 + 50.0 * (oldest.action == "red") + rng.normal())
        decisions.append(agent.act())
    probabilities: Any = agent.probabilities()
    assert probabilities["red"] > 0.9
    agent.close()


# -- units -----------------------------------------------------------------------------------------


def run(problem: Any, factor: float, shift: float = 0.0, steps: int = 150) -> tuple[Any, Any]:
    """Return the agent after some steps, and its actions."""
    agent, p, rng = problem.changing().agent(), Stream(5), np.random.default_rng(6)
    actions = []
    for t in range(steps):
        x = [1.0, float(np.sin(t))] if hasattr(problem, "features") else None
        agent.belief.begin()
        actions.append(agent.belief.draw_action(x, p))
        mean = 3.0 * (actions[-1] == ("red" if t < 80 else "blue"))
        agent.belief.observe(x, actions[-1], factor * (mean + 0.7 * rng.normal() + shift))
    return agent.belief, actions


@pytest.mark.parametrize("problem", [GAUSSIAN, LINEAR], ids=["gaussian", "linear"])
def test_a_power_of_two_changes_no_bit(problem: Any) -> None:
    (one, actions), (two, same) = run(problem, 1.0), run(problem, 2.0**-40)
    assert actions == same
    x = None if problem is GAUSSIAN else [1.0, 0.5]
    assert one.action_probabilities(x) == two.action_probabilities(x)
    assert [*one.hyperparameters().values()] == [*two.hyperparameters().values()]
    assert {n: v * 2.0**-40 for n, v in one.scales().items()} == two.scales()
    modes = one.sample(Stream(1)), two.sample(Stream(1))
    values = [m.means if problem is GAUSSIAN else m.weights for m in modes]
    assert np.array_equal(values[0] * 2.0**-40, values[1])


def test_other_units_and_shifts_change_little() -> None:
    """The noise of 0.7 and the spread are found at any scale, and the better arm is."""
    for factor, shift in ((1.0, 0.0), (1e6 / 7, 0.0), (1e-9, 1e3)):
        belief, _ = run(GAUSSIAN, factor, shift)
        assert belief.scales()["noise"] == pytest.approx(0.7 * factor, rel=0.5)
        assert belief.expected()["blue"] == pytest.approx((3.0 + shift) * factor, rel=0.2)
        assert belief.action_probabilities()["blue"] > 0.95


@pytest.mark.parametrize("problem", [GAUSSIAN, LINEAR], ids=["gaussian", "linear"])
def test_actions_are_uniform_until_the_unit_is_known(problem: Any) -> None:
    """The same reward for more than two windows, then another one; false alarm of a count 1e-4."""
    belief, x = problem.changing(window=5).belief(), None if problem is GAUSSIAN else [1.0, 0.5]
    for t in range(13):
        belief.observe(x, "red", 7.0 if problem is GAUSSIAN else 0.0)
        assert belief.action_probabilities(x) == {"red": 0.5, "blue": 0.5}, t
    assert belief.log_predictive(x, "red", 7.0) == 0.0
    assert belief.scales() == {}
    assert np.isnan(list(belief.expected(*([] if x is None else [x])).values())).all()
    drawn = [belief.draw_action(x, rng) for rng in [Stream(1)] for _ in range(1000)]
    assert abs(drawn.count("red") - 500) < 62
    assert belief.sample(Stream(0)).act(x, Stream(0)) in ARMS
    belief.observe(x, "red", 9.0)
    assert belief.is_known
    assert belief.decision == 14
    assert belief.pulls == {"red": 14, "blue": 0}


# -- dropped filters, arms, laws -------------------------------------------------------------------


def test_improbable_filters_are_dropped_without_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    belief, actions = run(GAUSSIAN, 1.0, steps=230)
    monkeypatch.setattr(changing_learned, "DROPPED", 1e-300)
    complete, same = run(GAUSSIAN, 1.0, steps=230)
    assert len(belief.hyperparameters()) < 20 < len(complete.hyperparameters())
    assert actions == same
    p = complete.action_probabilities()
    assert belief.action_probabilities() == pytest.approx(p, abs=1e-9)
    again = GAUSSIAN.changing().belief()
    again.load(belief.save())
    assert again.hyperparameters() == belief.hyperparameters()


@pytest.mark.parametrize("per_arm", [False, True])
def test_arms_can_be_added_retired_and_restored(per_arm: bool) -> None:
    belief: Any = GaussianBandit(["red"]).changing(per_arm=per_arm).belief()
    belief.observe(None, "red", 40.0)
    belief.add("blue")  # before the unit is known
    after(belief, [(None, "red", 41.0), (None, "blue", 60.0), (None, "blue", 61.0)])
    belief.add("green")
    assert belief.expected()["green"] == pytest.approx(belief.scales()["location"])
    before = belief.save()
    wrong: list[tuple[Any, ...]] = [
        (InvalidPrior, "new", (0, 1)),
        (UnknownArm, "red"),
        (UnknownArm, []),
    ]
    for error, *arguments in wrong:
        with pytest.raises(error):
            belief.add(*arguments)
    assert same_bits(belief.save(), before)
    belief.retire("blue")
    assert set(belief.action_probabilities()) == {"red", "green"}
    assert {belief.draw_action(None, Stream(s)) for s in range(30)} == {"red", "green"}
    belief.observe(None, "blue", 60.0)
    belief.restore("blue")
    assert belief.action_probabilities()["blue"] > 0.4
    assert belief.posterior_summary()["blue"]["count"] == 3
    low, high = belief.mean_quantiles(np.array([0.1, 0.9]))["blue"]
    assert low < belief.expected()["blue"] < high
    with pytest.raises(IncompatibleState, match="order of the observations"):
        belief.merge(belief.copy())


@pytest.mark.parametrize("per_arm", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_laws_hold(name: str, per_arm: bool) -> None:
    problem = PROBLEMS[name]
    changing = problem.changing(per_arm=per_arm, starts=5, window=6)
    events = happened(problem, 20)
    x, a, _ = events[0]
    check_deterministic(changing.belief, events)
    check_save(changing.belief, events)
    bad = [(x, "green", 1), (x, a, "one"), (x, a, math.nan), (x, a, 1e200), (x, a, None)]
    check_bad_evidence(changing.belief, events, bad)
    if name in ("gaussian", "coin"):
        truth: Any = [[40, 9], [60, 9]] if name == "gaussian" else [0.2, 0.6]
        world = lambda: changing.environment(truth)  # noqa: E731
        check_same_seed(changing.agent, world)
        check_resume(changing.agent, world)


def test_actions_have_their_probabilities() -> None:
    """Directly and by modes; two-sided 4-sigma bounds of a binomial: false alarm below 1e-4."""
    belief, rng = after(GAUSSIAN.changing().belief(), happened(GAUSSIAN, 12, seed=1)), Stream(3)
    p, n = belief.action_probabilities()["red"], 4_000
    assert 0.1 < p < 0.9
    directly = [belief.draw_action(None, rng) for _ in range(n)]
    by_mode = [belief.sample(rng).act(None, rng) for _ in range(n)]
    for drawn in (directly, by_mode):
        assert abs(drawn.count("red") - n * p) < 4 * math.sqrt(n * p * (1 - p))


def test_a_learned_belief_in_segments_of_its_own_is_refused_with_the_way_out() -> None:
    for problem in (GAUSSIAN, LINEAR):
        with pytest.raises(MissingCapability, match=r"use problem\.changing\(\)"):
            ChangePointBelief(problem.belief())
    with pytest.raises(MissingCapability, match="cannot be changing"):
        GAUSSIAN.pooled().changing()
