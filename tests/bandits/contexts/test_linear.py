"""Linear contextual bandits: the posterior, choices, compiled loop, and saved state."""

from itertools import islice
from math import erfc, sqrt
from typing import Any

import numpy as np
import pytest

from bayescontrol import (
    LinearBandit,
    LogisticBandit,
    SharedLinearBandit,
    Stream,
    interact,
    metrics,
    play,
)
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol._compiled import find_loop
from bayescontrol.bandits import LinearBelief, RewardAndContext
from bayescontrol.errors import (
    BadEvidence,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
    MissingCapability,
    UnknownArm,
)
from bayescontrol.interaction import both_streams
from bayescontrol.record import Probe, Record, log_score, posterior
from bayescontrol.schedules import Every, every_step
from bayescontrol.testing import (
    check_acting,
    check_bad_evidence,
    check_deterministic,
    check_probes,
    check_resume,
    check_same_seed,
    check_save,
    same_bits,
)

LOOK = {"looked": Probe(lambda agent, a, o: True)}


def history(arms: int, d: int, n: int, seed: int = 0) -> list[tuple[FloatArray, int, float]]:
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=d), int(rng.integers(arms)), float(rng.normal())) for _ in range(n)]


def fixed(arms: Any, d: int, sd: float = 1.0, prior: Any = (0.0, 1.0)) -> LinearBandit:
    """A bandit with a given noise and prior."""
    return LinearBandit(arms, d, sd=sd, prior=prior)


def trained(belief: LinearBelief, events: Any) -> LinearBelief:
    for x, a, r in events:
        belief.observe(x, a, r)
    return belief


# -- the posterior ---------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 5, 100])
def test_the_posterior_equals_batch_regression(d: int) -> None:
    rng = np.random.default_rng(d)
    A = rng.normal(size=(d, d))
    mu0, Lambda0, sd = rng.normal(size=(2, d)), A @ A.T + np.eye(d), 0.3
    events = history(2, d, 3 * d + 50, seed=d)
    belief = trained(fixed(2, d, sd, prior=(mu0, Lambda0)).belief(), events)
    for a in range(2):
        X = np.array([x for x, b, _ in events if b == a])
        r = np.array([r for _, b, r in events if b == a])
        Lambda = Lambda0 + X.T @ X / sd**2
        mu = np.linalg.solve(Lambda, Lambda0 @ mu0[a] + X.T @ r / sd**2)
        scale = np.abs(Lambda).max()
        assert np.abs(belief.precision(a) - Lambda).max() <= 1e-12 * scale * d
        np.testing.assert_allclose(belief.mean(a), mu, rtol=1e-9, atol=1e-9)


def test_the_order_of_evidence_does_not_matter() -> None:
    events = history(3, 4, 200)
    there = trained(fixed(3, 4).belief(), events).posterior()
    back = trained(fixed(3, 4).belief(), events[::-1]).posterior()
    np.testing.assert_allclose(there, back, rtol=1e-11, atol=1e-11)


def test_merging_counts_evidence_and_prior_once() -> None:
    bandit, events = fixed(2, 3, prior=(1.0, 2.0)), history(2, 3, 60)
    one, two = trained(bandit.belief(), events[::2]), trained(bandit.belief(), events[1::2])
    saved = two.save()
    one.merge(two)
    all_of_it = trained(bandit.belief(), events)
    np.testing.assert_allclose(one.posterior(), all_of_it.posterior(), rtol=1e-10, atol=1e-10)
    assert one.pulls == all_of_it.pulls
    assert same_bits(saved, two.save())


@pytest.mark.parametrize(
    "other",
    [
        fixed(2, 3, sd=2.0).belief(),
        fixed(2, 3, prior=(0, 2)).belief(),
        fixed(["red", "blue"], 3).belief(),
        LogisticBandit(2, 3, (0, 1)).belief(),
        None,
    ],
)
def test_unrelated_beliefs_do_not_merge(other: Any) -> None:
    belief = fixed(2, 3).belief()
    before = belief.save()
    with pytest.raises(IncompatibleState):
        belief.merge(other)
    assert same_bits(before, belief.save())


def test_the_predictive_density_combines_score_and_noise() -> None:
    belief = fixed(1, 2, sd=0.5).belief()
    x, r = np.array([1.0, 2.0]), 0.7
    variance = 0.25 + 5.0
    exact = -0.5 * (r**2 / variance + np.log(2 * np.pi * variance))
    assert belief.log_predictive(x, 0, r) == pytest.approx(exact, rel=1e-12)
    assert belief.log_predictive(x, 0, RewardAndContext(r, (0, 0))) == pytest.approx(exact)
    with pytest.raises(MissingCapability, match="infinitely many"):
        belief.predictive(x, 0)


# -- choosing --------------------------------------------------------------------------------


def chosen(belief: LinearBelief, x: FloatArray, n: int, *, modes: bool) -> IntArray:
    rng = Stream(11 + modes)
    draws = [
        belief.sample(rng).act(x, rng) if modes else belief.draw_action(x, rng) for _ in range(n)
    ]
    return np.bincount(draws, minlength=len(belief)).astype(np.int64)


def apart(one: IntArray, two: IntArray) -> float:
    n, p = one.sum(), (one + two) / (one + two).sum()
    return float((np.abs(one - two) / np.sqrt(2 * n * p * (1 - p))).max())


def test_drawing_scores_has_the_distribution_of_drawing_weights() -> None:
    """Two counts of 20,000 over 3 arms, |z| ≤ 4.5: false alarms 2e-5."""
    n, x = 20_000, np.array([1.0, -0.5, 2.0])
    events = history(3, 3, 12, seed=4)
    belief = trained(fixed(3, 3).belief(), events)
    by_modes = chosen(belief, x, n, modes=True)
    assert apart(chosen(belief, x, n, modes=False), by_modes) <= 4.5
    # Planted bug: noise of another size.
    wrong = trained(fixed(3, 3, sd=0.8).belief(), events)
    assert apart(chosen(wrong, x, n, modes=False), by_modes) > 4.5


def test_action_probabilities_of_two_arms_have_a_closed_form() -> None:
    belief, x = trained(fixed(2, 3).belief(), history(2, 3, 20)), np.array([1.0, -0.5, 2.0])
    s, sd = belief.scores(x)
    exact = 0.5 * erfc(-(s[0] - s[1]) / sqrt(2 * (sd[0] ** 2 + sd[1] ** 2)))
    assert belief.action_probabilities(x)[0] == pytest.approx(exact, abs=1e-10)


def test_action_probabilities_are_the_frequencies_of_actions() -> None:
    """20,000 draws over 4 arms, |z| ≤ 4.5: false alarms 3e-5."""
    n, x = 20_000, np.array([1.0, -0.5])
    belief = trained(fixed(4, 2).belief(), history(4, 2, 10, seed=2))
    p = np.array(list(belief.action_probabilities(x).values()))
    assert p.sum() == pytest.approx(1.0, abs=1e-10)
    z = (chosen(belief, x, n, modes=False) - n * p) / np.sqrt(n * p * (1 - p))
    assert np.abs(z).max() <= 4.5


# -- the rule --------------------------------------------------------------------------------


def test_an_observation_sets_the_next_context_and_a_bare_reward_keeps_it() -> None:
    agent = fixed(2, 2).agent([1.0, 0.0])
    agent.observe(0, RewardAndContext(2.0, (0.0, 1.0)))
    assert agent.x.tolist() == [0.0, 1.0]
    agent.observe(1, 3.0)
    assert agent.x.tolist() == [0.0, 1.0]
    np.testing.assert_allclose(agent.belief.mean(0), [1.0, 0.0])
    np.testing.assert_allclose(agent.belief.mean(1), [0.0, 1.5])


@pytest.mark.parametrize("schedule", [every_step, Every(3)])
@pytest.mark.parametrize(
    "bandit",
    [
        fixed(["red", "blue"], 2),
        SharedLinearBandit(["red", "blue"], lambda x, a: x, features=2, sd=1, prior=(0, 1)),
    ],
)
def test_an_agent_without_a_context_raises_but_can_learn(bandit: Any, schedule: Any) -> None:
    agent, world = bandit.agent(schedule=schedule), fixed(["red", "blue"], 2).draw(0)
    for use in (
        lambda: agent.act(Stream(0)),
        lambda: agent.observe("red", 5.0),
        lambda: agent.observe("red", RewardAndContext(5.0, (1.0, 2.0))),
        agent.action_probabilities,
        lambda: interact(agent, world, 3, seed=0),
    ):
        with pytest.raises(BadEvidence, match=r"no context yet: use decide\(x, rng\) and learn"):
            use()
    assert agent.belief.count == 0
    assert agent.x is None
    agent.learn([1.0, 0.0], "red", 5.0)
    assert agent.belief.expected([1.0, 0.0])["red"] == pytest.approx(2.5)


@pytest.mark.parametrize("size", [1e-60, 1e-162, 1e-310])
def test_scaling_a_context_does_not_change_the_choice(size: float) -> None:
    """Choices are compared draw by draw with the same stream: no false alarms."""
    belief = trained(fixed(3, 2).belief(), history(3, 2, 20))
    small = np.array([0.75, -0.5]) * 2.0 ** np.round(np.log2(size))
    large = small / small[0]
    p, q = belief.action_probabilities(small), belief.action_probabilities(large)
    assert p == pytest.approx(q, rel=1e-9)
    assert len(set(p.values())) == 3
    one, two = Stream(0), Stream(0)
    for _ in range(50):
        assert belief.draw_action(small, one) == belief.draw_action(large, two)
        assert belief.sample(one).act(small, one) == belief.sample(two).act(large, two)


BAD_EVENTS = [
    ([1.0], 0, 1.0),
    ([1.0, 2.0, 3.0], 0, 1.0),
    ([1.0, np.nan], 0, 1.0),
    ([1.0, np.inf], 0, 1.0),
    ([1e60, 0.0], 0, 1.0),
    ("no", 0, 1.0),
    ([1.0, "2"], 0, 1.0),
    ([[1.0], [2.0, 3.0]], 0, 1.0),
    (None, 0, 1.0),
    ([1.0, 2.0], 5, 1.0),
    ([1.0, 2.0], "red", 1.0),
    ([1.0, 2.0], [0], 1.0),
    ([1.0, 2.0], 0, np.nan),
    ([1.0, 2.0], 0, None),
    ([1.0, 2.0], 0, "much"),
    ([1.0, 2.0], 0, 1e300),
    ([1.0, 2.0], 0, RewardAndContext(np.inf, (0.0, 0.0))),
]


def test_the_laws_of_beliefs_hold() -> None:
    def make() -> LinearBelief:
        return fixed(3, 2).belief()

    events = history(3, 2, 40)
    check_deterministic(make, events)
    check_save(make, events)
    check_bad_evidence(make, events, BAD_EVENTS)


def test_a_bad_next_context_is_refused_before_anything_is_learned() -> None:
    agent = fixed(2, 2).agent([0.0, 1.0])
    before = agent.save()
    for bad in ((1.0,), (1.0, np.nan), None):
        with pytest.raises(BadEvidence, match="context"):
            agent.observe(0, RewardAndContext(1.0, bad))  # type: ignore[arg-type]
    assert same_bits(before, agent.save())


@pytest.mark.parametrize("schedule", [None, Every(3)])
@pytest.mark.parametrize("kind", [fixed, LinearBandit, LogisticBandit])
def test_the_laws_of_acting_hold(kind: Any, schedule: Any) -> None:
    bandit = kind(["red", "blue"], 3)
    rest = {} if schedule is None else {"schedule": schedule}

    def make() -> Any:
        return bandit.agent(world().start, **rest)

    def world() -> Any:
        return bandit.draw(1, "sphere")

    check_acting(make, world)
    check_same_seed(make, world, 50)
    check_resume(make, world, 50)
    check_probes(make, world, {"v": posterior, "bits": log_score}, 50)


# -- the compiled loop -----------------------------------------------------------------------


@pytest.mark.parametrize("contexts", ["normal", "sphere"])
@pytest.mark.parametrize("kind", [fixed, LinearBandit, LogisticBandit])
@pytest.mark.parametrize("steps", [1, 2, 300])
def test_the_compiled_loop_equals_the_readable_one(kind: Any, contexts: Any, steps: int) -> None:
    bandit = kind(["red", "blue", "green"], 4)
    ends = []
    for compiled in (True, False):
        agent = bandit.agent([1.0, 2.0, 0.0, -1.0])
        world = bandit.draw(3, contexts)
        agent.belief.retire("blue")
        p, q = both_streams(5, 0)
        if compiled:
            loop = find_loop(agent, world)
            assert loop is not None
            record = loop(agent, world, steps, p, q)
        else:
            read = interact(agent, world, steps, streams=(p, q), probes=LOOK)
            record = Record(read.actions, read.observations)
        state = agent.save()
        then = list(islice(play(agent, world, streams=(p, q)), 5))
        ends.append((record, state, then))
    (fused, state, then), (readable, other, later) = ends
    assert fused == readable
    assert repr(fused.observations[-1]) == repr(readable.observations[-1])
    assert same_bits(state, other)
    assert then == later


def test_the_compiled_loop_requires_a_matching_agent_and_environment() -> None:
    bandit = fixed(2, 2)
    world = bandit.draw(0)
    x = world.start
    assert find_loop(bandit.agent(x), world) is not None
    assert find_loop(bandit.agent(x, schedule=Every(2)), world) is None
    assert find_loop(bandit.agent(x), bandit.draw(0, lambda rng: [1.0, 2.0])) is None
    assert find_loop(fixed(2, 2, sd=2.0).agent(x), world) is None
    assert find_loop(fixed(3, 2).agent(x), world) is None
    assert find_loop(fixed(2, 3).agent([0.0] * 3), world) is None
    assert find_loop(bandit.agent(), world) is None
    assert find_loop(bandit.agent([1e-162, 0.0]), world) is None


# -- adding and retiring arms ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "size", "of_first", "of_chance"),
    [(fixed, 5, 0.05, 0.01), (LogisticBandit, 4, 0.3, 0.1)],
)
def test_regret_falls_and_is_far_below_that_of_random_play(
    kind: Any, size: int, of_first: float, of_chance: float
) -> None:
    """Ten worlds of fixed seeds; the last tenth of 3,000 steps against the first, and chance."""
    bandit, first, last, chance = kind(size, size), [], [], []
    for run in range(10):
        world = bandit.draw(run)
        record = interact(bandit.agent(world.start), world, 3000, streams=both_streams(0, run))
        lost = np.diff(metrics.regret(record, world), prepend=0.0)
        assert (lost >= 0.0).all()  # the oracle has regret 0
        first.append(lost[:300].mean())
        last.append(lost[-300:].mean())
        uniform = Stream(run).integers(size, size=3000)
        chance.append(metrics.regret(Record(uniform, record.observations), world)[-1] / 3000)
    assert np.mean(last) < of_first * np.mean(first) + 0.01
    assert np.mean(last) < of_chance * np.mean(chance)


def test_arms_keep_their_posterior_when_retired_and_restored() -> None:
    belief = trained(fixed(["red", "blue"], 2).belief(), [([1.0, 0.0], "red", 2.0)])
    belief.add("green", prior=([3.0, 0.0], np.diag([10.0, 20.0])))
    np.testing.assert_allclose(belief.mean("green"), [3.0, 0.0])
    np.testing.assert_allclose(belief.precision("green"), np.diag([10.0, 20.0]))
    belief.retire("red")
    rng = Stream(0)
    assert "red" not in {belief.draw_action([1.0, 1.0], rng) for _ in range(100)}
    assert belief.sample(rng).arms == ("blue", "green")
    belief.observe([0.0, 1.0], "red", 4.0)
    belief.restore("red")
    np.testing.assert_allclose(belief.mean("red"), [1.0, 2.0])
    resumed = fixed(7, 2).belief()
    resumed.load(belief.save())
    assert same_bits(resumed.save(), belief.save())
    assert resumed.arms == ("red", "blue", "green")


def test_in_a_context_of_zeros_all_arms_are_chosen() -> None:
    """400 draws each: one of three arms is missed with probability 1e-70."""
    belief, rng, x = fixed(3, 2).belief(), Stream(0), [0.0, 0.0]
    assert {belief.draw_action(x, rng) for _ in range(400)} == {0, 1, 2}
    mode = belief.sample(rng)
    assert {mode.act(x, rng) for _ in range(400)} == {0, 1, 2}
    assert mode.action_probabilities(x) == dict.fromkeys(range(3), 1 / 3)
    assert belief.action_probabilities(x) == dict.fromkeys(range(3), 1 / 3)


def test_a_held_mode_pulls_no_retired_arm_and_can_be_resumed() -> None:
    bandit = fixed(["red", "blue"], 2)
    agent = bandit.agent([1.0, 1.0], schedule=Every(1000))
    held = agent.act(Stream(0))
    agent.belief.add("green")
    twin = agent.copy()
    agent.belief.retire(held)
    other = agent.act(Stream(0))
    assert other in {"red", "blue"} - {held}
    assert twin.act(Stream(0)) == held
    resumed = bandit.agent([1.0, 1.0], schedule=Every(1000))
    resumed.load(agent.save())
    assert resumed.mode is not None
    assert same_bits(resumed.save(), agent.save())
    agent.belief.retire(other)
    assert agent.act(Stream(0)) == "green"


# -- construction and saved state --------------------------------------------------------------


BAD_ARGUMENTS: list[tuple[type[Exception], str, list[Any], dict[str, Any]]] = [
    *((InvalidPrior, "prior", [2, 2], {"sd": 1, "prior": prior}) for prior in (
        (0.0, 0.0), (0.0, -1.0), (0.0, np.nan), (np.inf, 1.0), (0.0, [1.0, 1.0]),
        (0.0, [[1.0, 2.0], [2.0, 1.0]]), (0.0, [[1.0, 0.5], [0.0, 1.0]]), ([1.0, 2.0, 3.0], 1.0),
        ("a", 1.0), (0.0, 1e-80),
    )),
    *((InvalidPrior, "a pair", [2, 2], {"sd": 1, "prior": prior}) for prior in (3.0, (0.0,))),
    *((InvalidPrior, "sd=", [2, 2], {"sd": sd}) for sd in (
        None, "1", [1.0, 2.0], 0.0, -1.0, np.nan, np.inf
    )),
    *((InvalidPrior, "features", [2, features], {}) for features in (0, -1, 1.5, None)),
    (UnknownArm, "arms=0", [0, 2], {}),
]  # fmt: skip


@pytest.mark.parametrize(("error", "words", "arguments", "settings"), BAD_ARGUMENTS)
def test_invalid_arguments_are_refused(
    error: type[Exception], words: str, arguments: Any, settings: Any
) -> None:
    with pytest.raises(error, match=words):
        LinearBandit(*arguments, **settings)


def test_an_invalid_world_is_refused() -> None:
    bad: list[Any] = [
        [[1.0, 2.0]], [1.0, 2.0], [[1, 2, 3], [4, 5, 6]], [[1, np.nan], [0, 0]], "no"
    ]  # fmt: skip
    for weights in bad:
        with pytest.raises(InvalidTable):
            fixed(2, 2).environment(weights)
    with pytest.raises(InvalidTable, match="contexts"):
        fixed(2, 2).environment(np.eye(2), "cube")  # type: ignore[arg-type]


def test_a_user_defined_context_is_validated_and_used() -> None:
    bandit = fixed(2, 2)
    world = bandit.environment(np.eye(2), lambda rng: [1.0, rng.random()], start=[1.0, 0.0])
    assert world.respond(0, Stream(0)).context[0] == 1.0
    assert world.best([0.1, 0.2]) == 1
    with pytest.raises(BadEvidence):
        bandit.environment(np.eye(2), lambda rng: [1.0]).respond(0, Stream(0))


def test_a_damaged_state_is_refused_and_changes_nothing() -> None:
    belief = trained(fixed(2, 2).belief(), [([1.0, 2.0], 0, 1.0)])
    belief.sample(Stream(0))
    good = belief.save()
    damages: list[Any] = [
        LogisticBandit(2, 2, (0, 1)).belief().save(),
        fixed(2, 3).belief().save(),
        good | {"factor": np.ones((2, 2, 2))},
        good | {"factor": -good["factor"]},
        good | {"target": np.zeros((3, 2))},
        good | {"active": np.array([], np.int64)},
        good | {"active": np.array([1, 0])},
        good | {"active": np.array([0, 9])},
        good | {"pulls": np.array([-1, 0])},
        good | {"drawn": np.zeros((3, 2))},
        good | {"drawn": np.full((2, 2), np.nan)},
        good | {"arms": np.array("nonsense(")},
    ]
    for damage in damages:
        with pytest.raises(IncompatibleState):
            belief.load(damage)
        assert same_bits(good, belief.save())


def test_a_prior_may_be_an_array() -> None:
    array: Any = np.array([1.0, 2.0])
    given, pair = fixed(2, 3, prior=array), fixed(2, 3, prior=(1.0, 2.0))
    assert given.settings() == pair.settings()
    assert given.belief().mean(0).tolist() == pair.belief().mean(0).tolist()
