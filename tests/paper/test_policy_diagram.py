"""The experiment `policy-diagram`: what its tables, figures and exact values are made of."""

import numpy as np
import pytest

from bayescontrol.finite.examples import core_diagram
from bayescontrol.finite.tabular import random_modes
from bayescontrol.interaction import interact
from bayescontrol.lab import conduct
from bayescontrol.lab.runner import Result
from bayescontrol_paper import _diagrams as diagrams
from bayescontrol_paper._claims import clearly_positive, compare_means, format_mean
from bayescontrol_paper.policy_diagram import (
    FEWEST,
    POLICIES,
    Settings,
    action_probabilities,
    entered_by,
    experiment,
    modes,
    selected,
    time_shares,
)

#: The fewest runs for which claims are made; every planted error must still be detected.
SMALL = Settings(seed=3, runs=FEWEST, steps=400)


@pytest.fixture(scope="module")
def result() -> Result:
    return conduct(experiment, SMALL)


def test_each_policy_visits_four_states_and_both_in_turns_visit_all_eight() -> None:
    assert [len(selected(policy_name)) for policy_name in POLICIES] == [4, 4, 8]
    assert set(selected("P1")) & set(selected("P2")) == {3}
    assert (entered_by("P1"), entered_by("P2")) == (2, 2)


@pytest.mark.parametrize("policy_name", POLICIES)
def test_the_exact_shares_are_stationary(policy_name: str) -> None:
    P, mu = (
        diagrams.markov_chain(modes(), action_probabilities(policy_name), 0),
        time_shares(policy_name),
    )
    np.testing.assert_allclose(mu @ P, mu, atol=1e-14)
    np.testing.assert_allclose([mu.sum(), *P.sum(1)], 1.0, atol=1e-14)


def test_a_chain_sums_the_terms_of_every_action_and_observation() -> None:
    some = random_modes(2, situations=5, actions=3, observations=4, seed=1)
    P = np.zeros((5, 5))
    for x, a, o in np.ndindex(5, 3, 4):
        P[x, some.successor[x, a, o]] += some.policy[1, x, a] * some.hypothesis[0, x, a, o]
    np.testing.assert_allclose(diagrams.markov_chain(some, some.policy[1], 0), P, atol=1e-15)


def test_an_agent_with_one_policy_still_learns_about_all_hypotheses() -> None:
    known = core_diagram()
    same = diagrams.with_policy(known, known.policy[0])
    agent = same.agent()
    record = interact(agent, same.environment(0), 60, seed=0)
    assert set(record.actions.tolist()) == {0}
    assert agent.belief.posterior()[0] > 0.9
    x = diagrams.state_path(same, record)
    assert [known.labels.situations[i] for i in x[:6]] == ["A0", "A1", "A2", "B0", "B1", "A0"]


def test_shares_of_a_periodic_chain_are_averages_over_its_period() -> None:
    assert diagrams.stationary_shares(np.roll(np.eye(3), 1, axis=1)) == pytest.approx(
        np.full(3, 1 / 3)
    )


def test_the_arrows_from_every_state_have_total_probability_one() -> None:
    for policy_name in POLICIES:
        out: dict[str, float] = {}
        for edge in diagrams.chain_edges(modes(), action_probabilities(policy_name), 0):
            out[edge.source] = out.get(edge.source, 0.0) + edge.probability
        assert list(out.values()) == pytest.approx([1.0] * 8)
    edges = diagrams.transitions(modes(), 0, [("blue", "solid"), ("vermillion", "dash")])
    assert sum(edge.probability for edge in edges) == pytest.approx(16)  # 8 states, 2 actions
    (both,) = (edge for edge in edges if (edge.source, edge.target) == ("s3", "s0"))
    assert (both.label, both.probability) == ("a", 1.0)


def test_the_random_margin_grows_with_the_spread_and_shrinks_with_the_runs() -> None:
    rng = np.random.default_rng(0)
    runs = rng.normal(0.5, 0.1, (400, 3))
    assert compare_means(runs, np.full(3, 0.5), 1e-3).holds
    assert not compare_means(runs, np.full(3, 0.53), 1e-3).holds
    assert compare_means(runs[:4], np.full(3, 0.53), 1e-3).holds
    assert not compare_means(
        np.full((4, 1), 0.5), np.array([0.53]), 1e-3
    ).holds  # without spread the margin is zero


def test_a_mean_is_significant_from_two_standard_errors_on() -> None:
    noise = np.tile([-1.0, 1.0], 50)  # a standard error of 0.1005
    assert clearly_positive(noise + 0.21)
    assert not clearly_positive(noise + 0.19)
    assert not clearly_positive(np.zeros(100))
    assert clearly_positive(np.full(100, 1e-3))


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([0.174, 0.174 + 1e-17, 0.174], "0.174"),
        ([0.0, 0.0], "0"),
        ([0.25], "0.25"),
        ([1e-90, 0.0], "below 1e-12"),
        ([2e-9, 4e-9], "3e-09 ± 1e-09"),
        ([1.0, 2.0, 3.0], "2.00 ± 0.58"),
    ],
)
def test_an_exact_value_is_shown_without_an_error(runs: list[float], words: str) -> None:
    assert format_mean(np.array(runs)) == words


def test_the_drawing_encloses_the_exact_states(result: Result) -> None:
    world, *policies = experiment.figures(SMALL, result.columns)["diagram"].panels
    for panel, policy_name in zip(policies, POLICIES, strict=False):
        (area,) = panel.graphs[0].areas
        assert list(area.nodes) == [modes().labels.situations[x] for x in selected(policy_name)]
        shaded = {node.name for node in panel.graphs[0].nodes if node.shade > 0}
        assert shaded == set(area.nodes)
    assert len(world.graphs[0].areas) == 2
    assert {(p.xlim, p.ylim) for p in (world, *policies)} == {(world.xlim, world.ylim)}
