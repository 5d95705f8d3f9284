"""The experiment `misspecified`: its claims hold, and fail for planted bugs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayescontrol import interact
from bayescontrol.alarms import alarm_evidence
from bayescontrol.lab import Claim, Columns, conduct, run_replicas
from bayescontrol.lab.settings import InvalidSettings, parse
from bayescontrol_paper.misspecified import (
    FEWEST,
    INSIDE,
    PATHS,
    PLOTTED_WORLDS,
    REST,
    REWARD,
    WORLDS,
    Settings,
    all_worlds,
    checkpoints,
    distances,
    experiment,
    guard,
    run,
    score,
)

#: The fewest runs for which claims are made. Each fails by chance with probability about 1e-3.
SMALL = Settings(seed=1, runs=FEWEST, steps=800)
NAMES = [
    "false-alarms", "false-alarm-cost", "power", "delay-bound", "delay-order", "fallback-gain",
    "streaks-found",
]  # fmt: skip


@pytest.fixture(scope="module")
def columns() -> Columns:
    return run_replicas(experiment, SMALL)


def claims(settings: Settings, columns: Columns) -> dict[str, Claim]:
    return {claim.name: claim for claim in score(settings, columns).claims}


def test_every_claim_holds(columns: Columns) -> None:
    judged = claims(SMALL, columns)
    assert list(judged) == NAMES
    assert {claim.verdict for claim in judged.values()} == {"holds"}


def test_a_replica_is_a_function_of_the_settings_and_its_number(columns: Columns) -> None:
    for i in (2, PATHS + 1):
        for name, column in run(replace(SMALL, runs=1), i).items():
            assert np.array_equal(column, columns[name][i], equal_nan=True)


def test_the_columns_agree_with_records_of_interact(columns: Columns) -> None:
    i, world = 3, "worn 1"
    k = WORLDS.index(world)
    agent = guard(SMALL)
    record = interact(
        agent, all_worlds().environment(k), 800, seed=1, run=i * len(WORLDS) + k,
        probes={"bits": alarm_evidence},
    )  # fmt: skip
    step = agent.alarm.step
    assert step is not None
    assert columns["step"][i, k] == step
    assert columns["guarded"][i, k] == REWARD[record.observations].mean()
    assert set(record.actions[step:].tolist()) == {REST}
    assert np.flatnonzero(record["bits"] >= -np.log2(SMALL.delta))[0] + 1 == step


def test_a_path_crosses_the_threshold_where_the_alarm_was_raised(columns: Columns) -> None:
    t = checkpoints(SMALL)
    for i in range(PATHS):
        for j, world in enumerate(PLOTTED_WORLDS):
            step = columns["step"][i, WORLDS.index(world)]
            crossed = t[columns["path"][i, j] >= -np.log10(SMALL.delta)]
            assert crossed.size == 0 or step <= crossed[0]
    assert np.isnan(columns["path"][PATHS:]).all()


@pytest.mark.parametrize(
    ("column", "where", "value", "claim"),
    [
        ("step", (slice(0, 16), 1), 40.0, "false-alarms"),
        ("guarded", (slice(None), slice(0, 3)), 0.1, "false-alarm-cost"),
        ("step", (slice(0, 16), 4), np.inf, "power"),
        ("step", (slice(None), 6), 3.0, "delay-bound"),
        ("step", (slice(None), 6), 400.0, "delay-order"),
        ("guarded", (slice(None), 5), -0.4, "fallback-gain"),
        ("step", (slice(2, None), -1), np.inf, "streaks-found"),
    ],
)
def test_a_planted_error_makes_its_claim_fail(
    columns: Columns, column: str, where: Any, value: float, claim: str
) -> None:
    wrong = {name: values.copy() for name, values in columns.items()}
    wrong[column][where] = value
    assert claims(SMALL, columns)[claim].holds
    assert not claims(SMALL, wrong)[claim].holds


def test_only_the_modes_have_weight_and_their_distance_is_zero() -> None:
    modes = all_worlds()
    assert modes.prior[: len(INSIDE)].sum() == 1.0
    assert [world for world, D in distances().items() if D == 0.0] == list(INSIDE)
    # The worn lever wins as often as the good one, so the distance is .4 ln 4.
    assert distances()["worn 1"] == pytest.approx(0.4 * np.log(4.0))


def test_streaks_have_the_win_rate_of_the_mode() -> None:
    modes = all_worlds()
    q = modes.hypothesis[-1, :, 0]
    mu = np.array([q[1, :2].sum(), q[0, 2]])
    np.testing.assert_allclose(mu / mu.sum() @ q, modes.hypothesis[0, 0, 0])


def test_short_runs_make_no_claims_about_power() -> None:
    short = Settings(runs=FEWEST, steps=20)
    result = conduct(experiment, short)
    assert [claim.name for claim in result.score.claims] == NAMES[:2]
    assert set(experiment.figures(short, result.columns)) == {"evidence", "alarms"}


def test_too_few_runs_are_refused_and_make_no_claims() -> None:
    with pytest.raises(InvalidSettings, match=r"runs=99: .*>= 100.* explain every claim"):
        parse(Settings, {"runs": str(FEWEST - 1)})
    single = Settings(seed=5, runs=1)
    result = conduct(experiment, single)
    assert result.score.claims == ()
    assert len(experiment.figures(single, result.columns)) == 2


def test_a_table_describes_every_world(columns: Columns) -> None:
    overview, alarms = score(SMALL, columns).tables
    assert [row[0] for row in overview.rows] == [row[0] for row in alarms.rows] == list(WORLDS)
    earns = dict(zip(WORLDS, (row[-1] for row in overview.rows), strict=True))
    assert earns["worn 0.5"] == pytest.approx(0.6 - 3 * (0.1 + 0.5 * 0.3))
    assert earns["streaks"] == earns["lever 0"] == pytest.approx(0.3)
    assert "Resting" in overview.note


@pytest.mark.slow
def test_the_claims_hold_at_full_size() -> None:
    """The seed is fixed; the worst mode is many standard errors below δ."""
    result = conduct(experiment, experiment.full)
    assert all(claim.holds for claim in result.score.claims)
