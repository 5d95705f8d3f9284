"""The experiment `delusion`: its claims hold at any size, and detect a wrong agent."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayescontrol.lab import Columns, conduct
from bayescontrol.systems import AgentSystem, Coupled
from bayescontrol_paper import delusion as paper

SMALL = paper.Settings(runs=250, steps=20)
NAMES = ["prior-preserved", "match-rate", "ville", "intervention-law"]


@pytest.mark.parametrize("identity", paper.IDENTITIES, ids=lambda identity: identity.name)
def test_the_naive_agent_violates_each_identity_in_simulation(
    columns: Columns, identity: paper.Identity
) -> None:
    """The gap exceeds the margin, whose false-alarm rate for the causal agent is 1 in 1,000."""
    prior = paper.processes(SMALL.reliability)["three modes"].prior
    trajectories = paper.all_trajectories(SMALL, columns)
    found = {}
    for agent in paper.AGENTS:
        left, right, variance = trajectories["three modes", agent].sides(prior)[identity.name]
        found[agent] = paper.margin_ratio(identity.gap(left.mean(0), right), variance, SMALL.runs)
    assert found["causal"] <= 1.0 < found["naive"]


@pytest.mark.parametrize("agent", paper.AGENTS)
def test_the_enumeration_agrees_with_the_coupled_systems(agent: str) -> None:
    """Compute E[posterior] from (P, Q_m) for each m, history by history."""
    process = paper.processes(0.8)["three modes"]
    systems = process.modes.systems()
    mean = np.zeros(3)
    for m, p in enumerate(process.prior):
        g = Coupled(AgentSystem(process.agent(agent)), systems[m])

        def add(s: Any, weight: float, left: int, g: Any = g) -> None:
            if left == 0:
                mean[:] += weight * s[0].belief.posterior()
                return
            for a, p_a in g.action_probabilities(s).items():
                for o, p_o in g.observation_probabilities(s, a).items():
                    add(g.advance(s, a, o), weight * p_a * p_o, left - 1)

        add(g.start(), float(p), 3)
    assert paper.expectations(process, agent, horizon=3).mean[3] == pytest.approx(mean, abs=1e-14)


def test_the_causal_agent_satisfies_every_identity_and_the_naive_one_none() -> None:
    exact = paper.exact_expectations(0.8)
    for identity in paper.IDENTITIES:
        off = {}
        for agent in paper.AGENTS:
            process = paper.processes(0.8)["three modes"]
            sides = exact["three modes", agent].sides(process.prior)[identity.name]
            off[agent] = identity.gap(*sides)
        assert off["causal"].max() < 1e-12
        assert off["naive"][paper.HORIZON].max() > 0.1


def test_in_prize_or_frog_the_naive_agent_is_always_certain_and_half_the_time_right() -> None:
    naive = paper.exact_expectations(0.8)["prize", "naive"]
    assert naive.match.tolist() == pytest.approx([0.5] * (paper.HORIZON + 1))
    assert naive.squares.tolist() == pytest.approx([0.5] + [1.0] * paper.HORIZON)
    assert naive.ville[1:] == pytest.approx(np.full((paper.HORIZON, 5), 0.5))


@pytest.mark.parametrize("p", [0.001, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("n", [1, 2, 7, 40, 500])
def test_the_margin_has_the_stated_false_alarm_rate(p: float, n: int) -> None:
    """The exact binomial tails are below the share of 1e-3 for a single comparison."""
    epsilon = 1.0 / paper.margin_ratio(np.ones(1), np.array([p * (1 - p)]), n)
    beyond = math.fsum(
        math.comb(n, k) * p**k * (1 - p) ** (n - k)
        for k in range(n + 1)
        if abs(k / n - p) > epsilon
    )
    assert beyond <= paper.FALSE_ALARMS / 12


def test_the_figure_has_four_panels_with_bands_and_a_colour_for_each_agent(
    columns: Columns,
) -> None:
    chart = paper.experiment.figures(SMALL, columns)["delusion"]
    assert [panel.title[:3] for panel in chart.panels] == ["(a)", "(b)", "(c)", "(d)"]
    for panel in chart.panels:
        assert len(panel.series) >= 4
        for series in panel.series:
            assert series.low is not None
            assert series.colour == ("vermillion" if "naive" in series.label else "blue")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_at_full_length_every_claim_holds_under_other_seeds(seed: int) -> None:
    """False alarms: below 1e-3 for each seed."""
    settings = replace(paper.experiment.full, runs=1000, seed=100 + seed)
    assert all(claim.holds for claim in conduct(paper.experiment, settings).score.claims)
