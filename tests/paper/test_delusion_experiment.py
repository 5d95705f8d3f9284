"""The experiment `delusion`: its claims hold at any size, and detect a wrong agent."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayescontrol.lab import Columns, conduct, run_replicas
from bayescontrol.lab.settings import InvalidSettings, parse
from bayescontrol.report.build import as_object
from bayescontrol.systems import AgentSystem, Coupled
from bayescontrol_paper.delusion import experiment
from bayescontrol_paper.delusion_replica import (
    AGENTS,
    FALSE_ALARMS,
    HORIZON,
    IDENTITIES,
    Identity,
    Settings,
    all_trajectories,
    exact_expectations,
    expectations,
    margin,
    margin_ratio,
    processes,
)

SMALL = Settings(runs=250, steps=20)
NAMES = ["prior-preserved", "match-rate", "ville", "intervention-law"]


@pytest.fixture(scope="module")
def columns() -> Columns:
    return run_replicas(experiment, SMALL)


def test_every_claim_holds(columns: Columns) -> None:
    """The false-alarm rate is below 1e-3 by construction; the seed is fixed."""
    claims = {claim.name: claim for claim in experiment.score(SMALL, columns).claims}
    pairs = [name for stem in NAMES for name in (stem, f"{stem}-naive-fails")]
    assert list(claims) == ["prize-naive", "prize-causal", "prize-bits", *pairs]
    assert all(claim.holds and claim.source == "ours" for claim in claims.values())
    assert (claims["prize-naive"].ours, claims["prize-causal"].ours) == (1.0, 0.5)
    assert (claims["prize-naive"].error, claims["prize-bits"].ours) == (None, 1.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_naive_agent_instead_of_the_causal_one_is_detected(columns: Columns, name: str) -> None:
    """Planted bug: the columns of the causal agent are those of the naive one."""
    swapped = dict(columns)
    for key in columns:
        if " causal " in key:
            swapped[key] = columns[key.replace(" causal ", " naive ")]
    claims = {claim.name: claim for claim in experiment.score(SMALL, swapped).claims}
    assert not claims[name].holds


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_causal_agent_instead_of_the_naive_one_is_detected(columns: Columns, name: str) -> None:
    """The mean posterior is left out: it needs about 700 replicas to be significant."""
    swapped = dict(columns)
    for key in columns:
        if " naive " in key:
            swapped[key] = columns[key.replace(" naive ", " causal ")]
    claims = {claim.name: claim for claim in experiment.score(SMALL, swapped).claims}
    assert not claims[f"{name}-naive-fails"].holds


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda identity: identity.name)
def test_the_naive_agent_violates_each_identity_in_simulation(
    columns: Columns, identity: Identity
) -> None:
    """The gap exceeds the margin, whose false-alarm rate for the causal agent is 1 in 1,000."""
    prior = processes(SMALL.reliability)["three modes"].prior
    trajectories = all_trajectories(SMALL, columns)
    found = {}
    for agent in AGENTS:
        left, right, variance = trajectories["three modes", agent].sides(prior)[identity.name]
        found[agent] = margin_ratio(identity.gap(left.mean(0), right), variance, SMALL.runs)
    assert found["causal"] <= 1.0 < found["naive"]


@pytest.mark.parametrize("agent", AGENTS)
def test_the_enumeration_agrees_with_the_coupled_systems(agent: str) -> None:
    """Compute E[posterior] from (P, Q_m) for each m, history by history."""
    process = processes(0.8)["three modes"]
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
    assert expectations(process, agent, horizon=3).mean[3] == pytest.approx(mean, abs=1e-14)


def test_the_causal_agent_satisfies_every_identity_and_the_naive_one_none() -> None:
    exact = exact_expectations(0.8)
    for identity in IDENTITIES:
        off = {}
        for agent in AGENTS:
            process = processes(0.8)["three modes"]
            sides = exact["three modes", agent].sides(process.prior)[identity.name]
            off[agent] = identity.gap(*sides)
        assert off["causal"].max() < 1e-12
        assert off["naive"][HORIZON].max() > 0.1


def test_in_prize_or_frog_the_naive_agent_is_always_certain_and_half_the_time_right() -> None:
    naive = exact_expectations(0.8)["prize", "naive"]
    assert naive.match.tolist() == pytest.approx([0.5] * (HORIZON + 1))
    assert naive.squares.tolist() == pytest.approx([0.5] + [1.0] * HORIZON)
    assert naive.ville[1:] == pytest.approx(np.full((HORIZON, 5), 0.5))


@pytest.mark.parametrize("p", [0.001, 0.01, 0.1, 0.3, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("n", [1, 2, 7, 40, 500])
def test_the_margin_has_the_stated_false_alarm_rate(p: float, n: int) -> None:
    """The exact binomial tails are below the share of 1e-3 for a single comparison."""
    epsilon = float(margin(p * (1 - p), n, tests=1))
    beyond = math.fsum(
        math.comb(n, k) * p**k * (1 - p) ** (n - k)
        for k in range(n + 1)
        if abs(k / n - p) > epsilon
    )
    assert beyond <= FALSE_ALARMS / 12


@pytest.mark.parametrize("size", [{"runs": 1, "steps": 1}, {"runs": 2, "steps": 9, "seed": 5}])
def test_no_claim_fails_because_of_few_replicas(size: dict[str, int]) -> None:
    result = conduct(experiment, Settings(**size))
    assert all(claim.holds for claim in result.score.claims)
    assert as_object(result)["experiment"] == "delusion"


def test_a_replica_depends_only_on_the_seed_and_its_number() -> None:
    few = replace(SMALL, steps=5)
    once, again = experiment.run(few, 3), experiment.run(few, 3)
    other = experiment.run(replace(few, seed=1), 3)
    assert {k: v.tobytes() for k, v in once.items()} == {k: v.tobytes() for k, v in again.items()}
    assert any(once[k].tobytes() != other[k].tobytes() for k in once)


@pytest.mark.parametrize("reliability", ["0.5", "1", "nan"])
def test_a_reliability_without_a_possible_comparison_is_refused(reliability: str) -> None:
    with pytest.raises(InvalidSettings, match=f"reliability={reliability}"):
        parse(Settings, {"reliability": reliability})


def test_the_figure_has_four_panels_with_bands_and_a_colour_for_each_agent(
    columns: Columns,
) -> None:
    chart = experiment.figures(SMALL, columns)["delusion"]
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
    settings = replace(experiment.full, runs=1000, seed=100 + seed)
    assert all(claim.holds for claim in conduct(experiment, settings).score.claims)
