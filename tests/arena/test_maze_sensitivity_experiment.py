"""The experiment `maze-sensitivity`: its worlds are as published, and its claims can fail."""

from typing import Any

import numpy as np
import pytest
from benchmarks.arena.maze_sensitivity import (
    BASES,
    CLIFF,
    LAKE,
    PRECISIONS,
    PRIORS,
    SWEPT,
    TOYS,
    VARIANTS,
    Results,
    Settings,
    cliff_walk,
    edges,
    experiment,
    frozen_lake,
    maze_plan,
    run,
    score,
    toy_plan,
)

from bayescontrol.lab import Claim, Columns, conduct, run_replicas
from bayescontrol.mdp import Step

SMALL = Settings(seed=1, runs=2, steps=300, toy_steps=1000)


@pytest.fixture(scope="module")
def columns() -> Columns:
    return run_replicas(experiment, SMALL)


def learned(settings: Settings) -> dict[str, Any]:
    """Columns as after learning."""
    gain = maze_plan().gain
    maze = np.full((settings.runs, len(PRIORS), len(VARIANTS)), 0.98 * gain)
    late = maze.copy()
    late[:, 0, VARIANTS.index(("mu0", 0.0))] = 0.2252
    shares = np.array([0.76, 0.95, 0.99, 0.98])
    toy_late = np.stack([shares * toy_plan(LAKE).gain, shares * (toy_plan(CLIFF).gain + 1) - 1])
    toy_late = np.repeat(toy_late[None], settings.runs, axis=0)
    toy = np.repeat(toy_late[..., None], edges(settings.toy_steps).size, axis=-1)
    return {"late": late, "total": maze, "toy": toy, "toy_late": toy_late}


def claims(settings: Settings, columns: Columns) -> dict[str, Claim]:
    return {claim.name: claim for claim in score(settings, columns).claims}


def test_the_lake_is_slippery_and_moves_off_the_map_have_no_effect() -> None:
    lake = frozen_lake()
    third = pytest.approx(1 / 3)
    # In the upper left corner, left slips up or down: left and up leave the map.
    assert lake.outcomes(0, 0) == {Step(0.0, 0): pytest.approx(2 / 3), Step(0.0, 4): third}
    # Next to the goal, right (2) may slip down, which leaves the map, or up.
    assert lake.outcomes(14, 2) == {
        Step(1.0, 15): third,
        Step(0.0, 14): third,
        Step(0.0, 10): third,
    }
    for end in (5, 7, 11, 12, 15):
        assert lake.outcomes(end, 3) == {Step(0.0, 0): 1.0}


def test_the_cliff_costs_a_hundred_and_leads_to_the_start() -> None:
    cliff = cliff_walk()
    start, goal = 36, 37
    assert cliff.outcomes(start, 1) == {Step(-100.0, start): 1.0}
    assert cliff.outcomes(start, 0) == {Step(-1.0, 24): 1.0}
    assert cliff.outcomes(30, 2) == {Step(-100.0, start): 1.0}
    assert cliff.outcomes(35, 2) == {Step(-1.0, goal): 1.0}
    assert cliff.outcomes(goal, 2) == {Step(0.0, start): 1.0}
    assert cliff.outcomes(0, 3) == {Step(-1.0, 0): 1.0}


def test_the_worlds_equal_gymnasiums_except_at_the_end_of_an_episode() -> None:
    toy_text = pytest.importorskip("gymnasium.envs.toy_text")
    lake = toy_text.FrozenLakeEnv(map_name="4x4", is_slippery=True)
    for x, offered in lake.P.items():
        if x in (5, 7, 11, 12, 15):
            continue
        for a, outcomes in offered.items():
            theirs: dict[Any, float] = {}
            for p, y, r, _ in outcomes:
                step = Step(float(r), int(y))
                theirs[step] = theirs.get(step, 0.0) + p
            assert frozen_lake().outcomes(x, a) == pytest.approx(theirs)


def test_the_base_values_are_among_the_variants_of_every_parameter(columns: Columns) -> None:
    places = [VARIANTS.index((name, value)) for name, value in BASES.items()]
    assert len(places) == len(SWEPT)
    for column in (columns["late"], columns["total"]):
        assert (column[:, :, places] == column[:, :, places[:1]]).all()


def test_a_replica_is_a_function_of_the_settings_and_its_number(columns: Columns) -> None:
    for name, column in run(SMALL, 1).items():
        assert np.array_equal(column, columns[name][1])


def test_short_runs_make_claims_only_about_the_optima(columns: Columns) -> None:
    judged = claims(SMALL, columns)
    assert list(judged) == ["lake-optimum", "cliff-optimum"]
    assert all(claim.holds for claim in judged.values())


@pytest.mark.parametrize("size", ["quick", "full"])
def test_expected_results_make_every_claim_hold(size: str) -> None:
    settings = getattr(experiment, size)
    judged = claims(settings, learned(settings))
    assert all(claim.holds for claim in judged.values())
    assert ("lake-p100" in judged) is (size == "full")


@pytest.mark.parametrize(
    ("column", "where", "factor", "claim"),
    [
        ("late", (1, VARIANTS.index(("lambda0", 10.0))), 0.9, "prior-B-forgives"),
        ("late", (0, VARIANTS.index(("mu0", 0.0))), 1.2, "prior-A-needs-optimism"),
        ("total", (1, VARIANTS.index(("sweeps", 4))), 0.9, "sweeps-do-not-matter"),
        ("total", (0, VARIANTS.index(("partial", 1))), 1.1, "partial-sweeps-suffice"),
        ("toy_late", (0, 0), 1.1, "lake-p1"),
        ("toy_late", (0, 1), 0.9, "lake-p10"),
        ("toy_late", (0, 2), 0.9, "lake-p100"),
        ("toy_late", (0, 3), 0.7, "lake-precision-matters"),
        ("toy_late", (0, 3), 0.9, "lake-unknown-p"),
        ("toy_late", (1, 3), 1.01, "cliff-unknown-p"),
        ("toy_late", (1, 1), 1.01, "cliff-p10"),
    ],
)
def test_a_planted_error_makes_its_claim_fail(
    column: str, where: tuple[int, int], factor: float, claim: str
) -> None:
    settings = experiment.full
    wrong = learned(settings)
    assert claims(settings, wrong)[claim].holds
    wrong[column][:, where[0], where[1]] *= factor
    assert not claims(settings, wrong)[claim].holds


def test_endless_walking_has_a_share_of_zero_on_the_cliff() -> None:
    columns = learned(SMALL)
    columns["toy_late"][:, TOYS.index(CLIFF)] = -1.0
    results = Results(SMALL, columns)
    assert all((results.toy(CLIFF, p) == 0.0).all() for p in PRECISIONS)


def test_one_run_is_enough_for_claims_and_figures() -> None:
    single = Settings(runs=1, steps=100, toy_steps=1000)
    result = conduct(experiment, single)
    assert all(claim.holds for claim in result.score.claims)
    assert set(experiment.figures(single, result.columns)) == {"parameters", "precision"}
