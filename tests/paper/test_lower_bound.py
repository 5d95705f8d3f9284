"""The experiment `lower-bound`: its claims hold, and distinguish the two agents."""

from dataclasses import replace
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest

from bayescontrol import NaiveMixture, interact
from bayescontrol.convergence.boundedness import simulate_divergences
from bayescontrol.lab import Columns, conduct, run_replicas
from bayescontrol.lab.settings import InvalidSettings, parse
from bayescontrol.record import posterior
from bayescontrol.report.build import as_object
from bayescontrol_paper.lower_bound import (
    DELTAS,
    FEWEST,
    RELIABILITY,
    Settings,
    behind_by,
    experiment,
    fallen,
    floor,
    levers,
    naive,
    worlds,
)

#: The fewest runs for which claims are made; every planted error must still be detected.
SMALL = Settings(runs=FEWEST, steps=60)
NAMES = ["three-levers", "prize-or-frog", "bias-grid"]


@pytest.fixture(scope="module")
def columns() -> Columns:
    return run_replicas(experiment, SMALL)


def claims(columns: Columns) -> dict[str, Any]:
    return {claim.name: claim for claim in experiment.score(SMALL, columns).claims}


def swapped(columns: Columns, put: str, for_: str) -> Columns:
    """Replace the columns of agent `for_` by those of agent `put`."""
    moved = {k: columns[k.replace(f" {for_} ", f" {put} ")] for k in columns if f" {for_} " in k}
    return {**columns, **moved}


def test_every_claim_holds(columns: Columns) -> None:
    """False alarms: below 1 in 1,000 by construction; the seed is fixed."""
    found = claims(columns)
    ville, wrong = ([f"{stem}-{name}" for name in NAMES] for stem in ("ville", "naive"))
    assert list(found) == ["lower-bound", *ville, "gamblers-ruin", *wrong]
    assert all(claim.holds for claim in found.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_naive_agent_instead_of_the_rule_is_detected(columns: Columns, name: str) -> None:
    """Planted bug: the columns of the rule are those of the naive agent."""
    found = claims(swapped(columns, put="naive", for_="rule"))
    assert not found[f"ville-{name}"].holds
    assert found["lower-bound"].verdict == "refuted"


@pytest.mark.parametrize("name", NAMES)
def test_the_rule_instead_of_the_naive_agent_is_detected(columns: Columns, name: str) -> None:
    assert not claims(swapped(columns, put="rule", for_="naive"))[f"naive-{name}"].holds


def test_an_off_by_one_error_in_the_walk_is_detected(
    columns: Columns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted bug: one frog too many is required, which is a third as likely."""
    scoring = import_module("bayescontrol_paper.lower_bound")
    monkeypatch.setattr(scoring, "behind_by", lambda delta: behind_by(delta) + 1)
    assert not claims(columns)["gamblers-ruin"].holds


@pytest.mark.parametrize("run", range(3))
def test_the_rule_with_naive_evidence_equals_the_naive_mixture(run: int) -> None:
    modes = levers()
    world = modes.environment(0)
    probes = {"v": posterior}
    record = interact(modes.agent(kind=NaiveMixture), world, 40, seed=2, run=run, probes=probes)
    quick = simulate_divergences(naive(modes), 0, 40, 1, 2, at=range(1, 41), against=[], first=run)
    assert quick.posterior[0] == pytest.approx(record["v"], rel=1e-11, abs=1e-300)


def test_the_probability_of_falling_behind_agrees_with_enumeration() -> None:
    steps = 9
    for k in (1, 2, 3):
        chance = 0.0
        for walk in product((1, -1), repeat=steps):
            if np.cumsum(walk).min() <= -k:
                ups = walk.count(1)
                chance += RELIABILITY**ups * (1.0 - RELIABILITY) ** (steps - ups)
        assert fallen(k, steps) == pytest.approx(chance, rel=1e-12)


def test_the_belief_k_steps_behind_equals_the_rules_belief() -> None:
    agent = worlds()["prize or frog"].modes.agent()
    for k in range(1, 6):
        agent.observe(0, 0)  # a frog where m* has the prize
        left = 2.0 / (1.0 + (RELIABILITY / (1.0 - RELIABILITY)) ** k)
        assert agent.belief.posterior()[0] / 0.5 == pytest.approx(left, rel=1e-12)
        assert behind_by(left * 1.01) == k
        assert behind_by(left * 0.99) == k + 1


def test_the_floor_holds_in_all_but_a_share_of_runs() -> None:
    low = np.arange(40.0)
    for delta in DELTAS:
        assert (low < floor(low, delta)).mean() <= delta


def test_too_few_runs_are_refused_and_make_no_claims() -> None:
    with pytest.raises(InvalidSettings, match=r"runs=199: .*>= 200.* explain every claim"):
        parse(Settings, {"runs": str(FEWEST - 1)})
    result = conduct(experiment, Settings(runs=3, steps=10))
    assert result.score.claims == ()
    assert as_object(result)["experiment"] == "lower-bound"


def test_at_the_smallest_size_every_claim_holds() -> None:
    result = conduct(experiment, Settings(runs=FEWEST, steps=10, seed=4))
    assert {claim.verdict for claim in result.score.claims} == {"holds"}


def test_tables_describe_the_worlds_and_lambda(columns: Columns) -> None:
    overview, shares = experiment.score(SMALL, columns).tables
    assert [row[0] for row in overview.rows] == list(worlds())
    assert "λ: the share of its prior that m* retains" in shares.note
    naive_keeps = [row[-1] for row in shares.rows if row[1] == "naive"]
    assert set(naive_keeps) == {"below 1e-12"}


def test_a_replica_depends_only_on_the_seed_and_its_number() -> None:
    once, again = experiment.run(SMALL, 3), experiment.run(replace(SMALL, runs=9), 3)
    other = experiment.run(replace(SMALL, seed=1), 3)
    assert {k: v.tobytes() for k, v in once.items()} == {k: v.tobytes() for k, v in again.items()}
    assert any(once[k].tobytes() != other[k].tobytes() for k in once)


def test_the_figure_has_four_panels_and_a_colour_for_each_agent(columns: Columns) -> None:
    chart = experiment.figures(SMALL, columns)["lower-bound"]
    assert [panel.title[:3] for panel in chart.panels] == ["(a)", "(b)", "(c)", "(d)"]
    for panel in chart.panels:
        for series in panel.series:
            if "exact" not in series.label:
                assert series.colour == ("vermillion" if "naive" in series.label else "blue")
