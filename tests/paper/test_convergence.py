"""The experiment `convergence`: its distances are correct, and its claims can fail."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayescontrol import interact
from bayescontrol.convergence import check
from bayescontrol.finite.chain import first_run
from bayescontrol.interaction import play
from bayescontrol.lab import Columns, conduct, run_replicas
from bayescontrol.lab.settings import InvalidSettings, parse
from bayescontrol.report.build import as_object
from bayescontrol_paper.convergence import (
    FEWEST,
    LENGTH,
    WORDS,
    Settings,
    cases,
    chain_distance,
    distance,
    experiment,
    times,
)

#: The fewest runs for which claims are made; every planted error must still be detected.
SMALL = Settings(runs=FEWEST, steps=300)
SETTLING = ["five-modes", "goal-worlds", "chain", "bias-grid"]


@pytest.fixture(scope="module")
def columns() -> Columns:
    return run_replicas(experiment, SMALL)


def claims(columns: Columns) -> dict[str, Any]:
    return {claim.name: claim for claim in experiment.score(SMALL, columns).claims}


def test_every_claim_holds(columns: Columns) -> None:
    """The chain is compared at 1 false alarm in 1,000; all else is far from its threshold."""
    found = claims(columns)
    verdicts = [f"verdict-{name.replace(' ', '-')}" for name in cases()]
    assert list(found) == [
        *verdicts, *(f"settles-{name}" for name in SETTLING),
        "chain-as-computed", "two-policies-never-settle", "trap-with-positive-probability",
    ]  # fmt: skip
    assert all(claim.holds for claim in found.values())


@pytest.mark.parametrize("name", list(cases()))
def test_the_distance_is_that_of_the_agent_from_its_true_mode(name: str) -> None:
    """Compare with the agent's action probabilities, step by step."""
    modes, true, *_ = cases()[name]
    agent = modes.agent()
    stream = play(agent, modes.environment(true), seed=4, run=2)
    observed = []
    for _ in range(25):
        probabilities = agent.action_probabilities()
        right = modes.policy[true, agent.x]
        observed.append(0.5 * sum(abs(probabilities.get(a, 0.0) - right[a]) for a in modes.actions))
        next(stream)
    assert distance(cases()[name], 25, seed=4, run=2) == pytest.approx(observed, abs=1e-12)


@pytest.mark.parametrize("name", SETTLING)
def test_an_agent_that_never_settles_is_detected(columns: Columns, name: str) -> None:
    """Planted bug: two policies that are never separated replace the class."""
    plain = name.replace("-", " ")
    wrong = {**columns, plain: columns["two policies"], f"{plain} late": np.full(FEWEST, 0.5)}
    assert not claims(wrong)[f"settles-{name}"].holds


def test_an_agent_that_settles_where_it_cannot_is_detected(columns: Columns) -> None:
    wrong = {**columns, "two policies": columns["chain"], "trap late": columns["chain late"]}
    found = claims(wrong)
    assert not found["two-policies-never-settle"].holds
    assert not found["trap-with-positive-probability"].holds


def test_a_chain_of_another_length_is_detected(columns: Columns) -> None:
    """Planted bug: the curve of a chain that takes half the time."""
    t = times(SMALL)
    faster = columns["chain"][:, np.minimum(2 * np.arange(t.size), t.size - 1)]
    assert not claims({**columns, "chain": faster})["chain-as-computed"].holds


def test_in_the_chain_the_distance_is_one_half_until_identification() -> None:
    modes, true, *_ = cases()["chain"]
    record = interact(modes.agent(), modes.environment(true), 300, seed=0, run=5)
    known = first_run(record.actions, LENGTH)
    assert known is not None
    found = distance(cases()["chain"], 300, seed=0, run=5)
    assert (found == np.where(np.arange(1, 301) <= known, 0.5, 0.0)).all()


def test_the_exact_curve_of_the_chain_falls_from_one_half_to_zero() -> None:
    t = np.arange(1, 1001)
    curve = chain_distance(t)
    assert (curve[:LENGTH] == 0.5).all()
    assert (np.diff(curve) <= 0.0).all()
    assert curve[-1] < 1e-6
    assert 2.0 * curve.sum() == pytest.approx(2**LENGTH - 1, rel=1e-6)  # E T


def test_the_outcome_of_a_case_is_that_of_its_worst_pair() -> None:
    for one in cases().values():
        found = [pair.outcome for pair in check(one.modes).pairs if pair.true == one.true]
        assert one.exact_outcome() is max(found) is one.outcome


def test_too_few_runs_are_refused_and_make_no_claims() -> None:
    with pytest.raises(InvalidSettings, match=r"runs=99: .*>= 100.* explain every claim"):
        parse(Settings, {"runs": str(FEWEST - 1)})
    result = conduct(experiment, Settings(runs=2, steps=300))
    assert result.score.claims == ()
    assert as_object(result)["experiment"] == "convergence"


def test_tables_describe_the_classes_and_the_distance(columns: Columns) -> None:
    overview, far = experiment.score(SMALL, columns).tables
    assert [row[0] for row in overview.rows] == [row[0] for row in far.rows] == list(cases())
    assert "total variation" in far.note
    assert far.rows[4][3] == "0.5"  # of two policies, exactly


def test_a_replica_depends_only_on_the_seed_and_its_number() -> None:
    once, again = experiment.run(SMALL, 3), experiment.run(replace(SMALL, runs=9), 3)
    other = experiment.run(replace(SMALL, seed=1), 3)
    assert {k: v.tobytes() for k, v in once.items()} == {k: v.tobytes() for k, v in again.items()}
    assert any(once[k].tobytes() != other[k].tobytes() for k in once)


def test_every_panel_states_its_verdict(columns: Columns) -> None:
    panels = experiment.figures(SMALL, columns)["convergence"].panels
    assert [panel.notes[0] for panel in panels] == [WORDS[one.outcome] for one in cases().values()]
    assert all(panel.series[0].low is not None for panel in panels)
