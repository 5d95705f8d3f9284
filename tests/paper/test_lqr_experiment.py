"""The experiment `lqr`: its claims hold, and fail for planted bugs."""

from typing import Any

import numpy as np
import pytest

from bayescontrol.interaction import interact
from bayescontrol.lab import Claim, Columns, run_replicas
from bayescontrol.lqr import PLANTS, LinearPlant
from bayescontrol.plot import figures as printed
from bayescontrol_paper.lqr import (
    AGENTS,
    CERTAIN,
    LAZY,
    RULE,
    STABLE,
    WARM,
    Results,
    Settings,
    checkpoints,
    draw,
    experiment,
    exponent,
    late_exponent,
    octaves,
    run,
    score,
    system,
)

#: Small and quick.
SMALL = Settings(seed=0, runs=4, steps=512)
PLACE = {name: i for i, name in enumerate(AGENTS)}


@pytest.fixture(scope="module")
def columns() -> Columns:
    return run_replicas(experiment, SMALL)


def claims(columns: Columns) -> dict[str, Claim]:
    return {claim.name: claim for claim in score(SMALL, columns).claims}


def planted(columns: Columns, **changed: Any) -> Columns:
    return {**columns, **changed}


def test_every_claim_holds_and_none_is_attributed_to_the_paper(columns: Columns) -> None:
    found = claims(columns)
    assert list(found) == [
        "posterior-is-regression", "near-optimal-gain", "near-optimal-gain-lazy", "sqrt-regret",
    ]  # fmt: skip
    few = [claim.verdict for claim in found.values() if claim.name.startswith("near-optimal")]
    assert set(few) <= {"holds", "undecided"}
    assert found["posterior-is-regression"].holds
    assert found["sqrt-regret"].holds
    assert {claim.source for claim in found.values()} == {"ours"}


def test_a_posterior_that_differs_from_the_regression_fails(columns: Columns) -> None:
    wrong = planted(columns, gap=columns["gap"] + 1e-8)
    assert claims(wrong)["posterior-is-regression"].verdict == "fails"


@pytest.mark.parametrize(("costly", "verdict"), [(0, "holds"), (6, "undecided"), (7, "fails")])
def test_costly_gains_in_too_many_runs_fail(columns: Columns, costly: int, verdict: str) -> None:
    """Two of eight runs must be within the bound, since 30 of 40 were in the pilot."""
    many = {name: np.repeat(column[:1], 8, axis=0) for name, column in columns.items()}
    best = system(STABLE[0]).best_cost
    many["cost"][:, list(PLANTS).index(STABLE[0]), PLACE[RULE]] = best
    many["cost"][:costly, list(PLANTS).index(STABLE[0]), PLACE[RULE]] = 2.0 * best
    found = claims(many)["near-optimal-gain"]
    assert found.verdict == verdict
    assert "at least 2 of 8" in found.threshold_origin


def test_one_run_with_a_costly_gain_fails(columns: Columns) -> None:
    one = {name: column[:1].copy() for name, column in columns.items()}
    one["cost"][:, list(PLANTS).index(STABLE[0]), PLACE[RULE]] = 2.0 * system(STABLE[0]).best_cost
    found = claims(one)["near-optimal-gain"]
    assert found.verdict == "fails"
    assert "at least 1 of 1 (false alarms: more than 1 in 100)" in found.threshold_origin


def test_regret_that_grows_in_proportion_to_time_fails(columns: Columns) -> None:
    wrong = columns["regret"].copy()
    wrong[:, 0, PLACE[RULE]] = np.arange(1.0, 5.0)[:, None] * checkpoints(SMALL)
    found = claims(planted(columns, regret=wrong))["sqrt-regret"]
    assert found.verdict == "fails"
    assert found.ours == pytest.approx(1.0)


def test_the_comparison_reports_less_and_more_regret(columns: Columns) -> None:
    wrong = columns["regret"].copy()
    wrong[:, 0, PLACE[WARM]] = 0.5 * wrong[:, 0, PLACE[CERTAIN]] - 1e9
    wrong[:, 1, PLACE[WARM]] = wrong[:, 1, PLACE[CERTAIN]] + 1.0
    many = {name: np.repeat(column, 5, axis=0) for name, column in columns.items()}
    table = score(SMALL, planted(many, regret=np.repeat(wrong, 5, axis=0))).tables[-1]
    assert len(table.rows) == 2 * len(PLANTS)
    assert [row[3] for row in table.rows[:2]] == ["less", "more"]


def test_diverging_runs_have_infinite_cost(columns: Columns) -> None:
    wrong = {name: columns[name].copy() for name in ("cost", "regret")}
    for column in wrong.values():
        column[:3, 2, PLACE[CERTAIN], 5:] = np.inf
    changed = planted(columns, **wrong)
    results = Results(SMALL, changed)
    assert results.gain("aircraft", CERTAIN) == np.inf
    assert np.isnan(late_exponent(results.octaves("aircraft", CERTAIN)))
    assert exponent(results.octaves("aircraft", CERTAIN))[0] == np.inf
    score(SMALL, changed)
    assert draw(SMALL, changed)


def test_a_replica_is_reproducible_and_checkpoints_include_all_octaves() -> None:
    tiny = Settings(steps=64)
    one, two = run(tiny, 3), run(tiny, 3)
    assert all(np.array_equal(one[name], two[name]) for name in one)
    at = checkpoints(tiny)
    assert at[octaves(tiny)].tolist() == [2, 4, 8, 16, 32, 64]
    assert (np.diff(at) > 0).all()


def test_costs_are_never_below_the_optimum(columns: Columns) -> None:
    for plant in PLANTS:
        for agent in AGENTS:
            assert Results(SMALL, columns).excess(plant, agent).min() > -1e-9
            assert system(plant).best_cost > 0


def test_there_are_three_figures_and_the_posterior_can_be_printed(columns: Columns) -> None:
    charts = draw(SMALL, columns)
    assert set(charts) == {"gains", "regret", "posterior"}
    assert all(len(charts[name].panels) == len(PLANTS) for name in ("gains", "regret"))
    assert printed.png(charts["posterior"]).startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("plant", STABLE)
@pytest.mark.parametrize("agent", [RULE, LAZY])
def test_at_full_size_the_final_gain_is_within_one_per_cent(plant: str, agent: str) -> None:
    """Medians of 50 runs of 10,000 steps, with other random numbers than the experiment's."""
    full, s = Settings(seed=1), system(plant)
    excess = []
    for number in range(50):
        learner = AGENTS[agent](full, s)
        interact(learner, LinearPlant(s), full.steps, seed=full.seed, run=number)
        excess.append(s.cost(learner.gain) / s.best_cost - 1.0)
    assert np.median(excess) <= 0.01
