"""One replica: every agent in the same maze, from the same start, with the same luck.

    x_0 uniform        u_t uniform, one each step: the transition that a_t causes in x_{t-1}

Agents that do the same in the same state at the same time are moved alike, so they are compared
run by run. Kept are the mean reward of every block of steps, that of the last steps, and how
often each action was taken in each cell, over the first and over the last steps.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.baselines.mdp import RLearning
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns
from bayescontrol.mdp import MDP, Maze, Plan, policy_iteration
from bayescontrol.mdp.gibbs import GibbsPrior, mdp_agent
from bayescontrol.record import Record
from bayescontrol.seeding import stream

#: The control rule, under both readings of the prior.
RULES: Final = ("control rule, prior A", "control rule, prior B")
#: The paper's exploration constants, in the order of its table.
CONSTANTS: Final = (200, 30, 5)
#: Learning curves are kept in blocks of so many steps.
BLOCK: Final = 1000

#: The maps that both agents are at home in.
Layout: TypeAlias = Literal["three-cups", "no-cups", "four-cups", "four-rooms", "corridor"]


@dataclass(frozen=True)
class Settings:
    """Settings of `maze`.

    >>> Settings(steps=20_000).layout
    'three-cups'
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 8
    steps: Annotated[int, msgspec.Meta(ge=BLOCK, description="steps of a run")] = 150_000
    window: Annotated[
        int, msgspec.Meta(ge=1, description="the reward reported is that of the last so many steps")
    ] = 10_000
    shown: Annotated[
        int, msgspec.Meta(ge=1, description="behaviour is shown of the first and last so many")
    ] = 5_000
    layout: Annotated[Layout, msgspec.Meta(description="the map, one of ours")] = "three-cups"
    mu0: Annotated[float, msgspec.Meta(description="control rule: prior mean of ξ")] = 1.0
    lambda0: Annotated[
        float, msgspec.Meta(gt=0, description="control rule: prior precision of ξ")
    ] = 1.0
    precision: Annotated[
        float, msgspec.Meta(gt=0, description="control rule: precision p of the rewards' noise")
    ] = 1.0
    alpha: Annotated[
        float, msgspec.Meta(gt=0, le=1, description="R-learning: learning rate of Q")
    ] = 0.5
    beta: Annotated[
        float, msgspec.Meta(ge=0, le=1, description="R-learning: learning rate of ρ")
    ] = 0.001


@dataclass(frozen=True, eq=False)
class World:
    """A maze, its table and its best policy.

    >>> world("three-cups").plan
    Plan(gain 0.365161915503, certified to 3e-13)
    """

    maze: Maze
    mdp: MDP
    plan: Plan


@lru_cache(maxsize=8)
def world(layout: str) -> World:
    """The world of that name.

    >>> world("no-cups").mdp
    MDP(49 states, 4 actions, 880 transitions)
    """
    maze = Maze(layout)
    mdp = maze.mdp()
    return World(maze, mdp, policy_iteration(mdp))


def learner(constant: int) -> str:
    """The name of the R-learning agent with that exploration constant.

    >>> learner(30)
    'R-learning, C = 30'
    """
    return f"R-learning, C = {constant}"


def _rule(settings: Settings, mdp: MDP, start: int, states: int | None) -> Any:
    prior = GibbsPrior(settings.mu0, settings.lambda0, settings.precision)
    return mdp_agent(len(mdp.actions), start, prior, states=states)


def _learner(settings: Settings, mdp: MDP, start: int, constant: int) -> Any:
    rates = {"alpha": settings.alpha, "beta": settings.beta}
    return RLearning.on(mdp, C=constant, start=start, **rates)


#: How each agent is made, in the order of the columns.
AGENTS: Final[Mapping[str, Callable[[Settings, MDP, int], Any]]] = {
    RULES[0]: lambda s, mdp, start: _rule(s, mdp, start, len(mdp.states)),
    RULES[1]: lambda s, mdp, start: _rule(s, mdp, start, None),
    **{
        learner(C): lambda s, mdp, start, C=C: _learner(s, mdp, start, C)  # type: ignore[misc]
        for C in CONSTANTS
    },
}


def run(settings: Settings, run: int) -> Columns:
    """Each agent's rewards in blocks and at the end, and its visits [first or last, x, a].

    >>> columns = run(Settings(steps=2000, shown=500), 0)
    >>> columns["reward"].shape, columns["visits"].shape, int(columns["visits"][0, 0].sum())
    ((5, 2), (5, 2, 49, 4), 500)
    """
    mdp = world(settings.layout).mdp
    start = int(stream(settings.seed, run, "start").integers(len(mdp.states)))
    blocks = settings.steps // BLOCK
    reward, late = np.empty((len(AGENTS), blocks)), np.empty(len(AGENTS))
    seen = np.empty((len(AGENTS), 2, len(mdp.states), len(mdp.actions)), np.int32)
    for i, (name, make) in enumerate(AGENTS.items()):
        streams = (
            stream(settings.seed, run, name),
            stream(settings.seed, run, "environment"),
        )
        agent, environment = make(settings, mdp, start), mdp.environment(start)
        record = interact(agent, environment, settings.steps, streams=streams)
        rewards: FloatArray = record.observations["reward"]
        reward[i] = rewards[: blocks * BLOCK].reshape(blocks, BLOCK).mean(axis=1)
        late[i] = rewards[-settings.window :].mean()
        seen[i] = visits(record, start, settings.shown, (len(mdp.states), len(mdp.actions)))
    return {"start": np.array(start), "reward": reward, "late": late, "visits": seen}


def visits(record: Record, start: int, shown: int, shape: tuple[int, int]) -> IntArray:
    """[first or last, x, a]: how often a was done in x over the first and the last `shown` steps.

    >>> from bayescontrol.mdp import Step
    >>> record = Record([1, 0, 0], [Step(0.0, 1), Step(1.0, 0), Step(0.0, 1)])
    >>> visits(record, 0, 2, (2, 2))[0].tolist()
    [[0, 1], [1, 0]]
    """
    where = np.append(start, record.observations["state"][:-1])
    pair = where * shape[1] + record.actions
    ends = (pair[:shown], pair[-shown:])
    counts = [np.bincount(end, minlength=shape[0] * shape[1]).reshape(shape) for end in ends]
    return np.array(counts, np.int64)
