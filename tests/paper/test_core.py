"""The claims of `core` hold, and fail if its columns are changed.

False alarms: the random claims fail at a rate of at most 1e-3 together; the seed is fixed.
"""

from typing import Any

import numpy as np
import pytest

from bayescontrol.lab import Claim, Columns, conduct
from bayescontrol.lab.runner import Result
from bayescontrol.lab.settings import InvalidSettings, parse
from bayescontrol_paper.core import (
    AGENTS,
    FEWEST,
    HELD,
    SPELLS,
    Settings,
    class_of,
    expected_divergences,
    experiment,
    modes,
    rate,
    spell_class,
    spells,
    times,
)

#: The fewest runs for which claims are made; every planted error must still be detected.
SMALL = Settings(seed=1, runs=FEWEST, steps=1000)
#: KL of Bernoulli(.7) from Bernoulli(.3), and from Bernoulli(.5), in nats.
FAR = 0.4 * np.log(7 / 3)
NEAR = 0.7 * np.log(1.4) + 0.3 * np.log(0.6)


@pytest.fixture(scope="module")
def result() -> Result:
    return conduct(experiment, SMALL)


def claims(columns: Columns) -> dict[str, Claim]:
    return {claim.name: claim for claim in experiment.score(SMALL, columns).claims}


def test_every_claim_holds(result: Result) -> None:
    assert [claim.name for claim in result.score.claims if not claim.holds] == []


def test_the_exact_rates_follow_from_the_visited_states() -> None:
    """P1 cycles through A0 A1 A2 B0 B1: two of five steps are in B; P2 stays in A."""
    assert rate(class_of("only P1"), 0, 1) == pytest.approx(2 / 5 * FAR)
    assert rate(class_of("only P1"), 0, 2) == pytest.approx((3 * FAR + 2 * NEAR) / 5)
    assert rate(class_of("only P2"), 0, 1) == 0.0
    assert rate(class_of("only P2"), 0, 2) == pytest.approx(FAR)


@pytest.mark.parametrize(("k", "share"), [(1, 0), (2, 0), (3, 1 / 4), (4, 2 / 5), (5, 1 / 3)])
def test_spells_of_p1_reach_b_from_three_steps_on(k: int, share: float) -> None:
    """k = 5: A0 A1 A2 B0 B1 A0, then P2 to A3, which continues like A0: two of six steps in B."""
    assert rate(spells(modes(), k), 0, 1) == pytest.approx(share * FAR)


def test_expected_evidence_is_the_mean_over_all_histories() -> None:
    T, same = 6, class_of("only P1")
    d = np.zeros(T + 1)
    histories = [(same.start, 1.0, 0.0)]
    for t in range(T):
        after = []
        for x, p, so_far in histories:
            for o in (0, 1):
                mine, other, _ = same.likelihoods(x, 0, o)
                ratio = so_far + np.log(mine / other)
                after.append((same.advance(x, 0, o), p * mine, ratio))
        histories = after
        d[t + 1] = sum(p * ratio for _, p, ratio in histories)
    np.testing.assert_allclose(expected_divergences(same, 0, T)[:, 1], d, atol=1e-12)


def test_a_spell_lets_p1_act_for_its_length_and_p2_once() -> None:
    same = spell_class(2)
    x, observed = same.start, []
    for _ in range(6):
        a = int(np.argmax(same.policy[0, x]))
        observed.append(same.labels.actions[a])
        x = same.advance(x, a, 1)
    assert observed == ["climb", "climb", "round"] * 2


def test_times_are_in_order_and_end_at_the_last_step() -> None:
    for last in (12, 200, 3000):
        t = times(last)
        assert (t[0], t[-1]) == (1, last)
        assert (np.diff(t) > 0).all()
    assert HELD == 4


def _add_evidence(columns: dict[str, Any]) -> None:
    columns["divergence"][0, 1, 7, 0] = 1e-9


def _slow_evidence(columns: dict[str, Any]) -> None:
    columns["divergence"][:, 1, :, 1] *= 0.8


def _cancel_evidence(columns: dict[str, Any]) -> None:
    columns["divergence"][:, 1, :, 1] *= np.where(np.arange(len(columns["spells"])) % 2, 1, -1)[
        :, None
    ]


def _remove_evidence(columns: dict[str, Any]) -> None:
    columns["divergence"][:, 0, :, 0] = 0.0


def _add_early_evidence(columns: dict[str, Any]) -> None:
    columns["divergence"][0, 0, 3, 0] = 0.1


def _add_evidence_of_short_spells(columns: dict[str, Any]) -> None:
    columns["spells"][0, SPELLS.index(2)] = 0.1


def _weaken_long_spells(columns: dict[str, Any]) -> None:
    columns["spells"][:, SPELLS.index(4)] *= 0.5


def _freeze_weights(columns: dict[str, Any]) -> None:
    columns["weights"][:] = columns["weights"][:, :1]


def _ignore_holding(columns: dict[str, Any]) -> None:
    columns["held"][:] = columns["weights"][:, np.searchsorted(times(1000), times(200))]


@pytest.mark.parametrize(
    ("tamper", "claim"),
    [
        (_add_evidence, "p2-spares-h2"),
        (_slow_evidence, "evidence-as-computed"),
        (_cancel_evidence, "p2-refutes-h3"),
        (_remove_evidence, "p1-refutes-h2"),
        (_remove_evidence, "evidence-as-computed"),
        (_remove_evidence, "long-enough"),
        (_add_early_evidence, "long-enough"),
        (_add_evidence_of_short_spells, "short-spells-are-in-vain"),
        (_weaken_long_spells, "longer-spells-tell"),
        (_freeze_weights, "rule-refutes-h2"),
        (_freeze_weights, "rule-refutes-h3"),
        (_ignore_holding, "holding-helps"),
    ],
)
def test_a_planted_error_makes_its_claim_fail(result: Result, tamper: Any, claim: str) -> None:
    wrong = {name: column.copy() for name, column in result.columns.items()}
    tamper(wrong)
    assert claims(result.columns)[claim].holds
    assert not claims(wrong)[claim].holds


def test_the_drawing_shows_where_each_policy_stays(result: Result) -> None:
    panels = experiment.figures(SMALL, result.columns)["hypotheses"].panels
    stays = [panel.graphs[0].areas[-1].nodes for panel in panels]
    assert stays == [("A0", "A1", "A2", "B0", "B1"), ("A0", "A3"), ("A0", "A1")]
    shades = [{n.name: n.shade for n in panel.graphs[0].nodes} for panel in panels]
    assert shades[0]["A0"] == shades[1]["A0"] != shades[2]["A0"]
    assert shades[0]["B0"] != shades[1]["B0"]


def test_too_few_runs_are_refused_and_make_no_claims() -> None:
    with pytest.raises(InvalidSettings, match=r"runs=2: .*>= 300.* explain every claim"):
        parse(Settings, {"runs": "2"})
    single = Settings(seed=5, runs=2, steps=1000)
    separate_run = conduct(experiment, single)
    assert separate_run.score.claims == ()
    assert len(experiment.figures(single, separate_run.columns)) == 2
    assert len(AGENTS) == 3


def test_figures_and_tables_call_the_hypotheses_by_the_same_names(result: Result) -> None:
    charts = experiment.figures(SMALL, result.columns)
    assert [panel.title[:2] for panel in charts["hypotheses"].panels] == ["H1", "H2", "H3"]
    rule = charts["evidence"].panels[3]
    assert [series.label[:2] for series in rule.series] == ["H1", "H2", "H3", "H2"]
    overview, evidence, weights = result.score.tables
    assert weights.header[2:5] == ("H1", "H2", "H3")
    assert all(table.note for table in (overview, evidence, weights))
    blind = [row[-1] for row in evidence.rows if row[2] == 0.0]
    assert blind == ["0"] * 3  # exactly: P2 alone, and spells of one and two
