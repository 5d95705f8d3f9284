"""The experiment `experts`: its claims hold, and fail for planted bugs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayescontrol.experiments.control.experts import experiment, score, upright
from bayescontrol.experiments.control.experts_replica import (
    AGENTS,
    BUMPLESS,
    CHANGES,
    HILL_AGENTS,
    MEAN,
    NAIVE,
    RIGHT,
    ROD_AGENTS,
    RULE,
    VOTE,
    Settings,
    identified,
    poles,
    run,
)
from bayescontrol.experts import CARTPOLE_HYPOTHESES
from bayescontrol.lab import Claim, Columns, conduct, run_replicas

#: Short episodes. The rule did not fail in any of 200 episodes of 500 steps.
SMALL = Settings(seed=1, runs=4, steps=160, change=80, rod_steps=160)


@pytest.fixture(scope="module")
def columns() -> Columns:
    return run_replicas(experiment, SMALL)


def claims(settings: Settings, columns: Columns) -> dict[str, Claim]:
    return {claim.name: claim for claim in score(settings, columns).claims}


def test_every_claim_holds(columns: Columns) -> None:
    found = claims(SMALL, columns)
    assert list(found)[:4] == ["identifies", "balances", "average-expert-fails", "follows-change"]
    assert {name for name, claim in found.items() if not claim.holds} == set()


def test_a_single_failing_episode_makes_its_claim_fail(columns: Columns) -> None:
    one = {name: column[:1].copy() for name, column in columns.items()}
    one["survived"][:, AGENTS.index(RULE)] = 3
    assert claims(replace(SMALL, runs=1), one)["balances"].holds is False


def test_a_replica_is_a_function_of_the_settings_and_its_number(columns: Columns) -> None:
    for name, column in run(SMALL, 2).items():
        assert np.array_equal(column, columns[name][2], equal_nan=True), name


def test_every_agent_controls_the_same_plant(columns: Columns) -> None:
    right = columns["survived"][:, AGENTS.index(RIGHT)]
    separate_run = columns["experts"][np.arange(SMALL.runs), columns["pole"]]
    assert np.array_equal(right, separate_run)


def test_experts_for_the_wrong_force_fall_at_once(columns: Columns) -> None:
    signs = np.array([pole.sign for pole in CARTPOLE_HYPOTHESES])
    for true, steps in zip(columns["pole"], columns["experts"], strict=True):
        assert steps[signs != signs[true]].max() < 40


def test_mean_and_vote_fall_and_the_naive_mixture_does_no_better_than_the_rule(
    columns: Columns,
) -> None:
    steps = dict(zip(AGENTS, columns["survived"].T, strict=True))
    assert steps[MEAN].max() < 100
    assert steps[VOTE].max() < 100
    assert (steps[NAIVE] <= steps[RULE]).all()


def test_measurements_end_with_the_episode(columns: Columns) -> None:
    static = CHANGES.index("static")
    for steps, after in zip(columns["changed"], columns["after"][:, :, 0], strict=True):
        assert np.isfinite(after[static, : steps[static]]).all()
        assert np.isnan(after[static, steps[static] :]).all()
        assert after[static, SMALL.change :][: steps[static] - SMALL.change].max() < 1e-6


def test_a_bumpless_rule_jumps_less_when_the_mode_changes(columns: Columns) -> None:
    rule, smooth = (columns["bump"][:, ROD_AGENTS.index(name)] for name in (RULE, BUMPLESS))
    assert smooth.mean() < rule.mean()


@pytest.mark.parametrize(
    ("column", "where", "value", "claim"),
    [
        ("identified", (), np.inf, "identifies"),
        ("survived", (slice(None), AGENTS.index(RULE)), 30, "balances"),
        ("survived", (slice(None), AGENTS.index(MEAN)), 160, "average-expert-fails"),
        ("survived", (slice(None), AGENTS.index(VOTE)), 160, "average-expert-fails"),
        ("changed", (slice(None), CHANGES.index("static")), 160, "follows-change"),
        ("changed", (slice(None), CHANGES.index("switching")), 90, "follows-change"),
        ("changed", (slice(None), CHANGES.index("fading")), 90, "follows-change"),
        ("height", (slice(None), ROD_AGENTS.index(RULE)), -1.0, "holds-the-rod"),
        ("goal", (slice(None), HILL_AGENTS.index(RULE)), np.inf, "climbs-the-hill"),
    ],
)
def test_a_planted_error_makes_its_claim_fail(
    columns: Columns, column: str, where: Any, value: float, claim: str
) -> None:
    wrong = {name: values.copy() for name, values in columns.items()}
    wrong[column][where] = value
    assert not claims(SMALL, wrong)[claim].holds


def test_holding_a_mode_is_an_option() -> None:
    held = poles(replace(SMALL, dwell=3), 0)
    assert held["survived"][AGENTS.index(RULE)] == SMALL.steps


def test_a_mode_counts_as_identified_once_its_posterior_stays_high() -> None:
    v = np.array([0.2, 0.995, 0.5, 0.999, 1.0, np.nan])
    assert identified(v, 5) == 4
    assert identified(v, 3) == np.inf
    assert identified(np.ones(4), 4) == 1


def test_the_last_quarter_decides_if_the_rod_is_upright() -> None:
    height = np.concatenate([-np.ones(6), np.ones(2)])[None, None]
    assert upright(Settings(rod_steps=8), {"height": height}).tolist() == [[1.0]]


def test_one_run_is_enough_for_claims_and_figures() -> None:
    single = Settings(seed=2, runs=1, steps=30, change=15, rod_steps=8)
    result = conduct(experiment, single)
    assert len(result.score.tables) == 4
    assert len(experiment.figures(single, result.columns)) == 4


def test_full_size_is_two_hundred_episodes_of_five_hundred_steps() -> None:
    assert (experiment.full.runs, experiment.full.steps) == (200, 500)
    assert experiment.quick == replace(experiment.full, runs=experiment.quick.runs)
