"""One replica: the control rule in `three-cups` with one parameter changed at a time, and in two
toy worlds with several precisions.

    base     μ0 = 1, λ0 = 1, p = 1, one sweep of all states a step: the paper's settings
    prior A  λ0 on every successor, seen or not        prior B  on those seen

All variants of a run have the same start and the same luck. The worlds of `worlds` are on other
scales than the maze: rewards of 1 every 57 steps, costs of 100.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.experiments.maze_sensitivity.worlds import cliff_walk, frozen_lake
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns
from bayescontrol.mdp import MDP, Maze, Plan, policy_iteration
from bayescontrol.mdp.gibbs import GibbsPrior, mdp_agent
from bayescontrol.seeding import stream

#: Both readings of the prior.
PRIORS: Final = ("prior A", "prior B")
#: Sweeps of all states, not of some in turn.
ALL: Final = 0
#: What is changed, and the values that it takes; None is a precision that is unknown.
SWEPT: Final[Mapping[str, tuple[float | None, ...]]] = {
    "mu0": (0.0, 0.5, 1.0, 2.0, 4.0),
    "lambda0": (0.01, 0.1, 1.0, 10.0),
    "precision": (0.1, 1.0, 10.0, 100.0, None),
    "sweeps": (1, 2, 4),
    "partial": (1, 4, 16, ALL),
}
#: Every parameter with every value, in the order of the columns.
VARIANTS: Final = tuple((name, value) for name, values in SWEPT.items() for value in values)

#: The paper's value of each; a variant that has it is the base.
BASES: Final[Mapping[str, float]] = {
    "mu0": 1.0, "lambda0": 1.0, "precision": 1.0, "sweeps": 1, "partial": ALL,
}  # fmt: skip
BASE: Final[tuple[str, float | None]] = ("mu0", 1.0)

LAKE: Final = "frozen lake"
CLIFF: Final = "cliff walk"
TOYS: Final = (LAKE, CLIFF)
#: The precisions that are tried in the toy worlds.
PRECISIONS: Final = (1.0, 10.0, 100.0, None)

Variant: TypeAlias = tuple[str, float | None]


@dataclass(frozen=True)
class Settings:
    """Settings of `maze-sensitivity`.

    >>> Settings(steps=20_000).toy_steps
    100000
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 2
    steps: Annotated[int, msgspec.Meta(ge=10, description="steps of a run in the maze")] = 30_000
    toy_steps: Annotated[
        int, msgspec.Meta(ge=1000, description="steps of a run in the lake and along the cliff")
    ] = 100_000


@lru_cache(maxsize=1)
def maze_plan() -> Plan:
    """`three-cups`, solved.

    >>> maze_plan()
    Plan(gain 0.365161915503, certified to 3e-13)
    """
    return policy_iteration(Maze("three-cups").mdp())


@lru_cache(maxsize=2)
def toy_plan(name: str) -> Plan:
    """The toy world of that name, solved.

    >>> toy_plan("cliff walk").gain
    -0.92857...
    """
    return policy_iteration(frozen_lake() if name == LAKE else cliff_walk())


def edges(steps: int) -> IntArray:
    """Where the windows of a curve end, at even distances of their logarithms.

    >>> edges(100_000)[[0, 1, -1]].tolist()
    [500, 712, 100000]
    """
    return np.geomspace(steps // 200, steps, 16).round().astype(np.int64)


def _agent(mdp: MDP, start: int, declared: bool, variant: Variant) -> Any:
    name, value = variant
    changed: dict[str, Any] = {name: value}
    options: dict[str, Any] = {"states": len(mdp.states) if declared else None}
    prior = GibbsPrior()
    if name in ("sweeps", "partial"):
        options |= changed
    else:
        prior = replace(prior, **changed)
    return mdp_agent(len(mdp.actions), start, prior, **options)


def run(settings: Settings, run: int) -> Columns:
    """[prior, variant] reward in the maze, of all steps and late; [toy, precision, window] reward.

    >>> columns = run(Settings(steps=100, toy_steps=1000), 0)
    >>> columns["late"].shape == (2, len(VARIANTS)), columns["toy"].shape
    (True, (2, 4, 16))
    """
    mdp = maze_plan().mdp
    start = int(stream(settings.seed, run, "start").integers(len(mdp.states)))
    late, total = np.empty((2, len(PRIORS), len(VARIANTS)))
    for i, prior in enumerate(PRIORS):

        @cache
        def earned(variant: Variant, prior: str = prior, declared: bool = i == 0) -> FloatArray:
            return _rewards(settings, run, prior, mdp, start, settings.steps, declared, variant)

        for j, variant in enumerate(VARIANTS):
            reward = earned(BASE if BASES[variant[0]] == variant[1] else variant)
            late[i, j], total[i, j] = reward[-(settings.steps // 5) :].mean(), reward.mean()
    at = edges(settings.toy_steps)
    toy = np.empty((len(TOYS), len(PRECISIONS), at.size))
    toy_late = np.empty(toy.shape[:2])
    for i, name in enumerate(TOYS):
        for j, p in enumerate(PRECISIONS):
            world = toy_plan(name).mdp
            begin = 0 if name == LAKE else len(world.states) - 2  # as published
            reward = _rewards(
                settings, run, name, world, begin, settings.toy_steps, False, ("precision", p)
            )
            sums = np.append(0.0, reward.cumsum()[at - 1])
            toy[i, j] = np.diff(sums) / np.diff(at, prepend=0)
            toy_late[i, j] = reward[-(settings.toy_steps // 10) :].mean()
    return {"late": late, "total": total, "toy": toy, "toy_late": toy_late}


def _rewards(
    settings: Settings,
    run: int,
    role: str,
    mdp: MDP,
    start: int,
    steps: int,
    declared: bool,
    variant: Variant,
) -> FloatArray:
    streams = (
        stream(settings.seed, run, f"{role}: agent"),
        stream(settings.seed, run, f"{role}: environment"),
    )
    agent = _agent(mdp, start, declared, variant)
    record = interact(agent, mdp.environment(start), steps, streams=streams)
    return np.asarray(record.observations["reward"], np.float64)
