"""Plots of a run show the numbers of the record, on the axes that were passed."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from bayescontrol import (
    BernoulliBandit,
    ControlRule,
    DiscreteMode,
    FiniteBelief,
    Record,
    interact,
    plot,
)
from bayescontrol.errors import MissingCapability
from bayescontrol.mdp import GibbsMDP, Maze
from bayescontrol.metrics import regret

PROBES = ["posterior", "drawn_mode", "log_score"]


def lever(good: str) -> DiscreteMode[Any, str, int]:
    pays = {1: 0.6, 0: 0.4}, {1: 0.4, 0: 0.6}
    return DiscreteMode(lambda x: {good: 1.0}, lambda x, a: pays[a != good], name=good)


def run_levers(names: str, steps: int = 60) -> Record:
    agent = ControlRule(FiniteBelief([lever(name) for name in names]))
    return interact(agent, lever(names[0]).environment(), steps, seed=3, probes=PROBES)


def lines(ax: Any) -> dict[str, Any]:
    return {line.get_label(): line.get_ydata() for line in ax.lines}


def test_the_posterior_is_drawn_with_the_names_of_the_modes() -> None:
    record = run_levers("abc")
    drawn = lines(plot.posterior(record))
    assert list(drawn) == ["a", "b", "c"]
    assert np.array_equal(np.stack(list(drawn.values()), 1), record["posterior"])


def test_with_many_modes_the_others_are_summed() -> None:
    drawn = lines(plot.posterior(run_levers("abcdefghijkl")))
    assert len(drawn) == 7
    assert "other modes" in drawn
    assert np.allclose(sum(drawn.values()), 1.0)


def test_lines_differ_in_colour_and_dashes() -> None:
    ax = plot.posterior(run_levers("abcd"))
    assert len({line.get_color() for line in ax.lines}) == 4
    assert len({line.get_linestyle() for line in ax.lines}) == 4


def test_the_drawn_mode_is_labelled_by_name() -> None:
    record = run_levers("abc")
    ax = plot.drawn_mode(record)
    names = [label.get_text() for label in ax.get_yticklabels()]
    (y,) = lines(ax).values()
    assert [names[int(m)] for m in y] == [record.mode_names[m] for m in record["drawn_mode"]]


@pytest.mark.parametrize("window", [1, 7, 100])
def test_means_are_over_the_last_steps(window: int) -> None:
    record = run_levers("ab", steps=50)
    for draw, values in (
        (plot.reward, record.observations),
        (plot.surprise, record["log_score"]),
    ):
        expected = [values[max(0, t - window) : t].mean() for t in range(1, 51)]
        assert np.allclose(next(iter(lines(draw(record, window=window)).values())), expected)
    drawn = lines(plot.action_shares(record, window=window))
    expected = [(record.actions == "a")[max(0, t - window) : t].mean() for t in range(1, 51)]
    assert np.allclose(drawn["a"], expected)


def test_values_that_are_not_finite_are_left_out_of_a_mean() -> None:
    values = [1.0] * 10 + [np.inf] + [1.0] * 89
    record = Record([0] * 100, ["a"] * 100, {"log_score": values})
    (y, _) = lines(plot.surprise(record, window=5)).values()
    assert (y == 1.0).all()
    with pytest.raises(ValueError, match="window=0: expected an integer of at least 1"):
        plot.surprise(record, window=0)


def test_columns_of_another_shape_are_not_drawn() -> None:
    bandit = BernoulliBandit(2)
    world = bandit.environment([0.2, 0.7])
    record = interact(bandit.agent(), world, 50, seed=0, probes=["posterior"])
    assert len(record.plot(world)) == 3
    with pytest.raises(MissingCapability, match=r"of shape \(50, 2, 2\)"):
        plot.posterior(record)


def test_regret_is_the_metric() -> None:
    bandit = BernoulliBandit(["red", "blue"])
    world = bandit.environment([0.2, 0.7])
    record = interact(bandit.agent(), world, 200, seed=1)
    (drawn,) = lines(plot.regret(record, world)).values()
    assert np.array_equal(drawn, regret(record, world))


def test_long_runs_are_thinned_and_keep_their_ends() -> None:
    record = Record(np.zeros(50_000, np.int64), np.arange(50_000.0))
    ax: Any = plot.reward(record, window=1)
    x, y = ax.lines[0].get_data()
    assert len(x) <= 1000
    assert (x[0], x[-1], y[-1]) == (1, 50_000, 49_999.0)


def test_a_maze_shows_where_the_agent_was_and_what_it_did() -> None:
    maze = Maze(". . G")
    record = interact(GibbsMDP(4, 0).agent(), maze.environment(0), 300, seed=2)
    ax: Any = plot.maze(maze, record)
    cells = ax.collections[0].get_array()
    share = np.bincount(record.observations["state"][:-1], minlength=3) / 299
    assert np.allclose(np.ravel(cells), np.minimum(share / 0.25, 1) ** 0.5)


def test_given_axes_are_used_and_returned() -> None:
    record, maze = run_levers("ab"), Maze(". . G")
    ax = Figure().subplots()
    for draw in (plot.posterior, plot.drawn_mode, plot.surprise, plot.reward, plot.action_shares):
        assert draw(record, ax=ax) is ax
    walked = interact(GibbsMDP(4, 0).agent(), maze.environment(0), 30, seed=2)
    assert plot.maze(maze, walked, ax) is ax


def test_a_record_draws_all_that_it_holds() -> None:
    titles = [ax.get_title() for ax in run_levers("ab").plot()]
    assert titles == ["Posterior of the modes", "Mode drawn", "Surprise", "Observation", "Actions"]
    signals = Record([0.5, -0.25], [20.0, 21.0]).plot()
    assert [ax.get_title() for ax in signals] == ["Observation", "Action"]
    assert signals[1].lines[0].get_ydata().tolist() == [0.5, -0.25]
    bandit = BernoulliBandit(2)
    world = bandit.environment([0.2, 0.7])
    record = interact(bandit.agent(), world, 50, seed=0)
    assert [ax.get_title() for ax in record.plot(world)] == [
        "Reward", "Cumulative regret", "Actions",
    ]  # fmt: skip


def test_a_missing_column_is_named_with_the_way_to_record_it() -> None:
    record = Record([0, 1], [1, 0])
    with pytest.raises(MissingCapability, match=r"= interact\(..., probes=\['posterior'\]\)"):
        plot.posterior(record)
    with pytest.raises(MissingCapability, match="discrete actions only"):
        plot.action_shares(Record([0.5, 0.25], [1, 0]))
    with pytest.raises(MissingCapability, match="nothing can be drawn"):
        Record([], []).plot()
    with pytest.raises(MissingCapability, match="observations have no `state`"):
        plot.maze(Maze(), record)
