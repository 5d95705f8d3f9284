"""The claims of `consistency` hold, and fail if its columns are changed.

False alarms: the two random claims fail at a rate of at most 1e-3 together; the seed is fixed.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayescontrol.convergence import Outcome, check
from bayescontrol.interaction import interact
from bayescontrol.lab import Claim, Columns, conduct
from bayescontrol.lab.runner import Result
from bayescontrol.lab.settings import InvalidSettings, parse
from bayescontrol.record import Probe
from bayescontrol_paper.consistency import (
    FEWEST,
    NAMES,
    ORIGINAL,
    REPAIRED,
    VISITS,
    Settings,
    experiment,
    modes,
    run,
)

#: The fewest runs for which claims are made; every planted error must still be detected.
SMALL = Settings(seed=2, runs=FEWEST, steps=120)


@pytest.fixture(scope="module")
def result() -> Result:
    return conduct(experiment, SMALL)


def claims(columns: Columns, settings: Settings = SMALL) -> dict[str, Claim]:
    return {claim.name: claim for claim in experiment.score(settings, columns).claims}


def test_every_claim_holds(result: Result) -> None:
    assert [claim.name for claim in result.score.claims if not claim.holds] == []


@pytest.mark.parametrize("weight", [0.1, 0.9])
def test_every_claim_holds_under_another_prior(weight: float) -> None:
    other = replace(SMALL, weight=weight)
    result = conduct(experiment, other)
    assert [claim.name for claim in result.score.claims if not claim.holds] == []
    np.testing.assert_allclose(result.columns["distance"][:, 0], 1 - weight, rtol=1e-12)


def test_the_distance_is_that_of_the_agents_action_probabilities() -> None:
    def off(agent: Any, *_: Any) -> float:
        """The distance of P(a | âo_<t) from P(a | m1, x_t), before acting."""
        local = agent.belief.modes.policy[0, agent.x]
        return float(sum(abs(p - local[a]) for a, p in agent.action_probabilities().items())) / 2

    for k, name in enumerate(NAMES):
        local = modes(name, 0.5, 0.1)
        agent = local.agent()
        first = off(agent)
        probes = {"off": Probe(off)}  # after learning: the probabilities of the next step
        record = interact(agent, local.environment(0), 30, seed=4, run=7, probes=probes)
        columns = run(Settings(seed=4, steps=30), 7)
        np.testing.assert_allclose(columns["distance"][k], [first, *record["off"]], atol=1e-12)


def test_the_verdict_does_not_depend_on_the_prior_or_the_rate_of_looks() -> None:
    for weight in (0.01, 0.5, 0.99):
        assert check(modes(ORIGINAL, weight, 0.1)).outcome is Outcome.NEVER
        assert check(modes(REPAIRED, weight, 0.1)).outcome is Outcome.THEOREM
        assert check(modes(VISITS, weight, 1e-3)).outcome is Outcome.THEOREM


def _change_a_weight(columns: dict[str, Any]) -> None:
    columns["weight"][0, 0, 50] += 1e-6


def _end_at_distance_zero(columns: dict[str, Any]) -> None:
    columns["distance"][0, 0, -1] = 0.0


def _remove_wrong_actions(columns: dict[str, Any]) -> None:
    columns["strange"][:, 0, ::3] = False


def _add_distance(columns: dict[str, Any]) -> None:
    columns["distance"][0, 1, 3] = 0.5


def _become_certain(columns: dict[str, Any]) -> None:
    columns["weight"][0, 1, -1] = 1.0


def _stay_distant(columns: dict[str, Any]) -> None:
    columns["distance"][:, 2] = 0.45


def _wander(columns: dict[str, Any]) -> None:
    """No trend: some runs end above their start, some below."""
    columns["distance"][:, 2, 0] = 0.45
    columns["distance"][:, 2, -1] = np.resize([0.2, 0.7], len(columns["distance"]))


@pytest.mark.parametrize(
    ("tamper", "claim"),
    [
        (_change_a_weight, "posterior-frozen"),
        (_end_at_distance_zero, "law-stays-apart"),
        (_remove_wrong_actions, "wrong-actions-for-ever"),
        (_add_distance, "repaired-settles-at-once"),
        (_become_certain, "repaired-need-not-know"),
        (_stay_distant, "a-look-tells-them-apart"),
        (_wander, "a-look-tells-them-apart"),
    ],
)
def test_a_planted_error_makes_its_claim_fail(result: Result, tamper: Any, claim: str) -> None:
    wrong = {name: column.copy() for name, column in result.columns.items()}
    tamper(wrong)
    assert claims(result.columns)[claim].holds
    assert not claims(wrong)[claim].holds


def test_the_drawing_shows_two_policies_and_one_after_the_repair(result: Result) -> None:
    panels = experiment.figures(SMALL, result.columns)["modes"].panels
    stays = [panel.graphs[0].areas[-1].nodes for panel in panels]
    assert stays == [("A0", "A1"), ("A0", "A2"), ("A0", "A1")]


def test_too_few_runs_are_refused_and_make_no_claims() -> None:
    with pytest.raises(InvalidSettings, match=r"runs=19: .*>= 20.* explain every claim"):
        parse(Settings, {"runs": str(FEWEST - 1)})
    single = Settings(runs=1, steps=60)
    separate_run = conduct(experiment, single)
    assert separate_run.score.claims == ()
    assert len(experiment.figures(single, separate_run.columns)) == 2


def test_too_few_looks_make_no_claim() -> None:
    rare = replace(SMALL, look=1e-4)
    names = [claim.name for claim in conduct(experiment, rare).score.claims]
    assert "a-look-tells-them-apart" not in names
    assert "wrong-actions-for-ever" in names


def test_the_table_marks_exact_values(result: Result) -> None:
    (table,) = result.score.tables
    assert [row[3:5] for row in table.rows[:2]] == [("0.5", "0.5"), ("0.5", "0")]
    assert "Distance: total variation" in table.note
