"""The experiment `bank`: its claims hold, and fail for planted bugs."""

from typing import Any

import numpy as np
import pytest

from bayescontrol import Stream
from bayescontrol.lab import Claim, Columns
from bayescontrol_paper import bank as paper

#: Short runs, for what does not depend on the length.
SMALL = paper.Settings(runs=2, steps=20, unit_steps=300, unit_runs=1, times=2)
NAMES = [
    "most-probable-cost", "drawn-cost", "noisy-identified", "plant-units", "predicted-times",
]  # fmt: skip


def made_up(runs: int = 40, seed: int = 0) -> dict[str, Any]:
    """Columns at which every claim holds clearly."""
    rng = np.random.default_rng(seed)
    cost = 1e5 * np.exp(0.01 * rng.normal(size=(runs, 2, len(paper.AGENTS))))
    units = np.tile([0.01, 0.005, 1.1, 200.0, 3.0, 0.1], (runs, 3, 1))
    means = np.array(list(paper.predicted_times().values()))
    times = means[:, None] * np.exp(0.05 * rng.normal(size=(runs, 3, 10)))
    return {"cost": cost, "p_true": np.full((runs, 2), 0.9), "units": units, "times": times}


def claims(columns: Columns) -> dict[str, Claim]:
    settings = paper.Settings(runs=len(columns["cost"]))
    return {claim.name: claim for claim in paper.experiment.score(settings, columns).claims}


def test_every_claim_can_hold_and_none_is_attributed_to_the_paper() -> None:
    found = claims(made_up())
    assert list(found) == NAMES
    assert {claim.verdict for claim in found.values()} == {"holds"}
    assert {claim.source for claim in found.values()} == {"ours"}


@pytest.mark.parametrize(
    ("name", "agent", "limit"),
    [("most-probable-cost", paper.PROBABLE, 1.10), ("drawn-cost", paper.DRAWN, 1.15)],
)
def test_a_cost_above_its_limit_fails(name: str, agent: str, limit: float) -> None:
    wrong, order = made_up(), list(paper.AGENTS)
    for factor, verdict in ((0.97, "holds"), (1.03, "fails")):
        wrong["cost"][:, 0, order.index(agent)] = (
            factor * limit * wrong["cost"][:, 0, order.index(paper.ORACLE)]
        )
        assert claims(wrong)[name].verdict == verdict


def test_the_table_of_costs_is_relative_to_the_true_plant() -> None:
    columns = made_up()
    columns["cost"][:, :, list(paper.AGENTS).index(paper.DRAWN)] *= 3.0
    rows = {
        row[0]: row[1:]
        for row in paper.experiment.score(paper.Settings(runs=40), columns).tables[0].rows
    }
    assert list(rows) == list(paper.AGENTS)
    assert all(str(cell).startswith(("1.00", "0.99")) for cell in rows[paper.ORACLE])
    assert all(2.9 < float(str(cell).split()[0]) < 3.1 for cell in rows[paper.DRAWN])


def test_plants_that_are_not_identified_fail() -> None:
    wrong = made_up()
    wrong["p_true"][:3, 1] = 0.2  # 37 of 40 runs
    assert claims(wrong)["noisy-identified"].verdict == "fails"


def test_an_expensive_gain_or_a_fall_fails_and_few_runs_are_undecided() -> None:
    excess, largest = (paper.Controlled._fields.index(name) for name in ("excess", "largest"))
    wrong = made_up()
    wrong["units"][:, 2, excess] = 0.05
    assert claims(wrong)["plant-units"].verdict == "fails"
    wrong["units"][paper.ENOUGH - 1 :] = np.nan
    assert claims(wrong)["plant-units"].verdict == "undecided"
    wrong = made_up()
    wrong["units"][0, 1, largest] = 0.6
    assert claims(wrong)["plant-units"].verdict == "fails"


def test_times_that_are_not_predicted_fail() -> None:
    wrong = made_up()
    wrong["times"][:, 1] *= 1.2
    assert claims(wrong)["predicted-times"].verdict == "fails"


def test_other_lengths_make_no_claims_but_have_tables_and_a_chart(columns: Columns) -> None:
    found = paper.experiment.score(SMALL, columns)
    assert found.claims == ()
    assert [len(table.rows) for table in found.tables] == [len(paper.AGENTS), 3, 3]
    (chart,) = paper.experiment.figures(SMALL, columns).values()
    assert len(chart.panels) == len(paper.MOTORS)


def test_the_predicted_time_is_near_simulated_times() -> None:
    """100 runs: the standard error of the mean is about 5 %, so 35 % is seven of them."""
    bank = paper.timed_banks()["two tanks"]
    times = [paper.time_to_distinguish(bank, Stream(seed)) for seed in range(100)]
    assert np.mean(times) == pytest.approx(paper.predicted_times()["two tanks"], rel=0.35)
