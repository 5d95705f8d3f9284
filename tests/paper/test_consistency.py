"""The experiment `consistency`: what its tables, figures and exact values are made of."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayescontrol.convergence import Outcome, check
from bayescontrol.interaction import interact
from bayescontrol.lab import conduct
from bayescontrol.lab.runner import Result
from bayescontrol.record import Probe
from bayescontrol_paper import consistency as paper

#: The fewest runs for which claims are made; every planted error must still be detected.
SMALL = paper.Settings(seed=2, runs=paper.FEWEST, steps=120)


@pytest.fixture(scope="module")
def result() -> Result:
    return conduct(paper.experiment, SMALL)


def test_the_distance_is_that_of_the_agents_action_probabilities() -> None:
    def off(agent: Any, *_: Any) -> float:
        """The distance of P(a | âo_<t) from P(a | m1, x_t), before acting."""
        local = agent.belief.modes.policy[0, agent.x]
        return float(sum(abs(p - local[a]) for a, p in agent.action_probabilities().items())) / 2

    for k, name in enumerate(paper.NAMES):
        local = paper.modes(name, 0.5, 0.1)
        agent = local.agent()
        first = off(agent)
        probes = {"off": Probe(off)}  # after learning: the probabilities of the next step
        record = interact(agent, local.environment(0), 30, seed=4, run=7, probes=probes)
        columns = paper.run(paper.Settings(seed=4, steps=30), 7)
        np.testing.assert_allclose(columns["distance"][k], [first, *record["off"]], atol=1e-12)


def test_the_verdict_does_not_depend_on_the_prior_or_the_rate_of_looks() -> None:
    for weight in (0.01, 0.5, 0.99):
        assert check(paper.modes(paper.ORIGINAL, weight, 0.1)).outcome is Outcome.NEVER
        assert check(paper.modes(paper.REPAIRED, weight, 0.1)).outcome is Outcome.THEOREM
        assert check(paper.modes(paper.VISITS, weight, 1e-3)).outcome is Outcome.THEOREM


def test_the_drawing_shows_two_policies_and_one_after_the_repair(result: Result) -> None:
    panels = paper.experiment.figures(SMALL, result.columns)["modes"].panels
    stays = [panel.graphs[0].areas[-1].nodes for panel in panels]
    assert stays == [("A0", "A1"), ("A0", "A2"), ("A0", "A1")]


def test_too_few_looks_make_no_claim() -> None:
    rare = replace(SMALL, look=1e-4)
    names = [claim.name for claim in conduct(paper.experiment, rare).score.claims]
    assert "a-look-tells-them-apart" not in names
    assert "wrong-actions-for-ever" in names


def test_the_table_marks_exact_values(result: Result) -> None:
    (table,) = result.score.tables
    assert [row[3:5] for row in table.rows[:2]] == [("0.5", "0.5"), ("0.5", "0")]
    assert "Distance: total variation" in table.note
