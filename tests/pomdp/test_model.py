"""The tables, the filter and the environment of a POMDP."""

import math
from typing import Any

import numpy as np
import pytest
from tests.chance import chi_square
from tests.pomdp.enumeration import of_paths, random_pomdp

from bayescontrol import MISSING, Stream
from bayescontrol.errors import BadEvidence, BadSituation, InvalidTable, UnknownAction, UnknownState
from bayescontrol.pomdp import POMDP, Percept, POMDPModes

TABLES: dict[str, Any] = {
    "states": ["broken", "works"], "actions": ["run", "repair"], "observations": ["loud", "quiet"],
    "transition": [[[1, 0], [0, 1]], [[0.1, 0.9], [0, 1]]],
    "observation": [[[0.8, 0.2], [0.3, 0.7]], [[0.5, 0.5], [0.5, 0.5]]],
    "reward": [[0, -1], [1, -1]],
}  # fmt: skip


def simulated(pomdp: POMDP, steps: int, seed: int) -> list[tuple[Any, Percept]]:
    """A history of random actions."""
    rng, world = Stream(seed), pomdp.environment()
    history = []
    for _ in range(steps):
        a = pomdp.actions[rng.integers(len(pomdp.actions))]
        history.append((a, world.respond(a, rng)))
    return history


@pytest.mark.parametrize("rewards_observed", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_filter_and_likelihood_equal_enumeration_over_all_hidden_paths(
    seed: int, rewards_observed: bool
) -> None:
    pomdp = random_pomdp(seed, rewards_observed=rewards_observed)
    history = simulated(pomdp, 6, seed)
    b, likelihood = pomdp.start, 1.0
    for t, (a, o) in enumerate(history):
        b, p = pomdp.condition(b, a, o)
        likelihood *= p
        paths, total = of_paths(pomdp, history[: t + 1])
        np.testing.assert_allclose(likelihood, total, rtol=1e-12)
        np.testing.assert_allclose(b, paths / total, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("rewards_observed", [True, False])
def test_probabilities_of_signals_sum_to_one_and_equal_the_likelihoods(
    rewards_observed: bool,
) -> None:
    for seed in range(6):
        pomdp = random_pomdp(seed, rewards_observed=rewards_observed)
        for a in pomdp.actions:
            p = pomdp.signal_probabilities(pomdp.start, a)
            assert math.isclose(sum(p.values()), 1.0, rel_tol=1e-12)
            for o, each in p.items():
                assert math.isclose(pomdp.condition(pomdp.start, a, o)[1], each, rel_tol=1e-12)


def test_a_lost_or_impossible_observation_leaves_the_prediction() -> None:
    pomdp = POMDP(**TABLES, start="works")
    for o, p in ((MISSING, 1.0), ((0.25, "loud"), 0.0)):
        b, found = pomdp.condition(pomdp.start, "run", o)
        assert (b.tolist(), found) == ([0.1, 0.9], p)
    assert pomdp.start.tolist() == [0.0, 1.0]


def test_a_reward_that_is_observed_tells_the_state_and_one_that_is_not_does_not() -> None:
    for is_observed, expected in ((True, [0.1, 0.9]), (False, [0.55, 0.45])):
        pomdp = POMDP(**TABLES, rewards_observed=is_observed)
        b, _ = pomdp.condition(pomdp.start, "run", (1.0, "loud"))
        weights = np.array(expected) * [0.8, 0.3]
        np.testing.assert_allclose(b, weights / weights.sum(), rtol=1e-14)
    assert pomdp.observed_part((1.0, "loud")) == pomdp.observed_part("loud") == "loud"


def test_the_environment_draws_states_observations_and_rewards_from_the_tables() -> None:
    """Chi-square over (y, z) from a known state; false alarm 1e-6 over seeds."""
    pomdp = random_pomdp(5, (3, 2, 3))
    rng, counts = Stream(1), np.zeros((3, 3))
    for _ in range(5_000):
        world = pomdp.environment(start=1)
        o = world.respond(0, rng)
        assert o.reward == pomdp.rewards[1, 0, world.at, o.observation]
        counts[world.at, o.observation] += 1
    expected = pomdp.transition[1, 0][:, None] * pomdp.observation[0]
    assert not counts[expected == 0.0].any()
    assert chi_square(counts.ravel(), 5_000 * expected.ravel()) > 1e-6


def test_the_first_state_is_drawn_from_the_start() -> None:
    """5,000 draws of a coin with p = 0.2 are within 5 standard deviations; false alarm 6e-7."""
    pomdp = POMDP(**TABLES, start=[0.2, 0.8])
    rng = Stream(2)
    ones = 0
    for _ in range(5_000):
        world = pomdp.environment()
        assert world.state is None
        ones += world.respond("run", rng).reward == 0.0
    assert abs(ones - 1_000) < 5 * math.sqrt(800)


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"transition": [[[1, 0], [0, 1]], [[0.1, 0.8], [0, 1]]]}, r"transition\[1, 0\] sums to 0.9"),
    ({"observation": [[[0.8, 0.2]] * 2] * 3}, r"observation has shape \(3, 2, 2\): expected \(act"),
    ({"observation": [[[1.2, -0.2]] * 2] * 2}, r"observation\[0, 0, 1\] is -0.2"),
    ({"transition": "none"}, "transition: expected an array of numbers"),
    ({"transition": np.ones((2, 2))}, "expected the axes"),
    ({"reward": [0.0, 1.0]}, r"reward has shape \(2,\): expected \(2, 2\)"),
    ({"reward": [[0.0, math.nan], [1, 1]]}, r"reward\[0, 1\] is nan: it must be finite"),
    ({"states": ["same", "same"]}, "two states are called 'same'"),
    ({"observations": 3}, r"expected \(actions, states, observations\) = \(2, 2, 3\)"),
    ({"discount": 1.0}, r"discount=1.0: it must be in \[0.0, 1.0\)"),
    ({"start": [0.5, 0.6]}, "start.* sums to 1.1"),
    ({"start": [1.0]}, r"start=\[1.0\]: expected a state, or 2 probabilities of states"),
    ({"start": 0.5}, "start=0.5: expected a state, or 2 probabilities of states"),
]


@pytest.mark.parametrize(("change", "complaint"), CHANGES)
def test_invalid_tables_are_refused(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidTable, match=complaint):
        POMDP(**(TABLES | change))


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(UnknownState, match="no state 'works well'"):
        POMDP(**TABLES, start="works well")
    with pytest.raises(UnknownState, match="no state 'off'"):
        POMDP(**TABLES).environment("off")


def test_tables_that_would_not_fit_into_memory_are_refused() -> None:
    X = 70
    p = np.full((X, 1, X), 1.0 / X)
    tables = p, np.ones((1, X, 1)), np.arange(float(X * X)).reshape(X, 1, X)
    with pytest.raises(InvalidTable, match=r"1 × 4900 × 70 × 70 numbers.*rewards_observed=False"):
        POMDP(X, 1, 1, *tables)
    assert len(POMDP(X, 1, 1, *tables, rewards_observed=False).signals) == 1


@pytest.mark.parametrize(
    ("o", "complaint"),
    [
        (None, r"expected \(reward, observation\)"),
        ((1.0,), r"expected \(reward, observation\)"),
        (("1", "loud"), "reward '1'.*: expected a finite number"),
        ((math.inf, "loud"), "reward inf"),
        ((0.0, "silent"), "no observation 'silent': the observations are 'loud', 'quiet'"),
        ((0.0, ["loud"]), r"no observation \['loud'\]"),
        ("ok", r"observation 'ok': expected \(reward, observation\)"),
        ({"loud": 0.0, "quiet": 1.0}, r"expected \(reward, observation\)"),
    ],
)
def test_a_malformed_observation_is_refused(o: Any, complaint: str) -> None:
    for rewards_observed in (True, False):
        pomdp = POMDP(**TABLES, rewards_observed=rewards_observed)
        with pytest.raises(BadEvidence, match=complaint):
            pomdp.condition(pomdp.start, "run", o)


def test_an_unknown_action_and_a_distribution_of_other_states_are_refused() -> None:
    pomdp = POMDP(**TABLES)
    for text in ("loud", ["a", "b"], [1j, 0.0]):
        with pytest.raises(BadSituation, match="b: expected an array of numbers"):
            pomdp.condition(text, "run", (0.0, "loud"))
    for b in (np.ones(3) / 3, [1.0, 1.0], [1.5, -0.5], [math.nan, 1.0], 1.0):
        with pytest.raises(BadSituation, match="expected 2 probabilities of states, which sum to"):
            pomdp.condition(b, "run", (0.0, "loud"))
        with pytest.raises(BadSituation, match="expected 2 probabilities of states, which sum to"):
            pomdp.signal_probabilities(b, "run")
    with pytest.raises(UnknownAction, match="no action 'wait'"):
        pomdp.condition(pomdp.start, "wait", (0.0, "loud"))
    with pytest.raises(UnknownAction, match="no action 'wait'"):
        pomdp.environment().respond("wait", Stream(0))


def test_the_settings_give_the_same_problem() -> None:
    for seed in range(3):
        pomdp = random_pomdp(seed, discount=0.5)
        again = POMDP.of(pomdp.settings())
        assert again.joint.tobytes() == pomdp.joint.tobytes()
        assert (again.signals, again.discount) == (pomdp.signals, 0.5)
    with pytest.raises(InvalidTable, match="nor the settings of one"):
        POMDP.of({"states": 2})


def test_rounding_errors_of_rewards_do_not_tell_models_apart() -> None:
    models = [POMDP(**(TABLES | {"reward": [[r, -1], [1, -1]]})) for r in (0.1 + 0.2, 0.3)]
    modes = POMDPModes(models)
    agent = modes.agent()
    for r in (0.3, 0.1 * 3):
        agent.observe("run", (r, "loud"))
    assert agent.belief.posterior().tolist() == [0.5, 0.5]
    assert models[0].signals == models[1].signals
    assert POMDP(**models[0].settings()).rewards.tobytes() == models[0].rewards.tobytes()
