"""The experiment `maze-zoo`: its regret is correct, and its claims fail for planted bugs."""

from typing import Any

import numpy as np
import pytest
from benchmarks.arena.maze_zoo import (
    AGENTS,
    CHAIN,
    COSTLY,
    MAPS,
    ORACLE,
    R_LEARNING,
    RULE,
    UNKNOWN,
    Settings,
    checkpoints,
    experiment,
    oracle_spread,
    plan,
    plays,
    run,
    score,
)

from bayescontrol.interaction import interact
from bayescontrol.lab import Claim, Columns, run_replicas
from bayescontrol.mdp.maze import LAYOUTS
from bayescontrol.seeding import Stream

#: Small: planners play only on the chain.
SMALL = Settings(seed=1, runs=2, steps=400, costly_states=10)


@pytest.fixture(scope="module")
def columns() -> Columns:
    return run_replicas(experiment, SMALL)


def claims(settings: Settings, columns: Columns) -> dict[str, Claim]:
    return {claim.name: claim for claim in score(settings, columns).claims}


def copied(columns: Columns) -> dict[str, Any]:
    return {name: values.copy() for name, values in columns.items()}


def test_every_agent_plays_every_map_that_is_small_enough(columns: Columns) -> None:
    assert set(MAPS) == {*LAYOUTS, CHAIN}
    played = ~np.isnan(columns["late"])
    costly = [name in COSTLY for name in AGENTS]
    assert played[:, :, ~np.array(costly)].all()
    assert played[0, MAPS.index(CHAIN)].all()
    assert not played[:, :-1][:, :, costly].any()
    assert not played[1:, :, costly].any()  # one run of planners


def test_regret_is_the_loss_relative_to_the_optimal_policy(columns: Columns) -> None:
    name, label = "corridor", R_LEARNING
    solved = plan(name)
    start = int(Stream.named(1, 0, f"{name}: start").integers(20))
    streams = (Stream.named(1, 0, f"{name}: {label}"), Stream.named(1, 0, f"{name}: environment"))
    agent = AGENTS[label](solved.mdp, start)
    record = interact(agent, solved.mdp.environment(start), 400, streams=streams)
    regret = np.cumsum(solved.gain - record.observations["reward"])[checkpoints(SMALL) - 1]
    ours = columns["regret"][0, MAPS.index(name), list(AGENTS).index(label)]
    np.testing.assert_allclose(ours, regret, atol=1e-10)


def test_a_replica_is_a_function_of_the_settings_and_its_number(columns: Columns) -> None:
    for name, column in run(SMALL, 1).items():
        assert np.array_equal(column, columns[name][1], equal_nan=True)


def test_short_runs_make_no_claims_about_learning(columns: Columns) -> None:
    judged = claims(SMALL, columns)
    assert list(judged) == ["optima-certified", "chain-optimum", "oracle-regret"]
    assert all(claim.holds for claim in judged.values())


def test_the_computed_spread_of_the_oracles_reward_agrees_with_runs() -> None:
    """The sum of w_t over 2,000 steps has variance T σ². With 40 runs its root has a standard error
    of 11 %; a deviation of 35 % has probability at most 1e-3. The seed is fixed.
    """
    solved = plan("corridor")
    _, sigma = oracle_spread("corridor")
    sums = []
    for i in range(40):
        streams = (Stream.named(3, i, "agent"), Stream.named(3, i, "environment"))
        agent = AGENTS[ORACLE](solved.mdp, 0)
        record = interact(agent, solved.mdp.environment(0), 2000, streams=streams)
        end = solved.bias[record.observations["state"][-1]]
        sums.append(2000 * solved.gain - record.observations["reward"].sum() + end)
    assert np.std(sums) == pytest.approx(sigma * np.sqrt(2000), rel=0.35)


def test_an_oracle_that_loses_makes_its_claim_fail(columns: Columns) -> None:
    wrong = copied(columns)
    wrong["regret"][:, :, list(AGENTS).index(ORACLE)] += 400.0
    assert not claims(SMALL, wrong)["oracle-regret"].holds


@pytest.mark.parametrize(
    ("other", "claim"), [(R_LEARNING, "unknown-p-beats-R30"), (RULE, "unknown-p-beats-fixed-p")]
)
def test_one_map_on_which_another_agent_is_better_makes_the_claim_fail(
    columns: Columns, other: str, claim: str
) -> None:
    long = Settings(steps=10_000)
    right = copied(columns)
    right["regret"][:, :, list(AGENTS).index(ORACLE)] = 0.0
    right["regret"][:, :, list(AGENTS).index(UNKNOWN)] = 10.0
    right["regret"][:, :, [list(AGENTS).index(name) for name in (R_LEARNING, RULE)]] = 20.0
    wrong = copied(right)
    wrong["regret"][:, 3, list(AGENTS).index(other)] = 5.0
    assert claims(long, right)[claim].holds
    assert (claims(long, wrong)[claim].ours, claims(long, wrong)[claim].holds) == (7, False)


def test_tables_and_figure_omit_agents_that_did_not_play(columns: Columns) -> None:
    regrets, late = score(SMALL, columns).tables
    for table in (regrets, late):
        cells = {row[0]: row[1:] for row in table.rows}
        assert cells[COSTLY[0]][:-1] == ("",) * 7
        assert all(cells[RULE])
    panels = experiment.figures(SMALL, columns)["regret"].panels
    assert [len(panel.series) for panel in panels] == [8] * 7 + [10]


def test_planners_play_only_where_the_settings_allow_it() -> None:
    assert plays(Settings(costly_states=50), COSTLY[0], "three-cups") > 0
    assert plays(Settings(costly_states=48), COSTLY[0], "three-cups") == 0
    assert plays(Settings(costly_steps=10), COSTLY[1], CHAIN) == 10
    assert plays(Settings(costly_runs=1), COSTLY[1], CHAIN, run=1) == 0
