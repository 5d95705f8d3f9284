"""One replica: every controller at every plant, with the same noise.

    J(K_t) = tr(P_K W)                      exact, of the gain in use after t steps
    R_t = Σ_{s ≤ t} c(x_s, u_s) - c(x*_s, u*_s)     x*, u*: the best controller, with the same noise

No learner knows the plant or its noise. All have the prior of which the deviation is the largest
coefficient of [A B], as one who knows the order of magnitude would say.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.baselines.linear import (
    CertaintyEquivalence,
    OptimalController,
    lazy_thompson_sampling,
)
from bayescontrol.errors import BayesControlError
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns
from bayescontrol.problems.linear import (
    PLANTS,
    LinearAgent,
    LinearPlant,
    LinearSystem,
    SystemPrior,
)
from bayescontrol.seeding import stream

__all__ = [
    "AGENTS",
    "CERTAIN",
    "EXPLORING",
    "LAZY",
    "PAIRS",
    "RULE",
    "Settings",
    "checkpoints",
    "prior",
    "run",
    "system",
]

RULE: Final = "control rule"
#: LQR Thompson sampling as the literature has it.
LAZY: Final = "control rule, lazy"
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
        int, msgspec.Meta(ge=0, description="steps of noise with which certainty equivalence begins")
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


#: How each learner is made, in the order of the columns.
AGENTS: Final[Mapping[str, Callable[[Settings, LinearSystem], Any]]] = {
    RULE: lambda _, plant: LinearAgent.on(plant, prior=prior(plant)),
    LAZY: lambda _, plant: lazy_thompson_sampling(plant, prior=prior(plant)),
    CERTAIN: lambda s, plant: CertaintyEquivalence.on(
        plant, prior=prior(plant), warm_up=s.warm_up
    ),
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

    The last ones are T/32, T/16, … T: regret is compared from octave to octave.

    >>> checkpoints(Settings(steps=64))[-3:].tolist()
    [16, 32, 64]
    """
    early = np.geomspace(1, settings.steps / 32, 24).round().astype(np.int64)
    octaves = settings.steps >> np.arange(5, -1, -1)
    return np.unique(np.concatenate([early, octaves]))


def run(settings: Settings, run: int) -> Columns:
    """Exact costs and regret at the checkpoints, by plant and learner, and what else is claimed.

    >>> columns = run(Settings(steps=64), 0)
    >>> columns["cost"].shape == columns["regret"].shape == (5, 4, len(checkpoints(Settings(steps=64))))
    True
    >>> bool(columns["gap"].max() < 1e-9)
    True
    """
    at = checkpoints(settings)
    shape = len(PLANTS), len(AGENTS), at.size
    cost, regret = np.full(shape, np.inf), np.full(shape, np.inf)
    redrawn, gap = np.zeros(shape[:2], np.int64), np.zeros(len(PLANTS))
    shown = np.zeros((len(PAIRS), at.size, 5))
    for k, name in enumerate(PLANTS):
        plant = system(name)
        best = _best(settings, run, name)[at - 1]
        for i, (agent_name, make) in enumerate(AGENTS.items()):
            agent, world = make(settings, plant), LinearPlant(plant)
            streams = (
                stream(settings.seed, run, f"{name}: {agent_name}"),
                stream(settings.seed, run, f"{name}: environment"),
            )
            spent, done, rows = 0.0, 0, []
            for c, t in enumerate(at):
                start = world.x
                try:
                    record = interact(agent, world, int(t) - done, streams=streams)
                except BayesControlError:
                    break  # diverged: the costs are ∞ from here on
                spent, done = spent + float(world.costs(record, start).sum()), int(t)
                cost[k, i, c], regret[k, i, c] = plant.cost(agent.gain), spent - best[c]
                if agent_name == RULE:
                    rows.append((start, record))
                    if name in PAIRS:
                        shown[list(PAIRS).index(name), c] = _seen(agent.belief, PAIRS[name])
            redrawn[k, i] = agent.belief.redrawn
            if agent_name == RULE:
                gap[k] = _gap(agent.belief, prior(plant), rows)
    return {"cost": cost, "regret": regret, "redrawn": redrawn, "gap": gap, "posterior": shown}


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


def _gap(belief: Any, prior: SystemPrior, rows: list[Any]) -> float:
    """How far the posterior mean is from a regression on all of the run at once, relatively."""
    X = np.vstack([np.vstack([start[None], record.observations[:-1]]) for start, record in rows])
    Z = np.hstack([X, np.vstack([record.actions for _, record in rows])])
    Y = np.vstack([record.observations for _, record in rows])
    n, d = Y.shape[1], Z.shape[1]
    prior_rows = prior.factor(n, d - n)[:d]
    M = np.linalg.lstsq(
        np.vstack([prior_rows[:, :d], Z]), np.vstack([prior_rows[:, d:], Y]), rcond=None
    )[0].T
    return float(np.abs(belief.mean() - M).max() / np.abs(M).max())
