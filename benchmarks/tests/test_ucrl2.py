"""UCRL2 compared with a plain transcription of the paper's figures, and its average reward."""

import math
from typing import Any

import numpy as np
import pytest
from benchmarks.arena import UCRL2
from benchmarks.arena.agents.ucrl2 import extended_value_iteration, optimistic

from bayescontrol import interact
from bayescontrol._arrays import FloatArray
from bayescontrol.errors import BadEvidence, IncompatibleState, UnknownAction, UnknownState
from bayescontrol.mdp import MDP, Maze, chain_mdp, gain_and_bias
from bayescontrol.seeding import Stream
from bayescontrol.testing import check_probes, check_resume, check_same_seed

TWO_STATES = MDP(
    [[[1.0, 0.0], [0.1, 0.9]], [[0.9, 0.1], [0.2, 0.8]]],
    [[0.2, 0.0], [0.0, 1.0]],
    states=["cold", "warm"],
    actions=["rest", "work"],
)


# -- the algorithm, transcribed ----------------------------------------------------------------


def inner_maximum(p_hat: FloatArray, d: float, u: FloatArray) -> float:
    """Figure 2 of Jaksch, Ortner & Auer."""
    order, p = np.argsort(-u, kind="stable"), p_hat.copy()
    p[order[0]] = min(1.0, p_hat[order[0]] + d / 2.0)
    lowest = len(order) - 1
    while p.sum() > 1.0 + 1e-15 and lowest > 0:
        y = order[lowest]
        p[y] = max(0.0, 1.0 - (p.sum() - p[y]))
        lowest -= 1
    return float(p @ u)


def transcribed(mdp: MDP, steps: int, delta: float = 0.05, doubling: bool = True) -> list[int]:
    """Figure 1: the actions in a deterministic world with rewards in [0, 1]."""
    X, A = mdp.allowed.shape
    N, S, C = np.zeros((X, A)), np.zeros((X, A)), np.zeros((X, A, X))
    next_state, reward = mdp.transition.argmax(2), mdp.reward
    x, t = 0, 1
    actions: list[int] = []
    while t <= steps:
        n = np.maximum(1.0, N)
        r = S / n + np.sqrt(7.0 * math.log(2 * X * A * t / delta) / (2.0 * n))
        d = np.sqrt(14.0 * X * math.log(2 * A * t / delta) / n)
        p_hat = np.where(N[:, :, None] > 0.0, C / n[:, :, None], 1.0 / X)
        u, gap = np.zeros(X), math.inf
        while gap >= 1.0 / math.sqrt(t):
            q = np.array([
                [r[s, a] + inner_maximum(p_hat[s, a], d[s, a], u) for a in range(A)]
                for s in range(X)
            ])  # fmt: skip
            rise = q.max(1) - u
            gap, u = float(np.ptp(rise)), q.max(1) - q.max(1).min()
        policy, v = q.argmax(1), np.zeros((X, A))
        while t <= steps and v[x, policy[x]] < (max(1.0, N[x, policy[x]]) if doubling else 1.0):
            a = policy[x]
            y = next_state[x, a]
            v[x, a] += 1.0
            S[x, a] += reward[x, a]
            C[x, a, y] += 1.0
            actions.append(int(a))
            x, t = y, t + 1
        N += v
    return actions


@pytest.mark.parametrize(("k", "steps"), [(2, 1_000), (3, 2_000), (6, 2_000)])
def test_actions_follow_the_figures_of_the_paper(k: int, steps: int) -> None:
    mdp = chain_mdp(k)
    record = interact(UCRL2.on(mdp), mdp.environment(), steps, seed=0)
    assert record.actions.tolist() == transcribed(mdp, steps)


def test_the_comparison_detects_wrong_episode_lengths_and_confidence() -> None:
    mdp = chain_mdp(6)
    ours = interact(UCRL2.on(mdp), mdp.environment(), 500, seed=0).actions.tolist()
    assert ours == transcribed(mdp, 500)
    assert ours != transcribed(mdp, 500, doubling=False)
    assert ours != transcribed(mdp, 500, delta=1e-9)


def test_confidence_radii_are_as_printed() -> None:
    agent = UCRL2(3, 2, delta=0.1)
    for _ in range(4):
        agent.observe(0, (1.0, 0))
    P, r, d = agent.plausible()
    t = 5
    assert P[0, 0].tolist() == [1.0, 0.0, 0.0]
    assert r[0, 0] == pytest.approx(1.0 + math.sqrt(7 * math.log(2 * 3 * 2 * t / 0.1) / 8))
    assert d[0, 0] == pytest.approx(math.sqrt(14 * 3 * math.log(2 * 2 * t / 0.1) / 4))
    assert d[1, 1] == 2.0  # never tried, so any successor is plausible
    halved = UCRL2(3, 2, delta=0.1, confidence=0.5)
    for _ in range(4):
        halved.observe(0, (1.0, 0))
    assert halved.plausible()[2][0, 0] == pytest.approx(d[0, 0] / 2)


def test_scaling_rewards_and_bounds_changes_no_action() -> None:
    mdp = chain_mdp(3)
    scaled = MDP(mdp.transition, 20.0 * mdp.reward - 10.0)
    ours, theirs = (interact(UCRL2.on(m), m.environment(), 800, seed=0) for m in (mdp, scaled))
    assert (ours.actions == theirs.actions).all()


# -- average reward ------------------------------------------------------------------------------


def test_the_printed_algorithm_reaches_the_optimum_with_two_states() -> None:
    """ρ* = 9/11 = .818. Steps 15,000 to 20,000 of 10 runs: .801 to .824; .76 is 6 standard
    deviations (.0065) and more below their mean.
    """
    record = interact(UCRL2.on(TWO_STATES), TWO_STATES.environment(), 20_000, seed=0)
    assert record.observations["reward"][-5_000:].mean() > 0.76


def test_small_confidence_comes_close_to_the_optimum_on_three_cups() -> None:
    """ρ* = .3652. Steps 10,000 to 20,000 of 8 runs with c = .01: .353 to .379, standard deviation
    .008; .31 is 6 of them below their mean.
    """
    mdp = Maze().mdp()
    record = interact(UCRL2.on(mdp, confidence=0.01), mdp.environment(), 20_000, seed=0)
    assert record.observations["reward"][-10_000:].mean() > 0.31


def test_without_optimism_it_keeps_the_first_rewarding_action() -> None:
    # The second action pays more, one step later. The planted bug: c = 0.
    mdp = MDP([[[1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]], [[0, 0, 1], [1, 0, 0]]],
              [[0.3, 0.0], [0.3, 0.0], [1.0, 0.0]])  # fmt: skip
    earned = [
        interact(UCRL2.on(mdp, confidence=c), mdp.environment(), 20_000, seed=0)
        .observations["reward"][-2_000:].mean()
        for c in (1.0, 0.1)
    ]  # fmt: skip
    assert min(earned) > 0.9
    agent = UCRL2.on(mdp, confidence=0.0)
    for a, o in ((0, (0.3, 0)), (1, (0.0, 1)), (0, (0.3, 0)), (1, (0.0, 1)), (1, (0.0, 0))):
        agent.observe(a, o)  # the observations suggest that the second action pays nothing
    stuck = interact(agent, mdp.environment(), 500, seed=0)
    assert stuck.observations["reward"].mean() == pytest.approx(0.3)


# -- agent interface -----------------------------------------------------------------------------


def test_the_laws_of_acting_hold_and_no_random_number_is_drawn() -> None:
    def make() -> UCRL2:
        return UCRL2.on(TWO_STATES)

    world = TWO_STATES.environment
    check_same_seed(make, world)
    check_probes(make, world, {})
    for at in (0, 1, 50, 100):
        check_resume(make, world, at=at)
    agent, rng = make(), Stream(0)
    agent.act(rng)
    assert rng == Stream(0)


def test_only_actions_that_a_state_offers_are_taken() -> None:
    may = np.array([[True, False], [True, True]])
    mdp = MDP(np.full((2, 2, 2), 0.5), [[0.0, 1.0], [0.0, 1.0]], allowed=may)
    record = interact(UCRL2.on(mdp), mdp.environment(), 300, seed=0)
    x = np.append(0, record.observations["state"][:-1])
    assert (record.actions[x == 0] == 0).all()


def test_bad_observations_are_refused_and_change_nothing() -> None:
    agent = UCRL2.on(TWO_STATES, start="warm")
    agent.act(Stream(0))
    before = {name: array.tobytes() for name, array in agent.save().items()}
    cases: list[tuple[Any, Any, type[Exception], str]] = [
        ("work", (math.nan, "cold"), BadEvidence, "reward nan after action 'work' in state 'warm'"),
        ("work", (1.5, "cold"), BadEvidence, "reward 1.5 after action 'work' in state 'warm'"),
        ("work", (0.0,), BadEvidence, r"expected \(reward, state\)"),
        ("play", (0.0, "cold"), UnknownAction, "'play'"),
        ("work", (0.0, "hot"), UnknownState, "'hot'"),
    ]
    for a, o, error, message in cases:
        with pytest.raises(error, match=message):
            agent.observe(a, o)
    assert before == {name: array.tobytes() for name, array in agent.save().items()}


def test_bad_settings_and_foreign_states_are_refused() -> None:
    for bad in ({"bounds": (1.0, 1.0)}, {"delta": 0.0}, {"confidence": -1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            UCRL2(2, 2, **bad)
    agent = UCRL2.on(TWO_STATES)
    saved = agent.save()
    for arrays in (
        UCRL2.on(TWO_STATES, delta=0.1).save(),
        {**saved, "x": np.array(7)},
        {**saved, "policy": np.array([5, 5])},
        {**saved, "tried": -saved["tried"] - 1.0},
    ):
        with pytest.raises(IncompatibleState):
            agent.load(arrays)


def test_a_copy_is_independent() -> None:
    agent = UCRL2.on(TWO_STATES)
    twin = agent.copy()
    twin.observe("work", (1.0, "warm"))
    assert (agent.x, twin.x) == ("cold", "warm")


def by_linear_programming(p: FloatArray, d: float, u: FloatArray) -> float:
    """max q·u with q = p + s - t, Σ (s + t) ≤ d."""
    from scipy.optimize import linprog  # type: ignore[import-untyped]

    k = p.size
    eye = np.eye(k)
    result: Any = linprog(
        np.concatenate([-u, u]),
        A_ub=np.vstack([np.ones(2 * k), np.hstack([-eye, eye])]),
        b_ub=np.concatenate([[d], p]),
        A_eq=[np.concatenate([np.ones(k), -np.ones(k)])],
        b_eq=[0.0],
    )
    return float(p @ u - result.fun)


@pytest.mark.parametrize("seed", range(8))
def test_the_optimistic_distribution_agrees_with_linear_programming(seed: int) -> None:
    rng = Stream(seed)
    p = np.asarray(rng.gamma(0.3, size=5))
    p /= p.sum()
    u = np.asarray(rng.normal(size=5))
    for d in (0.0, 0.2, 0.9, 1.7, 3.0):
        ours = optimistic(p, d, u, np.argsort(u))
        assert ours == pytest.approx(by_linear_programming(p, d, u), abs=1e-9)


def test_without_uncertainty_extended_value_iteration_is_value_iteration() -> None:
    mdp = Maze().mdp()
    policy, u = np.empty(49, np.int64), np.zeros(49)
    nothing = np.zeros(mdp.allowed.shape)
    sweeps = extended_value_iteration(mdp.transition, mdp.reward, nothing, 1e-9, 10_000, policy, u)
    assert sweeps < 10_000
    assert gain_and_bias(mdp, policy).gain == pytest.approx(0.36516191550, abs=1e-9)
    assert u.min() == 0.0
