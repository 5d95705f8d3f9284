"""The experiment `changing`: its claims hold, and fail for planted bugs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bayescontrol import ControlRule
from bayescontrol.lab import Claim, Columns, run_replicas
from bayescontrol_paper import changing as paper
from bayescontrol_paper._claims import ratio_and_error

#: Short runs, for what does not depend on the length.
SMALL = paper.Settings(
    runs=2, fast_steps=100, slow_steps=100, still_steps=100, collapse_steps=100, context_steps=60,
    plant_steps=60, linear_runs=2, motor_steps=20, motor_runs=2,
)  # fmt: skip
NAMES = [
    "fast-changes", "slow-changes", "no-change-price", "collapse", "linear-jumps", "hazard-learned",
    "motor",
]  # fmt: skip


def made_up(runs: int = 40, seed: int = 0) -> dict[str, Any]:
    """Columns at which every claim holds clearly."""
    rng = np.random.default_rng(seed)
    final = {
        (paper.FAST, paper.RULE): 150, (paper.SLOW, paper.RULE): 250,
        (paper.STILL, paper.RULE): 30, (paper.COLLAPSE, paper.RULE): 50,
        (paper.STILL, paper.STATIC): 28, (paper.COLLAPSE, paper.STATIC): 1000,
    }  # fmt: skip
    regret = np.empty((runs, len(paper.BANDITS), len(paper.AGENTS), paper.POINTS))
    for i, world in enumerate(paper.BANDITS):
        for k, agent in enumerate(paper.AGENTS):
            end = final.get((world, agent), 500) + rng.normal(size=runs)
            regret[:, i, k] = end[:, None] * np.linspace(0.02, 1.0, paper.POINTS)
    hazard = np.log10([paper.RATES[paper.FAST], paper.RATES[paper.SLOW]]) + 0.3 * rng.normal(
        size=(runs, 2)
    ).clip(-2, 2)
    linear = np.empty((runs, 2, 3))
    linear[:, 0] = np.array([100.0, 500.0, 200.0]) + rng.normal(size=(runs, 3))
    linear[:, 1] = 10.0 ** (np.array([0.2, 2.0, 0.6]) + 0.1 * rng.normal(size=(runs, 3)))
    motor = 1e5 * np.exp(0.01 * rng.normal(size=(runs, 2)))
    return {"regret": regret, "log_hazard": hazard, "linear": linear, "motor": motor}


def claims(columns: Columns) -> dict[str, Claim]:
    settings = paper.Settings(runs=len(columns["regret"]))
    return {claim.name: claim for claim in paper.experiment.score(settings, columns).claims}


def place(world: str, agent: str) -> tuple[int, int]:
    return paper.BANDITS.index(world), list(paper.AGENTS).index(agent)


def test_every_claim_can_hold_and_none_is_attributed_to_the_paper() -> None:
    found = claims(made_up())
    assert list(found) == NAMES
    assert {claim.verdict for claim in found.values()} == {"holds"}
    assert {claim.source for claim in found.values()} == {"ours"}


@pytest.mark.parametrize(
    ("name", "world", "limit"),
    [
        ("fast-changes", paper.FAST, 165.0),
        ("slow-changes", paper.SLOW, 300.0),
        ("no-change-price", paper.STILL, 1.25 * 28.0),
        ("collapse", paper.COLLAPSE, 100.0),
    ],
)
def test_too_much_regret_fails_and_a_mean_at_the_limit_is_undecided(
    name: str, world: str, limit: float
) -> None:
    wrong = made_up()
    i, k = place(world, paper.RULE)
    noise = wrong["regret"][:, i, k, -1] - wrong["regret"][:, i, k, -1].mean()
    for mean, verdict in ((0.9, "holds"), (1.0, "undecided"), (1.1, "fails")):
        wrong["regret"][:, i, k, -1] = mean * limit + noise
        assert claims(wrong)[name].verdict == verdict, mean


def test_an_agent_that_is_better_than_the_rule_fails_and_an_equal_one_is_undecided() -> None:
    for k, world in enumerate(paper.LINEAR):
        for other in (paper.STATIC, paper.FORGETTING):
            wrong, j = made_up(), paper.LINEAR_AGENTS.index(other)
            wrong["linear"][:, k, j] = 0.5 * wrong["linear"][:, k, 0]
            assert claims(wrong)["linear-jumps"].verdict == "fails", (world, other)
            wrong["linear"][:, k, j] = wrong["linear"][::-1, k, 0]
            assert claims(wrong)["linear-jumps"].verdict == "undecided", (world, other)


def test_hazards_that_are_far_from_the_rate_fail() -> None:
    for world in (0, 1):
        wrong = made_up()
        wrong["log_hazard"][:10, world] += 1.7
        found = claims(wrong)["hazard-learned"]
        assert (found.verdict, found.ours) == ("fails", 0.75)


def test_a_motor_that_costs_too_much_fails() -> None:
    wrong = made_up()
    for factor, verdict in ((1.05, "undecided"), (1.2, "fails")):
        wrong["motor"][:, 0] = factor * wrong["motor"][::-1, 1]
        assert claims(wrong)["motor"].verdict == verdict
    wrong["motor"][1:] = np.nan
    assert claims(wrong)["motor"].verdict == "undecided"


def test_runs_without_linear_worlds_are_left_out() -> None:
    some = made_up()
    some["linear"][7:] = np.nan
    results = paper.Results(paper.Settings(runs=40), some)
    assert {
        len(results.linear[world][agent]) for world in paper.LINEAR for agent in paper.LINEAR_AGENTS
    } == {7}
    some["linear"][1:] = np.nan
    assert claims(some)["linear-jumps"].verdict == "undecided"


def test_other_lengths_make_no_claims_but_tables(columns: Columns) -> None:
    result = paper.experiment.score(SMALL, columns)
    assert result.claims == ()
    rows = [len(table.rows) for table in result.tables]
    assert rows == [len(paper.AGENTS), len(paper.LINEAR_AGENTS)]


def test_a_replica_is_reproducible_and_does_not_depend_on_the_other_agents() -> None:
    one, two = paper.run(SMALL, 1), paper.run(replace(SMALL, runs=7), 1)
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)
    alone = paper.play(SMALL, 1, paper.COLLAPSE, {paper.KL_UCB: paper.AGENTS[paper.KL_UCB]})[
        paper.KL_UCB
    ].regret
    assert alone.tobytes() == one["regret"][place(paper.COLLAPSE, paper.KL_UCB)].tobytes()
    later = paper.run(SMALL, 2)
    assert np.isnan(later["linear"]).all()
    assert np.isnan(later["motor"]).all()


def test_worlds_differ_between_runs_and_have_the_stated_changes() -> None:
    """Counts of changes: within four standard errors of the rate, for 40 worlds of 2,500 steps."""
    settings = paper.Settings()
    worlds = [paper.draw_bandit(settings, i, paper.FAST)[1] for i in range(40)]
    assert len({world.worlds[0].means().tobytes() for world in worlds}) == 40
    changes = sum(len(world.worlds) - 1 for world in worlds)
    expected = 40 * 2499 * paper.RATES[paper.FAST]
    assert abs(changes - expected) <= 4 * expected**0.5
    assert len(paper.draw_bandit(settings, 0, paper.STILL)[1].worlds) == 1
    collapse = paper.draw_bandit(settings, 0, paper.COLLAPSE)[1].worlds
    assert {t: world.means().tolist() for t, world in collapse.items()} == {
        0: [0.9, 0.6, 0.5], 3000: [0.1, 0.6, 0.5],
    }  # fmt: skip
    gains = [s.B[1, 0] for i in range(20) for s in paper.draw_systems(settings, i).values()]
    assert {np.sign(g) for g in gains} == {-1.0, 1.0}
    assert 0.5 <= np.abs(gains).min() < np.abs(gains).max() <= 1.5


def test_checkpoints_end_at_the_last_step() -> None:
    for steps in (50, 100, 2500, 20_000):
        at = paper.checkpoints(steps)
        assert at.size == paper.POINTS
        assert (np.diff(at) > 0).all()
        assert at[-1] == steps


def test_ratios_have_the_error_of_paired_runs() -> None:
    rng = np.random.default_rng(0)
    b = 10.0 + rng.normal(size=4000)
    ratio, error = ratio_and_error(2.0 * b + 0.1 * rng.normal(size=4000), b)
    assert ratio == pytest.approx(2.0, abs=0.001)
    assert error == pytest.approx(0.01 / 4000**0.5, rel=0.1)


def test_a_plant_out_of_control_has_the_largest_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pushing:
        """Pushes harder and harder."""

        u = 1.0

        def act(self, rng: Any) -> Any:
            self.u *= 1e30
            return np.array([self.u])

        def observe(self, a: Any, o: Any) -> None: ...

    monkeypatch.setattr(paper, "linear_agent", lambda *_: Pushing())
    assert paper.play_plant(SMALL, 0, paper.RULE, 1.0) == paper.LARGEST_COST


def test_the_rule_follows_a_collapse_and_the_static_rule_does_not() -> None:
    """One world of full length: a tenth of the regret.

    Pilot on seed 1000, 200 runs: 0.045 on average, at most 0.14.
    """
    for i in range(2):
        played = paper.play(paper.Settings(seed=4), i, paper.COLLAPSE, paper.AGENTS)
        assert played[paper.RULE].regret[-1] < 0.2 * played[paper.STATIC].regret[-1]


def test_a_belief_that_never_changes_fails_the_collapse() -> None:
    """Planted bug: the rule gets the belief of a static world."""
    makers = {
        paper.RULE: lambda bandit, _: ControlRule(bandit.belief(), None),
        paper.STATIC: paper.AGENTS[paper.STATIC],
    }
    wrong = made_up(4)
    for i in range(4):
        played = paper.play(paper.Settings(), i, paper.COLLAPSE, makers)
        for agent in makers:
            wrong["regret"][(i, *place(paper.COLLAPSE, agent))] = played[agent].regret
    assert claims(wrong)["collapse"].verdict == "fails"


@pytest.mark.slow
def test_at_full_size_every_claim_holds() -> None:
    """Other random numbers than the defaults; false alarms: about 1 in 20 for each mean."""
    settings = paper.Settings(seed=2, runs=1000, linear_runs=100, motor_runs=10)
    found = paper.experiment.score(settings, run_replicas(paper.experiment, settings)).claims
    assert [claim.name for claim in found] == NAMES
    assert {claim.verdict for claim in found} == {"holds"}
