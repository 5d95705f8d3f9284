"""`compare` runs agents on the same worlds with the same random numbers, and ranks them."""

import threading
from typing import Any, cast

import numpy as np
import pytest

from bayescontrol import BernoulliBandit, ControlRule, LinearBandit, Stream, compare, interact
from bayescontrol.bandits.changing import ChangingArmsBelief
from bayescontrol.baselines import UCB1, RLearning
from bayescontrol.errors import BadEvidence, BayesControlError, MissingCapability
from bayescontrol.mdp import GibbsMDP, Maze
from bayescontrol.metrics import regret

BANDIT = BernoulliBandit(["red", "blue", "green"])
AGENT = BANDIT.agent()
WORLD = BANDIT.environment([0.2, 0.7, 0.5])
AGENTS: dict[str, Any] = {"rule": BANDIT.agent, "UCB1": lambda: UCB1(["red", "blue", "green"])}


class Pays:
    """A world that pays its action, and says so in a dictionary."""

    def respond(self, a: float, rng: Stream) -> dict[str, float]:
        return {"paid": a + rng.normal()}


class Always:
    """An agent with one action."""

    def __init__(self, a: float) -> None:
        self.a = a

    def act(self, rng: Stream) -> float:
        return self.a

    def observe(self, a: float, o: object) -> None:
        pass


class Wrapped:
    """An agent that passes everything on."""

    def __init__(self, agent: Any) -> None:
        self.parts = [agent]

    def act(self, rng: Stream) -> Any:
        return self.parts[0].act(rng)

    def observe(self, a: Any, o: Any) -> None:
        self.parts[0].observe(a, o)


def quiet(agents: Any, world: Any, steps: int, runs: int, **options: Any) -> Any:
    return compare(agents, world, steps, runs, progress=False, **options)


def test_every_run_equals_interact_with_the_same_seed_and_run_number() -> None:
    result = quiet(AGENTS, WORLD, 300, 6, seed=7)
    for name, create in AGENTS.items():
        for run in range(6):
            curve = regret(interact(create(), WORLD, 300, seed=7, run=run), WORLD)
            assert (result.curves[name][run] == curve[result.steps - 1]).all()


def test_workers_give_the_same_result_also_with_lambdas() -> None:
    one, two = (quiet(AGENTS, BANDIT.draw, 50, 6, seed=1, workers=n) for n in (1, 2))
    for name in AGENTS:
        assert one.curves[name].tobytes() == two.curves[name].tobytes()


def test_a_world_is_drawn_anew_for_each_run_and_is_the_same_for_all_agents() -> None:
    means: list[tuple[float, ...]] = []

    def world(rng: Stream) -> Any:
        means.append(tuple(rng.random(3)))
        return BANDIT.environment(means[-1])

    quiet(AGENTS, world, 5, 6)
    runs = np.array(means[-12:]).reshape(6, 2, 3)  # run, agent, arm
    assert (runs[:, 0] == runs[:, 1]).all()
    assert len(np.unique(runs[:, 0], axis=0)) == 6


def test_an_environment_with_state_is_copied_for_each_run() -> None:
    bandit = LinearBandit(["x", "y"], 2)
    world = bandit.environment([[1.0, 0.0], [0.0, 1.0]])
    start = world.start.copy()
    result = quiet({"rule": bandit.agent, "same": bandit.agent}, world, 40, 6)
    assert (result.curves["rule"] == result.curves["same"]).all()
    assert (world.start == start).all()
    assert result.score == "regret"


def test_markov_decision_problems_are_compared_by_total_reward() -> None:
    maze = Maze()
    agents = {"rule": GibbsMDP(4, 0).agent, "R": lambda: RLearning(49, 4, start=0)}
    result = quiet(agents, maze.environment(0), 200, 6)
    record = interact(GibbsMDP(4, 0).agent(), maze.environment(0), 200, seed=0, run=1)
    assert result.score == "reward"
    assert result.scores["rule"][1] == pytest.approx(record.observations["reward"].sum())


def test_ranks_come_from_tests_and_equal_agents_share_one() -> None:
    """Constant advantages of 1 and 2 in 12 paired runs: p = 2 / 2^12 each, corrected by Holm."""
    agents = {"low": lambda: Always(0.0), "high": lambda: Always(2.0), "twin": lambda: Always(2.0)}
    result = quiet(agents, Pays, 10, 12, reward=lambda a, o: o["paid"])
    ranks = {row[1]: row[0] for row in result.table.rows}
    assert ranks == {"high": 1, "twin": 1, "low": 3}
    assert [row[1] for row in result.table.rows][-1] == "low"
    assert "corrected for 3 comparisons" in repr(result)


def test_too_few_runs_are_rejected_before_the_first_run() -> None:
    worlds: list[object] = []

    def make_world() -> Pays:
        worlds.append(Pays())
        return cast("Pays", worlds[-1])

    agents = {"low": lambda: Always(0.0), "high": lambda: Always(1.0)}
    three = agents | {"mid": lambda: Always(0.5)}
    for some, runs, message in ((agents, 5, "at least 6 runs"), (three, 6, "at least 7 runs")):
        with pytest.raises(ValueError, match=f"runs={runs}: {message} are needed to tell"):
            quiet(some, make_world, 10, runs, reward=lambda a, o: o["paid"])
    assert not worlds
    six = quiet(agents, make_world, 10, 6, reward=lambda a, o: o["paid"])
    assert "high is better than low by 10" in repr(six)


def test_the_result_has_a_figure_a_frame_and_a_table_for_notebooks() -> None:
    result = quiet(AGENTS, WORLD, 300, 6)
    (ax,) = result.plot().axes
    assert ax.get_legend_handles_labels()[1] == list(AGENTS)
    assert np.allclose(ax.lines[0].get_ydata(), result.curves["rule"].mean(0))
    frame = result.to_pandas()
    assert list(frame.columns) == ["run", "step", "rule", "UCB1"]
    assert frame.step.max() == 300
    assert "<table>" in result._repr_html_()


def test_one_run_has_no_interval() -> None:
    assert quiet({"rule": BANDIT.agent}, WORLD, 10, 1).table.rows[0][3] == ""


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"agents": {}}, "agents is empty"),
    ({"agents": [AGENT]}, "expected a dictionary"),
    ({"agents": {"rule": BANDIT.agent()}}, "bandit.agent without parentheses"),
    ({"agents": {"rule": lambda: AGENT}}, "returns the same agent or belief"),
    ({"agents": {"rule": lambda: ControlRule(AGENT.belief)}}, "the same agent or belief"),
    ({"agents": {"rule": lambda: Wrapped(Wrapped(AGENT))}}, "create a new ArmsBelief and Control"),
    ({"agents": {"rule": lambda: Wrapped(ControlRule(AGENT.belief))}}, "create a new ArmsBelief$"),
    ({"agents": {"UCB1": UCB1}}, r"agents\['UCB1'\] cannot be called .*arms"),
    ({"agents": {"rule": lambda: BANDIT}}, "call its method agent"),
    ({"world": lambda: WORLD}, "the same object at every call"),
    (
        {"world": BANDIT},
        r"bandit\.draw without parentheses, or an environment, such as bandit\.env",
    ),
    ({"runs": 0}, "runs=0: expected an integer of at least 1"),
    ({"steps": 2.5}, "steps=2.5: expected an integer"),
]


@pytest.mark.parametrize(("change", "message"), MISTAKES)
def test_a_mistake_is_reported_before_the_first_run(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"agents": AGENTS, "world": WORLD, "steps": 5, "runs": 6} | change
    with pytest.raises((BayesControlError, TypeError, ValueError), match=message):
        compare(**arguments, progress=False)


def test_rewards_that_are_not_numbers_need_a_function() -> None:
    with pytest.raises(MissingCapability, match="Pass a function: reward="):
        quiet({"one": lambda: Always(1.0)}, Pays, 5, 2)


def test_a_world_that_cannot_be_copied_needs_a_function() -> None:
    world: Any = Pays()
    world.lock = threading.Lock()
    with pytest.raises(MissingCapability, match="cannot be copied"):
        quiet({"one": lambda: Always(1.0)}, world, 5, 2)


def test_a_world_with_random_numbers_of_its_own_is_reported() -> None:
    class Repeats:
        def __init__(self, seed: Any = 3) -> None:
            self.rng = Stream(seed) if isinstance(seed, int) else seed

        def respond(self, a: float, rng: Stream) -> float:
            return a + self.rng.normal()

    agents = {"low": lambda: Always(0.0), "high": lambda: Always(1.0)}
    same = quiet(agents, Repeats(), 5, 8)
    assert "All runs are identical" in repr(same)
    assert [row[0] for row in same.table.rows] == [1, 1]
    assert "high is better than low" in repr(quiet(agents, Repeats, 5, 8))


def test_a_reward_that_is_not_finite_is_named() -> None:
    with pytest.raises(BadEvidence, match="agent 'one', run 0: the reward of step 1 is not"):
        quiet({"one": lambda: Always(1.0)}, Pays, 5, 2, reward=lambda a, o: float("nan"))


def test_progress_is_shown_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    compare(AGENTS, WORLD, 10, 6)
    shown = capsys.readouterr()
    assert "compare: 6/6 runs" in shown.err
    assert shown.out == ""


def test_the_same_prior_of_a_changing_belief_is_no_shared_learner() -> None:
    prior = BANDIT.belief()
    agents = {"rule": lambda: Wrapped(ControlRule(ChangingArmsBelief(prior)))}
    assert quiet(agents, WORLD, 3, 1).runs == 1
