"""One replica: one bandit drawn uniformly, and every agent at it.

    m_j ~ U(0, 1),  j = 1 … N          the same biases for all agents of a run
    o_t = 1 if u_t < m_{a_t}           and the same u_t: agents that agree are paid alike

So agents are compared run by run. Beside it stands a bandit without chance: the levers in the
same order, at the places j / (N + 1) where uniform biases lie on average. Lai and Robbins
bound the regret of such a one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.bandits import ArmsEnvironment, BernoulliBandit
from bayescontrol.baselines.bandits import CountingAgent, EpsilonGreedy, fused_loop
from bayescontrol.baselines.gittins import GittinsAgent, GittinsTable
from bayescontrol.fused import register_loop
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns
from bayescontrol.seeding import stream

#: The agents of the paper's figure, as printed or as we read them (docs/errata.md).
RULE: Final = "control rule"
EPSILON: Final = "ε-greedy, ε αᵗ"
GITTINS: Final = "Gittins, look-ahead cut"
#: And beside them: indices of the endless problem, and the decay with the sign as printed.
CONVERGED: Final = "Gittins, converged"
PRINTED: Final = "ε-greedy as printed, ε α⁻ᵗ"


@dataclass(frozen=True)
class Settings:
    """Settings of `bandit`.

    >>> Settings(levers=5).steps
    1000
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 1000
    steps: Annotated[int, msgspec.Meta(ge=1, le=5000, description="pulls in a run")] = 1000
    levers: Annotated[int, msgspec.Meta(ge=2, le=256, description="number of levers, N")] = 10
    window: Annotated[
        int, msgspec.Meta(ge=1, description="the first and the last so many steps are early, late")
    ] = 100
    epsilon: Annotated[
        float, msgspec.Meta(ge=0, le=1, description="ε-greedy: the chance of a random pull, ε αᵗ")
    ] = 0.1
    alpha: Annotated[float, msgspec.Meta(gt=0, le=1, description="ε-greedy: its decay, α")] = 0.99
    discount: Annotated[
        float, msgspec.Meta(gt=0, le=0.9999, description="Gittins: the discount")
    ] = 0.999
    lookahead: Annotated[
        int,
        msgspec.Meta(ge=1, le=5000, description="Gittins: the pull at which learning is cut off"),
    ] = 1300


class PrintedGreedy(EpsilonGreedy):
    """With probability ε α^-t any lever, as printed: more and more often, in the end always.

    >>> PrintedGreedy(2, epsilon=0.1, alpha=0.5)
    PrintedGreedy(2 arms, epsilon=0.1, alpha=0.5)
    """

    def __init__(self, arms: int, *, epsilon: float, alpha: float) -> None:
        # Past EpsilonGreedy, which rightly refuses a decay that grows.
        CountingAgent.__init__(self, arms, [epsilon, 1 / alpha], epsilon=epsilon, alpha=alpha)


register_loop(PrintedGreedy, ArmsEnvironment, fused_loop)

#: Agents of one kind draw the same random numbers: only what they do with them differs.
_CHANCE: Final = {CONVERGED: GITTINS, PRINTED: EPSILON}

#: How each agent is made, in the order of the columns.
AGENTS: Final[Mapping[str, Callable[[Settings], Any]]] = {
    RULE: lambda s: BernoulliBandit(s.levers).agent(),
    EPSILON: lambda s: EpsilonGreedy(s.levers, epsilon=s.epsilon, decay=s.alpha),
    GITTINS: lambda s: GittinsAgent(s.levers, gittins_table(s, s.lookahead)),
    CONVERGED: lambda s: GittinsAgent(s.levers, gittins_table(s, None)),
    PRINTED: lambda s: PrintedGreedy(s.levers, epsilon=s.epsilon, alpha=s.alpha),
}


def gittins_table(settings: Settings, lookahead: int | None) -> GittinsTable:
    """The indices of the states that a run can reach, as far as they look ahead.

    >>> gittins_table(Settings(steps=30, discount=0.9, lookahead=20), 20).pulls
    20
    """
    pulls = settings.steps if lookahead is None else min(settings.steps, lookahead)
    return _table(settings.discount, pulls, lookahead)


@lru_cache(maxsize=4)
def _table(discount: float, pulls: int, lookahead: int | None) -> GittinsTable:
    return GittinsTable(discount, pulls, lookahead=lookahead)


def evenly_spaced(bias: FloatArray) -> FloatArray:
    """Levers in the order of these, at 1/(N + 1) … N/(N + 1).

    >>> evenly_spaced(np.array([0.9, 0.1, 0.2])).tolist()
    [0.75, 0.25, 0.5]
    """
    rank = np.argsort(np.argsort(bias, axis=-1), axis=-1)
    return np.asarray((rank + 1) / (bias.shape[-1] + 1))


def run(settings: Settings, run: int) -> Columns:
    """The biases, and each agent's pulls and rewards; its pulls of evenly spaced levers.

    >>> columns = run(Settings(steps=20, levers=3, lookahead=20), 0)
    >>> columns["action"].shape, columns["bias"].shape
    ((5, 20), (3,))
    """
    bandit = BernoulliBandit(settings.levers)
    bias = stream(settings.seed, run, "world").random(size=settings.levers)
    worlds = {"drawn": bias, "even": evenly_spaced(bias)}
    shape = (len(AGENTS), settings.steps)
    action = {name: np.empty(shape, np.uint8) for name in worlds}
    reward = np.empty(shape, np.uint8)
    for name, biases in worlds.items():
        for i, (label, make) in enumerate(AGENTS.items()):
            streams = (
                stream(settings.seed, run, f"{name}: {_CHANCE.get(label, label)}"),
                stream(settings.seed, run, f"{name}: environment"),
            )
            world = bandit.environment(biases)
            record = interact(make(settings), world, settings.steps, streams=streams)
            action[name][i] = record.actions
            if name == "drawn":
                reward[i] = record.observations
    return {
        "bias": bias,
        "action": action["drawn"],
        "reward": reward,
        "even_action": action["even"],
    }
