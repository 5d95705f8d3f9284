"""Plots of a run show the numbers of the record, on the axes that were passed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats  # type: ignore[import-untyped]

from bayescontrol import (
    BernoulliBandit,
    CategoricalBandit,
    ControlRule,
    DiscreteMode,
    FiniteBelief,
    GaussianBandit,
    JointBandit,
    LinearBandit,
    PoissonBandit,
    Record,
    compare,
    interact,
    plot,
)
from bayescontrol._arrays import FloatArray
from bayescontrol.bandits.changing import ChangingArmsBelief
from bayescontrol.errors import BadEvidence, MissingCapability
from bayescontrol.finite.chain import chain
from bayescontrol.mdp import GibbsMDP, Maze
from bayescontrol.metrics import regret
from bayescontrol.plot import Plot
from bayescontrol.plot.palette import LIGHT
from bayescontrol.pomdp import shuttle, state_belief

PROBES = ["posterior", "drawn_mode", "log_score"]


def lever(good: str) -> DiscreteMode[Any, str, int]:
    pays = {1: 0.6, 0: 0.4}, {1: 0.4, 0: 0.6}
    return DiscreteMode(lambda x: {good: 1.0}, lambda x, a: pays[a != good], name=good)


def run_levers(names: str, steps: int = 60) -> Record:
    agent = ControlRule(FiniteBelief([lever(name) for name in names]))
    return interact(agent, lever(names[0]).environment(), steps, seed=3, probes=PROBES)


def lines(drawn: Plot, k: int = 0) -> dict[str, Any]:
    return {str(line.get_label()): line.get_ydata() for line in drawn.axes[k].lines}


def titles(drawn: Plot) -> list[str]:
    return [ax.get_title() for ax in drawn.axes]


def test_the_posterior_is_drawn_with_the_names_of_the_modes() -> None:
    record = run_levers("abc")
    drawn = lines(plot.posterior(record))
    assert list(drawn) == ["a", "b", "c"]
    values = np.stack(list(drawn.values()), 1)
    assert np.array_equal(values[1:], record["posterior"])


def test_the_posterior_starts_with_the_prior_at_step_0() -> None:
    agent = ControlRule(FiniteBelief([lever("a"), lever("b")], prior=[0.9, 0.1]))
    world = lever("a").environment()
    for first in ([0.9, 0.1], agent.belief.posterior()):
        record = interact(agent, world, 5, seed=3, probes=["posterior"])
        line_a, line_b = plot.posterior(record).axes[0].lines
        assert np.asarray(line_a.get_xdata()).tolist() == [0, 1, 2, 3, 4, 5]
        before = [np.asarray(line.get_ydata())[0] for line in (line_a, line_b)]
        assert np.allclose(before, first if record.prior is None else record.prior)
        assert len(record["posterior"]) == 5
    made_by_hand = Record(record.actions, record.observations, {"posterior": record["posterior"]})
    assert plot.posterior(made_by_hand).axes[0].lines[0].get_xdata()[0] == 1  # type: ignore[index]


def test_with_many_modes_the_others_are_summed() -> None:
    drawn = lines(plot.posterior(run_levers("abcdefghijkl")))
    assert len(drawn) == 7
    assert "other modes" in drawn
    assert np.allclose(sum(drawn.values()), 1.0)


def test_lines_differ_in_colour_and_dashes() -> None:
    (ax,) = plot.posterior(run_levers("abcd")).axes
    assert len({line.get_color() for line in ax.lines}) == 4
    assert len({line.get_linestyle() for line in ax.lines}) == 4


def test_the_drawn_mode_is_labelled_by_name() -> None:
    record = run_levers("abc")
    drawn = plot.drawn_mode(record)
    names = [label.get_text() for label in drawn.axes[0].get_yticklabels()]
    (y,) = lines(drawn).values()
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


def test_the_posterior_rows_of_arms_are_drawn_as_mean_rewards_with_the_world() -> None:
    bandit = BernoulliBandit(["b", "a"], prior=[2.0, 1.0])
    world = bandit.environment([0.2, 0.7])
    record = interact(bandit.agent(), world, 50, seed=0, probes=["posterior"])
    drawn = record.plot(world)
    assert titles(drawn) == ["Posterior of the arms", "Reward", "Cumulative regret", "Actions"]
    for name, rows in zip("ba", np.moveaxis(record["posterior"], 1, 0), strict=True):
        y = lines(drawn)[name]
        assert np.allclose(y[1:], rows[:, 0] / rows.sum(axis=1))
        assert y[0] == 2 / 3  # the prior
    colours = [{line.get_label(): line.get_color() for line in drawn.axes[k].lines} for k in (0, 3)]
    assert colours[0] == colours[1]
    with pytest.raises(MissingCapability, match=r"of shape \(50, 2, 2\)"):
        plot.posterior(record)


def test_a_note_speaks_of_intervals_only_where_they_are_drawn() -> None:
    for bandit, means in (
        (BernoulliBandit(2), [0.2, 0.7]),
        (CategoricalBandit(2, [0, 1]), [[0.8, 0.2], [0.3, 0.7]]),
    ):
        world = bandit.environment(means)
        record = interact(bandit.agent(), world, 20, seed=0, probes=["posterior"])
        ax = record.plot(world).axes[0]
        assert ax.get_title() == "Posterior of the arms"
        says_so = any("intervals" in text.get_text() for text in ax.texts)
        assert says_so == bool(ax.collections) == isinstance(bandit, BernoulliBandit)


def test_regret_is_the_metric() -> None:
    bandit = BernoulliBandit(["red", "blue"])
    world = bandit.environment([0.2, 0.7])
    record = interact(bandit.agent(), world, 200, seed=1)
    (drawn,) = lines(plot.regret(record, world)).values()
    assert np.array_equal(drawn, regret(record, world))


def test_long_runs_are_thinned_and_keep_their_ends() -> None:
    record = Record(np.zeros(50_000, np.int64), np.arange(50_000.0))
    (ax,) = plot.reward(record, window=1).axes
    x, y = map(np.asarray, ax.lines[0].get_data())
    assert len(x) <= 1000
    assert (x[0], x[-1], y[-1]) == (1, 50_000, 49_999.0)


def test_a_maze_shows_where_the_agent_was_and_what_it_did() -> None:
    maze = Maze(". . G")
    record = interact(GibbsMDP(4, 0).agent(), maze.environment(0), 300, seed=2)
    (ax,) = plot.maze(maze, record).axes
    cells: Any = ax.collections[0].get_array()
    share = np.bincount(record.observations["state"][:-1], minlength=3) / 299
    assert np.allclose(np.ravel(cells), np.minimum(share / 0.25, 1) ** 0.5)


def test_given_axes_are_used_and_returned() -> None:
    record, maze = run_levers("ab"), Maze(". . G")
    ax = Figure().subplots()
    for draw in (plot.posterior, plot.drawn_mode, plot.surprise, plot.reward, plot.action_shares):
        assert draw(record, ax=ax).axes == (ax,)
    walked = interact(GibbsMDP(4, 0).agent(), maze.environment(0), 30, seed=2)
    assert plot.maze(maze, walked, ax).axes == (ax,)


def test_a_record_draws_all_that_it_holds() -> None:
    assert titles(run_levers("ab").plot()) == [
        "Posterior of the modes", "Mode drawn", "Surprise", "Observation", "Actions",
    ]  # fmt: skip
    signals = Record([0.5, -0.25], [20.0, 21.0]).plot()
    assert titles(signals) == ["Observation", "Action"]
    assert lines(signals, 1)["_Action"].tolist() == [0.5, -0.25]
    bandit = BernoulliBandit(2)
    world = bandit.environment([0.2, 0.7])
    record = interact(bandit.agent(), world, 50, seed=0)
    assert titles(record.plot(world)) == ["Reward", "Cumulative regret", "Actions"]
    texts = Record([0, 1, 1, 0], ["cold", "hot", "hot", "hot"]).plot()
    assert titles(texts) == ["Observations", "Actions"]
    assert lines(texts)["hot"].tolist() == [0, 1, 1, 1]


def test_what_is_known_of_an_mdp_is_drawn_and_an_object_that_is_no_world_is_an_error() -> None:
    world = Maze("three-cups").environment(0)
    record = interact(GibbsMDP(4, 0).agent(), world, 300, seed=0)
    drawn = record.plot(world)
    assert titles(drawn) == ["Reward", "States", "Actions"]
    with pytest.raises(MissingCapability, match=r"mean rewards of .* are unknown"):
        record.plot(GibbsMDP(4, 0).agent())


def test_every_plot_function_returns_a_plot_that_saves_itself(tmp_path: Path) -> None:
    bandit, maze = BernoulliBandit(2), Maze(". . G")
    agent, world = bandit.agent(), bandit.environment([0.2, 0.7])
    record = interact(agent, world, 50, seed=0)
    walked = interact(GibbsMDP(4, 0).agent(), maze.environment(0), 30, seed=2)
    compared = compare({"rule": bandit.agent}, world, steps=20, runs=2)
    for k, drawn in enumerate([
        plot.run(record, world), plot.arms(agent), plot.reward(record), plot.regret(record, world),
        plot.action_shares(record), plot.posterior(run_levers("ab")), plot.maze(maze, walked),
        plot.drawn_mode(run_levers("ab")), plot.surprise(run_levers("ab")), record.plot(),
        compared.plot(),
    ]):  # fmt: skip
        assert isinstance(drawn, Plot)
        assert all(titles(drawn))
        assert drawn.save(tmp_path / f"{k}.png").read_bytes()[1:4] == b"PNG"


def mixed(belief: ChangingArmsBelief, m: FloatArray) -> FloatArray:
    """Return the density of arm 0: Σ_s P(s | past) of the beta density since the start s."""
    parts = [(p, part.posterior()[0]) for p, part in belief.components()]
    return np.asarray(sum(p * stats.beta(*row).pdf(m) for p, row in parts))


def student(belief: Any, m: FloatArray) -> FloatArray:
    """Return the density of arm 0, the only one with rewards: Σ_ρ P(ρ) of a t density.

    The prior of μ₀ is flat, so that the prior of m_0 is flat too, and ρ does not matter.
    """
    rewards = np.repeat([1.0, 0.0], [20, 10])
    return np.asarray(stats.t(29, 20 / 30, rewards.std(ddof=1) / 30**0.5).pdf(m))


#: The posterior density of arm 0 after 20 rewards of 1 and 10 of 0, from SciPy.
FAMILIES: dict[str, tuple[Any, Callable[[Any, FloatArray], FloatArray]]] = {
    "bernoulli": (BernoulliBandit(2), lambda _, m: stats.beta(21, 11).pdf(m)),
    "gaussian": (
        GaussianBandit(2, sd=1.0, prior=(0, 1)),
        lambda _, m: stats.norm(20 / 31, 31**-0.5).pdf(m),
    ),
    "learned": (GaussianBandit(2), student),
    "poisson": (PoissonBandit(2), lambda _, m: stats.gamma(21, scale=1 / 31).pdf(m)),
    "changing": (BernoulliBandit(2).changing(), mixed),
    "per arm": (BernoulliBandit(2).changing(per_arm=True), lambda b, m: mixed(b._parts[0], m)),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_the_posterior_of_an_arm_is_drawn_as_its_density(name: str) -> None:
    bandit, density = FAMILIES[name]
    agent = bandit.agent()
    for t in range(30):
        agent.observe(0, int(t < 20))
    m, f = map(np.asarray, plot.arms(agent).axes[0].lines[0].get_data())
    assert np.allclose(f, density(agent.belief, m), rtol=0.02, atol=0.01 * f.max())


def test_many_arms_are_drawn_as_intervals_and_contexts_give_the_arms_of_a_context() -> None:
    agent = BernoulliBandit(10).agent()
    agent.observe(3, 1)
    (ax,) = plot.arms(agent).axes
    median = np.asarray(ax.lines[0].get_ydata())
    assert np.allclose(median, stats.beta([1] * 3 + [2] + [1] * 6, 1).median(), atol=1e-3)
    contextual = LinearBandit(["a", "b"], features=2, sd=1, prior=(0, 1)).agent()
    with pytest.raises(BadEvidence, match="context"):
        plot.arms(contextual)
    (ax,) = plot.arms(contextual, x=[3.0, 4.0]).axes
    m, f = map(np.asarray, ax.lines[0].get_data())
    assert np.allclose(f, stats.norm(0, 5).pdf(m), rtol=0.02, atol=0.001)
    learned = LinearBandit(["a", "b"], features=2).agent()
    with pytest.raises(MissingCapability, match="no known posterior"):
        plot.arms(learned, x=[3.0, 4.0])  # the scale of the rewards is unknown
    learned.learn([3.0, 4.0], "a", 1.0)
    assert len(plot.arms(learned, x=[3.0, 4.0]).axes[0].lines) == 2


@pytest.mark.parametrize(
    "agent",
    [CategoricalBandit(2, [0, 1, 5]).agent(), GibbsMDP(4, 0).agent(), JointBandit([[0.2, 0.8]])],
    ids=["categorical", "mdp", "problem"],
)
def test_agents_without_a_known_posterior_of_arms_are_a_typed_error(agent: object) -> None:
    with pytest.raises(MissingCapability, match="posterior of the mean reward"):
        plot.arms(agent)


def test_an_arm_whose_name_is_a_colour_is_drawn_in_that_colour() -> None:
    def colours(*names: str) -> list[object]:
        (ax,) = plot.arms(BernoulliBandit(list(names)).agent()).axes
        return [line.get_color() for line in ax.lines]

    blue, red, green, orange = (LIGHT[c] for c in ("blue", "vermillion", "green", "orange"))
    assert colours("green", "red") == [green, red]
    assert colours("red", "green") == [red, green]
    assert colours("left", "Blue button", "right") == [red, blue, green]
    assert colours("a", "b", "c", "d") == [blue, red, green, orange]


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


def test_the_belief_about_hidden_states_is_drawn_with_their_names() -> None:
    pomdp = shuttle()
    probes = {"state_belief": state_belief}
    record = interact(pomdp.agent(), pomdp.environment(), 40, seed=0, probes=probes)
    drawn = plot.state_belief(record, pomdp.states)
    (ax,) = drawn.axes
    values = lines(drawn)
    assert len(values) == 7
    assert list(values)[-1] == "other states"
    assert set(values) - {"other states"} < set(pomdp.states)
    np.testing.assert_allclose(sum(values.values()), 1.0, rtol=1e-12)
    first = next(iter(values))
    assert np.array_equal(values[first], record["state_belief"][:, pomdp.states.place(first)])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step t", "P(x | past)")
    assert ax.get_legend() is not None
    assert titles(record.plot()) == [
        "Belief about the hidden state",
        "Reward",
        "Observations",
        "Actions",
    ]
    with pytest.raises(ValueError, match="2 states given, the record has 8"):
        plot.state_belief(record, ["here", "there"])
    with pytest.raises(MissingCapability, match=r"pomdp\.state_belief"):
        plot.state_belief(Record([0], [0]))


def test_the_share_of_unresolved_modes_is_drawn_over_time_and_in_the_overview() -> None:
    modes = chain(3)
    record = interact(modes.agent(), modes.environment(0), 60, seed=0, probes=["unresolved"])
    (line,) = plot.unresolved(record).axes[0].lines
    assert np.asarray(line.get_xdata()).tolist() == list(range(1, 61))
    assert np.array_equal(np.asarray(line.get_ydata()), record["unresolved"])
    assert set(record["unresolved"]) == {0.0, 1.0}
    titles = [ax.get_title() for ax in record.plot().axes]
    assert titles[0] == "Models or cycles that are unresolved"
    with pytest.raises(MissingCapability, match="probes=\\['unresolved'\\]"):
        plot.unresolved(run_levers("ab"))
