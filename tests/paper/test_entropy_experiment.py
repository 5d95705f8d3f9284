"""The experiment `entropy`: its claims hold and can fail; its tables and its figure."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule, NaiveMixture, Stream
from bayescontrol.entropy import InteractionTree, relative_entropy
from bayescontrol.finite.tabular import random_modes
from bayescontrol.lab import Claim, conduct
from bayescontrol.lab.runner import Result
from bayescontrol.systems import AgentSystem
from bayescontrol_paper import entropy
from bayescontrol_paper.entropy import Settings, experiment

SMALL = Settings(runs=3, steps=3, competitors=6)


@pytest.fixture(scope="module")
def result() -> Result:
    return conduct(experiment, SMALL)


def named(result: Result) -> Mapping[str, Claim]:
    return {claim.name: claim for claim in result.score.claims}


def test_every_claim_holds_and_states_the_number_of_competitors(result: Result) -> None:
    claims = named(result)
    assert all(claim.holds for claim in claims.values())
    assert claims["naive-minimises-D"].ours == claims["naive-minimises-D"].expected == 3 * 7
    assert claims["rule-minimises-C"].ours == claims["rule-minimises-C"].expected == 3 * 7 * 4
    assert [claims[name].source for name in ("naive-minimises-D", "rule-minimises-C")] == [
        "paper",
        "paper",
    ]
    assert claims["D-is-information"].source == "ours"


def test_a_naive_agent_that_intervenes_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: the control rule instead of the naive mixture."""
    monkeypatch.setattr(entropy, "NaiveMixture", ControlRule)
    claims = named(conduct(experiment, SMALL))
    assert claims["naive-minimises-D"].verdict == "refuted"
    assert claims["D-is-information"].verdict == "fails"


def test_a_rule_that_treats_its_actions_as_evidence_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted bug: the naive posterior in the control rule."""
    monkeypatch.setattr(ControlRule, "issue", NaiveMixture.issue)
    claims = named(conduct(experiment, SMALL))
    assert claims["rule-minimises-C"].verdict == "refuted"
    assert claims["C-is-information"].verdict == "fails"


def test_C_weighted_by_the_modes_policies_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted bug: C in which histories are weighted by P_m, as in D."""
    honest = relative_entropy
    monkeypatch.setattr(entropy, "entropy_on", lambda tree, q, weights=None: honest(tree, q))
    claims = named(conduct(experiment, SMALL))
    assert claims["rule-minimises-C"].verdict == "refuted"


def test_competitors_have_valid_probabilities() -> None:
    modes = random_modes(2, actions=3, observations=2, seed=4)
    tree = InteractionTree(modes.systems(), [0.5, 0.5], 2, actions=modes.actions)
    rule = tree.tabulate(AgentSystem(modes.agent()))
    rivals = list(entropy.competitors(tree, rule, 9, Stream(1)))
    for k, rival in enumerate(rivals):
        changed = 0
        for (stage, _), q, p in zip(tree.walk(), rival, rule, strict=True):
            np.testing.assert_allclose(np.bincount(stage.parent, q), 1.0, rtol=1e-12)
            assert (q > 0.0).all()
            changed += len(set(stage.parent[q != p].tolist()))
        assert changed == 1 if k % 3 == 2 else changed > 20


def test_the_tables_show_the_values_of_the_columns(result: Result) -> None:
    means, weightings = result.score.tables
    cells: dict[tuple[Any, Any], Any] = {(row[0], row[1]): row[-1] for row in means.rows}
    assert cells["D", "oracle (knows m)"] == cells["C, uniform", "oracle (knows m)"] == 0.0
    assert cells["D", "naive mixture"] < cells["D", "control rule"] < cells["D", "uniform"]
    assert cells["C, uniform", "control rule"] < cells["C, uniform", "naive mixture"]
    assert cells["C, closed-loop", "control rule"] < cells["C, closed-loop", "naive mixture"]
    assert [row[0] for row in weightings.rows] == list(entropy.WEIGHTINGS)
    assert weightings.header[1:] == ("naive mixture", "control rule")
    assert all(float(naive) > float(rule) for _, naive, rule in weightings.rows)


def test_the_figure_has_two_labelled_panels_and_the_entropy_of_the_prior(result: Result) -> None:
    left, right = experiment.figures(SMALL, result.columns)["entropy"].panels
    assert left.ylabel == "relative entropy D [bits]"
    assert right.ylabel == "relative entropy C [bits]"
    for panel in (left, right):
        assert [series.label for series in panel.series] == list(entropy.LABELS)
    (guide,) = left.guides
    assert guide.label == "H(prior)"
    assert not right.guides


@pytest.mark.slow
def test_every_claim_holds_at_full_size() -> None:
    assert all(claim.holds for claim in conduct(experiment, experiment.full, 2).score.claims)
