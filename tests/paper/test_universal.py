"""The experiment `universal`: its worlds are those that were published; its claims find errors."""

from dataclasses import replace

import numpy as np
import pytest
from tests.trees import enumeration

from bayescontrol import Stream
from bayescontrol.lab import Columns
from bayescontrol.pomdp import POMDP
from bayescontrol_paper import _hidden_worlds as worlds
from bayescontrol_paper import universal as paper

SMALL = paper.Settings(runs=5, slow_runs=1, most_cycles=600)


def average_reward(pomdp: POMDP, policy: list[int]) -> float:
    """Return the mean reward of a policy that sees the state, by its stationary distribution."""
    x = np.arange(len(policy))
    P, r = pomdp.transition[x, policy], pomdp.reward[x, policy]
    weights = np.linalg.lstsq(
        np.vstack([P.T - np.eye(len(x)), np.ones(len(x))]), np.r_[np.zeros(len(x)), 1.0]
    )[0]
    return float(weights @ r)


def test_the_goal_of_the_1d_maze_pays_and_leads_to_a_random_cell() -> None:
    maze = worlds.maze_1d()
    assert maze.reward.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert maze.transition[1, 1] == pytest.approx(np.full(3, 1 / 3))
    assert len(maze.observations) == 1


def test_the_cheese_maze_has_ten_cells_and_six_patterns_of_walls() -> None:
    maze = worlds.cheese()
    assert (len(maze.states), len(maze.observations)) == (10, 6)
    assert np.unique(maze.reward).tolist() == [-10, -1, 10]
    assert (maze.reward == 10).sum() == 1  # the cheese is reached from above only
    assert (maze.reward == -1).sum() == 18  # nine openings, in both directions


def test_the_grid_has_a_goal_in_the_corner_that_two_cells_reach() -> None:
    maze = worlds.grid()
    assert len(maze.states) == 15
    assert maze.reward.sum() == pytest.approx(2)


def test_the_best_answer_to_rock_paper_scissors_earns_the_published_reward() -> None:
    # Paper after a rock that won, otherwise scissors.
    assert average_reward(worlds.rock_paper_scissors(), [1, 2, 2, 2]) == pytest.approx(0.25)


def test_the_best_answer_in_kuhn_poker_earns_the_value_of_the_game() -> None:
    poker = worlds.kuhn_poker()
    # The next reward and cards do not depend on the last reward.
    deal = poker.transition.sum((0, 1)) / poker.transition.sum()
    seen = poker.observation[0].T * deal
    assert (seen @ poker.reward).max(axis=1).sum() == pytest.approx(1 / 18)


def test_the_tiger_is_heard_on_its_side_and_placed_anew_behind_an_opened_door() -> None:
    tiger = worlds.tiger()
    assert tiger.reward.tolist() == [[-1, -100, 10], [-1, 10, -100]]
    assert tiger.observation[0, 0].tolist() == [0, 0.85, 0.15]
    assert (tiger.transition[:, 1:] == 0.5).all()


def test_the_extended_tiger_is_heard_sitting_and_met_standing() -> None:
    tiger = worlds.extended_tiger()
    stands, sits = (tiger.states.place(("left", posture)) for posture in ("stands", "sits"))
    assert tiger.reward[sits].tolist() == [-1, -10, -10, -1]
    assert tiger.reward[stands].tolist() == [-10, -100, 30, -10]
    assert tiger.observation[0, stands].tolist() == [1, 0, 0]
    assert tiger.transition[stands, 2, sits] == 0.5


@pytest.mark.parametrize("sizes", [[2, 3, 2], [3, 2]])
def test_enumerated_trees_are_those_of_exact_fractions(sizes: list[int]) -> None:
    stream = Stream(3)
    samples = [
        ([int(stream.integers(m)) for m in sizes], int(stream.integers(3))) for _ in range(12)
    ]
    widths = tuple(sizes)
    exact = enumeration.joint([(tuple(context), k) for context, k in samples], widths, 3)
    found = np.exp(paper.enumerate_trees(samples, sizes, 3))
    assert np.sort(found) == pytest.approx(np.sort([float(p) for p in exact.values()]), rel=1e-10)


def test_the_evidence_is_exact() -> None:
    error, trees = paper.evidence_error()
    assert error < 1e-12
    assert trees == 82 * 26


def test_no_world_has_more_cycles_than_published() -> None:
    most = replace(SMALL, most_cycles=10**7)
    assert {world: most.cycles(world) for world in worlds.WORLDS} == {
        name: world.cycles for name, world in worlds.WORLDS.items()
    }


def test_slow_worlds_are_played_in_the_first_runs_only(columns: Columns) -> None:
    for world in paper.SLOW:
        for label in paper.AGENTS[world]:
            assert len(paper.rewards(columns, world, label)) == 1
    assert len(paper.rewards(columns, paper.TIGER)) == 5


def test_a_short_run_or_few_runs_decide_no_failure(columns: Columns) -> None:
    claims = {claim.name: claim for claim in paper.experiment.score(SMALL, columns).claims}
    assert claims["tiger"].verdict == claims["remedy"].verdict == "undecided"
    failing = {k: np.full_like(v, -1.0) for k, v in columns.items()}
    long = replace(SMALL, most_cycles=25_000)
    found = {claim.name: claim for claim in paper.experiment.score(long, failing).claims}
    assert found["tiger"].verdict == found["remedy"].verdict == "fails"


def with_shares(columns: Columns, stuck: float, healthy: float) -> Columns:
    """Return these runs as if pure draws were stuck and the others not, with these shares."""
    changed = {}
    for name, runs in columns.items():
        world, label = name.split(": ")
        is_stuck = label == paper.PURE and world not in paper.EASY
        reward = worlds.WORLDS[world].reward * (not is_stuck)
        changed[name] = np.full_like(runs, reward)
        changed[name][:, -1] = stuck if is_stuck else healthy
    return changed


@pytest.mark.parametrize(
    ("stuck", "healthy", "verdicts"),
    [(0.9, 0.1, ["holds", "holds"]), (0.4, 0.6, ["fails", "fails"])],
)
def test_the_diagnosis_counts_warnings_in_stuck_and_healthy_runs(
    columns: Columns, stuck: float, healthy: float, verdicts: list[str]
) -> None:
    many = {name: np.concatenate([runs] * 10) for name, runs in columns.items()}
    size = replace(SMALL, most_cycles=25_000)
    score = paper.experiment.score(size, with_shares(many, stuck, healthy))
    found = {claim.name: claim.verdict for claim in score.claims}
    assert [found["warned-if-stuck"], found["warned-if-healthy"]] == verdicts
    charts = paper.experiment.figures(size, with_shares(many, stuck, healthy))
    assert [panel.title[:3] for panel in charts["diagnosis"].panels] == ["(a)", "(b)"]
    corner = charts["diagnosis"].panels[1].series[0]
    assert ((corner.x == 0) & (corner.y == 1)).any() == (stuck > healthy)


def test_the_cost_of_the_remedy_is_that_of_the_worse_world(columns: Columns) -> None:
    size = replace(SMALL, most_cycles=25_000)
    costly = dict(with_shares(columns, 1.0, 0.0))
    claims = {claim.name: claim for claim in paper.experiment.score(size, costly).claims}
    assert claims["cost-of-the-remedy"].verdict == "holds"
    costly["1d-maze: remedy"] = 0.9 * costly["1d-maze: remedy"]
    claims = {claim.name: claim for claim in paper.experiment.score(size, costly).claims}
    assert claims["cost-of-the-remedy"].verdict == "fails"
    assert claims["cost-of-the-remedy"].ours == pytest.approx(0.1)


def test_the_figures_show_every_world_with_its_published_reward(columns: Columns) -> None:
    charts = paper.experiment.figures(SMALL, columns)
    panels = charts["learning"].panels
    assert [panel.title.split(",")[0] for panel in panels] == list(worlds.WORLDS)
    guides = [panel.guides[0].at for panel in panels]
    assert guides == [world.reward for world in worlds.WORLDS.values()]
    agents = [series.label for series in charts["self-confirming"].panels[0].series]
    assert agents == ["pure", "schedule", "remedy"]
