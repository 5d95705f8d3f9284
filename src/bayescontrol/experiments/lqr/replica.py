"""One replica: every controller at every plant, with the same noise.

    J(K_t) = tr(P_K W)                      exact, of the gain in use after t steps
    R_t = Σ_{s ≤ t} c(x_s, u_s) - c(x*_s, u*_s)     x*, u*: the best controller, with the same noise

No learner knows the plant or its noise. All have the prior of which the deviation is the largest
coefficient of [A B], as one who knows the order of magnitude would say. Certainty equivalence
begins with some steps of noise, and so does the rule where it is to be compared with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.baselines.linear import (
    CertaintyEquivalence,
    OptimalController,
    lazy_thompson_sampling,
)
from bayescontrol.errors import BadEvidence
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns
from bayescontrol.linear import (
    PLANTS,
    LinearAgent,
    LinearPlant,
    LinearSystem,
    SystemPrior,
)
from bayescontrol.record import Record
from bayescontrol.seeding import stream

RULE: Final = "control rule"
#: LQR Thompson sampling as the literature has it.
LAZY: Final = "control rule, lazy"
#: After the same steps of noise as certainty equivalence.
WARM: Final = "control rule, warm start"
CERTAIN: Final = "certainty equivalence"
EXPLORING: Final = "certainty equivalence, exploring"


@dataclass(frozen=True)
class Settings:
    """Settings of `lqr`.

    >>> Settings(runs=5).steps
    10000
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 10
    steps: Annotated[int, msgspec.Meta(ge=64, description="steps of a run")] = 10_000
    warm_up: Annotated[
        int,
        msgspec.Meta(ge=0, description="steps of noise before certainty equivalence begins"),
    ] = 20
    exploration: Annotated[
        float, msgspec.Meta(ge=0, description="deviation of the exploring input at the first step")
    ] = 1.0


@lru_cache(maxsize=8)
def system(name: str) -> LinearSystem:
    """The plant of that name.

    >>> system("aircraft")
    LinearSystem(aircraft: 4 states, 2 inputs, J* = 160)
    """
    return PLANTS[name]()


def prior(plant: LinearSystem) -> SystemPrior:
    """Zero on average, with the deviation max |[A B]_ij|, in units of the noise.

    >>> prior(system("double-integrator")).precision
    1.0
    """
    return SystemPrior(precision=1.0 / float(np.abs(np.hstack([plant.A, plant.B])).max()) ** 2)


def _certain(settings: Settings, plant: LinearSystem) -> Any:
    return CertaintyEquivalence.on(plant, prior=prior(plant), warm_up=settings.warm_up)


#: How each learner is made, in the order of the columns.
AGENTS: Final[Mapping[str, Callable[[Settings, LinearSystem], Any]]] = {
    RULE: lambda _, plant: LinearAgent.on(plant, prior=prior(plant)),
    LAZY: lambda _, plant: lazy_thompson_sampling(plant, prior=prior(plant)),
    WARM: lambda s, plant: _certain(s, plant),  # the rule takes over when its noise has ended
    CERTAIN: lambda s, plant: _certain(s, plant),
    EXPLORING: lambda s, plant: CertaintyEquivalence.on(
        plant, prior=prior(plant), exploration=s.exploration
    ),
}

#: Two coefficients of one row of [A B] whose posterior is shown: the row and both columns.
PAIRS: Final[Mapping[str, tuple[int, int, int]]] = {
    "double-integrator": (1, 1, 2),
    "aircraft": (1, 1, 4),
}


def checkpoints(settings: Settings) -> IntArray:
    """The steps at which gains and regret are noted, at even distances of their logarithms.

    >>> checkpoints(Settings(steps=64))[-4:].tolist()
    [46, 52, 58, 64]
    """
    even = np.geomspace(1, settings.steps, 40).round()
    handover = [settings.warm_up] * (0 < settings.warm_up < settings.steps)
    return np.unique(np.concatenate([even, _octaves(settings), handover]).astype(np.int64))


def _octaves(settings: Settings) -> IntArray:
    return np.asarray(settings.steps >> np.arange(5, -1, -1), np.int64)


def octaves(settings: Settings) -> IntArray:
    """The places of T/32, T/16, … T among the checkpoints.

    >>> checkpoints(Settings(steps=64))[octaves(Settings(steps=64))].tolist()
    [2, 4, 8, 16, 32, 64]
    """
    return np.asarray(np.searchsorted(checkpoints(settings), _octaves(settings)), np.int64)


def run(settings: Settings, run: int) -> Columns:
    """Exact costs and regret at the checkpoints, by plant and learner, and what else is claimed.

    >>> columns = run(Settings(steps=64), 0)
    >>> columns["cost"].shape, columns["regret"].shape
    ((5, 5, 28), (5, 5, 28))
    >>> bool(columns["gap"].max() < 1e-9)
    True
    """
    at = checkpoints(settings)
    shape = len(PLANTS), len(AGENTS), at.size
    cost, regret = np.empty(shape), np.empty(shape)
    redrawn, gap = np.zeros(shape[:2], np.int64), np.zeros(len(PLANTS))
    shown = np.zeros((len(PAIRS), at.size, 5))
    for k, name in enumerate(PLANTS):
        best = _best(settings, run, name)[at - 1]
        for i, agent_name in enumerate(AGENTS):
            played = _play(settings, run, name, agent_name)
            cost[k, i], regret[k, i] = played.cost, played.spent - best
            redrawn[k, i] = played.belief.redrawn
            if agent_name == RULE:
                gap[k] = _gap(played, prior(system(name)))
            if agent_name == WARM and name in PAIRS:
                shown[list(PAIRS).index(name)] = played.seen
    return {"cost": cost, "regret": regret, "redrawn": redrawn, "gap": gap, "posterior": shown}


class _Played(NamedTuple):
    """One run: J(K) and the costs so far at the checkpoints, and the steps themselves."""

    cost: FloatArray
    spent: FloatArray
    seen: FloatArray
    belief: Any
    steps: list[tuple[FloatArray, Record]]


def _play(settings: Settings, run: int, name: str, agent_name: str) -> _Played:
    at, plant = checkpoints(settings), system(name)
    agent, world = AGENTS[agent_name](settings, plant), LinearPlant(plant)
    streams = (
        stream(settings.seed, run, f"{name}: {agent_name}"),
        stream(settings.seed, run, f"{name}: environment"),
    )
    # What diverges costs ∞ from there on.
    played = _Played(np.full(at.size, np.inf), np.full(at.size, np.inf), np.zeros((at.size, 5)),
                     agent.belief, [])  # fmt: skip
    spent, done = 0.0, 0
    for c, t in enumerate(at):
        if agent_name == WARM and done == settings.warm_up:
            agent = LinearAgent(agent.belief, world.x)
        start = world.x
        try:
            record = interact(agent, world, int(t) - done, streams=streams)
        except BadEvidence:
            break
        spent, done = spent + float(world.costs(record, start).sum()), int(t)
        played.cost[c], played.spent[c] = plant.cost(agent.gain), spent
        played.steps.append((start, record))
        if name in PAIRS:
            played.seen[c] = _seen(agent.belief, PAIRS[name])
    return played


def _best(settings: Settings, run: int, name: str) -> FloatArray:
    """Σ_{s ≤ t} of what the best controller pays, with the noise that the learners meet."""
    plant = system(name)
    streams = (stream(settings.seed, run, name), stream(settings.seed, run, f"{name}: environment"))
    world = LinearPlant(plant)
    record = interact(OptimalController(plant), world, settings.steps, streams=streams)
    return np.asarray(world.costs(record).cumsum())


def _seen(belief: Any, pair: tuple[int, int, int]) -> FloatArray:
    """Mean and covariance of two coefficients of one row: 2 + 3 numbers."""
    row, j, k = pair
    mean, covariance = belief.mean()[row], belief.covariance(row)
    return np.array([mean[j], mean[k], covariance[j, j], covariance[j, k], covariance[k, k]])


def _gap(played: _Played, prior: SystemPrior) -> float:
    """How far the posterior mean is from a regression on all of the run at once, relatively."""
    Y = np.vstack([record.observations for _, record in played.steps])
    X = np.vstack([played.steps[0][0], Y[:-1]])
    Z = np.hstack([X, np.vstack([record.actions for _, record in played.steps])])
    n, d = Y.shape[1], Z.shape[1]
    prior_rows = prior.factor(n, d - n)[:d]
    M = np.linalg.lstsq(
        np.vstack([prior_rows[:, :d], Z]), np.vstack([prior_rows[:, d:], Y]), rcond=None
    )[0].T
    return float(np.abs(played.belief.mean() - M).max() / np.abs(M).max())
