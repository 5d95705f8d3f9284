"""Schedules: when a new mode is drawn."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescontrol import BernoulliBandit, ControlRule, DiscreteMode, FiniteBelief, Stream
from bayescontrol.finite.tabular import random_modes
from bayescontrol.schedules import (
    Every,
    Geometric,
    Held,
    MinimumDwell,
    Schedule,
    WhenSituationReturns,
    doubling,
    every_step,
)


def draws(
    schedule: Schedule, steps: int, situation: Callable[[int], Any] = lambda t: t
) -> list[int]:
    """Return the times t at which an agent with this schedule draws a mode."""

    class Counting(FiniteBelief[DiscreteMode[Any, int, int]]):
        def sample(self, rng: Any) -> DiscreteMode[Any, int, int]:
            times.append(len(acted))
            return super().sample(rng)

    times: list[int] = []
    acted: list[int] = []
    mode: DiscreteMode[Any, int, int] = DiscreteMode(lambda _x: {0: 1.0}, lambda _x, _a: {0: 1.0})
    agent: ControlRule[Any, Any, int, int] = ControlRule(
        Counting([mode]), situation(0), lambda _x, _a, _o: situation(len(acted)), schedule
    )
    rng = Stream(0)
    for _ in range(steps):
        a = agent.act(rng)
        acted.append(a)
        agent.observe(a, 0)
    return times


def odd_times(held: Held[Any], rng: object) -> bool:
    return held.t % 2 == 1


def cycle(length: int) -> Callable[[int], Any]:
    return lambda t: t % length


def array_cycle(t: int) -> Any:
    return np.array([t % 3, 1])


@pytest.mark.parametrize(
    ("schedule", "steps", "situation", "times"),
    [
        (every_step, 6, cycle(6), [0, 1, 2, 3, 4, 5]),
        (doubling, 40, cycle(40), [0, 1, 2, 4, 8, 16, 32]),
        (WhenSituationReturns(), 10, cycle(3), [0, 3, 6, 9]),
        (WhenSituationReturns(home=2), 10, cycle(4), [0, 2, 6]),
        (WhenSituationReturns(), 7, array_cycle, [0, 3, 6]),
        (WhenSituationReturns(home=np.array([1, 1])), 7, array_cycle, [0, 1, 4]),
        (MinimumDwell(4), 10, cycle(10), [0, 4, 8]),
        (MinimumDwell(4, Every(3)), 13, cycle(13), [0, 4, 8, 12]),
        (MinimumDwell(4, WhenSituationReturns()), 16, cycle(3), [0, 6, 12]),
        (Geometric(1.0), 5, cycle(5), [0, 1, 2, 3, 4]),
        (odd_times, 6, cycle(6), [0, 1, 3, 5]),  # any function is a schedule
    ],
)
def test_modes_are_drawn_at_the_times_of_the_schedule(
    schedule: Schedule, steps: int, situation: Callable[[int], Any], times: list[int]
) -> None:
    assert draws(schedule, steps, situation) == times


@given(st.integers(1, 9))
def test_every_k_draws_at_multiples_of_k(k: int) -> None:
    assert draws(Every(k), 40) == list(range(0, 40, k))


def test_a_geometric_schedule_holds_for_one_over_p_steps_on_average() -> None:
    """100,000 steps at p = .2: the number of draws is binomial; false alarm 1e-6 (4.9 errors)."""
    n, p = 100_000, 0.2
    rng, schedule = Stream(1), Geometric(p)
    drawn = sum(schedule(Held(1, 1, None, None), rng) for _ in range(n))
    assert abs(drawn - n * p) < 4.9 * (n * p * (1 - p)) ** 0.5


@pytest.mark.parametrize(
    "make_invalid",
    [lambda: Every(0), lambda: Geometric(0.0), lambda: Geometric(1.5), lambda: MinimumDwell(0)],
)
def test_an_invalid_schedule_is_refused(make_invalid: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"="):
        make_invalid()


# -- retired while held ------------------------------------------------------------------------

HOLDING = [doubling, MinimumDwell(50, doubling), Geometric(1e-9), WhenSituationReturns(home=7)]


@pytest.mark.parametrize("schedule", HOLDING, ids=range(len(HOLDING)))
def test_a_retired_mode_no_longer_acts_while_it_is_held(schedule: Schedule) -> None:
    """Before, at and after the retirement the actions have the stated probabilities."""

    def always(name: str) -> DiscreteMode[Any, str, int]:
        return DiscreteMode(lambda _x: {name: 1.0}, lambda _x, _a: {0: 1.0}, name)

    agent: ControlRule[Any, Any, str, int] = ControlRule(
        FiniteBelief([always("left"), always("right")]), schedule=schedule
    )
    rng = Stream(1)
    for _ in range(9):  # `doubling` draws at 8 and holds until 16
        held = agent.act(rng)
        agent.observe(held, 0)
    copied, loaded = agent.copy(), agent.copy()
    agent.belief.retire(held)
    copied.belief.retire(held)
    loaded.load(agent.save())
    (other,) = agent.action_probabilities()
    assert other != held
    twins = [rng.copy(), rng.copy()]
    assert agent.batch(5, rng) == [other] * 5
    assert [copied.batch(5, twins[0]), loaded.batch(5, twins[1])] == [[other] * 5] * 2


def test_a_held_mode_is_kept_when_another_one_is_retired() -> None:
    modes = random_modes(4, actions=4, seed=3)
    agent, rng = modes.agent(schedule=Every(50)), Stream(2)
    agent.act(rng)
    held = agent.mode
    agent.belief.retire(next(m for m in range(4) if m != agent.belief.drawn))
    agent.act(rng)
    assert agent.mode is held


def test_a_held_mode_is_kept_when_actions_are_drawn_without_a_mode() -> None:
    agent, rng = BernoulliBandit(5).agent(schedule=Every(50)), Stream(3)
    held = agent.act(rng)
    for _ in range(20):
        agent.belief.draw_action(None, rng)
    assert agent.batch(20, rng) == [held] * 20
    agent.belief.retire(held)
    assert held not in agent.batch(20, rng)


def test_a_mode_that_has_only_a_retired_arm_is_redrawn() -> None:
    agent, rng = BernoulliBandit(["red"]).agent(schedule=doubling), Stream(0)
    agent.batch(9, rng)
    agent.belief.add("blue")
    agent.belief.retire("red")
    assert agent.batch(5, rng) == ["blue"] * 5
