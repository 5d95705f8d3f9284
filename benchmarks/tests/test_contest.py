"""Contests between packages: the tests, the page, skipped contestants, and equal results twice."""

import datetime
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.arena.bandit_contest import WORLDS
from benchmarks.arena.contest import (
    Contestant,
    Result,
    Size,
    World,
    compare,
    play_all,
    signed_rank_p_value,
)
from benchmarks.arena.page import as_json, page, write_page
from benchmarks.peers import environments
from benchmarks.peers.bandit_worlds import facts, make_run, play, preparer

from bayescontrol._arrays import FloatArray
from bayescontrol.lab.progress import Silent

WORLD = World("games", "dice", "Six sides.", "regret", True, Size(3, 20), Size(4, 30), "ours")


def result(name: str, scores: npt.ArrayLike, skipped: str = "", memory_mb: float = 100.0) -> Result:
    values = tuple(np.asarray(scores, np.float64).tolist())
    is_ours = name == "ours"
    return Result("games", "dice", name, is_ours, f"{name} 1.0", values, 2e-6, memory_mb, skipped)


def noise(seed: int, runs: int = 30) -> FloatArray:
    return np.random.default_rng(seed).normal(size=runs)


# -- the tests ---------------------------------------------------------------------------------


def test_planted_differences_are_found_in_the_right_direction() -> None:
    luck = 10 * noise(1)
    results = [
        result("ours", luck),
        result("weaker", luck + 1 + 0.1 * noise(2)),
        result("stronger", luck - 1 + 0.1 * noise(3)),
        result("equal", luck + 0.1 * noise(4)),
    ]
    verdicts = {c.other: c.verdict for c in compare(WORLD, results)}
    assert verdicts == {
        "weaker": "better",
        "stronger": "worse",
        "equal": "no difference shown",
    }


def test_verdicts_turn_around_where_higher_is_better() -> None:
    world = World("games", "dice", "", "reward", False, Size(3, 20), Size(4, 30), "ours")
    results = [result("ours", noise(1)), result("weaker", noise(1) - 1 - 0.1 * noise(2) ** 2)]
    assert compare(world, results)[0].verdict == "better"


def test_scores_that_are_equal_in_all_runs_but_one_have_a_finite_interval() -> None:
    ours = [0.0] * 15 + [1_000.0]
    (one,) = compare(WORLD, [result("ours", ours), result("slow", [20_000.0] * 16)])
    assert one.verdict == ("better" if WORLD.lower_is_better else "worse")
    assert np.isfinite([one.difference.low, one.difference.high]).all()


def test_wilcoxon_is_exact_for_few_runs() -> None:
    assert signed_rank_p_value([1.0, 2.0, 3.0, 4.0, 5.0]) == 2 / 2**5
    assert signed_rank_p_value([0.0, 0.0, 0.0]) == 1.0


def test_holm_corrects_for_all_contestants_of_a_world() -> None:
    # Five differences of one sign have p = 1/16 at best; six have p = 1/32, significant alone.
    ours = result("ours", np.zeros(6))
    weaker = result("weaker", np.arange(1.0, 7.0))
    (alone,) = compare(WORLD, [ours, weaker])
    assert alone.verdict == "better"
    assert alone.corrected_p_value == pytest.approx(2 / 2**6)
    other = result("other", [1.0, -2.0, 3.0, -4.0, 5.0, -6.0])
    both = compare(WORLD, [ours, weaker, other])
    assert both[0].corrected_p_value == pytest.approx(4 / 2**6)
    assert both[0].verdict == "no difference shown"


def test_false_alarms_stay_below_five_percent_of_worlds() -> None:
    # Eight contestants equal to ours: P(any verdict) <= 5 %. With 200 worlds, more than 21 false
    # alarms have probability below 1e-3.
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(200):
        scores = rng.normal(size=(9, 12)) + rng.normal(size=12)
        names = ["ours", *(f"other {i}" for i in range(8))]
        results = [result(name, row) for name, row in zip(names, scores, strict=True)]
        alarms += any(c.verdict != "no difference shown" for c in compare(WORLD, results))
    assert alarms <= 21


def test_runs_are_paired_where_a_contestant_played_fewer() -> None:
    luck = 10 * noise(1)
    (one,) = compare(WORLD, [result("ours", luck), result("slow", luck[:12] + 1)])
    assert one.runs == 12
    assert float(one.difference.mean) == pytest.approx(-1)


def test_nothing_is_compared_if_ours_did_not_play() -> None:
    assert compare(WORLD, [result("ours", [], skipped="broken"), result("a", [1.0, 2.0])]) == ()


# -- the page ----------------------------------------------------------------------------------


def make_page(results: Sequence[Result]) -> str:
    date = datetime.date(2026, 11, 1)
    return page(results, [WORLD], seed=3, command="python -m benchmarks.arena", date=date)


def test_the_page_shows_losses_wins_and_skipped_contestants() -> None:
    luck = 10 * noise(1)
    text = make_page(
        [
            result("ours", luck),
            result("weaker", luck + 1 + 0.1 * noise(2)),
            result("stronger", luck - 1 + 0.1 * noise(3)),
            result("missing", [], skipped="no | wheel"),
        ]
    )
    assert "| dice | ours | 1 | 0 | 1 | stronger | 1 |" in text
    assert "**worse**: " in text
    assert "**better**: -" in text
    assert "skipped: no / wheel" in text
    assert "2.0 µs | 100 MB" in text
    assert "seed 3" in text
    assert "01 November 2026" in text
    assert "ours 1.0, stronger 1.0, weaker 1.0." in text
    assert text.index("| stronger |") < text.index("| **ours** |") < text.index("| weaker |")


def test_a_page_with_markers_keeps_the_text_around_them(tmp_path: Path) -> None:
    path = tmp_path / "arena.md"
    write_page(path, "one\n")
    assert path.read_text().startswith("# ")
    path.write_text("# Mine\n\n" + path.read_text().split("\n", 2)[2] + "\nAfter.\n")
    write_page(path, "two\n")
    text = path.read_text()
    assert text.startswith("# Mine\n")
    assert text.endswith("After.\n")
    assert "two" in text
    assert "one" not in text


def test_json_has_all_scores_and_no_nan() -> None:
    results = [result("ours", [1.0, 2.0]), result("missing", [], skipped="x", memory_mb=math.nan)]
    content = json.loads(as_json(results, [WORLD], seed=3, command="c"), parse_constant=pytest.fail)
    assert content["results"][0]["scores"] == [1.0, 2.0]
    assert content["results"][1]["memory_mb"] is None
    assert content["seed"] == 3


# -- playing -----------------------------------------------------------------------------------


def test_contestants_that_cannot_play_are_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(environments._failures, "river", "no network")
    pairs = [
        (WORLD, Contestant("river", "river", "benchmarks.peers.river", "Thompson")),
        (WORLD, Contestant("broken", "", "benchmarks.peers.does_not_exist", "x")),
    ]
    river, broken = play_all(pairs, True, 0, Silent())
    assert river.skipped == "no network"
    assert "No module named" in broken.skipped


def test_slow_contestants_play_in_the_full_contest_only() -> None:
    slow = Contestant("slow", "", "benchmarks.peers.bayescontrol", "x", full_only=True)
    (skipped,) = play_all([(WORLD, slow)], True, 0, Silent())
    assert "full" in skipped.skipped


def test_a_contest_of_our_agents_gives_the_same_scores_twice() -> None:
    module = "benchmarks.peers.bayescontrol"
    worlds = {
        "ten Bernoulli arms": "BernoulliBandit",
        "late rewards": "BernoulliBandit",
        "linear, 10 features": "LinearBandit",
    }
    pairs = [
        (
            World("bandits", world, "", "regret", True, Size(2, 120), Size(2, 120), player),
            Contestant(player, "", module, player, is_ours=True),
        )
        for world, player in worlds.items()
    ]
    first, second = (list(play_all(pairs, True, 5, Silent())) for _ in range(2))
    assert [r.skipped for r in first] == ["", "", ""]
    assert [r.scores for r in first] == [r.scores for r in second]
    assert [len(r.scores) for r in first] == [2, 2, 2]
    assert all(r.seconds_per_decision > 0 and r.memory_mb > 10 for r in first)
    assert {r.version.split()[0] for r in first} == {"bayescontrol"}


# -- the worlds of the bandit contests -----------------------------------------------------------


class First:
    """Always pulls arm 0, and records when rewards arrive."""

    def __init__(self) -> None:
        self.decisions = 0
        self.learned: list[tuple[int, float]] = []

    def decide(self, x: object) -> int:
        self.decisions += 1
        return 0

    def learn(self, x: object, a: int, r: float) -> None:
        self.learned.append((self.decisions, r))


@pytest.mark.parametrize("world", [w.name for w in WORLDS if w.name != "digits"])
def test_worlds_are_functions_of_seed_and_run(world: str) -> None:
    one, same, other = (make_run(world, 1, run, 150) for run in (2, 2, 3))
    assert np.array_equal(one.rewards, same.rewards)
    assert not np.array_equal(one.rewards, other.rewards)
    assert one.rewards.shape == (150, 10)
    features = 0 if one.contexts is None else one.contexts.shape[1]
    known = facts(world, 150)
    assert known.features == features
    assert known.is_binary == bool(np.isin(one.rewards, (0, 1)).all())


def test_regret_is_the_sum_of_lost_means() -> None:
    run = make_run("ten Bernoulli arms", 0, 0, 50)
    expected = 50 * (run.means.max() - run.means[0, 0])
    assert play(First(), run) == pytest.approx(expected)


def test_late_rewards_arrive_a_hundred_steps_late_and_in_order() -> None:
    run, player = make_run("late rewards", 0, 0, 130), First()
    play(player, run)
    assert [t for t, _ in player.learned] == list(range(101, 131))
    assert [r for _, r in player.learned] == run.rewards[:30, 0].tolist()


def test_players_of_one_world_meet_the_same_rewards() -> None:
    played: list[First] = []

    def make(known: object, seed: int) -> First:
        played.append(First())
        return played[-1]

    prepare = preparer({"a": make, "b": make})
    for name in "ab":
        prepare({"player": name, "world": "fast changes", "seed": 4, "steps": 60}, 7)()
    assert played[0].learned == played[1].learned
