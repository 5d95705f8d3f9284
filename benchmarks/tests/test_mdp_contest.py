"""The worlds of the MDP contest, its scores, and equal results twice."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.arena.contest import Result
from benchmarks.arena.mdp_contest import (
    AGENTS,
    EPISODIC,
    ORACLE,
    RULE,
    SCENARIOS,
    WORLDS,
    DeepSea,
    contestants_of,
    deep_sea,
    frozen_lake,
    prepare,
    rewards_of,
    river_swim,
    scores_of,
    start_of,
    steps_world,
)
from benchmarks.arena.second_score import play_for_two_scores

from bayescontrol import interact
from bayescontrol.lab.progress import Silent
from bayescontrol.mdp import policy_iteration
from bayescontrol.seeding import Stream


def test_river_swim_has_the_published_optimum() -> None:
    # Swimming right: a birth-death chain, whose stationary probability of the last state, times
    # the 0.6 with which it stays there, is the gain.
    up, down = np.array([0.6, 0.35, 0.35, 0.35, 0.35]), np.array([0.05, 0.05, 0.05, 0.05, 0.4])
    weights = np.cumprod(np.append(1.0, up / down))
    assert policy_iteration(river_swim()).gain == pytest.approx(0.6 * weights[-1] / weights.sum())


def test_deep_sea_pays_only_for_going_right_all_the_way() -> None:
    sea = DeepSea(3)
    sea.reset()
    assert [sea.step(1)[1:3] for _ in range(3)] == [
        (-0.01 / 3, False), (-0.01 / 3, False), (1.0 - 0.01 / 3, True)
    ]  # fmt: skip
    assert policy_iteration(deep_sea(3)).gain == pytest.approx(0.99 / 3)


def test_the_frozen_lake_as_a_table_has_the_known_success_rate() -> None:
    # The best policy reaches the goal in 82 % of episodes, but slowly; the optimum per step is of
    # another policy, so only bounds are known.
    plan = policy_iteration(frozen_lake())
    assert 0.01 < plan.gain < 0.82 / 16


def test_scores_of_an_agent_that_learns_at_once_late_or_never() -> None:
    always, late, never = np.ones(100), np.repeat([0.0, 1.0], 50), np.zeros(100)
    assert scores_of(always, 1.0) == (1.0, 0.0)
    assert scores_of(late, 1.0) == (1.0, 48.0)  # 50 of 52 steps are 96 %
    assert scores_of(never, 1.0) == (0.0, 100.0)


def test_the_optimal_policy_earns_the_optimum() -> None:
    for world in ("deep sea", "corridor"):
        rewards = rewards_of(world, ORACLE, seed=0, run=0, steps=20_000)()
        assert rewards.mean() == pytest.approx(start_of(world, 0, 0).plan.gain, rel=0.05)


@pytest.mark.parametrize("world", SCENARIOS)
def test_every_contestant_plays_and_repeats_its_rewards(world: str) -> None:
    for contestant in contestants_of(world):
        first, second = (
            rewards_of(world, contestant.player, seed=3, run=1, steps=30)() for _ in range(2)
        )
        assert len(first) == 30
        assert np.array_equal(first, second), contestant.name


def test_deciding_one_by_one_gives_the_rewards_of_the_compiled_loop() -> None:
    start = start_of("corridor", 0, 0)
    streams = (
        Stream.named(0, 0, f"corridor: {RULE}"),
        Stream.named(0, 0, "corridor: environment"),
    )
    compiled = interact(AGENTS[RULE](start), start.mdp.environment(start.x), 200, streams=streams)
    one_by_one = rewards_of("corridor", RULE, seed=0, run=0, steps=200)()
    assert np.array_equal(one_by_one, compiled.observations["reward"])


def test_random_problems_differ_between_runs_but_not_between_contestants() -> None:
    tables = [start_of("random MDP", 0, run).mdp.probability for run in (0, 0, 1)]
    assert np.array_equal(tables[0], tables[1])
    assert not np.array_equal(tables[0], tables[2])


def test_each_world_compares_the_agent_that_the_documentation_recommends() -> None:
    names = {world.name: world.ours for world in WORLDS}
    assert names["river swim"] == RULE
    assert names["frozen lake"] == names[steps_world("frozen lake")] == EPISODIC
    for world in WORLDS:
        if world.name in SCENARIOS:
            assert world.ours in {c.name for c in contestants_of(world.name) if c.is_ours}


def test_a_process_writes_the_second_score(tmp_path: Path) -> None:
    request = {
        "world": "corridor", "player": RULE, "seed": 0, "steps": 40, "folder": str(tmp_path)
    }  # fmt: skip
    share = prepare(request, 0)()
    assert np.isfinite(share)
    (file,) = tmp_path.iterdir()
    assert 0 <= float(file.read_text()) <= 40


def test_the_second_score_becomes_a_result_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    world = next(w for w in WORLDS if w.name == "corridor")
    pair = (world, contestants_of("corridor")[0])

    def played(
        pairs: object, quick: bool, seed: int, progress: object, settings: dict[str, str]
    ) -> Iterator[Result]:
        request = {"world": "corridor", "player": RULE, "seed": seed, "steps": 40, **settings}
        scores = tuple(prepare(request, run)() for run in range(2))
        yield Result(world.topic, world.name, RULE, True, "1", scores)

    monkeypatch.setattr("benchmarks.arena.second_score.play_all", played)
    both = list(play_for_two_scores([pair], steps_world, True, 0, Silent()))
    assert [r.world for r in both] == ["corridor", "corridor: steps to 95 %"]
    assert all(len(r.scores) == 2 for r in both)
