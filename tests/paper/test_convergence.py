"""The experiment `convergence`: its distances are correct, and its claims can fail."""

import numpy as np
import pytest
from tests.paper.cases import columns as columns_of

from bayescontrol import interact
from bayescontrol.convergence import check
from bayescontrol.finite.chain import first_run
from bayescontrol.interaction import play
from bayescontrol.lab import Columns
from bayescontrol_paper import convergence as paper

#: The fewest runs for which claims are made; every planted error must still be detected.
SMALL = paper.Settings(runs=paper.FEWEST, steps=300)


@pytest.fixture(scope="module")
def columns() -> Columns:
    return columns_of("convergence")


@pytest.mark.parametrize("name", list(paper.cases()))
def test_the_distance_is_that_of_the_agent_from_its_true_mode(name: str) -> None:
    """Compare with the agent's action probabilities, step by step."""
    modes, true, *_ = paper.cases()[name]
    agent = modes.agent()
    stream = play(agent, modes.environment(true), seed=4, run=2)
    observed = []
    for _ in range(25):
        probabilities = agent.action_probabilities()
        right = modes.policy[true, agent.x]
        observed.append(0.5 * sum(abs(probabilities.get(a, 0.0) - right[a]) for a in modes.actions))
        next(stream)
    assert paper.distance(paper.cases()[name], 25, seed=4, run=2) == pytest.approx(
        observed, abs=1e-12
    )


def test_in_the_chain_the_distance_is_one_half_until_identification() -> None:
    modes, true, *_ = paper.cases()["chain"]
    record = interact(modes.agent(), modes.environment(true), 300, seed=0, run=5)
    known = first_run(record.actions, paper.LENGTH)
    assert known is not None
    found = paper.distance(paper.cases()["chain"], 300, seed=0, run=5)
    assert (found == np.where(np.arange(1, 301) <= known, 0.5, 0.0)).all()


def test_the_exact_curve_of_the_chain_falls_from_one_half_to_zero() -> None:
    t = np.arange(1, 1001)
    curve = paper.chain_distance(t)
    assert (curve[: paper.LENGTH] == 0.5).all()
    assert (np.diff(curve) <= 0.0).all()
    assert curve[-1] < 1e-6
    assert 2.0 * curve.sum() == pytest.approx(2**paper.LENGTH - 1, rel=1e-6)  # E T


def test_the_outcome_of_a_case_is_that_of_its_worst_pair() -> None:
    for one in paper.cases().values():
        found = [pair.outcome for pair in check(one.modes).pairs if pair.true == one.true]
        assert one.exact_outcome() is max(found) is one.outcome


def test_tables_describe_the_classes_and_the_distance(columns: Columns) -> None:
    overview, far = paper.experiment.score(SMALL, columns).tables
    assert [row[0] for row in overview.rows] == [row[0] for row in far.rows] == list(paper.cases())
    assert "total variation" in far.note
    assert far.rows[4][3] == "0.5"  # of two policies, exactly


def test_every_panel_states_its_verdict(columns: Columns) -> None:
    panels = paper.experiment.figures(SMALL, columns)["convergence"].panels
    assert [panel.notes[0] for panel in panels] == [
        paper.WORDS[one.outcome] for one in paper.cases().values()
    ]
    assert all(panel.series[0].low is not None for panel in panels)
