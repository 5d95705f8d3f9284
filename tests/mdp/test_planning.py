"""The best average reward, certified."""

import numpy as np
import pytest

from bayescontrol.errors import InvalidTable, NotConverged, UnknownAction
from bayescontrol.mdp import (
    MDP,
    Maze,
    chain_mdp,
    gain_and_bias,
    policy_iteration,
    random_mdp,
    relative_value_iteration,
    stationary_distribution,
)
from bayescontrol.mdp.planning import as_policy, gain_bounds, induced


@pytest.mark.parametrize("k", [1, 2, 3, 17])
def test_the_chain_has_gain_one_over_k_although_its_policy_is_periodic(k: int) -> None:
    for plan in (policy_iteration(chain_mdp(k)), relative_value_iteration(chain_mdp(k), 1e-9)):
        assert plan.lower <= 1 / k <= plan.upper <= plan.lower + 1e-9
        assert plan.policy.tolist() == [0] * k


def test_without_damping_a_periodic_chain_does_not_converge() -> None:
    with pytest.raises(NotConverged, match="after 1000 sweeps the gain lies between"):
        relative_value_iteration(chain_mdp(3), tau=1.0, limit=1_000)


def test_a_tolerance_below_rounding_errors_is_refused() -> None:
    with pytest.raises(NotConverged, match="rounding errors alone account for"):
        relative_value_iteration(chain_mdp(3), 1e-16, limit=1_000)


@pytest.mark.parametrize("seed", range(3))
def test_both_planners_agree_and_solve_the_bellman_equations(seed: int) -> None:
    mdp = random_mdp(12, 3, concentration=0.2, seed=seed)
    one, two = policy_iteration(mdp), relative_value_iteration(mdp, 1e-11)
    assert one.gain == pytest.approx(two.gain, abs=1e-11)
    assert (one.policy == two.policy).all()
    for plan in (one, two):
        right = mdp.reward + mdp.transition @ plan.Q.max(1)
        assert np.allclose(plan.Q + plan.gain, right, atol=1e-10)
        assert plan.bias[0] == 0.0
    assert np.allclose(one.Q, two.Q, atol=1e-8)


def test_shifting_or_scaling_rewards_shifts_or_scales_the_gain() -> None:
    mdp = Maze("three-cups").mdp()
    columns = np.repeat(np.arange(49 * 4), mdp.size)

    def altered(r: np.ndarray) -> MDP:
        return MDP.from_transitions(
            columns // 4, columns % 4, mdp.successor, mdp.probability, r, states=49, actions=4
        )

    gain = policy_iteration(mdp).gain
    assert policy_iteration(altered(mdp.rewards + 7.0)).gain == pytest.approx(gain + 7.0, abs=1e-12)
    assert policy_iteration(altered(mdp.rewards * 1e-6)).gain == pytest.approx(
        gain * 1e-6, rel=1e-9
    )


def test_an_action_that_is_not_offered_is_never_optimal() -> None:
    mdp = MDP(np.ones((1, 2, 1)), [[0.0, 9.0]], allowed=[[True, False]])
    for plan in (policy_iteration(mdp), relative_value_iteration(mdp)):
        assert plan.policy.tolist() == [0]
        assert plan.gain == pytest.approx(0.0, abs=1e-9)
        assert plan.Q[0, 1] == -np.inf
        assert plan.optimal_actions().tolist() == [[True, False]]


def test_policy_iteration_escapes_several_recurrent_classes() -> None:
    """The initial greedy policy stays in each of three states: three recurrent classes."""
    stay, go = np.eye(3), np.roll(np.eye(3), 1, axis=1)
    mdp = MDP(np.stack([stay, go], axis=1), [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    assert len(stationary_distribution(mdp, [0, 0, 0])) == 3
    assert gain_and_bias(mdp, [0, 0, 0]).gain.tolist() == [1.0, 2.0, 3.0]
    plan = policy_iteration(mdp)
    assert plan.gain == 3.0
    assert plan.policy.tolist() == [1, 1, 0]


def test_ties_are_all_optimal_and_any_mixture_of_them_earns_the_gain() -> None:
    mdp = Maze("three-cups").mdp()
    plan = policy_iteration(mdp)
    best = plan.optimal_actions()
    assert (best.sum(1) > 1).any()
    mixed = best / best.sum(1, keepdims=True)
    assert np.allclose(gain_and_bias(mdp, mixed).gain, plan.gain, atol=1e-13)


def test_a_stochastic_policy_earns_what_its_chain_earns() -> None:
    """Compare with the average of 2^20 powers of the matrix, by repeated squaring."""
    mdp = random_mdp(6, 3, seed=4)
    policy = np.full((6, 3), 1 / 3)
    P, r = induced(mdp, policy)
    power, mean = P.toarray(), np.eye(6)
    for _ in range(20):
        mean, power = (mean + power @ mean) / 2.0, power @ power
    [only] = stationary_distribution(mdp, policy)
    assert np.allclose(mean @ r, only.gain, atol=1e-6)
    assert np.allclose(power[0], only.probability, atol=1e-12)


def test_a_large_grid_is_solved() -> None:
    side = 40
    text = "\n".join("." * side for _ in range(side - 1)) + "\n" + "." * (side - 1) + "G"
    mdp = Maze(text).mdp()
    one, two = policy_iteration(mdp), relative_value_iteration(mdp, 1e-8)
    assert one.upper - one.lower < 1e-9
    assert max(one.lower, two.lower) <= min(one.upper, two.upper)


@pytest.mark.parametrize(
    ("policy", "error", "complaint"),
    [
        ([0, 2], UnknownAction, "state 1: action 2 is out of range"),
        ([0], InvalidTable, "give 2 action indices"),
        ([0.0, 1.0], InvalidTable, "give 2 action indices"),
        ([[0.5, 0.6], [1, 0]], InvalidTable, "state 0: the policy .* is not a prob"),
        ([[0.5, 0.5], [np.nan, 1.0]], InvalidTable, "state 1: the policy .* is not a prob"),
        ([0, 1], UnknownAction, "action 1 in state 1, where it is not available"),
    ],
)
def test_an_invalid_policy_is_refused(policy: object, error: type, complaint: str) -> None:
    mdp = MDP(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), allowed=[[True, True], [True, False]])
    with pytest.raises(error, match=complaint):
        as_policy(mdp, policy)  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [{"tolerance": 0.0}, {"tau": 0.0}, {"tau": 1.5}])
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        relative_value_iteration(chain_mdp(2), **settings)  # type: ignore[arg-type]


def test_the_bounds_hold_for_huge_h() -> None:
    """An h of 1e12 loses digits; the bounds allow for it and contain 1/4."""
    lower, upper = gain_bounds(chain_mdp(4), policy_iteration(chain_mdp(4)).bias + 1e12)
    assert lower <= 0.25 <= upper
