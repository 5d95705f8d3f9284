"""The experiment `vanishing`: its claims hold, and detect weights of other modes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayescontrol.convergence import Outcome
from bayescontrol.lab import Columns, conduct, run_replicas
from bayescontrol.lab.settings import InvalidSettings, parse
from bayescontrol.report.build import as_object
from bayescontrol_paper.vanishing import (
    BIASES,
    CLASSES,
    CORE,
    FEWEST,
    FIVE,
    RIVAL,
    TWIN,
    Settings,
    class_of,
    experiment,
    exponents,
    others,
    pair,
    times,
)

#: The fewest runs for which claims are made; every planted error must still be detected.
SMALL = Settings(runs=FEWEST, steps=300, long_steps=2000)


@pytest.fixture(scope="module")
def columns() -> Columns:
    return run_replicas(experiment, SMALL)


def claims(columns: Columns) -> dict[str, Any]:
    return {claim.name: claim for claim in experiment.score(SMALL, columns).claims}


def test_every_claim_holds(columns: Columns) -> None:
    """The bound is deterministic; simulated values are far from their thresholds. Fixed seed."""
    found = claims(columns)
    assert list(found) == [
        "outside-the-core-five-modes", "outside-the-core-core-diagram",
        "outside-the-core-bias-grid", "never-above-the-bound", "inside-the-core-stays",
        "refuted-by-its-own-policy", "slower-like-one-over-t",
    ]  # fmt: skip
    assert all(claim.holds for claim in found.values())


def test_modes_inside_the_core_and_modes_that_act_differently_are_listed() -> None:
    assert others(FIVE, inside=True) == [3, 4]
    assert others(CORE, inside=True) == []
    assert others(BIASES, inside=True) == [TWIN, RIVAL]
    assert pair(BIASES, RIVAL).outcome is Outcome.SETTLES
    assert pair(BIASES, TWIN).outcome is Outcome.THEOREM


def test_swapped_weights_are_detected(columns: Columns) -> None:
    """Planted bug: modes outside the core are swapped with modes inside."""
    name = f"{FIVE} posterior"
    found = claims({**columns, name: columns[name][:, :, [0, 3, 4, 1, 2]]})
    assert not found["outside-the-core-five-modes"].holds
    assert not found["inside-the-core-stays"].holds


def test_weights_that_fall_exponentially_or_stay_are_detected(columns: Columns) -> None:
    """Planted bug: the weight of the rival falls exponentially, or stays constant."""
    name = f"{BIASES} posterior"
    for wrong in (np.exp(-times(SMALL, BIASES) / 100.0), np.full(times(SMALL, BIASES).size, 0.1)):
        v = columns[name].copy()
        v[:, :, RIVAL] = wrong
        assert not claims({**columns, name: v})["slower-like-one-over-t"].holds
    assert not claims({**columns, name: v})["refuted-by-its-own-policy"].holds


def test_the_exponent_of_a_power_of_time_is_recovered(columns: Columns) -> None:
    v = columns[f"{BIASES} posterior"].copy()
    v[:, :, RIVAL] = times(SMALL, BIASES) ** -1.5
    assert exponents(SMALL, {f"{BIASES} posterior": v}) == pytest.approx(-1.5, rel=1e-12)


def test_bounds_are_above_posteriors_and_start_at_the_prior_odds(columns: Columns) -> None:
    for name, true in CLASSES.items():
        v, bound = columns[f"{name} posterior"], columns[f"{name} bound"]
        assert (v <= bound * (1.0 + 1e-12)).all()
        if times(SMALL, name)[0] == 0:
            prior = class_of(name).prior
            assert bound[0, 0] == pytest.approx(prior / prior[true])


def test_weights_that_do_not_vanish_refute_the_paper(columns: Columns) -> None:
    """Planted bug: weights stay at their initial values."""
    for name in CLASSES:
        stuck = np.repeat(columns[f"{name} posterior"][:, :1], times(SMALL, name).size, axis=1)
        found = claims({**columns, f"{name} posterior": stuck})
        assert found[f"outside-the-core-{name.replace(' ', '-')}"].verdict == "refuted"


def test_noisy_weights_without_a_trend_are_detected(columns: Columns) -> None:
    """Planted bug: weights with realistic noise that do not fall on average."""
    noise = np.random.default_rng(0).normal(0.0, 0.9, FEWEST)
    v = columns[f"{BIASES} posterior"].copy()
    v[:, :, RIVAL] = times(SMALL, BIASES) ** noise[:, None]
    assert not claims({**columns, f"{BIASES} posterior": v})["slower-like-one-over-t"].holds


def test_too_few_runs_are_refused_and_make_no_claims() -> None:
    with pytest.raises(InvalidSettings, match=r"runs=99: .*>= 100.* explain every claim"):
        parse(Settings, {"runs": str(FEWEST - 1)})
    result = conduct(experiment, Settings(runs=2, steps=200, long_steps=500))
    assert result.score.claims == ()
    assert as_object(result)["experiment"] == "vanishing"


def test_at_the_smallest_size_every_claim_holds() -> None:
    result = conduct(experiment, Settings(runs=FEWEST, steps=200, long_steps=500))
    assert {claim.verdict for claim in result.score.claims} == {"holds"}


def test_tables_describe_the_classes_and_cut_off_tiny_weights(columns: Columns) -> None:
    overview, weights = experiment.score(SMALL, columns).tables
    assert [row[0] for row in overview.rows] == list(CLASSES)
    assert "Core:" in weights.note
    outside = [row[4] for row in weights.rows if row[0] == BIASES and row[2] == "outside"]
    assert outside == ["below 1e-12"] * 6


def test_a_replica_depends_only_on_the_seed_and_its_number() -> None:
    few = Settings(steps=200, long_steps=500)
    once, again = experiment.run(few, 3), experiment.run(replace(few, runs=9), 3)
    other = experiment.run(replace(few, seed=1), 3)
    assert {k: v.tobytes() for k, v in once.items()} == {k: v.tobytes() for k, v in again.items()}
    assert any(once[k].tobytes() != other[k].tobytes() for k in once)


def test_the_figure_labels_every_mode_as_inside_or_outside_the_core(columns: Columns) -> None:
    chart = experiment.figures(SMALL, columns)["vanishing"]
    assert [panel.title[:3] for panel in chart.panels] == ["(a)", "(b)", "(c)", "(d)"]
    labels = [series.label for series in chart.panels[0].series]
    assert labels[:4] == ["m1, outside", "m2, outside", "m3, inside", "m4, inside"]
    assert chart.panels[2].xscale == chart.panels[2].yscale == "log"
