"""The experiment `misspecified`: its claims hold, and fail for planted bugs."""

import numpy as np
import pytest

from bayescontrol import interact
from bayescontrol.alarms import alarm_evidence
from bayescontrol.lab import Columns, conduct
from bayescontrol_paper import misspecified as paper

#: The fewest runs for which claims are made. Each fails by chance with probability about 1e-3.
SMALL = paper.Settings(seed=1, runs=paper.FEWEST, steps=800)
NAMES = [
    "false-alarms", "false-alarm-cost", "power", "delay-bound", "delay-order", "fallback-gain",
    "streaks-found",
]  # fmt: skip


def test_the_columns_agree_with_records_of_interact(columns: Columns) -> None:
    i, world = 3, "worn 1"
    k = paper.WORLDS.index(world)
    agent = paper.guard(SMALL)
    record = interact(
        agent, paper.all_worlds().environment(k), 800, seed=1, run=i * len(paper.WORLDS) + k,
        probes={"bits": alarm_evidence},
    )  # fmt: skip
    step = agent.alarm.step
    assert step is not None
    assert columns["step"][i, k] == step
    assert columns["guarded"][i, k] == paper.REWARD[record.observations].mean()
    assert set(record.actions[step:].tolist()) == {paper.REST}
    assert np.flatnonzero(record["bits"] >= -np.log2(SMALL.delta))[0] + 1 == step


def test_a_path_crosses_the_threshold_where_the_alarm_was_raised(columns: Columns) -> None:
    t = paper.checkpoints(SMALL)
    for i in range(paper.PATHS):
        for j, world in enumerate(paper.PLOTTED_WORLDS):
            step = columns["step"][i, paper.WORLDS.index(world)]
            crossed = t[columns["path"][i, j] >= -np.log10(SMALL.delta)]
            assert crossed.size == 0 or step <= crossed[0]
    assert np.isnan(columns["path"][paper.PATHS :]).all()


def test_only_the_modes_have_weight_and_their_distance_is_zero() -> None:
    modes = paper.all_worlds()
    assert modes.prior[: len(paper.INSIDE)].sum() == 1.0
    assert [world for world, D in paper.distances().items() if D == 0.0] == list(paper.INSIDE)
    # The worn lever wins as often as the good one, so the distance is .4 ln 4.
    assert paper.distances()["worn 1"] == pytest.approx(0.4 * np.log(4.0))


def test_streaks_have_the_win_rate_of_the_mode() -> None:
    modes = paper.all_worlds()
    q = modes.hypothesis[-1, :, 0]
    mu = np.array([q[1, :2].sum(), q[0, 2]])
    np.testing.assert_allclose(mu / mu.sum() @ q, modes.hypothesis[0, 0, 0])


def test_short_runs_make_no_claims_about_power() -> None:
    short = paper.Settings(runs=paper.FEWEST, steps=20)
    result = conduct(paper.experiment, short)
    assert [claim.name for claim in result.score.claims] == NAMES[:2]
    assert set(paper.experiment.figures(short, result.columns)) == {"evidence", "alarms"}


def test_a_table_describes_every_world(columns: Columns) -> None:
    overview, alarms = paper.experiment.score(SMALL, columns).tables
    assert (
        [row[0] for row in overview.rows] == [row[0] for row in alarms.rows] == list(paper.WORLDS)
    )
    earns = dict(zip(paper.WORLDS, (row[-1] for row in overview.rows), strict=True))
    assert earns["worn 0.5"] == pytest.approx(0.6 - 3 * (0.1 + 0.5 * 0.3))
    assert earns["streaks"] == earns["lever 0"] == pytest.approx(0.3)
    assert "Resting" in overview.note


@pytest.mark.slow
def test_the_claims_hold_at_full_size() -> None:
    """The seed is fixed; the worst mode is many standard errors below δ."""
    result = conduct(paper.experiment, paper.experiment.full)
    assert all(claim.holds for claim in result.score.claims)
