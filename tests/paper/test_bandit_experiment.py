"""The experiment `bandit`: its claims hold, and fail for planted bugs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayescontrol.bandits import BernoulliBandit
from bayescontrol.baselines import gittins_bounds
from bayescontrol.lab import Claim, Columns, conduct
from bayescontrol.metrics import best_share, regret
from bayescontrol.record import Record
from bayescontrol_paper import bandit as paper

#: The paper's benchmark with few runs. A claim fails by chance with probability below 1e-4.
FEW = paper.Settings(seed=1, runs=100)
#: Another benchmark, for which the paper and the reference runs have no results.
OTHER = paper.Settings(seed=5, runs=2, steps=30, levers=3, lookahead=30, window=10)
PLACE = {name: i for i, name in enumerate(paper.AGENTS)}


def claims(settings: paper.Settings, columns: Columns) -> dict[str, Claim]:
    return {claim.name: claim for claim in paper.experiment.score(settings, columns).claims}


def test_agents_that_pull_the_same_lever_at_the_same_step_get_the_same_reward(
    columns: Columns,
) -> None:
    action, reward = columns["action"], columns["reward"]
    for i in range(len(paper.AGENTS)):
        agree = action[:, i] == action[:, 0]
        assert agree.any()
        assert np.array_equal(reward[:, i][agree], reward[:, 0][agree])


def test_regret_and_best_lever_agree_with_the_metrics(columns: Columns) -> None:
    results, r = paper.Results(FEW, columns), 3
    for name, i in PLACE.items():
        record = Record(columns["action"][r, i].astype(int), columns["reward"][r, i])
        world = BernoulliBandit(10).environment(columns["bias"][r])
        np.testing.assert_allclose(results.regret(name)[r], regret(record, world))
        np.testing.assert_array_equal(results.best(name)[r], best_share(record, world))


def test_on_another_benchmark_only_general_claims_are_made() -> None:
    result = conduct(paper.experiment, OTHER)
    names = [claim.name for claim in result.score.claims]
    assert names == ["oracle-reward", "two-lever-totals", "gittins-table-time"]
    assert all(claim.holds for claim in result.score.claims)


def test_spacing_levers_evenly_keeps_their_order() -> None:
    bias = np.array([[0.3, 0.9, 0.1], [0.7, 0.2, 0.71]])
    assert paper.evenly_spaced(bias).tolist() == [[0.5, 0.75, 0.25], [0.5, 0.25, 0.75]]


@pytest.mark.parametrize("levers", [2, 3, 10])
def test_lais_constant_is_half_the_expected_density_of_ties(levers: int) -> None:
    """½ Σ_j E[h(λ*_j)]: the density of logit m at the best of the others is m (1 - m)."""
    x = (np.arange(200_000) + 0.5) / 200_000
    density = (levers - 1) * x ** (levers - 2)
    expected = 0.5 * levers * float(np.mean(density * x * (1 - x)))
    assert paper.lai(levers) == pytest.approx(expected, rel=1e-8)


def area(x: Any, y: Any) -> float:
    return abs(float(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))) / 2


def test_the_regions_fill_the_square_and_the_visible_faces_of_the_cube() -> None:
    square, cube, apart = paper._best_lever_regions_figure(FEW, {}).panels
    assert [area(region.x, region.y) for region in square.regions] == [0.5, 0.5]
    corners = paper.project([(0, 0, 0), (1, 0, 0), (1, 0, 1), (1, 1, 1), (0, 1, 1), (0, 1, 0)]).T
    outside = [
        region for region in cube.regions if not np.isclose(region.shade, 0.3) or len(region.x) == 4
    ]
    assert sum(area(r.x, r.y) for r in outside) == pytest.approx(area(*corners))
    # In the exploded view the pyramids are moved, but not changed.
    for one, other in zip(cube.regions, apart.regions, strict=True):
        assert np.ptp(other.x - one.x) + np.ptp(other.y - one.y) == pytest.approx(0)


@pytest.mark.slow
def test_every_claim_holds_at_the_size_of_the_reference() -> None:
    """4,000 runs: a claim fails by chance with probability below 1e-4."""
    result = conduct(paper.experiment, replace(paper.experiment.full, seed=3, runs=4000))
    assert {claim.verdict for claim in result.score.claims} == {"holds"}


def test_four_runs_decide_no_claim_of_the_paper() -> None:
    result = conduct(paper.experiment, replace(paper.experiment.quick, runs=4))
    found = {claim.name: claim.verdict for claim in result.score.claims if claim.source == "paper"}
    assert found == dict.fromkeys(
        ("same-asymptote", "gittins-better-early", "epsilon-stalls"), "undecided"
    )


def test_the_stated_cost_of_the_look_ahead_is_that_of_the_last_states() -> None:
    """After 1,300 pulls an agent that looks no further ahead uses the mean as the index."""
    bounds = [gittins_bounds(r + 1, 1301 - r, 0.999, tolerance=1e-7) for r in (650, 660, 670)]
    costs = [low - (r + 1) / 1302 for (low, _), r in zip(bounds, (650, 660, 670), strict=True)]
    assert max(costs) == pytest.approx(0.00739, abs=5e-6)
