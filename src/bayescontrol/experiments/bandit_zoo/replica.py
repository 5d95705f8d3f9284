"""One replica: every agent at a bandit of every kind.

    uniform       m_j ~ U(0, 1), the paper's bench
    low rates     m_j ~ Beta(1, 9), clicks on advertisements
    high rates    m_j ~ Beta(9, 1), treatments that mostly work
    close race    one lever of 0.5 among levers of 0.4

All agents of a run meet the same biases, and agents that agree are paid alike: they are
compared run by run. No agent is told the kind; the Bayesian ones believe in uniform biases.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.bandits import BernoulliBandit
from bayescontrol.baselines.bandits import (
    KLUCB,
    MOSS,
    UCB1,
    BayesUCB,
    EpsilonGreedy,
    InformationDirected,
    KnowledgeGradient,
    Oracle,
    Softmax,
    UCBTuned,
    UniformLevers,
)
from bayescontrol.baselines.gittins import GittinsAgent, GittinsTable
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns
from bayescontrol.metrics import regret
from bayescontrol.seeding import Stream, stream

RULE: Final = "control rule"
UCB: Final = "UCB1"
ORACLE: Final = "oracle"
#: Pulls every lever as often.
UNIFORM: Final = "uniform"
#: Each decision of this agent takes some hundred times as long as one of the rule's.
COSTLY: Final = "information-directed"
CLOSE_RACE: Final = "close race"


@dataclass(frozen=True)
class Settings:
    """Settings of `bandit-zoo`.

    >>> Settings(levers=5).steps
    1000
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 100
    steps: Annotated[int, msgspec.Meta(ge=2, le=5000, description="pulls in a run")] = 1000
    levers: Annotated[int, msgspec.Meta(ge=2, le=256, description="number of levers")] = 10
    costly_runs: Annotated[
        int, msgspec.Meta(ge=0, description=f"the {COSTLY} agent plays in so many runs only")
    ] = 20
    discount: Annotated[
        float, msgspec.Meta(gt=0, le=0.9999, description="discount of the Gittins indices")
    ] = 0.999


@lru_cache(maxsize=2)
def _table(discount: float, pulls: int) -> GittinsTable:
    return GittinsTable(discount, pulls)


#: How the biases of each kind are drawn, in the order of the columns.
KINDS: Final[Mapping[str, Callable[[int, Stream], FloatArray]]] = {
    "uniform": lambda n, rng: rng.random(size=n),
    "low rates": lambda n, rng: rng.beta(1, 9, size=n),
    "high rates": lambda n, rng: rng.beta(9, 1, size=n),
    CLOSE_RACE: lambda n, rng: np.where(np.arange(n) == rng.integers(n), 0.5, 0.4),
}

#: How each agent is made, in the order of the columns.
AGENTS: Final[Mapping[str, Callable[[Settings, FloatArray], Any]]] = {
    RULE: lambda s, _: BernoulliBandit(s.levers).agent(),
    "Gittins": lambda s, _: GittinsAgent(s.levers, _table(s.discount, s.steps)),
    COSTLY: lambda s, _: InformationDirected(s.levers),
    "knowledge gradient": lambda s, _: KnowledgeGradient(s.levers, horizon=s.steps),
    "Bayes-UCB": lambda s, _: BayesUCB(s.levers),
    "KL-UCB": lambda s, _: KLUCB(s.levers),
    "MOSS": lambda s, _: MOSS(s.levers, horizon=s.steps),
    "UCB-tuned": lambda s, _: UCBTuned(s.levers),
    UCB: lambda s, _: UCB1(s.levers),
    "ε-greedy, 0.1": lambda s, _: EpsilonGreedy(s.levers, epsilon=0.1),
    "ε-greedy, 0.1·0.99ᵗ": lambda s, _: EpsilonGreedy(s.levers, epsilon=0.1, decay=0.99),
    "softmax": lambda s, _: Softmax(s.levers),
    UNIFORM: lambda s, _: UniformLevers(s.levers),
    ORACLE: lambda s, bias: Oracle(s.levers, biases=bias),
}


def checkpoints(settings: Settings) -> IntArray:
    """The steps at which regret is noted: 1, 2, … at even distances of their logarithms.

    >>> checkpoints(Settings(steps=10)).tolist()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """
    return np.unique(np.geomspace(1, settings.steps, 40).round()).astype(np.int64)


def run(settings: Settings, run: int) -> Columns:
    """The biases of each kind, and the regret of each agent at the checkpoints; NaN if it rests.

    >>> columns = run(Settings(steps=10, levers=3), 0)
    >>> columns["regret"].shape, columns["bias"].shape
    ((4, 14, 10), (4, 3))
    """
    bandit = BernoulliBandit(settings.levers)
    at = checkpoints(settings) - 1
    biases, regrets = [], np.full((len(KINDS), len(AGENTS), at.size), np.nan)
    for k, (kind, draw) in enumerate(KINDS.items()):
        bias = draw(settings.levers, stream(settings.seed, run, f"{kind}: world"))
        world = bandit.environment(bias)
        for i, (name, make) in enumerate(AGENTS.items()):
            if name == COSTLY and run >= settings.costly_runs:
                continue
            streams = (
                stream(settings.seed, run, f"{kind}: {name}"),
                stream(settings.seed, run, f"{kind}: environment"),
            )
            record = interact(make(settings, bias), world, settings.steps, streams=streams)
            regrets[k, i] = regret(record, world)[at]
        biases.append(bias)
    return {"bias": np.array(biases), "regret": regrets}
