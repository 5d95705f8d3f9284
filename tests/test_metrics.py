"""Delusion, regret, and the share of the best arm."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bayescontrol import (
    MISSING,
    BernoulliBandit,
    ControlRule,
    FiniteBelief,
    Floor,
    LinearBandit,
    LogisticBandit,
    NaiveMixture,
    Record,
    Stream,
    interact,
)
from bayescontrol._arrays import FloatArray
from bayescontrol.bandits import RewardAndContext
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleCondition,
    MissingCapability,
    UnknownArm,
)
from bayescontrol.finite.examples import (
    FROG,
    PRIZE,
    THREE_MODES_PRIOR,
    prize_or_frog,
    three_modes,
)
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.metrics import best_share, delusion, regret, rewards
from bayescontrol.record import posterior, situation
from bayescontrol.situations import stay


def bits(p: FloatArray, q: FloatArray) -> float:
    """KL(p ‖ q) in bits, as printed in the paper."""
    return math.fsum(a * math.log2(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def normalised(v: FloatArray) -> FloatArray:
    return np.asarray(v / v.sum())


def random_class(seed: int) -> tuple[TabularModes, FloatArray]:
    rng = Stream(seed)
    modes = random_modes(4, situations=3, actions=3, observations=2, seed=rng)
    return modes, normalised(rng.gamma(1.0, size=4))


@pytest.mark.parametrize("seed", range(20))
def test_delusion_equals_its_definition(seed: int) -> None:
    modes, prior = random_class(seed)
    record = interact(modes.agent(prior), modes.environment(seed % 4), 12, seed=seed)
    read = delusion(record, modes.agent(prior))
    v, w, x = prior, prior, modes.start
    for t, (a, o) in enumerate(record):
        policy, hypothesis = modes.policy[:, x, a], modes.hypothesis[:, x, a, o]
        result = normalised(v * policy)
        assert read.step_bits[t] == pytest.approx(bits(result, v), abs=1e-12)
        assert read.log_odds[t] == pytest.approx(
            np.log2(policy) - math.log2(float(policy @ v)), abs=1e-12
        )
        v, w = normalised(v * hypothesis), normalised(w * policy * hypothesis)
        assert read.causal[t] == pytest.approx(v, rel=1e-12)
        assert read.naive[t] == pytest.approx(w, rel=1e-12)
        assert read.total_bits[t] == pytest.approx(bits(w, v), abs=1e-12)
        x = int(modes.successor[x, a, o])


@pytest.mark.parametrize("seed", range(5))
def test_on_records_of_the_agent_posteriors_agree_bit_for_bit(seed: int) -> None:
    modes, prior = random_class(seed)
    probes = {"v": posterior}
    causal = interact(modes.agent(prior), modes.environment(0), 30, seed=seed, probes=probes)
    naive = interact(
        modes.agent(prior, kind=NaiveMixture), modes.environment(0), 30, seed=seed, probes=probes
    )
    assert delusion(causal, modes.agent(prior)).causal.tobytes() == causal["v"].tobytes()
    assert delusion(naive, modes.agent(prior)).naive.tobytes() == naive["v"].tobytes()


def test_the_expected_value_of_a_step_is_the_information_of_the_action() -> None:
    """Σ_a P(a | âo_<t) step(a) = I(m; a_t | âo_<t) = H(a_t) - H(a_t | m)."""
    modes, prior = random_class(7)
    policy = modes.policy[:, modes.start]
    mixture = prior @ policy
    expected = sum(
        p * float(delusion(Record([a], [0]), modes.agent(prior)).step_bits[0])
        for a, p in enumerate(mixture)
    )
    entropy = -(mixture @ np.log2(mixture)) + prior @ (policy * np.log2(policy)).sum(1)
    assert expected == pytest.approx(float(entropy), abs=1e-12)


def test_modes_with_the_same_policy_give_no_delusion() -> None:
    modes, prior = random_class(1)
    same = TabularModes(
        np.broadcast_to(modes.policy[:1], modes.policy.shape), modes.hypothesis, modes.successor
    )
    record = interact(same.agent(prior), same.environment(2), 50, seed=1)
    read = delusion(record, same.agent(prior))
    assert max(read.step_bits.max(), read.total_bits.max(), np.abs(read.log_odds).max()) < 1e-12


def test_a_passive_observer_has_exactly_zero_delusion() -> None:
    modes = random_modes(5, situations=2, actions=1, observations=3, seed=4)
    record = interact(modes.agent(), modes.environment(1), 50, seed=2)
    read = delusion(record, modes.agent())
    assert not read.step_bits.any()
    assert not read.total_bits.any()
    assert not read.log_odds.any()
    assert read.naive.tobytes() == read.causal.tobytes()


@pytest.mark.parametrize("kind", [ControlRule, NaiveMixture])
def test_the_agent_is_never_changed(kind: type[Any]) -> None:
    modes, prior = random_class(3)
    record = interact(modes.agent(prior), modes.environment(0), 10, seed=0)
    agent = modes.agent(prior, kind=kind)
    before = {name: array.tobytes() for name, array in agent.save().items()}
    read = delusion(record, agent)
    assert {name: array.tobytes() for name, array in agent.save().items()} == before
    assert read.total_bits.tobytes() == delusion(record, modes.agent(prior)).total_bits.tobytes()


def test_a_list_and_an_array_of_modes_give_the_same_values() -> None:
    modes = three_modes()
    record = interact(modes.agent(THREE_MODES_PRIOR), modes.environment(1), 25, seed=0)
    listed = ControlRule(FiniteBelief([modes[m] for m in range(3)], THREE_MODES_PRIOR), 0, stay)
    one, other = delusion(record, listed), delusion(record, modes.agent(THREE_MODES_PRIOR))
    assert one.total_bits.tobytes() == other.total_bits.tobytes()
    assert one.log_odds.tobytes() == other.log_odds.tobytes()


class Repeater:
    """A mode that repeats its last action with probability `faith`; o carries no evidence."""

    def __init__(self, faith: float) -> None:
        self.faith = faith

    def start(self) -> int:
        return 0

    def advance(self, s: int, a: int, o: int) -> int:
        return a

    def act(self, s: int, rng: Any) -> int:
        return s if rng.random() < self.faith else 1 - s

    def action_probabilities(self, s: int) -> Mapping[int, float]:
        return {s: self.faith, 1 - s: 1 - self.faith}

    def likelihood(self, s: int, a: int, o: int) -> float:
        return 0.5


def test_modes_with_private_state_are_evaluated_in_their_state() -> None:
    agent = ControlRule(FiniteBelief([Repeater(0.9), Repeater(0.3)]))
    read = delusion(Record([0, 1, 1, 0], [0, 0, 0, 0]), agent)
    saved = [1, 0, 1, 0]  # the state is the last action, 0 before the first
    odds = [[0.9, 0.3] if k else [0.1, 0.7] for k in saved]
    assert read.log_odds == pytest.approx(
        np.log2(odds) - np.log2(np.mean(odds, axis=1, keepdims=True)), abs=1e-12
    )
    assert read.causal[-1] == pytest.approx([0.5, 0.5])
    assert read.naive[-1] == pytest.approx(normalised(np.prod(odds, axis=0)))


def test_an_action_that_a_mode_excludes_has_infinite_log_odds_against_it() -> None:
    read = delusion(Record([0, 0], [PRIZE, FROG]), prize_or_frog(0.75).agent())
    assert read.log_odds[0].tolist() == [1.0, -math.inf]
    assert read.step_bits == pytest.approx([1.0, math.log2(4 / 3)])
    assert read.naive.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert read.total_bits == pytest.approx([math.log2(4 / 3), 1.0])


def test_the_log_odds_of_an_excluded_mode_are_nan() -> None:
    read = delusion(Record([0, 0], [PRIZE, PRIZE]), prize_or_frog(1.0).agent())
    assert np.isnan(read.log_odds[1]).tolist() == [False, True]
    assert read.log_odds[1, 0] == 0.0
    assert read.step_bits.tolist() == [1.0, 0.0]
    assert read.total_bits.tolist() == [0.0, 0.0]


def prize_with_a_third_box() -> TabularModes:
    """A class in which no mode picks the third box."""
    r, s = [0.25, 0.75], [0.75, 0.25]
    return TabularModes([[[1, 0, 0]], [[0, 1, 0]]], [[[r, s, s]], [[s, r, s]]])


def test_the_error_for_an_impossible_action_names_its_step() -> None:
    record = Record([0, 2], [PRIZE, FROG])
    with pytest.raises(
        ImpossibleCondition, match=r"step 2: action 2 .* situation 0 under every mode"
    ):
        delusion(record, prize_with_a_third_box().agent())


@pytest.mark.parametrize(
    ("reliability", "record"),
    [
        (0.75, Record([0, 1, 1], [PRIZE, PRIZE, PRIZE])),  # picks both boxes
        (1.0, Record([1, 0, 0], [FROG, PRIZE, PRIZE])),  # sees a frog where the prize must be
    ],
)
def test_a_contradiction_is_infinite_and_leaves_no_naive_posterior(
    reliability: float, record: Record
) -> None:
    read = delusion(record, prize_or_frog(reliability).agent())
    first = 0 if reliability == 1.0 else 1
    assert np.isinf(read.total_bits).tolist() == [t >= first for t in range(3)]
    assert np.isnan(read.naive).all(1).tolist() == [t >= first for t in range(3)]
    assert np.isfinite(read.causal).all()
    assert np.isfinite(read.step_bits).all()


def test_thousands_of_bits_do_not_underflow() -> None:
    """Every step has causal evidence against mode 0 and false evidence for it."""
    modes = TabularModes([[[0.99, 0.01]], [[0.01, 0.99]]], [[[[0.7, 0.3]] * 2], [[[0.3, 0.7]] * 2]])
    steps = 3000
    read = delusion(Record([0] * steps, [1] * steps), modes.agent())
    assert read.causal[-1, 0] == 0.0  # below the range of a double
    assert read.naive[-1, 0] == 1.0
    assert read.total_bits[-1] == pytest.approx(steps * math.log2(7 / 3), rel=1e-9)


def test_skip_and_floor_options_apply_to_delusion() -> None:
    record = Record([0, 2], [PRIZE, FROG])
    skips = ControlRule(FiniteBelief(prize_with_a_third_box(), on_impossible="skip"), 0, stay)
    assert delusion(record, skips).step_bits.tolist() == [1.0, 0.0]
    floors = ControlRule(
        FiniteBelief(prize_with_a_third_box(), on_impossible=Floor(2.0**-10)), 0, stay
    )
    assert delusion(record, floors).log_odds[0] @ [1, -1] == pytest.approx(10.0)


def test_a_belief_without_weights_is_refused() -> None:
    class Blind:
        def sample(self, rng: Any) -> Any: ...
        def observe(self, x: Any, a: Any, o: Any) -> None: ...

    with pytest.raises(MissingCapability, match="use a FiniteBelief"):
        delusion(Record([0], [0]), ControlRule(Blind()))


def test_regret_is_the_difference_of_means() -> None:
    world = BernoulliBandit(3).environment([0.1, 0.9, 0.4])
    record = Record([1, 0, 2], [0, 0, 1])
    assert regret(record, world) == pytest.approx([0.0, 0.8, 1.3], abs=1e-15)
    assert best_share(record, world).tolist() == [1.0, 0.0, 0.0]


def test_regret_does_not_depend_on_random_rewards() -> None:
    world = BernoulliBandit(2).environment([0.5, 0.5])
    record = interact(BernoulliBandit(2).agent(), world, 50, seed=0)
    assert not regret(record, world).any()
    assert best_share(record, world).all()


def test_regret_does_not_depend_on_the_names_of_arms() -> None:
    numbered, named = BernoulliBandit(3), BernoulliBandit(["a", "b", "c"])
    biases = [0.2, 0.7, 0.5]
    one = interact(numbered.agent(), numbered.environment(biases), 200, seed=3)
    two = interact(named.agent(), named.environment(biases), 200, seed=3)
    assert np.array_equal(
        regret(one, numbered.environment(biases)), regret(two, named.environment(biases))
    )


# -- worlds with contexts --------------------------------------------------------------------


def test_regret_with_contexts_is_cumulative() -> None:
    """Arm "up" pays x, arm "down" pays -x; the contexts are 1, 2, -3, and then 5."""
    world = LinearBandit(["up", "down"], features=1).environment([[1.0], [-1.0]], start=[1.0])
    contexts = [RewardAndContext(0.0, (x,)) for x in (2.0, -3.0, 5.0)]
    record = Record(["up", "down", "up"], contexts)
    expected = [0.0, 4.0, 10.0]
    assert regret(record, world).tolist() == expected
    assert best_share(record, world).tolist() == [1.0, 0.0, 0.0]
    assert regret(Record([], []), world).tolist() == []


@pytest.mark.parametrize("kind", [LinearBandit, LogisticBandit])
@pytest.mark.parametrize("probed", [False, True], ids=["compiled", "readable"])
def test_regret_uses_the_context_in_which_each_arm_was_pulled(kind: type, probed: bool) -> None:
    bandit = kind(["a", "b", "c"], features=2)
    world = bandit.draw(3, start=[4.0, -1.0])
    start, probes = world.start, {"x": situation}
    twin = bandit.draw(3, start=start)
    record = interact(bandit.agent(start), world, 50, probes=probes if probed else None, seed=0)
    contexts = interact(bandit.agent(start), twin, 50, probes=probes, seed=0)["x"]
    means = np.array([world.means(x) for x in contexts])
    pulled = [list(world.labels).index(a) for a in record.actions]
    expected = np.cumsum(means.max(1) - means[np.arange(50), pulled])
    assert expected[-1] > 0.0
    np.testing.assert_allclose(regret(record, world), expected, rtol=1e-12)
    fresh = bandit.draw(3, start=start)
    np.testing.assert_array_equal(regret(record, fresh), regret(record, world))


def test_an_environment_that_is_used_twice_needs_the_start_of_the_run() -> None:
    bandit = LinearBandit(2, features=1)
    world = bandit.environment([[1.0], [-1.0]])
    first = interact(bandit.agent(world.start), world, 10, seed=1)
    total = regret(first, world)
    start = world.start
    second = interact(bandit.agent(start), world, 10, seed=2)
    for record in (first, second):
        for measure in (regret, best_share):
            with pytest.raises(BadEvidence, match=r"20 steps so far.*start="):
                measure(record, world)
    np.testing.assert_array_equal(regret(first, world, start=[0.0]), total)
    x = np.array([start[0], *(o.context[0] for _, o in second)])[:-1]
    expected = np.cumsum(np.where((x > 0.0) == (second.actions == 0), 0.0, 2.0 * np.abs(x)))
    np.testing.assert_allclose(regret(second, world, start=start), expected, rtol=1e-12)


def test_a_record_without_contexts_is_refused() -> None:
    world = LinearBandit(2, features=2).draw(0)
    with pytest.raises(BadEvidence, match="have no context"):
        regret(Record([0, 1], [0.5, 1.5]), world)
    with pytest.raises(BadEvidence, match="a vector of 2 numbers"):
        regret(
            Record([0, 1], [RewardAndContext(0.5, (1.0,)), RewardAndContext(0.5, (1.0,))]), world
        )
    with pytest.raises(UnknownArm, match="contains arm 2"):
        regret(Record([2], [RewardAndContext(0.5, (1.0, 1.0))]), world)


def test_rewards_are_fields_and_an_observation_without_one_is_named() -> None:
    with_context = RewardAndContext(1.0, (0.5,))
    assert rewards(Record([0, 0], [with_context, {"reward": 2.0}])).tolist() == [1.0, 2.0]
    with pytest.raises(MissingCapability, match=r"observation 2 is MISSING.*reward=lambda a, o"):
        rewards(Record([0, 0], [with_context, MISSING]))
    with pytest.raises(MissingCapability, match=r"observation 1 is \(1.0, 'x'\).*a NamedTuple"):
        rewards(Record([0], [(1.0, "x")]))
