"""Bounds on the best value, and the policies that come with them."""

import math
from typing import Any

import numpy as np
import pytest
from tests.pomdp.enumeration import best_of_horizon, random_pomdp

from bayescontrol import Stream
from bayescontrol.errors import BadSituation, InvalidTable, MissingCapability, NotConverged
from bayescontrol.mdp import MDP, policy_iteration
from bayescontrol.pomdp import (
    POMDP,
    AlphaVectors,
    fast_informed_bound,
    hallway,
    point_based,
    qmdp,
    shuttle,
    tiger,
)

#: The lowest and the highest published value at the start, where rewards are not observed;
#: docs/pomdp.md has the sources.
PUBLISHED: dict[str, tuple[POMDP, float, float]] = {
    "tiger": (tiger(rewards_observed=False), 19.37, 19.3715),
    "shuttle": (shuttle(rewards_observed=False), 32.7, 32.9),
    "hallway": (hallway(endless=False, rewards_observed=False), 0.52, 0.53),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_values_are_within_the_bounds(name: str) -> None:
    pomdp, low, high = PUBLISHED[name]
    lower, informed, upper = (
        planner(pomdp).value(pomdp.start)
        for planner in (lambda p: point_based(p, points=40), fast_informed_bound, qmdp)
    )
    assert lower <= high
    assert low <= informed <= upper + 1e-9
    if name != "hallway":
        assert lower >= low


@pytest.mark.parametrize("rewards_observed", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_the_best_value_by_trying_all_plans_is_within_the_bounds(
    seed: int, rewards_observed: bool
) -> None:
    """All plans of five steps, and at least and at most the extreme rewards for ever after."""
    gamma, steps = 0.3, 5
    sizes = (2, 2, 2) if rewards_observed else (3, 2, 2)
    pomdp = random_pomdp(seed, sizes, discount=gamma, rewards_observed=rewards_observed)
    best, rest = best_of_horizon(pomdp, pomdp.start, steps), gamma**steps / (1 - gamma)
    least, most = (best + rest * float(r) for r in (pomdp.reward.min(), pomdp.reward.max()))
    lower, informed, upper = (
        planner(pomdp).value(pomdp.start) for planner in (point_based, fast_informed_bound, qmdp)
    )
    assert lower <= most + 1e-12
    assert least <= informed <= upper + 1e-9
    assert lower >= least - 1e-6  # the points suffice in so small a problem
    assert lower <= informed


def test_bounds_hold_at_every_distribution_of_states() -> None:
    rng = Stream(3)
    for seed in range(5):
        pomdp = random_pomdp(seed, (4, 3, 2), discount=0.9)
        policies = point_based(pomdp), fast_informed_bound(pomdp), qmdp(pomdp)
        for _ in range(50):
            g = np.asarray(rng.gamma(0.5, size=4))
            lower, informed, upper = (policy.value(g / g.sum()) for policy in policies)
            assert lower <= informed <= upper + 1e-9


def test_an_interrupted_upper_bound_is_still_above_the_converged_one() -> None:
    for planner in (qmdp, fast_informed_bound):
        pomdp = random_pomdp(2, (4, 3, 2), discount=0.95)
        exact = planner(pomdp, tolerance=1e-12)
        assert exact.error is not None
        for tolerance in (1.0, 0.1, 1e-3):
            rough = planner(pomdp, tolerance=tolerance)
            assert rough.error is not None
            assert (rough.vectors >= exact.vectors - exact.error).all()
            assert (rough.vectors <= exact.vectors + rough.error + 1e-12).all()


def test_the_gain_of_qmdp_is_that_of_the_observed_problem() -> None:
    for seed in range(6):
        pomdp = random_pomdp(seed, (4, 2, 2))
        plan, policy = policy_iteration(MDP(pomdp.transition, pomdp.reward)), qmdp(pomdp)
        assert policy.gain is not None
        assert plan.lower - 1e-12 <= policy.gain <= plan.upper + 1e-7


def test_gains_are_above_those_of_single_actions_and_of_long_plans() -> None:
    """The average over n steps exceeds the gain by at most the span of the values over n."""
    for seed in range(6):
        pomdp = random_pomdp(seed, (2, 2, 2))
        informed, upper = fast_informed_bound(pomdp), qmdp(pomdp)
        assert informed.gain is not None
        assert upper.gain is not None
        n = 5
        span = float(np.ptp(informed.vectors))
        assert best_of_horizon(pomdp, pomdp.start, n) / n <= informed.gain + span / n + 1e-9
        assert informed.gain <= upper.gain + 1e-7
        for a in range(2):
            P = np.linalg.matrix_power(pomdp.transition[:, a], 4_000)
            assert float((P @ pomdp.reward[:, a]).min()) <= informed.gain + 1e-9


def test_a_periodic_problem_has_a_gain() -> None:
    swap = POMDP(2, 1, 1, [[[0, 1]], [[1, 0]]], [[[1], [1]]], [[0], [1]])
    for planner in (qmdp, fast_informed_bound):
        gain = planner(swap).gain
        assert gain is not None
        assert abs(gain - 0.5) < 1e-8


@pytest.mark.parametrize("reward", [0.0, 0.1, 1e9 + 0.1])
@pytest.mark.parametrize("discount", [None, 0.95])
def test_rewards_that_are_all_equal_have_a_bound_up_to_rounding(
    reward: float, discount: float | None
) -> None:
    tables = random_pomdp(1).settings() | {"reward": np.full((3, 2), reward), "discount": discount}
    for planner in (qmdp, fast_informed_bound):
        policy = planner(POMDP.of(tables))
        value = policy.value([1.0, 0.0, 0.0]) if discount else policy.gain
        expected = reward * 20 if discount else reward
        assert value is not None
        assert expected <= value <= expected * (1 + 1e-11)


def test_an_average_that_depends_on_the_start_does_not_converge() -> None:
    apart = POMDP(2, 1, 1, [[[1, 0]], [[0, 1]]], [[[1], [1]]], [[0], [1]])
    with pytest.raises(NotConverged, match=r"after 50 steps.*the best average may depend on the"):
        qmdp(apart, limit=50)
    with pytest.raises(NotConverged, match="increase limit or tolerance"):
        fast_informed_bound(tiger(0.99), limit=3)


def test_point_based_value_iteration_needs_a_discount() -> None:
    with pytest.raises(MissingCapability, match="needs a discount below 1; without one use qmdp"):
        point_based(tiger(None))


def test_best_actions_up_to_rounding_are_equally_probable() -> None:
    pomdp = tiger()
    vectors = [[1.0, 0.0], [0.0, 0.1 + 0.2], [0.0, 0.3], [0.0, 0.0]]
    policy = AlphaVectors(pomdp, vectors, [0, 1, 2, 2])
    halves = {"open left": 0.5, "open right": 0.5}
    assert policy.action_probabilities(np.array([0.0, 1.0])) == halves
    assert policy.action_probabilities(np.array([1.0, 0.0])) == {"listen": 1.0}
    rng, b = Stream(0), np.array([0.0, 1.0])
    lefts = sum(policy.act(b, rng) == "open left" for _ in range(1_000))
    assert abs(lefts - 500) < 5 * math.sqrt(250)  # false alarm 6e-7


@pytest.mark.parametrize("unit", [1e-11, 1e11])
@pytest.mark.parametrize("planner", [qmdp, point_based])
def test_a_policy_does_not_depend_on_the_unit_of_the_rewards(planner: Any, unit: float) -> None:
    for b in ([0.5, 0.5], [0.03, 0.97]):
        first, second = (
            planner(POMDP.of(tiger().settings() | {"reward": tiger().rewards * scale}))
            for scale in (1.0, unit)
        )
        assert first.action_probabilities(b) == second.action_probabilities(b)
        assert len(first.action_probabilities(b)) == 1


@pytest.mark.parametrize(
    "b", [[1.0, 0.0, 0.0], [math.nan, 1.0], 1.0, [5.0, 5.0], [2.0, -1.0], [math.inf, 0.0]]
)
def test_a_policy_refuses_what_is_no_distribution_of_its_states(b: Any) -> None:
    policy = qmdp(tiger())
    for call in (policy.value, policy.action_probabilities, lambda b: policy.act(b, Stream(0))):
        with pytest.raises(BadSituation, match="expected 2 probabilities of states"):
            call(b)


@pytest.mark.parametrize("planner", [qmdp, fast_informed_bound, point_based])
@pytest.mark.parametrize(("name", "value"), [("tolerance", -1.0), ("tolerance", math.nan),
                                             ("limit", 0)])  # fmt: skip
def test_invalid_settings_of_planners_are_refused(planner: Any, name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name}={value}"):
        planner(tiger(), **{name: value})


@pytest.mark.parametrize(
    ("vectors", "actions", "complaint"),
    [
        ([[1.0]], [0], r"vectors has shape \(1, 1\): expected \(k, 2\)"),
        (np.zeros((0, 2)), [], r"vectors has shape \(0, 2\)"),
        ([[1.0, math.nan]], [0], "vectors has a number that is not finite"),
        ([[1.0, 0.0]], [0, 1], "expected 1 indices of 0 … 2"),
        ([[1.0, 0.0]], [0.5], "expected 1 indices of 0 … 2"),
        ([[1.0, 0.0]], [3], "expected 1 indices of 0 … 2"),
        ([[1.0, 0.0]], [[0], [1, 2]], "actions: expected an array of numbers"),
    ],
)
def test_invalid_vectors_are_refused(vectors: Any, actions: Any, complaint: str) -> None:
    with pytest.raises(InvalidTable, match=complaint):
        AlphaVectors(tiger(), vectors, actions)
