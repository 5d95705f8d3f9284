"""Error messages for common mistakes with bandits.

The Lai-Robbins constant, compared with its known value and its definition.
"""

from math import inf, log

import numpy as np
import pytest

from bayescontrol import BernoulliBandit, Record, Stream, interact
from bayescontrol.bandits.bandit import (
    bernoulli_divergence,
    lai_robbins,
)
from bayescontrol.errors import (
    BadEvidence,
    IncompatibleState,
    InvalidTable,
    MissingCapability,
    UnknownArm,
)
from bayescontrol.metrics import regret
from bayescontrol.testing.laws import same_bits


@pytest.mark.parametrize("rng", [0, None, np.random.RandomState(0)])
def test_a_rule_needs_a_stream_to_draw_from(rng: object) -> None:
    agent = BernoulliBandit(2).agent()
    with pytest.raises(TypeError, match=r"expected a Stream"):
        agent.act(rng)  # type: ignore[arg-type]


def test_a_bandit_in_place_of_its_agent_is_refused() -> None:
    bandit = BernoulliBandit(2)
    with pytest.raises(MissingCapability, match=r"call its method agent\(\)"):
        interact(bandit, bandit.draw(0), 3, seed=0)  # type: ignore[arg-type]
    with pytest.raises(MissingCapability, match="respond"):
        interact(bandit.agent(), bandit, 3, seed=0)  # type: ignore[arg-type]


def test_a_text_reward_is_refused() -> None:
    with pytest.raises(BadEvidence, match="not a number"):
        BernoulliBandit(2).agent().observe(0, "1")  # type: ignore[arg-type]


def test_a_negative_batch_size_is_refused() -> None:
    with pytest.raises(ValueError, match="size=-1"):
        BernoulliBandit(2).agent().batch(-1, Stream(0))


def test_names_from_a_numpy_array_can_be_saved() -> None:
    agent = BernoulliBandit(np.array(["a", "b"])).agent()  # type: ignore[arg-type]
    agent.observe("a", 1)
    twin = BernoulliBandit(["a", "b"]).agent()
    twin.load(agent.save())
    assert same_bits(twin.save(), agent.save())


@pytest.mark.parametrize("arms", [{"a", "b"}, frozenset({1, 2}), [1.0, float("nan")]])
def test_sets_and_nan_are_refused_as_names(arms: object) -> None:
    with pytest.raises(UnknownArm):
        BernoulliBandit(arms)  # type: ignore[arg-type]


def test_a_state_of_other_arms_or_another_prior_is_refused() -> None:
    saved = BernoulliBandit(["a", "b"]).agent().save()
    for other in (BernoulliBandit(["x", "y"]), BernoulliBandit(["a", "b"], prior=(2, 1))):
        agent = other.agent()
        before = agent.save()
        with pytest.raises(IncompatibleState, match="arm"):
            agent.load(saved)
        assert same_bits(before, agent.save())


def test_loading_restores_arms_that_were_added() -> None:
    agent = BernoulliBandit(["a", "b"]).agent()
    agent.belief.add("c", prior=(8, 2))
    twin = BernoulliBandit(["a", "b"]).agent()
    twin.load(agent.save())
    assert twin.belief.arms == ("a", "b", "c")


def test_a_resumed_agent_continues_identically_where_screening_ends() -> None:
    bandit = BernoulliBandit(3, prior=(2.0**32, 2.0**32))
    agent, twin = bandit.agent(), bandit.agent()
    agent.observe(0, 1)
    twin.load(agent.save())
    assert agent.belief.chooses == twin.belief.chooses
    assert agent.batch(50, Stream(3)) == twin.batch(50, Stream(3))
    looped = bandit.agent()
    interact(looped, bandit.environment([0.5, 0.5, 0.5]), 3, seed=0)
    assert looped.belief.chooses.startswith("by drawing every arm")


def test_regret_needs_an_environment_with_mean_rewards() -> None:
    with pytest.raises(MissingCapability, match="mean reward"):
        regret(Record([0], [1]), object())  # type: ignore[arg-type]


def test_the_lai_robbins_constant_has_its_known_value() -> None:
    kl = 0.4 * log(0.4 / 0.5) + 0.6 * log(0.6 / 0.5)
    assert lai_robbins([0.5] + 9 * [0.4]) == pytest.approx(9 * 0.1 / kl, rel=1e-14)
    assert lai_robbins([0.5] + 9 * [0.4]) == pytest.approx(44.697, abs=5e-4)


def test_arms_as_good_as_the_best_add_nothing_to_the_constant() -> None:
    assert lai_robbins([0.3, 0.3]) == 0.0
    assert lai_robbins([0.4, 0.5, 0.5]) == lai_robbins([0.5, 0.4])


def test_a_lever_that_always_pays_makes_the_constant_zero() -> None:
    assert bernoulli_divergence(0.9, 1.0) == inf
    assert lai_robbins([1.0, 0.9, 0.0]) == 0.0


def test_an_arm_that_never_pays_adds_a_finite_term() -> None:
    assert lai_robbins([0.5, 0.0]) == pytest.approx(0.5 / log(2.0))


def test_an_invalid_bias_is_refused() -> None:
    for bad in ([1.2, 0.3], [0.5, float("nan")], [], [[0.5, 0.4]], [0.5, -0.1]):
        with pytest.raises(InvalidTable):
            lai_robbins(bad)


def test_the_truth_may_be_given_by_the_names_of_the_arms() -> None:
    bandit = BernoulliBandit(["red", "blue"])
    assert bandit.environment({"blue": 0.7, "red": 0.2}).means().tolist() == [0.2, 0.7]
    with pytest.raises(UnknownArm, match=r"for the arms \[.*give one for each of"):
        bandit.environment({"blue": 0.7, "green": 0.2})
