"""One replica: every agent on every map, from one start and with one luck for each map.

    R_t = t ρ* - (r_1 + … + r_t)          ρ* the certified optimum of the map

Planners that solve a model of the whole map again and again are left out of the large maps, and
play fewer and shorter runs. Bayes-adaptive Monte-Carlo planning is for far smaller problems.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.baselines.mdp import BayesianQ, OptimalPolicy, QLearning, RLearning
from bayescontrol.baselines.mdp.posterior_sampling import PosteriorSampling
from bayescontrol.baselines.mdp.ucrl2 import UCRL2
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns
from bayescontrol.mdp import MDP, Maze, Plan, chain_mdp, policy_iteration
from bayescontrol.mdp.gibbs import GibbsPrior, mdp_agent
from bayescontrol.mdp.maze import LAYOUTS
from bayescontrol.seeding import stream

RULE: Final = "control rule"
UNKNOWN: Final = "control rule, p unknown"
R_LEARNING: Final = "R-learning, C = 30"
ORACLE: Final = "oracle"
#: Planners: each of their plans takes as long as many decisions of the others.
COSTLY: Final = ("posterior sampling, TSDE", "UCRL2")
#: The number of equal actions in a row that the chain asks for.
_LINKS: Final = 6
CHAIN: Final = f"chain of {_LINKS}"
#: All maps, and the paper's chain, in the order of the columns.
MAPS: Final = (*LAYOUTS, CHAIN)


@dataclass(frozen=True)
class Settings:
    """Settings of `maze-zoo`.

    >>> Settings(steps=5000).runs
    3
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 3
    steps: Annotated[int, msgspec.Meta(ge=20, description="steps of a run")] = 15_000
    costly_runs: Annotated[
        int, msgspec.Meta(ge=0, description="planners play in so many runs only")
    ] = 1
    costly_steps: Annotated[
        int, msgspec.Meta(ge=1, description="and for so many steps at most")
    ] = 15_000
    costly_states: Annotated[
        int, msgspec.Meta(ge=1, description="on maps of so many states at most")
    ] = 50


@lru_cache(maxsize=16)
def plan(name: str) -> Plan:
    """The map of that name, solved.

    >>> plan("chain of 6").gain
    0.166666...
    """
    mdp = chain_mdp(_LINKS) if name == CHAIN else Maze(name).mdp()
    return policy_iteration(mdp)


def _rule(mdp: MDP, start: int, prior: GibbsPrior | None = None, **options: Any) -> Any:
    return mdp_agent(len(mdp.actions), start, prior, **options)


#: How each agent is made, in the order of the columns; discounts are those of the agents.
AGENTS: Final[Mapping[str, Callable[[MDP, int], Any]]] = {
    RULE: _rule,
    UNKNOWN: lambda mdp, x: _rule(mdp, x, GibbsPrior(precision=None)),
    "control rule, prior A": lambda mdp, x: _rule(mdp, x, states=len(mdp.states)),
    R_LEARNING: lambda mdp, x: RLearning.on(mdp, C=30, start=x),
    "Q-learning, ε = 0.1": lambda mdp, x: QLearning.on(mdp, epsilon=0.1, start=x),
    "Q-learning, optimistic": lambda mdp, x: QLearning.on(
        mdp, epsilon=0.0, initial=_most(mdp) / (1 - 0.99), start=x
    ),
    "Bayesian Q, sampling": lambda mdp, x: BayesianQ.on(mdp, start=x),
    "Bayesian Q, VPI": lambda mdp, x: BayesianQ.on(mdp, selection="vpi", start=x),
    COSTLY[0]: lambda mdp, x: PosteriorSampling.on(mdp, start=x),
    COSTLY[1]: lambda mdp, x: UCRL2.on(mdp, start=x),
    ORACLE: lambda mdp, x: OptimalPolicy(mdp, x, plan=_plan_of(mdp)),
}


def _most(mdp: MDP) -> float:
    """More than any policy earns a step."""
    return float(mdp.reward.max())


def _plan_of(mdp: MDP) -> Plan:
    return next(solved for name in MAPS if (solved := plan(name)).mdp is mdp)


def plays(settings: Settings, agent: str, name: str, run: int = 0) -> int:
    """The number of steps that an agent plays on a map in a run.

    >>> plays(Settings(), "UCRL2", "open-20"), plays(Settings(), "control rule", "open-20")
    (0, 15000)
    """
    if agent not in COSTLY:
        return settings.steps
    small = len(plan(name).mdp.states) <= settings.costly_states
    return min(settings.steps, settings.costly_steps) if small and run < settings.costly_runs else 0


def checkpoints(settings: Settings) -> IntArray:
    """The steps at which regret is noted, at even distances of their logarithms.

    >>> checkpoints(Settings(steps=20)).tolist()
    [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]
    """
    return np.unique(np.geomspace(10, settings.steps, 40).round()).astype(np.int64)


def run(settings: Settings, run: int) -> Columns:
    """[map, agent, checkpoint] regret, NaN where an agent did not play; [map, agent] late reward.

    >>> columns = run(Settings(steps=40, costly_states=1), 0)
    >>> columns["regret"].shape[:2], columns["late"].shape
    ((8, 11), (8, 11))
    """
    at = checkpoints(settings)
    regret = np.full((len(MAPS), len(AGENTS), at.size), np.nan)
    late = np.full(regret.shape[:2], np.nan)
    for k, name in enumerate(MAPS):
        solved = plan(name)
        mdp = solved.mdp
        start = int(stream(settings.seed, run, f"{name}: start").integers(len(mdp.states)))
        for i, (label, make) in enumerate(AGENTS.items()):
            steps = plays(settings, label, name, run)
            if not steps:
                continue
            streams = (
                stream(settings.seed, run, f"{name}: {label}"),
                stream(settings.seed, run, f"{name}: environment"),
            )
            record = interact(make(mdp, start), mdp.environment(start), steps, streams=streams)
            reward: FloatArray = record.observations["reward"]
            seen = at[at <= steps]
            regret[k, i, : seen.size] = seen * solved.gain - reward.cumsum()[seen - 1]
            late[k, i] = reward[-max(1, steps // 5) :].mean()
    return {"regret": regret, "late": late}
