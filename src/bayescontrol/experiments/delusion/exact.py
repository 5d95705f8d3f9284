"""The identities without chance: every history up to a horizon, with its probability.

    P(m*, ao_≤t) = P(m*) Π_τ P(a_τ | ao_<τ) P(o_τ | m*, x_τ, a_τ)        agent coupled with Q_m*

An expectation is a sum over histories, and is exact but for rounding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.delusion.replica import AGENTS, Process, processes
from bayescontrol.systems import AgentSystem

HORIZON: Final = 6
DELTAS: Final = (0.5, 0.2, 0.1, 0.05, 0.01)

Node: TypeAlias = tuple[Any, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Exact:
    """Expectations after t = 0 … horizon steps, over m* ~ P(m) and all that follows.

    >>> all_exact(0.8)["prize", "causal"].mean[6].round(12)
    array([0.5, 0.5])
    """

    #: E[P(m | ·)]; shape (horizon + 1, modes).
    mean: FloatArray
    #: P(the mode drawn next is m*); shape (horizon + 1,).
    match: FloatArray
    #: E[Σ_m P(m | ·)²]; shape (horizon + 1,).
    squares: FloatArray
    #: P(P(m* | ·) < δ P(m*) at some time up to t); shape (horizon + 1, deltas).
    ville: FloatArray


def expectations(
    process: Process, agent: str, horizon: int = HORIZON, deltas: Sequence[float] = DELTAS
) -> Exact:
    """Σ over all histories, P(m*, ao_≤t) by P(m*, ao_≤t).

    >>> expectations(processes(0.8)["prize"], "naive", horizon=1).match
    array([0.5, 0.5])
    """
    modes, prior = process
    system = AgentSystem(process.agent(agent))
    # A node: the agent, P(m*, history) and the lowest P(m* | ·) / P(m*) so far, for each m*.
    level: list[Node] = [(system.start(), prior, np.ones(len(prior)))]

    def children(s: Any, p: FloatArray, low: FloatArray) -> Iterator[Node]:
        for a, p_a in system.action_probabilities(s).items():
            for o, p_o in modes.observation_probabilities(s.x, a).items() if p_a > 0.0 else ():
                after: Any = system.advance(s, a, o)
                yield after, p * p_a * p_o, np.minimum(low, after.belief.posterior() / prior)

    rows: list[tuple[Any, ...]] = []
    for t in range(horizon + 1):
        v = np.stack([s.belief.posterior() for s, _, _ in level])
        p = np.stack([p for _, p, _ in level])
        low = np.stack([low for _, _, low in level])
        total = p.sum(1)
        ville = [p[low < delta].sum() for delta in deltas]
        rows.append((total @ v, (p * v).sum(), total @ (v * v).sum(1), ville))
        if t < horizon:
            level = [child for node in level for child in children(*node)]
    return Exact(*(np.array(column) for column in zip(*rows, strict=True)))


@cache
def all_exact(reliability: float) -> dict[tuple[str, str], Exact]:
    """Both agents in both processes.

    >>> list(all_exact(0.8))[:2]
    [('prize', 'naive'), ('prize', 'causal')]
    """
    return {
        (name, agent): expectations(process, agent)
        for name, process in processes(reliability).items()
        for agent in AGENTS
    }
