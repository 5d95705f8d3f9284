"""The experiment `core`: what its tables, figures and exact values are made of."""

import numpy as np
import pytest

from bayescontrol.lab import conduct
from bayescontrol.lab.runner import Result
from bayescontrol_paper import core as paper

#: The fewest runs for which claims are made; every planted error must still be detected.
SMALL = paper.Settings(seed=1, runs=paper.FEWEST, steps=1000)
#: KL of Bernoulli(.7) from Bernoulli(.3), and from Bernoulli(.5), in nats.
FAR = 0.4 * np.log(7 / 3)
NEAR = 0.7 * np.log(1.4) + 0.3 * np.log(0.6)


@pytest.fixture(scope="module")
def result() -> Result:
    return conduct(paper.experiment, SMALL)


def test_the_exact_rates_follow_from_the_visited_states() -> None:
    """P1 cycles through A0 A1 A2 B0 B1: two of five steps are in B; P2 stays in A."""
    assert paper.rate(paper.class_of("only P1"), 0, 1) == pytest.approx(2 / 5 * FAR)
    assert paper.rate(paper.class_of("only P1"), 0, 2) == pytest.approx((3 * FAR + 2 * NEAR) / 5)
    assert paper.rate(paper.class_of("only P2"), 0, 1) == 0.0
    assert paper.rate(paper.class_of("only P2"), 0, 2) == pytest.approx(FAR)


@pytest.mark.parametrize(("k", "share"), [(1, 0), (2, 0), (3, 1 / 4), (4, 2 / 5), (5, 1 / 3)])
def test_spells_of_p1_reach_b_from_three_steps_on(k: int, share: float) -> None:
    """k = 5: A0 A1 A2 B0 B1 A0, then P2 to A3, which continues like A0: two of six steps in B."""
    assert paper.rate(paper.spells(paper.modes(), k), 0, 1) == pytest.approx(share * FAR)


def test_expected_evidence_is_the_mean_over_all_histories() -> None:
    T, same = 6, paper.class_of("only P1")
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
    np.testing.assert_allclose(paper.expected_divergences(same, 0, T)[:, 1], d, atol=1e-12)


def test_a_spell_lets_p1_act_for_its_length_and_p2_once() -> None:
    same = paper.spell_class(2)
    x, observed = same.start, []
    for _ in range(6):
        a = int(np.argmax(same.policy[0, x]))
        observed.append(same.labels.actions[a])
        x = same.advance(x, a, 1)
    assert observed == ["climb", "climb", "round"] * 2


def test_times_are_in_order_and_end_at_the_last_step() -> None:
    for last in (12, 200, 3000):
        t = paper.times(last)
        assert (t[0], t[-1]) == (1, last)
        assert (np.diff(t) > 0).all()
    assert paper.HELD == 4


def test_the_drawing_shows_where_each_policy_stays(result: Result) -> None:
    panels = paper.experiment.figures(SMALL, result.columns)["hypotheses"].panels
    stays = [panel.graphs[0].areas[-1].nodes for panel in panels]
    assert stays == [("A0", "A1", "A2", "B0", "B1"), ("A0", "A3"), ("A0", "A1")]
    shades = [{n.name: n.shade for n in panel.graphs[0].nodes} for panel in panels]
    assert shades[0]["A0"] == shades[1]["A0"] != shades[2]["A0"]
    assert shades[0]["B0"] != shades[1]["B0"]


def test_figures_and_tables_call_the_hypotheses_by_the_same_names(result: Result) -> None:
    charts = paper.experiment.figures(SMALL, result.columns)
    assert [panel.title[:2] for panel in charts["hypotheses"].panels] == ["H1", "H2", "H3"]
    rule = charts["evidence"].panels[3]
    assert [series.label[:2] for series in rule.series] == ["H1", "H2", "H3", "H2"]
    overview, evidence, weights = result.score.tables
    assert weights.header[2:5] == ("H1", "H2", "H3")
    assert all(table.note for table in (overview, evidence, weights))
    blind = [row[-1] for row in evidence.rows if row[2] == 0.0]
    assert blind == ["0"] * 3  # exactly: P2 alone, and spells of one and two
