"""R-learning and Q-learning, compared with their equations in plain Python."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol import Stream
from bayescontrol.kernels import td
from bayescontrol.kernels.mdp import STEP, MdpRun
from bayescontrol.kernels.random import Streams
from bayescontrol.mdp import random_mdp

INF = math.inf


def r_values(Q: Any, C: float = 30.0, F: Any = None, rho: float = 0.0) -> td.RArrays:
    values = np.array(Q, np.float64)
    tried = np.zeros_like(values) if F is None else np.array(F, np.float64)
    bonus = np.where(np.isneginf(values), 0.0, INF)
    np.divide(C, tried, out=bonus, where=tried > 0.0)
    return td.RArrays(values, tried, bonus, np.array([rho]))


def r_how(**changes: Any) -> td.RSettings:
    usual = {"C": 30.0, "p_exp": 1.0, "alpha": 0.5, "beta": 0.1}
    return td.RSettings(**{**usual, "otherwise_random": False, "greedy_only": False, **changes})


def test_r_learning_uses_the_old_values_on_the_right_hand_side() -> None:
    """M(y) = Q(x,a) = 3, since y = x. With the new Q(x,a) = 3.4, ρ would be .24."""
    v = r_values([[1.0, 3.0]], rho=0.2)
    assert td.r_learn(v, r_how(), 0, 1, 1.0, 0)
    assert v.Q[0, 1] == pytest.approx(0.5 * 3.0 + 0.5 * (1.0 - 0.2 + 3.0))
    assert v.rho[0] == pytest.approx(0.9 * 0.2 + 0.1 * (1.0 + 3.0 - 3.0))
    assert v.rho[0] == pytest.approx(0.28)
    assert (v.F[0, 1], v.bonus[0, 1], v.Q[0, 0]) == (1.0, 30.0, 1.0)


def test_rho_learns_from_every_action_or_from_greedy_ones_only() -> None:
    for greedy_only, a, learns in [(False, 0, 1), (False, 1, 1), (True, 0, 0), (True, 1, 1)]:
        v = r_values([[1.0, 3.0], [0.0, 0.0]])
        td.r_learn(v, r_how(greedy_only=greedy_only), 0, a, 5.0, 1)
        assert (v.rho[0] != 0.0) == bool(learns)
        assert v.Q[0, a] == 0.5 * (1.0, 3.0)[a] + 0.5 * 5.0


def test_a_tie_of_best_actions_counts_as_best() -> None:
    v = r_values([[2.0, 2.0], [0.0, 0.0]])
    td.r_learn(v, r_how(greedy_only=True), 0, 1, 5.0, 1)
    assert v.rho[0] == 0.1 * (5.0 - 2.0)


def test_untried_actions_come_first_in_order_then_the_bonus_decides() -> None:
    Q, rng = [[0.0, 5.0, 1.0, -INF]], Stream(0)
    F = [[0.0, 0.0, 0.0, 0.0]]
    chosen = []
    for _ in range(3):
        v = r_values(Q, F=F)
        chosen.append(td.r_choose(v, r_how(), 0, rng.state))
        F[0][chosen[-1]] += 1.0
    assert chosen == [0, 1, 2]
    assert td.r_choose(r_values(Q, F=[[2.0, 2.0, 2.0, 0.0]]), r_how(), 0, rng.state) == 1
    # 0 + 30/2 = 15 against 5 + 30/4 = 12.5 and 1 + 30/3 = 11.
    assert td.r_choose(r_values(Q, F=[[2.0, 4.0, 3.0, 0.0]]), r_how(), 0, rng.state) == 0
    assert rng == Stream(0)  # no random number was used


@pytest.mark.parametrize("random", [False, True])
def test_exploration_has_its_probability_and_selects_as_requested(random: bool) -> None:
    """False-alarm rate: each count is off by 5 standard deviations, below 1e-5 in all."""
    v = r_values([[0.0, 5.0, 1.0, -INF]], F=[[1.0, 50.0, 50.0, 0.0]])  # uncertain: 0; best: 1
    how, rng, n = r_how(p_exp=0.7, otherwise_random=random), Stream(3), 20_000
    counts = np.bincount([td.r_choose(v, how, 0, rng.state) for _ in range(n)], minlength=4)
    expected = [0.7 + 0.1, 0.1, 0.1, 0.0] if random else [0.7, 0.3, 0.0, 0.0]
    for count, p in zip(counts, expected, strict=True):
        assert abs(count - n * p) <= 5.0 * math.sqrt(n * p * (1.0 - p))


def test_q_learning_follows_its_equation_and_epsilon_decays() -> None:
    v = td.QArrays(np.array([[1.0, 3.0], [4.0, -INF]]), np.array([0.5]))
    assert td.q_learn(v, td.QSettings(0.9, 0.25, 0.8), 0, 0, 2.0, 1)
    assert v.Q[0, 0] == 0.75 * 1.0 + 0.25 * (2.0 + 0.9 * 4.0)
    assert v.epsilon[0] == 0.5 * 0.8


def test_epsilon_greedy_takes_any_offered_action_with_probability_epsilon() -> None:
    """False-alarm rate: each count is off by 5 standard deviations, below 1e-5 in all."""
    v = td.QArrays(np.array([[0.0, 5.0, -INF, 1.0]]), np.array([0.3]))
    rng, n = Stream(4), 20_000
    counts = np.bincount([td.q_choose(v, 0, rng.state) for _ in range(n)], minlength=4)
    for count, p in zip(counts, [0.1, 0.8, 0.0, 0.1], strict=True):
        assert abs(count - n * p) <= 5.0 * math.sqrt(n * p * (1.0 - p))


@given(st.lists(st.floats(-1e6, 1e6) | st.just(-INF), min_size=1, max_size=6))
def test_the_best_action_is_the_first_of_the_largest(row: list[float]) -> None:
    Q = np.array([row])
    assert td.best_action(Q, 0) == int(np.argmax(row))
    assert td.top(Q, 0) == max(row)


def test_overflowing_values_are_refused_and_change_nothing() -> None:
    v = r_values([[1e308, 0.0]], rho=-1e308)
    before = [array.copy() for array in v]
    assert not td.r_learn(v, r_how(), 0, 1, 1e308, 0)
    assert all((a == b).all() for a, b in zip(v, before, strict=True))
    q = td.QArrays(np.array([[1.7e308]]), np.array([0.5]))
    assert not td.q_learn(q, td.QSettings(0.9, 0.5, 0.5), 0, 0, 1.7e308, 0)
    assert (q.Q[0, 0], q.epsilon[0]) == (1.7e308, 0.5)


def plain_r_learning(mdp: Any, steps: int, C: float, *, bug: str = "") -> tuple[list[Any], float]:
    """The printed equations with lists and dictionaries; `bug` plants a bug."""
    X, A = range(len(mdp.states)), range(len(mdp.actions))
    Q = {(x, a): 0.0 for x in X for a in A}
    F = dict.fromkeys(Q, 0)
    world, rng, x, rho, alpha, beta = mdp.environment(), Stream(2), 0, 0.0, 0.5, 0.001
    done = []
    for _ in range(steps):
        score = {a: Q[x, a] + C / F[x, a] if F[x, a] else INF for a in A}
        a = max(A, key=score.__getitem__)
        r, y = world.respond(a, rng)
        M, q = max(Q[y, b] for b in A), Q[x, a]
        Q[x, a] = (1.0 - alpha) * q + alpha * (r - rho + M)
        if bug == "new Q in rho":
            M, q = max(Q[y, b] for b in A), Q[x, a]
        if bug == "no Q in rho":
            q = 0.0
        rho = (1.0 - beta) * rho + beta * (r + M - q)
        F[x, a] += 1
        done.append((a, r, y))
        x = y
    return done, rho


@pytest.mark.parametrize("bug", ["", "new Q in rho", "no Q in rho"])
def test_the_loop_follows_the_equations_and_planted_bugs_are_detected(bug: str) -> None:
    mdp, steps = random_mdp(5, 3, seed=1), 3_000
    expected, rho = plain_r_learning(mdp, steps, 3.0, bug=bug)
    v = r_values(np.zeros((5, 3)))
    actions, rows = np.empty(steps, int), np.empty(steps, STEP)
    streams = Streams(Stream(1).state, Stream(2).state)
    run = MdpRun(mdp.tables, np.arange(5), streams, actions, rows)
    done, at = td.r_interact(v, r_how(C=3.0, beta=0.001), run, 0, 0)
    assert (done, at) == (steps, rows["state"][-1])
    ours = [(a, *row) for a, row in zip(actions.tolist(), rows.tolist(), strict=True)]
    assert ((ours, float(v.rho[0])) == (expected, rho)) == (not bug)


def test_a_loop_stops_at_a_state_without_a_number_before_it_learns() -> None:
    mdp = random_mdp(4, 2, seed=0)
    number = np.array([0, -1, -1, -1])
    v = r_values(np.zeros((1, 2)))
    actions, rows = np.empty(50, int), np.empty(50, STEP)
    run = MdpRun(mdp.tables, number, Streams(Stream(1).state, Stream(2).state), actions, rows)
    done, at = td.r_interact(v, r_how(), run, 0, 0)
    assert done < 50
    assert at == rows["state"][done] != 0
    assert (rows["state"][:done] == 0).all()
    assert v.F.sum() == done
