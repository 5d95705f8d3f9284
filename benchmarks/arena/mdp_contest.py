"""Contest of agents for Markov decision problems: reward at the end, and steps to get there.

    share       mean reward of the last tenth of a run, divided by the optimum ρ* of the world
    steps       the first step from which the mean reward to the end of the run is at least 95 % of
                ρ*; the length of the run if there is none before its last tenth

ρ* is computed by policy iteration. An optimal agent has a share of 1 up to chance, so single runs
may exceed 1. Each world has a row for each of the two scores, from the same runs.

Deep sea and frozen lake have episodes. Most agents see the end of an episode as a step to the first
state; `gym.episodic_agent` sees that the episode has ended. Resets are not counted as steps.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import gymnasium
import numpy as np
from benchmarks.arena import BAMCP, UCRL2, BayesianQ
from benchmarks.arena.contest import OURS, Contestant, Result, Size, World
from benchmarks.arena.one_by_one import OneByOne
from benchmarks.arena.second_score import play_for_two_scores, write_second_score
from benchmarks.peers.worker import serve

from bayescontrol._arrays import FloatArray
from bayescontrol.baselines import OptimalPolicy, QLearning, RLearning
from bayescontrol.gym import drive, episodic_agent
from bayescontrol.interaction import interact
from bayescontrol.lab.progress import Progress
from bayescontrol.mdp import (
    ADAPTIVE,
    MDP,
    DirichletMDP,
    GibbsMDP,
    GibbsPrior,
    Maze,
    Plan,
    policy_iteration,
    random_mdp,
)
from bayescontrol.seeding import Stream

__all__ = ["WORLDS", "contests", "deep_sea", "frozen_lake", "river_swim", "scores_of"]

MODULE: Final = "benchmarks.arena.mdp_contest"
TOPIC: Final = "Markov decision problems"
#: The share of the optimum that counts as learned.
LEARNED: Final = 0.95

# -- worlds --------------------------------------------------------------------------------------


def river_swim(states: int = 6) -> MDP:
    """Return river swim (Strehl & Littman 2008): a small reward near, a large one upstream.

    >>> river_swim()
    MDP(6 states, 2 actions, 22 transitions)
    """
    last = states - 1
    P, r = np.zeros((states, 2, states)), np.zeros((states, 2, states))
    for x in range(states):
        P[x, 0, max(x - 1, 0)] = 1.0
        if 0 < x < last:
            P[x, 1, [x - 1, x, x + 1]] = 0.05, 0.6, 0.35
    P[0, 1, :2] = 0.4, 0.6
    P[last, 1, last - 1 :] = 0.4, 0.6
    r[0, 0, 0], r[last, 1, last] = 0.005, 1.0
    return MDP(P, r)


class DeepSea(gymnasium.Env[Any, Any]):
    """Deep sea (Osband et al. 2020): only n steps to the right in a row reach the reward of 1.

    A step to the right costs 0.01/n. State i (i + 1) / 2 + j is column j of row i.
    """

    def __init__(self, n: int) -> None:
        self.n, self.row, self.column = n, 0, 0
        self.observation_space = gymnasium.spaces.Discrete(n * (n + 1) // 2)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start an episode at the surface."""
        super().reset(seed=seed)
        self.row, self.column = 0, 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Go down, to the left (0) or to the right (1)."""
        self.column = self.column + 1 if action else max(self.column - 1, 0)
        self.row += 1
        ended = self.row == self.n
        reward = -0.01 / self.n if action else 0.0
        if ended:
            return 0, reward + float(self.column == self.n), True, False, {}
        return self.row * (self.row + 1) // 2 + self.column, reward, False, False, {}


def deep_sea(n: int = 8) -> MDP:
    """Return deep sea as an MDP; the end of an episode leads to the first state.

    >>> deep_sea(8), round(policy_iteration(deep_sea(8)).gain * 8, 3)
    (MDP(36 states, 2 actions, 72 transitions), 0.99)
    """
    rows = []
    sea = DeepSea(n)
    for i in range(n):
        for j in range(i + 1):
            for a in range(2):
                sea.row, sea.column = i, j
                y, r, *_ = sea.step(a)
                rows.append((i * (i + 1) // 2 + j, a, y, 1.0, r))
    return _from_rows(rows, n * (n + 1) // 2, 2)


def frozen_lake() -> MDP:
    """Return Gymnasium's slippery frozen lake; a hole or the goal leads to the first state.

    >>> frozen_lake()
    MDP(11 states, 4 actions, 122 transitions)
    """
    env: Any = _frozen_lake_env().unwrapped
    tiles = [x for x, tile in enumerate(env.desc.ravel()) if tile in (b"S", b"F")]
    rows = [
        (i, a, 0 if ended else tiles.index(y), p, r)
        for i, x in enumerate(tiles)
        for a, outcomes in env.P[x].items()
        for p, y, r, ended in outcomes
    ]
    return _from_rows(rows, len(tiles), 4)


def _frozen_lake_env() -> "gymnasium.Env[Any, Any]":
    return gymnasium.make("FrozenLake-v1", max_episode_steps=-1)


def _from_rows(rows: list[tuple[int, int, int, float, float]], states: int, actions: int) -> MDP:
    return MDP.from_transitions(
        *map(np.array, zip(*rows, strict=True)), states=states, actions=actions
    )


class Scenario(NamedTuple):
    """A world: its MDP in each run, and its Gymnasium environment if it has episodes."""

    #: Returns the problem; the argument is for problems that differ between runs.
    mdp: Callable[[Stream], MDP]
    env: Callable[[], "gymnasium.Env[Any, Any]"] | None = None
    #: Whether runs start in random states; otherwise in the first.
    random_start: bool = False

    @property
    def ours(self) -> str:
        """The agent that our documentation recommends for this world."""
        return RULE if self.env is None else EPISODIC


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "river swim": Scenario(lambda _: river_swim()),
    "deep sea": Scenario(lambda _: deep_sea(), lambda: DeepSea(8)),
    "frozen lake": Scenario(lambda _: frozen_lake(), _frozen_lake_env),
    "random MDP": Scenario(
        lambda rng: random_mdp(20, 4, concentration=0.2, seed=rng), random_start=True
    ),
    "three cups": Scenario(lambda _: Maze("three-cups").mdp(), random_start=True),
    "corridor": Scenario(lambda _: Maze("corridor").mdp(), random_start=True),
    "four rooms": Scenario(lambda _: Maze("four-rooms").mdp(), random_start=True),
}


class Start(NamedTuple):
    """A run before its first step."""

    plan: Plan
    x: Any
    seed: int
    run: int

    @property
    def rng(self) -> Stream:
        """Random numbers for the initial values of an agent, the same at each access."""
        return Stream.named(self.seed, self.run, "initial values")

    @property
    def mdp(self) -> MDP:
        """The problem."""
        return self.plan.mdp


@lru_cache(maxsize=64)
def start_of(world: str, seed: int, run: int) -> Start:
    """Return the problem, its solution and the first state of a run."""
    scenario = SCENARIOS[world]
    plan = policy_iteration(scenario.mdp(Stream.named(seed, run, f"{world}: problem")))
    states = plan.mdp.states
    first = Stream.named(seed, run, f"{world}: start").integers(len(states))
    return Start(plan, states[first if scenario.random_start else 0], seed, run)


# -- contestants ---------------------------------------------------------------------------------

RULE: Final = "control rule"
EPISODIC: Final = "episodic agent"
#: The same agent with the prior of `GibbsMDP`, which expects rewards of order 1.
EPISODIC_UNIT: Final = "episodic agent, prior of the control rule"
MODELS: Final = "posterior sampling, TSDE"
ORACLE: Final = "optimal policy, knows the world"
BAMCP_NAME: Final = "BAMCP, 50 simulations"

Maker = Callable[[Start], Any]


def _rule(prior: GibbsPrior | None = None) -> Maker:
    return lambda start: GibbsMDP(len(start.mdp.actions), start.x, prior).agent()


def _epsilon_greedy(start: Start) -> QLearning:
    """Return Q-learning that breaks the first ties at random, by tiny initial values."""
    agent = QLearning.on(start.mdp, epsilon=0.1, start=start.x)
    arrays = dict(agent.save())
    arrays["Q"] = arrays["Q"] + 1e-6 * np.asarray(start.rng.random(size=arrays["Q"].shape))
    agent.load(arrays)
    return agent


def _optimistic(start: Start) -> QLearning:
    gamma = 0.99
    largest = max(0.0, float(start.mdp.rewards.max())) / (1.0 - gamma)
    return QLearning.on(start.mdp, gamma=gamma, epsilon=0.0, initial=largest, start=start.x)


#: The agents, except the episodic ones, which need a Gymnasium environment.
AGENTS: Final[Mapping[str, Maker]] = {
    RULE: _rule(),
    "control rule, precision 1": _rule(GibbsPrior(precision=1.0)),
    "control rule, precision of at least 1": _rule(GibbsPrior(least_precision=1.0)),
    "control rule, precision unbounded": _rule(GibbsPrior(least_precision=1e-100)),
    "control rule, adaptive prior": _rule(ADAPTIVE),
    MODELS: lambda start: DirichletMDP.on(start.mdp, start.x).agent(),
    "UCRL2": lambda start: UCRL2.on(start.mdp, start=start.x),
    "UCRL2, confidence 0.1": lambda start: UCRL2.on(start.mdp, confidence=0.1, start=start.x),
    "Bayesian Q-learning, sampling": lambda start: BayesianQ.on(start.mdp, start=start.x),
    "Bayesian Q-learning, VPI": lambda start: BayesianQ.on(
        start.mdp, selection="vpi", start=start.x
    ),
    "Q-learning, ε = 0.1": _epsilon_greedy,
    "Q-learning, optimistic": _optimistic,
    "R-learning, C = 30": lambda start: RLearning.on(start.mdp, C=30, start=start.x),
    BAMCP_NAME: lambda start: BAMCP.on(start.mdp, simulations=50, start=start.x),
    ORACLE: lambda start: OptimalPolicy(start.mdp, start.x, plan=start.plan),
}
#: Share of the runs that slow contestants play.
SHARES: Final = {("four rooms", MODELS): 0.5, ("river swim", BAMCP_NAME): 0.5}


def rewards_of(world: str, agent: str, seed: int, run: int, steps: int) -> Callable[[], FloatArray]:
    """Prepare a run and return the function that plays it and returns the reward of each step."""
    scenario, start = SCENARIOS[world], start_of(world, seed, run)
    if agent in (EPISODIC, EPISODIC_UNIT):
        assert scenario.env is not None
        env = scenario.env()
        episodic = episodic_agent(env, ADAPTIVE if agent == EPISODIC else GibbsPrior())

        def play() -> FloatArray:
            record = drive(episodic, env, steps, seed=seed, run=run, terminated="end")
            rewards: FloatArray = record["reward"]
            # A row that starts in "end" is a reset, not a step.
            is_step = [situation != "end" for situation in record["situation"].tolist()]
            return np.asarray(rewards[np.array(is_step)], np.float64)

        return play
    player, environment = AGENTS[agent](start), OneByOne(start.mdp.environment(start.x))
    streams = (
        Stream.named(seed, run, f"{world}: {agent}"),
        Stream.named(seed, run, f"{world}: environment"),
    )
    return lambda: np.asarray(
        interact(player, environment, steps, streams=streams).observations["reward"]
    )


def scores_of(rewards: FloatArray, gain: float) -> tuple[float, float]:
    """Return the share of the optimum in the last tenth, and the steps to 95 % of the optimum.

    >>> scores_of(np.repeat([0.0, 1.0], [20, 80]), gain=1.0)
    (1.0, 16.0)
    """
    steps = len(rewards)
    last = max(1, steps // 10)
    share = float(rewards[-last:].mean()) / gain
    to_the_end = rewards[::-1].cumsum()[::-1] / np.arange(steps, 0, -1)
    learned = np.flatnonzero(to_the_end[: steps - last] >= LEARNED * gain)
    return share, float(learned[0] if learned.size else steps)


# -- contests ------------------------------------------------------------------------------------

QUICK: Final = Size(10, 3_000)
FULL: Final = Size(16, 20_000)
#: Worlds in which little is learned in the steps of a quick contest.
FULL_ONLY: Final = ("four rooms",)

SENTENCES: Final[Mapping[str, str]] = {
    "river swim": "Six states in a row. Swimming upstream often fails; the reward there is 1, and "
    "0.005 at the other end.",
    "deep sea": "Episodes of 8 steps. Only 8 steps to the right in a row earn 1, and each costs a "
    "little; a random walk gets there once in 256 episodes.",
    "frozen lake": "Gymnasium's FrozenLake 4x4, slippery. Reaching the goal earns 1 and ends the "
    "episode, and so does a hole, without reward.",
    "random MDP": "20 states and 4 actions with random transitions and rewards, another problem "
    "in every run.",
    "three cups": "The paper's maze: 49 states, a goal and three one-way cups.",
    "corridor": "A maze with 20 states in a row and the goal at one end.",
    "four rooms": "A maze with 104 states in four rooms.",
}
#: Why we lose, where we lose.
REMARKS: Final[Mapping[str, str]] = {
    "river swim": "The adaptive prior takes the largest reward so far as the scale of all rewards. "
    "It finds 0.005 first and rarely swims far enough to see a larger one. The same holds, less "
    "often, for posterior sampling, unless it is given the range of the rewards.",
    "deep sea": "In long runs R-learning and Bayesian Q-learning with VPI reach the optimum and "
    "then stop exploring, while ours still tries other actions at times. The episodic agent has "
    "the adaptive prior, because rewards of Gymnasium's worlds have many scales. Here it sees the "
    "small costs long before the reward of 1, takes them for the scale, and explores too little; "
    "with the prior of the control rule it does not.",
    "four rooms": "Moves are almost deterministic. The adaptive prior learns a noise for each pair "
    "and notices this, the default has one noise for all pairs. The adaptive prior is not the "
    "default, because it fails in river swim.",
    "frozen lake": "The reward is rare and small on average. With a precision of 1 the control "
    "rule explores for far longer than the run.",
}


def steps_world(world: str) -> str:
    """Return the name of the row with the second score of a world."""
    return f"{world}: steps to {LEARNED:.0%}".replace("%", " %")


def _worlds() -> Iterator[World]:
    for name, scenario in SCENARIOS.items():
        sentence, remark = SENTENCES[name], REMARKS.get(name, "")
        score = "share of the optimum in the last tenth of the run"
        yield World(TOPIC, name, sentence, score, False, QUICK, FULL, scenario.ours, remark)
        yield World(
            TOPIC, steps_world(name),
            "The same runs. An agent that does not get there counts with the whole run.",
            "steps until the mean reward to the end of the run is 95 % of the optimum",
            True, QUICK, FULL, scenario.ours,
        )  # fmt: skip


WORLDS: Final = tuple(_worlds())


def contestants_of(world: str) -> list[Contestant]:
    """Return all agents that can play in a world."""
    scenario = SCENARIOS[world]
    names = list(AGENTS)
    if world != "river swim":
        names.remove(BAMCP_NAME)  # too slow for larger problems
    if scenario.env is not None:
        names[:0] = [EPISODIC, EPISODIC_UNIT]
    return [
        Contestant(
            name, "", MODULE, name, SHARES.get((world, name), 1.0),
            is_ours=name in (EPISODIC, EPISODIC_UNIT, MODELS) or name.startswith(RULE),
        )
        for name in names
    ]  # fmt: skip


def contests(quick: bool, seed: int, progress: Progress) -> Iterator[Result]:
    """Play all worlds; return the results of both scores."""
    pairs = [
        (world, contestant)
        for world in WORLDS
        if world.name in SCENARIOS and not (quick and world.name in FULL_ONLY)
        for contestant in contestants_of(world.name)
    ]
    return play_for_two_scores(pairs, steps_world, quick, seed, progress)


def prepare(request: Mapping[str, Any], run: int) -> Callable[[], float]:
    """Prepare a run of an agent in a world."""
    world, player, seed = request["world"], request["player"], request["seed"]
    if run == 0:
        rewards_of(world, player, seed, run, 20)()  # load the kernels
    rewards = rewards_of(world, player, seed, run, request["steps"])
    gain = start_of(world, seed, run).plan.gain

    def play() -> float:
        share, steps = scores_of(rewards(), gain)
        write_second_score(request, run, steps)
        return share

    return play


if __name__ == "__main__":
    serve(prepare, OURS)
