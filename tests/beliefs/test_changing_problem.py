"""Worlds that change: which world answers, regret, compiled loops, and errors."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import BernoulliBandit, LinearBandit, Stream, compare, interact, metrics
from bayescontrol.beliefs.changing_problem import ChangingEnvironment
from bayescontrol.errors import BadEvidence, InvalidTable, MissingCapability
from bayescontrol.lqr import LinearQuadratic, LinearSystem

BANDIT = BernoulliBandit(["red", "blue"])


def world() -> Any:
    return BANDIT.changing().environment([0.0, 1.0], changes={3: [1.0, 0.0], 7: [1.0, 1.0]})


def test_each_world_answers_from_its_step_on() -> None:
    answers = [int(world_.respond("red", Stream(0))) for world_ in [world()] for _ in range(9)]
    assert answers == [0, 0, 0, 1, 1, 1, 1, 1, 1]


def test_regret_uses_the_means_of_each_step() -> None:
    record = interact(BANDIT.agent(), world(), 9, seed=0)
    assert [w.means().tolist() for w in world().worlds_of(record).values()] == [
        [0, 1], [1, 0], [1, 1],
    ]  # fmt: skip
    wrong = (record.actions == "red") == (np.arange(9) < 3)
    wrong[7:] = False
    assert metrics.regret(record, world())[-1] == wrong.sum()


@pytest.mark.parametrize("steps", [2, 3, 5, 12])
def test_compiled_loops_give_the_same_run(steps: int) -> None:
    fast, slow = BANDIT.agent(), BANDIT.agent()
    record = interact(fast, world(), steps, seed=4)
    stepwise = interact(slow, world(), steps, seed=4, probes=["posterior"])
    assert record.actions.tolist() == stepwise.actions.tolist()
    assert record.observations.tolist() == stepwise.observations.tolist()


def test_a_run_can_be_continued_across_a_change() -> None:
    agent, same, streams = BANDIT.agent(), world(), (Stream(1), Stream(2))
    parts = [interact(agent, same, n, streams=streams) for n in (2, 4, 3)]
    whole = interact(BANDIT.agent(), world(), 9, streams=(Stream(1), Stream(2)))
    assert np.concatenate([part.actions for part in parts]).tolist() == whole.actions.tolist()


def test_the_context_of_a_world_survives_a_change() -> None:
    bandit = LinearBandit(2, features=2, sd=0.01, prior=(0, 1))
    changing = bandit.changing().environment(
        [[1, 0], [0, 0]], start=[1.0, 2.0], changes={1: [[0, 1], [0, 0]]}
    )
    reward, _ = changing.respond(0, Stream(0))
    context = changing.start
    later, _ = changing.respond(0, Stream(1))
    assert reward == pytest.approx(1.0, abs=0.1)
    assert later == pytest.approx(context[1], abs=0.1)


def test_the_state_of_a_plant_survives_a_change() -> None:
    one, two = (LinearSystem([[a]], [[1.0]], [[1.0]], [[1.0]], W=[[1e-12]]) for a in (1.0, 2.0))
    plant = LinearQuadratic.on(one, start=[3.0]).changing().environment(one, changes={1: two})
    first, second = (plant.respond([0.0], Stream(0)).item() for _ in range(2))
    assert (first, second) == pytest.approx((3.0, 6.0), abs=1e-3)


def test_drawn_worlds_change_at_the_stated_rate() -> None:
    # The number of changes is binomial: 4 sigma, false alarm 6e-5.
    changes = len(BANDIT.changing().draw(0, rate=0.01, steps=40_000).worlds) - 1
    assert abs(changes - 400) < 4 * np.sqrt(400 * 0.99)


def test_agents_can_be_compared_in_a_changing_world() -> None:
    agents = {"changing": BANDIT.changing().agent, "static": BANDIT.agent}
    long = BANDIT.changing().environment([0.2, 0.8], changes={300: [0.8, 0.2]})
    result = compare(agents, long, steps=600, runs=6, seed=0, progress=False)
    scores = result.scores
    assert scores["changing"].mean() < scores["static"].mean()


def test_bad_worlds_are_refused() -> None:
    with pytest.raises(InvalidTable, match="must begin at 0"):
        ChangingEnvironment({1: BANDIT.environment([0, 1])})
    with pytest.raises(MissingCapability, match="change_to"):
        ChangingEnvironment({0: object()})
    with pytest.raises(InvalidTable, match="the same arms"):
        ChangingEnvironment(
            {0: BANDIT.environment([0, 1]), 1: BernoulliBandit(2).environment([0, 1])}
        )
    used = world()
    record = interact(BANDIT.agent(), used, 3, seed=0)
    interact(BANDIT.agent(), used, 3, seed=0)
    with pytest.raises(BadEvidence, match="answered 6 steps, the record has 3"):
        metrics.regret(record, used)
    with pytest.raises(InvalidTable, match=r"rate=2\.0: it must be in"):
        BANDIT.changing().draw(0, rate=2.0, steps=5)
    plant = LinearQuadratic([[1.0]], [[1.0]]).changing()
    with pytest.raises(MissingCapability, match="environment"):
        plant.draw(0, rate=0.1, steps=5)


@pytest.mark.parametrize("per_arm", [False, True])
def test_the_settings_make_the_same_problem_again(per_arm: bool) -> None:
    options = {"hazards": [0.1, 0.01], "hazard_prior": [0.9, 0.1], "starts": 5, "window": 7}
    problem = BernoulliBandit(2).changing(per_arm=per_arm, **options)
    stored = {k: v for k, v in problem.settings().items() if k not in ("problem", "settings")}
    again = BernoulliBandit(2).changing(**stored)
    one, two = problem.belief(), again.belief()
    assert one.hazards() == two.hazards()
    assert (one.most_starts, one.window, type(one)) == (two.most_starts, two.window, type(two))


def test_a_changing_problem_cannot_change_again() -> None:
    for problem in (BernoulliBandit(2), LinearBandit(2, features=1, sd=1, prior=(0, 1))):
        with pytest.raises(MissingCapability, match="changes already"):
            problem.changing(window=5).changing(window=9)
