"""The experiment `divergence`: its claims hold, and detect wrong means and bounds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.convergence import core
from bayescontrol.convergence.boundedness import simulate_divergences
from bayescontrol.lab import Columns, conduct, mean_and_error, run_replicas
from bayescontrol_paper import divergence as paper
from bayescontrol_paper._five_modes import MODES, TRUE, five_modes, under_policy

SMALL = paper.Settings(runs=300, steps=400)


def claims(columns: Columns) -> dict[str, Any]:
    return {claim.name: claim for claim in paper.experiment.score(SMALL, columns).claims}


def test_simulated_rates_agree_with_exact_ones_within_three_standard_errors(
    columns: Columns,
) -> None:
    """Two means that are not trivially zero: false alarm 1/190; the seed is fixed."""
    t = paper.times(SMALL)
    half = t.size // 2
    for k, policy in enumerate(paper.POLICIES):
        d = columns["under"][:, k]
        mean, error = mean_and_error((d[:, -1] - d[:, half]) / (t[-1] - t[half]))
        assert abs(mean - paper.rate(policy, paper.SHOWN)) <= 3.0 * error


def test_two_modes_are_outside_the_core_and_two_are_inside() -> None:
    assert core(five_modes(), TRUE) == (0, 3, 4)
    assert [paper.rate(TRUE, m) > 0.0 for m in range(1, len(MODES))] == [True, True, False, False]
    assert len({round(paper.rate(policy, paper.SHOWN), 6) for policy in paper.POLICIES}) == 3


def test_means_under_the_policy_of_the_true_mode_are_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted bug: G is computed with m*'s policy instead of the drawn mode's."""
    right = kernels.divergence.mean_tables

    def wrong(p: Any, h: Any, true: int, against: IntArray, out: FloatArray) -> None:
        right(p, h, true, against, out)
        out[:] = out[true]

    monkeypatch.setattr(kernels.divergence, "mean_tables", wrong)
    fewest = run_replicas(paper.experiment, replace(SMALL, runs=paper.FEWEST))
    assert not claims(fewest)["centred-on-its-mean"].holds


@pytest.mark.parametrize(
    ("column", "factor", "claim"),
    [
        ("under", 0.0, "rates-by-policy"),
        ("far", 0.4, "band-grows-like-root-t"),
        ("far", 2.0, "band-grows-like-root-t"),
    ],
)
def test_the_smallest_judged_number_of_runs_detects_an_error(
    columns: Columns, column: str, factor: float, claim: str
) -> None:
    few = {name: values[: paper.FEWEST] for name, values in columns.items()}
    assert claims(few)[claim].holds
    assert not claims({**few, column: factor * few[column]})[claim].holds


def test_a_bound_that_counts_too_much_evidence_is_violated() -> None:
    """Planted bug: evidence is overstated by a tenth."""
    modes = five_modes()
    runs = simulate_divergences(modes, TRUE, 100, 20, at=range(100))
    assert (runs.posterior <= paper.bound(modes, runs.d) * (1.0 + 1e-12)).all()
    assert (runs.posterior > paper.bound(modes, 1.1 * runs.d) * (1.0 + 1e-12)).any()


def test_steps_of_g_minus_G_have_the_computed_spread() -> None:
    """A mean of 2,000 squares of sums of 50 steps, within four standard errors of 3 %."""
    runs = simulate_divergences(under_policy(TRUE), TRUE, 100, 2000, 5, at=[50], against=[1])
    late = np.diff(runs.excess(1)[:, :, TRUE], axis=1)[:, 0]
    mean, error = mean_and_error(late**2 / 50)
    assert abs(mean - paper.step_std(TRUE, 1) ** 2) < 4.0 * error


def test_the_band_is_twice_as_wide_when_time_is_four_times_as_long() -> None:
    assert paper.band(40_000, TRUE, 1) / paper.band(10_000, TRUE, 1) == pytest.approx(2.0, rel=0.01)


def test_tables_describe_the_modes_and_symbols(columns: Columns) -> None:
    overview, rates = paper.experiment.score(SMALL, columns).tables
    assert [row[0] for row in overview.rows] == list(MODES)
    assert [row[-1] for row in overview.rows] == [
        "the true mode",
        *["outside"] * 2,
        *["inside"] * 2,
    ]
    assert "room" in overview.note
    assert "d(m*‖m) is" in rates.note
    assert rates.rows[0][-1] == "0"  # exactly: m3 is right about the lever of m*


def test_the_figures_show_processes_policies_and_bands(columns: Columns) -> None:
    charts = paper.experiment.figures(SMALL, columns)
    assert list(charts) == ["processes", "policies", "bands"]
    parts = charts["policies"].panels[1]
    whole, *split = (series.y for series in parts.series if series.label.startswith(("d", "g")))
    assert np.sum(split, axis=0) == pytest.approx(whole, abs=1e-9)


@pytest.mark.slow
def test_at_full_length_all_our_claims_hold_for_another_seed() -> None:
    """False alarms: below 1 in 300."""
    settings = replace(paper.experiment.full, runs=1000, seed=100)
    found = conduct(paper.experiment, settings).score.claims
    assert [claim.name for claim in found if not claim.holds] == []
