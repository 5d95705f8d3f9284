"""The off-policy contest, on small synthetic logs in the format of the Open Bandit Dataset."""

import csv
from pathlib import Path

import numpy as np
import pytest
from benchmarks.arena import off_policy_contest
from benchmarks.arena.off_policy_contest import INVERSE, ROBUST, WORLDS, contests, estimate, prepare
from benchmarks.peers.environments import NotInstalled
from benchmarks.peers.open_bandit import (
    CAMPAIGNS,
    FROM_RANDOM,
    FROM_THOMPSON,
    PARTS,
    ask,
    question,
    read_log,
)

from bayescontrol.lab.progress import Silent

ITEMS, ROWS = 4, 3_000
#: Probabilities of a click on each item, and with which the second policy shows it.
CLICKS = np.array([0.1, 0.2, 0.3, 0.6])
SHOWS = np.array([0.1, 0.1, 0.2, 0.6])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    root, rng = tmp_path_factory.mktemp("logs"), np.random.default_rng(0)
    for policy, shows in (("random", np.full(ITEMS, 1 / ITEMS)), ("bts", SHOWS)):
        for campaign in CAMPAIGNS:
            place = root / policy / campaign
            place.mkdir(parents=True)
            items = rng.choice(ITEMS, size=ROWS, p=shows)
            with (place / f"{campaign}.csv").open("w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(
                    ["", "timestamp", "item_id", "position", "click", "propensity_score",
                     "user_feature_0"]
                )  # fmt: skip
                for t in reversed(range(ROWS)):  # not in the order of time
                    item = int(items[t])
                    click = int(rng.random() < CLICKS[item])
                    writer.writerow(
                        [t, f"2020-01-01 {t:06}", item, t % 3 + 1, click, shows[item], "ab"[t % 2]]
                    )
    return str(root)


def test_a_log_is_sorted_by_time_with_one_column_per_further_feature_value(folder: str) -> None:
    log = read_log(folder, "random", "men")
    assert log.position[:4].tolist() == [0, 1, 2, 0]
    assert log.context.shape == (ROWS, 1)
    assert log.context[:3, 0].tolist() == [0.0, 1.0, 0.0]


def test_runs_are_disjoint_parts_of_the_logs(folder: str) -> None:
    parts = [question(folder, FROM_RANDOM, 3 * k) for k in range(PARTS)]
    assert sum(len(part.log.action) for part in parts) == ROWS
    joined = np.concatenate([part.log.action for part in parts])
    assert np.array_equal(joined, read_log(folder, "random", "all").action)


@pytest.mark.parametrize(
    ("world", "value"), [(FROM_RANDOM, SHOWS @ CLICKS), (FROM_THOMPSON, CLICKS.mean())]
)
def test_estimates_and_truth_agree_where_the_logs_have_enough_data(
    folder: str, world: str, value: float
) -> None:
    logs = [read_log(folder, name, "all") for name in ("random", "bts")]
    asked = ask(world, *logs)
    assert np.allclose(asked.policy.sum(axis=0), 1.0)
    result = estimate(asked)
    # Five standard errors of a mean of 3,000 clicks with weights of up to 2.5.
    for found in (asked.truth, result.inverse_propensity.mean, result.doubly_robust.mean):
        assert found == pytest.approx(value, abs=0.09)


def test_inverse_propensity_is_the_weighted_mean_of_the_rewards(folder: str) -> None:
    asked = question(folder, FROM_THOMPSON, 4)
    weights = asked.policy[asked.log.action, asked.log.position] / asked.log.propensity
    expected = float((weights * asked.log.reward).mean())
    assert estimate(asked).inverse_propensity.mean == pytest.approx(expected, rel=1e-12)


def test_scores_are_relative_errors_and_repeat(folder: str) -> None:
    for player in (ROBUST, INVERSE):
        asked = {"data": folder, "world": FROM_RANDOM, "player": player, "seed": 0}
        assert prepare(asked, 2)() == prepare(asked, 2)() < 0.5


def test_without_obp_every_contestant_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> Path:
        raise NotInstalled("no network")

    monkeypatch.setattr(off_policy_contest, "logs_folder", fail)
    results = list(contests(True, 0, Silent()))
    assert len(results) == 6 * len(WORLDS)
    assert all("no network" in result.skipped for result in results)
