"""The experiment `lower-bound`: its claims hold, and distinguish the two agents."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from bayescontrol import NaiveMixture, interact
from bayescontrol.convergence.boundedness import simulate_divergences
from bayescontrol.lab import Columns
from bayescontrol.record import posterior
from bayescontrol_paper import lower_bound as paper

#: The fewest runs for which claims are made; every planted error must still be detected.
SMALL = paper.Settings(runs=paper.FEWEST, steps=60)
NAMES = ["three-levers", "prize-or-frog", "bias-grid"]


def claims(columns: Columns) -> dict[str, Any]:
    return {claim.name: claim for claim in paper.experiment.score(SMALL, columns).claims}


def test_an_off_by_one_error_in_the_walk_is_detected(
    columns: Columns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted bug: one frog too many is required, which is a third as likely."""
    behind_by = paper.behind_by
    monkeypatch.setattr(paper, "behind_by", lambda delta: behind_by(delta) + 1)
    assert not claims(columns)["gamblers-ruin"].holds


@pytest.mark.parametrize("run", range(3))
def test_the_rule_with_naive_evidence_equals_the_naive_mixture(run: int) -> None:
    modes = paper.levers()
    world = modes.environment(0)
    probes = {"v": posterior}
    record = interact(modes.agent(kind=NaiveMixture), world, 40, seed=2, run=run, probes=probes)
    quick = simulate_divergences(
        paper.naive(modes), 0, 40, 1, 2, at=range(1, 41), against=[], first=run
    )
    assert quick.posterior[0] == pytest.approx(record["v"], rel=1e-11, abs=1e-300)


def test_the_probability_of_falling_behind_agrees_with_enumeration() -> None:
    steps = 9
    for k in (1, 2, 3):
        chance = 0.0
        for walk in product((1, -1), repeat=steps):
            if np.cumsum(walk).min() <= -k:
                ups = walk.count(1)
                chance += paper.RELIABILITY**ups * (1.0 - paper.RELIABILITY) ** (steps - ups)
        assert paper.ruin_probability(k, steps) == pytest.approx(chance, rel=1e-12)


def test_the_belief_k_steps_behind_equals_the_rules_belief() -> None:
    agent = paper.worlds()["prize or frog"].modes.agent()
    for k in range(1, 6):
        agent.observe(0, 0)  # a frog where m* has the prize
        left = 2.0 / (1.0 + (paper.RELIABILITY / (1.0 - paper.RELIABILITY)) ** k)
        assert agent.belief.posterior()[0] / 0.5 == pytest.approx(left, rel=1e-12)
        assert paper.behind_by(left * 1.01) == k
        assert paper.behind_by(left * 0.99) == k + 1


def test_the_floor_holds_in_all_but_a_share_of_runs() -> None:
    low = np.arange(40.0)
    for delta in paper.DELTAS:
        assert (low < paper.floor(low, delta)).mean() <= delta


def test_tables_describe_the_worlds_and_lambda(columns: Columns) -> None:
    overview, shares = paper.experiment.score(SMALL, columns).tables
    assert [row[0] for row in overview.rows] == list(paper.worlds())
    assert "λ: the share of its prior that m* retains" in shares.note
    naive_keeps = [row[-1] for row in shares.rows if row[1] == "naive"]
    assert set(naive_keeps) == {"below 1e-12"}


def test_the_figure_has_four_panels_and_a_colour_for_each_agent(columns: Columns) -> None:
    chart = paper.experiment.figures(SMALL, columns)["lower-bound"]
    assert [panel.title[:3] for panel in chart.panels] == ["(a)", "(b)", "(c)", "(d)"]
    for panel in chart.panels:
        for series in panel.series:
            if "exact" not in series.label:
                assert series.colour == ("vermillion" if "naive" in series.label else "blue")
