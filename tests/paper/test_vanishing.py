"""The experiment `vanishing`: its claims hold, and detect weights of other modes."""

import pytest

from bayescontrol.convergence import Outcome
from bayescontrol.lab import Columns
from bayescontrol_paper import vanishing as paper

#: The fewest runs for which claims are made; every planted error must still be detected.
SMALL = paper.Settings(runs=paper.FEWEST, steps=300, long_steps=2000)


def test_modes_inside_the_core_and_modes_that_act_differently_are_listed() -> None:
    assert paper.others(paper.FIVE, inside=True) == [3, 4]
    assert paper.others(paper.CORE, inside=True) == []
    assert paper.others(paper.BIASES, inside=True) == [paper.TWIN, paper.RIVAL]
    assert paper.verdict_on(paper.BIASES, paper.RIVAL).outcome is Outcome.SETTLES
    assert paper.verdict_on(paper.BIASES, paper.TWIN).outcome is Outcome.THEOREM


def test_the_exponent_of_a_power_of_time_is_recovered(columns: Columns) -> None:
    v = columns[f"{paper.BIASES} posterior"].copy()
    v[:, :, paper.RIVAL] = paper.times(SMALL, paper.BIASES) ** -1.5
    assert paper.exponents(SMALL, {f"{paper.BIASES} posterior": v}) == pytest.approx(
        -1.5, rel=1e-12
    )


def test_bounds_are_above_posteriors_and_start_at_the_prior_odds(columns: Columns) -> None:
    for name, true in paper.CLASSES.items():
        v, bound = columns[f"{name} posterior"], columns[f"{name} bound"]
        assert (v <= bound * (1.0 + 1e-12)).all()
        if paper.times(SMALL, name)[0] == 0:
            prior = paper.class_of(name).prior
            assert bound[0, 0] == pytest.approx(prior / prior[true])


def test_tables_describe_the_classes_and_cut_off_tiny_weights(columns: Columns) -> None:
    overview, weights = paper.experiment.score(SMALL, columns).tables
    assert [row[0] for row in overview.rows] == list(paper.CLASSES)
    assert "Core:" in weights.note
    outside = [row[4] for row in weights.rows if row[0] == paper.BIASES and row[2] == "outside"]
    assert outside == ["below 1e-12"] * 6


def test_the_figure_labels_every_mode_as_inside_or_outside_the_core(columns: Columns) -> None:
    chart = paper.experiment.figures(SMALL, columns)["vanishing"]
    assert [panel.title[:3] for panel in chart.panels] == ["(a)", "(b)", "(c)", "(d)"]
    labels = [series.label for series in chart.panels[0].series]
    assert labels[:4] == ["m1, outside", "m2, outside", "m3, inside", "m4, inside"]
    assert chart.panels[2].xscale == chart.panels[2].yscale == "log"
