"""The experiment `provenance`: exact claims detect actions taken for evidence; its figure."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.paper.cases import CASES, claims

from bayescontrol import ControlRule, NaiveMixture, Stream
from bayescontrol.audit import WORLDS, did, saw, shown
from bayescontrol.causal import Causal
from bayescontrol.lab import Claim, Columns
from bayescontrol_paper import provenance as paper

SMALL = paper.Settings(**CASES["provenance"].size)
EXACT = ("two-hypotheses", "fire-engine", "two-lights", "return-conditioning")


def exact_claims() -> Mapping[str, Claim]:
    few = paper.Settings(runs=1, lessons=100)
    columns = {"index": np.zeros((1, 3, 2, 1)), "network": np.full((1, 3, 2), np.nan)}
    score = paper.experiment.score(few, {**columns, "ice": np.zeros((1, 3))})
    return {claim.name: claim for claim in score.claims}


def test_with_few_lessons_only_exact_claims_are_made_and_they_hold() -> None:
    found = exact_claims()
    assert tuple(found) == EXACT
    assert all(claim.holds and claim.exact for claim in found.values())
    assert found["two-hypotheses"].ours == "0.8116, 0.4891"
    assert found["return-conditioning"].ours == "0.9643, 1, 0.25, 0.3, -0.4, -0.12"


@pytest.mark.parametrize(
    ("world", "events", "interventional", "observational"),
    [
        ("two-hypotheses", [did("A"), saw("B")], Fraction(280, 345), Fraction(560, 1145)),
        ("fire-engine", [shown("send")], Fraction(95, 100), Fraction(95, 100)),
        ("fire-engine", [did("send")], Fraction(1, 1000), Fraction(95, 100)),
        ("two-lights", [did("watch"), saw("on on")], Fraction(1, 2), Fraction(1, 2)),
        ("two-lights", [did("set left"), saw("on on")], Fraction(3, 5), Fraction(12, 13)),
    ],
)
def test_beliefs_after_a_symbol_depend_on_who_wrote_it(
    world: str, events: list[Any], interventional: Fraction, observational: Fraction
) -> None:
    found = paper.first_mode(world, *events)
    assert found == pytest.approx((float(interventional), float(observational)), rel=1e-12)


def test_a_rule_that_takes_its_actions_for_evidence_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted bug: the naive posterior in the control rule."""
    monkeypatch.setattr(ControlRule, "issue", NaiveMixture.issue)
    found = exact_claims()
    assert {name for name, claim in found.items() if claim.verdict == "fails"} == {
        "two-hypotheses", "fire-engine", "two-lights",
    }  # fmt: skip


def test_a_causal_model_that_conditions_on_what_is_set_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted bug: an intervention becomes a condition."""

    def query(self: Any, *names: str, given: Any = None, do: Any = None) -> Any:
        return self.condition({**(given or {}), **(do or {})}).marginal(*names).as_dict()

    monkeypatch.setattr(Causal, "query", query)
    found = exact_claims()
    for name in ("two-lights", "return-conditioning"):
        assert found[name].verdict == "fails"


def test_another_lake_breaks_the_claim_about_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: in the tables the expert does not see the ice."""
    blind = paper.ice(expert_sees=False)
    monkeypatch.setattr(paper, "ice", lambda *_: blind)
    assert exact_claims()["return-conditioning"].verdict == "fails"


def test_the_simulated_ice_agrees_with_the_exact_numbers() -> None:
    """Five standard errors: false alarms below 1e-5. The seed is fixed."""
    runs = np.array([paper._on_the_ice(Stream(seed)) for seed in range(40)])
    mean, error = runs.mean(0), runs.std(0, ddof=1) / np.sqrt(len(runs))
    exact = (*paper.conditioned(paper.ice()), paper.crossing_earns(paper.ice()))
    assert (np.abs(mean - exact) <= 5.0 * error + 1e-12).all()


def test_one_world_far_from_its_target_makes_a_claim_fail(columns: Columns) -> None:
    """A mean over the worlds would hide it."""
    index = columns["index"].copy()
    index[:, 1, 1, -1] += 0.09
    found = claims("provenance", {**columns, "index": index})
    assert found["counterfactual-teaching"].verdict == "fails"
    assert "two-levers" in found["counterfactual-teaching"].claim
    assert found["factual-teaching"].verdict == "holds"


def test_an_index_near_the_limit_is_undecided(columns: Columns) -> None:
    index = columns["index"].copy()
    index[:, :, 0, -1] = 1.04 + np.array([-0.03, 0.0, 0.03])[:, None]
    assert claims("provenance", {**columns, "index": index})["factual-teaching"].undecided


def test_without_scikit_learn_the_network_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "find_spec", lambda name: None)
    few = paper.Settings(runs=1, lessons=100, histories=10)
    columns = {name: column[None] for name, column in paper.run(few, 0).items()}
    assert np.isnan(columns["network"]).all()
    table = paper.experiment.score(few, columns).tables[0]
    assert {row[-1] for row in table.rows} == {"not trained"}
    assert len(paper.experiment.figures(few, columns)["provenance"].panels) == 2


def test_the_network_is_nearer_to_the_mixture_after_factual_lessons(columns: Columns) -> None:
    """A small network and few lessons: the indices are rough. The seed is fixed."""
    pytest.importorskip("sklearn")
    factual, counterfactual = columns["network"][0].T
    assert (factual > 0.7).all()
    assert (counterfactual < 0.5).all()
    assert np.isnan(columns["network"][1:]).all()


def test_the_figure_shows_the_examples_the_learners_and_the_network(columns: Columns) -> None:
    pytest.importorskip("sklearn")
    examples, learners, network = paper.experiment.figures(SMALL, columns)["provenance"].panels
    assert [series.label for series in examples.series] == [
        "prior", "own action: an intervention", "own action: taken for evidence",
    ]  # fmt: skip
    assert [series.y[0] for series in examples.series[1:]] == pytest.approx([0.8116, 0.4891], 1e-4)
    assert len(learners.series) == len(paper.BENCH) * len(paper.TEACHING)
    assert learners.series[0].x.tolist() == paper.ladder(SMALL).tolist()
    assert [guide.at for guide in network.guides] == [1.0, 0.0]


def test_every_world_of_the_bench_exists() -> None:
    assert set(paper.BENCH) <= set(WORLDS)
