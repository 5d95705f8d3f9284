"""The experiment `bandit-zoo`: its claims hold, and fail for planted bugs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks.arena.bandit_zoo import (
    AGENTS,
    CLOSE_RACE,
    COSTLY,
    KINDS,
    ORACLE,
    RULE,
    UCB,
    UNIFORM,
    Settings,
    checkpoints,
    draw,
    experiment,
    ranks,
    run,
    score,
)

from bayescontrol.lab import Claim, Columns, conduct, run_replicas

#: Small and quick. The rule still beats UCB1 by at least ten standard errors.
SMALL = Settings(seed=2, runs=20, steps=400, costly_runs=2)
PLACE = {name: i for i, name in enumerate(AGENTS)}


@pytest.fixture(scope="module")
def columns() -> Columns:
    return run_replicas(experiment, SMALL)


def claims(columns: Columns) -> dict[str, Claim]:
    return {claim.name: claim for claim in score(SMALL, columns).claims}


def test_every_claim_holds(columns: Columns) -> None:
    assert {claim.verdict for claim in claims(columns).values()} == {"holds"}


def test_a_replica_is_a_function_of_the_settings_and_its_number(columns: Columns) -> None:
    for name, column in run(SMALL, 7).items():
        assert np.array_equal(column, columns[name][7], equal_nan=True)


def test_a_costly_agent_plays_only_the_first_runs(columns: Columns) -> None:
    rests = np.any(np.isnan(columns["regret"]), axis=(1, 3))
    expected = np.zeros((SMALL.runs, len(AGENTS)), bool)
    expected[2:, PLACE[COSTLY]] = True
    np.testing.assert_array_equal(rests, expected)
    without = replace(SMALL, costly_runs=0, runs=2, steps=20)
    result = conduct(experiment, without)
    assert COSTLY not in [row[0] for row in result.score.tables[0].rows]
    assert len(draw(without, result.columns)) == 1


def test_the_biases_have_the_distribution_of_their_kind(columns: Columns) -> None:
    mean = columns["bias"].mean(axis=(0, 2))
    # 200 biases each: the largest standard error is 0.02.
    assert mean == pytest.approx([0.5, 0.1, 0.9, 0.41], abs=0.1)
    race = columns["bias"][:, list(KINDS).index(CLOSE_RACE)]
    assert np.array_equal(np.sort(race), np.tile([0.4] * 9 + [0.5], (SMALL.runs, 1)))
    assert len(set(race.argmax(axis=1).tolist())) > 3


def test_regret_never_falls_and_ends_at_the_last_step(columns: Columns) -> None:
    assert checkpoints(SMALL)[-1] == SMALL.steps
    growth = np.diff(columns["regret"], axis=3)
    assert (growth[~np.isnan(growth)] >= 0).all()


@pytest.mark.parametrize(
    ("agent", "planted", "claim"),
    [
        (RULE, UNIFORM, "rule-beats-ucb1"),
        (UNIFORM, UCB, "uniform-regret"),
        (ORACLE, RULE, "oracle-regret"),
    ],
)
def test_an_agent_that_plays_like_another_makes_its_claim_fail(
    columns: Columns, agent: str, planted: str, claim: str
) -> None:
    wrong = {name: values.copy() for name, values in columns.items()}
    wrong["regret"][:, :, PLACE[agent]] = wrong["regret"][:, :, PLACE[planted]]
    assert claims(columns)[claim].holds
    assert not claims(wrong)[claim].holds


def test_ranks_are_intervals_if_differences_are_not_significant() -> None:
    """Equal agents share their ranks, for any order of their means; α = 0.05 in all."""
    noise = np.random.default_rng(0).normal(size=(4, 200))
    agents = {"a": noise[0], "b": noise[1], "worse": noise[2] + 3, "worst": noise[3] + 6}
    assert ranks(agents) == {"a": (1, 2), "b": (1, 2), "worse": (3, 3), "worst": (4, 4)}


def test_tables_list_all_agents_except_the_oracle_by_mean_regret(columns: Columns) -> None:
    tables = score(SMALL, columns).tables
    assert len(tables) == len(KINDS)
    for table in tables:
        names = [row[0] for row in table.rows]
        assert sorted(map(str, names)) == sorted(set(AGENTS) - {ORACLE})
        assert names[-1] == UNIFORM


def test_one_run_is_enough_for_claims_and_figures() -> None:
    single = replace(SMALL, runs=1, steps=20, levers=3)
    result = conduct(experiment, single)
    assert all(claim.holds for claim in result.score.claims)
    (figure,) = draw(single, result.columns).values()
    labels: list[Any] = [series.label for series in figure.panels[-1].series]
    assert labels[-1] == "Lai and Robbins's slope"


@pytest.mark.slow
def test_every_claim_holds_with_more_runs_and_steps() -> None:
    result = conduct(experiment, Settings(seed=4, runs=200, steps=3000))
    assert {claim.verdict for claim in result.score.claims} == {"holds"}
