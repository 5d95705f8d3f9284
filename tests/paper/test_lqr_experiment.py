"""The experiment `lqr`: its claims hold, and fail for planted bugs."""

from typing import Any

import numpy as np
import pytest

from bayescontrol.interaction import interact
from bayescontrol.lab import Claim, Columns
from bayescontrol.lqr import PLANTS, LinearPlant
from bayescontrol_paper import lqr as paper

#: Small and quick.
SMALL = paper.Settings(seed=0, runs=4, steps=512)
PLACE = {name: i for i, name in enumerate(paper.AGENTS)}


def claims(columns: Columns) -> dict[str, Claim]:
    return {claim.name: claim for claim in paper.experiment.score(SMALL, columns).claims}


def planted(columns: Columns, **changed: Any) -> Columns:
    return {**columns, **changed}


@pytest.mark.parametrize(
    ("runs", "costly", "verdict", "origin"),
    [
        (8, 0, "holds", "at least 2 of 8"),
        (8, 6, "undecided", "at least 2 of 8"),
        (8, 7, "fails", "at least 2 of 8"),
        (1, 1, "fails", "at least 1 of 1 (false alarms: more than 1 in 100)"),
    ],
)
def test_costly_gains_in_too_many_runs_fail(
    columns: Columns, runs: int, costly: int, verdict: str, origin: str
) -> None:
    """Two of eight runs must be within the bound, since 30 of 40 were in the pilot."""
    many = {name: np.repeat(column[:1], runs, axis=0) for name, column in columns.items()}
    best = paper.system(paper.STABLE[0]).best_cost
    many["cost"][:, list(PLANTS).index(paper.STABLE[0]), PLACE[paper.RULE]] = best
    many["cost"][:costly, list(PLANTS).index(paper.STABLE[0]), PLACE[paper.RULE]] = 2.0 * best
    found = claims(many)["near-optimal-gain"]
    assert found.verdict == verdict
    assert origin in found.threshold_origin


def test_regret_that_grows_in_proportion_to_time_fails(columns: Columns) -> None:
    wrong = columns["regret"].copy()
    wrong[:, 0, PLACE[paper.RULE]] = np.arange(1.0, 5.0)[:, None] * paper.checkpoints(SMALL)
    found = claims(planted(columns, regret=wrong))["sqrt-regret"]
    assert found.verdict == "fails"
    assert found.ours == pytest.approx(1.0)


def test_the_comparison_reports_less_and_more_regret(columns: Columns) -> None:
    wrong = columns["regret"].copy()
    wrong[:, 0, PLACE[paper.WARM]] = 0.5 * wrong[:, 0, PLACE[paper.CERTAIN]] - 1e9
    wrong[:, 1, PLACE[paper.WARM]] = wrong[:, 1, PLACE[paper.CERTAIN]] + 1.0
    many = {name: np.repeat(column, 5, axis=0) for name, column in columns.items()}
    table = paper.experiment.score(SMALL, planted(many, regret=np.repeat(wrong, 5, axis=0))).tables[
        -1
    ]
    assert len(table.rows) == 2 * len(PLANTS)
    assert [row[3] for row in table.rows[:2]] == ["less", "more"]


def test_diverging_runs_have_infinite_cost(columns: Columns) -> None:
    wrong = {name: columns[name].copy() for name in ("cost", "regret")}
    for column in wrong.values():
        column[:3, 2, PLACE[paper.CERTAIN], 5:] = np.inf
    changed = planted(columns, **wrong)
    results = paper.Results(SMALL, changed)
    assert results.median_excess("aircraft", paper.CERTAIN) == np.inf
    assert np.isnan(paper.late_exponent(results.octaves("aircraft", paper.CERTAIN)))
    assert paper.exponent(results.octaves("aircraft", paper.CERTAIN))[0] == np.inf
    paper.experiment.score(SMALL, changed)
    assert paper.experiment.figures(SMALL, changed)


def test_checkpoints_include_all_octaves() -> None:
    tiny = paper.Settings(steps=64)
    at = paper.checkpoints(tiny)
    assert at[paper.octaves(tiny)].tolist() == [2, 4, 8, 16, 32, 64]
    assert (np.diff(at) > 0).all()


def test_costs_are_never_below_the_optimum(columns: Columns) -> None:
    for plant in PLANTS:
        for agent in paper.AGENTS:
            assert paper.Results(SMALL, columns).excess(plant, agent).min() > -1e-9
            assert paper.system(plant).best_cost > 0


@pytest.mark.slow
@pytest.mark.parametrize("plant", paper.STABLE)
@pytest.mark.parametrize("agent", [paper.RULE, paper.LAZY])
def test_at_full_size_the_final_gain_is_within_one_per_cent(plant: str, agent: str) -> None:
    """Medians of 50 runs of 10,000 steps, with other random numbers than the experiment's."""
    full, s = paper.Settings(seed=1), paper.system(plant)
    excess = []
    for number in range(50):
        learner = paper.AGENTS[agent](full, s)
        interact(learner, LinearPlant(s), full.steps, seed=full.seed, run=number)
        excess.append(s.cost(learner.gain) / s.best_cost - 1.0)
    assert np.median(excess) <= 0.01
