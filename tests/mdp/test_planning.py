"""The best average reward, certified."""

import numpy as np
import pytest

from bayescontrol.errors import InvalidTable, NotCommunicating, UnknownAction
from bayescontrol.mdp import (
    MDP,
    Maze,
    chain_mdp,
    gain_and_bias,
    policy_iteration,
    random_mdp,
    stationary_distribution,
)
from bayescontrol.mdp.maze import LAYOUTS
from bayescontrol.mdp.planning import (
    as_policy,
    closed_classes,
    gain_bounds,
    induced,
    require_weakly_communicating,
)


@pytest.mark.parametrize("k", [1, 2, 3, 17])
def test_the_chain_has_gain_one_over_k_although_its_policy_is_periodic(k: int) -> None:
    plan = policy_iteration(chain_mdp(k))
    assert plan.lower <= 1 / k <= plan.upper <= plan.lower + 1e-9
    assert plan.policy.tolist() == [0] * k


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_solves_the_bellman_equations_and_equals_value_iteration(seed: int) -> None:
    mdp = random_mdp(12, 3, concentration=0.2, seed=seed)
    plan = policy_iteration(mdp)
    right = mdp.reward + mdp.transition @ plan.Q.max(1)
    assert np.allclose(plan.Q + plan.gain, right, atol=1e-10)
    assert plan.bias[0] == 0.0
    h = np.zeros(12)
    for _ in range(2_000):  # relative value iteration, damped
        rise = (mdp.reward + mdp.transition @ h).max(1) - h
        h += 0.9 * (rise - rise[0])
    assert rise == pytest.approx(plan.gain, abs=1e-11)
    assert np.allclose(h - h[0], plan.bias, atol=1e-8)


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
    plan = policy_iteration(mdp)
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
    plan = policy_iteration(Maze(text).mdp())
    assert plan.upper - plan.lower < 1e-9


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


def test_the_bounds_hold_for_huge_h() -> None:
    """An h of 1e12 loses digits; the bounds allow for it and contain 1/4."""
    lower, upper = gain_bounds(chain_mdp(4), policy_iteration(chain_mdp(4)).bias + 1e12)
    assert lower <= 0.25 <= upper


# -- which states can be reached ---------------------------------------------------------------


def one_way_mdp() -> MDP:
    """Action 1 leads from A to B, which is never left: ρ* is 1 from A and 0 from B."""
    return MDP([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[1, 0], [0, 0]], states=["A", "B"])


def two_islands() -> MDP:
    p = np.zeros((8, 1, 8))
    p[:5, 0, :5], p[5:, 0, 5:] = 1 / 5, 1 / 3
    return MDP(p, np.zeros((8, 1)))


@pytest.mark.parametrize(
    ("mdp", "message"),
    [
        (one_way_mdp(), "for ever in state 'A', but no policy leads back there from state 'B'"),
        (two_islands(), "states 0, 1, 2 and 2 more to states 5, 6, 7, nor"),
    ],
)
def test_errors_name_the_states_that_cannot_be_reached(mdp: MDP, message: str) -> None:
    with pytest.raises(NotCommunicating, match=message):
        require_weakly_communicating(mdp)


def test_a_transient_state_is_allowed() -> None:
    require_weakly_communicating(MDP([[[0, 1]], [[0, 1]]], [[0], [0]]))


@pytest.mark.parametrize("mdp", [
    *(Maze(name).mdp() for name in LAYOUTS), random_mdp(20, 2, concentration=0.01, seed=1),
])  # fmt: skip
def test_shipped_maps_and_random_problems_are_communicating(mdp: MDP) -> None:
    assert [len(states) for states in closed_classes(mdp)] == [len(mdp.states)]
