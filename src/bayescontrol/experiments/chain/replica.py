"""One replica: every agent on every chain, in one environment drawn from the prior.

    T = min{t : P(m | âo_≤t) = 0 for one m}          the first reward: min{t : o_t = 1}

Every agent acts and learns for real, through `interact` and `play`; the every-step rule goes
through the compiled loop in pieces of 2^(k+1) steps. Each run of each agent on each chain has
a number of its own, and so streams of its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Annotated, Any, Final

import msgspec
import numpy as np

from bayescontrol.baselines.bayes_optimal import BayesOptimal, Plan
from bayescontrol.interaction import both_streams, interact, play
from bayescontrol.lab import Columns
from bayescontrol.problems.chain import GrowingChain, chain, first_run
from bayescontrol.problems.chain_times import identification_time
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.schedules import Every, Geometric, Schedule, doubling, every_step
from bayescontrol.seeding import stream

#: The rule as printed.
RULE: Final = "every step"
#: The plan over beliefs.
BAYES_OPTIMAL: Final = "Bayes-optimal"

#: The schedules of the rule, for a chain of length k.
SCHEDULES: Final[Mapping[str, Callable[[int], Schedule]]] = {
    RULE: lambda _k: every_step,
    "Every(k)": Every,
    "Every(⌈k/2⌉)": lambda k: Every(-(-k // 2)),
    "Geometric(1/k)": lambda k: Geometric(1 / k),
    "doubling": lambda _k: doubling,
}
#: All agents, in the order of the columns.
AGENTS: Final = (*SCHEDULES, BAYES_OPTIMAL)

#: The schedules on the growing chain, for its scale s: at s² steps a run of s² is required.
GROWING: Final[Mapping[str, Callable[[int], Schedule]]] = {
    RULE: lambda _s: every_step,
    "Every(s)": Every,
    "Every(s²/2)": lambda s: Every(-(-s * s // 2)),
    "Geometric(2/s²)": lambda s: Geometric(2 / s**2),
    "doubling": lambda _s: doubling,
}

#: A chain is simulated if the cap allows this many times its mean: all but e^-32 of the runs.
_ROOM: Final = 32


@dataclass(frozen=True)
class Settings:
    """Settings of `chain`.

    >>> Settings(k_max=8).runs
    300
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 300
    steps: Annotated[
        int,
        msgspec.Meta(
            ge=_ROOM,
            description="cap on the steps of a simulated run; a chain is simulated for an agent "
            f"if {_ROOM} times its mean identification time fits",
        ),
    ] = 40_000
    k_max: Annotated[int, msgspec.Meta(ge=1, le=16, description="chains of k = 1 .. k_max")] = 12
    scale: Annotated[
        int, msgspec.Meta(ge=2, le=12, description="the growing chain requires ceil(scale sqrt t)")
    ] = 10
    growing_steps: Annotated[
        int, msgspec.Meta(ge=1, description="steps of a simulated run on the growing chain")
    ] = 500


def simulated(settings: Settings, agent: str, k: int) -> bool:
    """Whether the cap on steps leaves room for this agent on this chain: steps ≥ 32 E T.

    >>> simulated(Settings(steps=40_000), "every step", 10), simulated(Settings(), "every step", 12)
    (True, False)
    """
    mean = k if agent == BAYES_OPTIMAL else identification_time(k, SCHEDULES[agent](k)).mean
    return settings.steps >= _ROOM * mean


def longest_chain(settings: Settings, agent: str) -> int:
    """The largest k that is simulated for this agent; 1 always is.

    >>> longest_chain(Settings(), "every step"), longest_chain(Settings(), "Bayes-optimal")
    (10, 12)
    """
    return max(k for k in range(1, settings.k_max + 1) if simulated(settings, agent, k))


def run(settings: Settings, run: int) -> Columns:
    """Identification times of all agents, NaN where not simulated, ∞ where never seen.

    >>> columns = run(Settings(k_max=2, scale=2, growing_steps=8), 0)
    >>> columns["time"].shape, columns["time"][AGENTS.index("Every(k)")].tolist()
    ((6, 2), [1.0, 2.0])
    """
    world = stream(settings.seed, run, "world").integers(2)
    time = np.full((len(AGENTS), settings.k_max), np.nan)
    reward_time, silent = np.full((2, settings.k_max), np.nan)
    for k in range(1, settings.k_max + 1):
        for i, name in enumerate(AGENTS):
            number = _number(run, i, k)
            if not simulated(settings, name, k):
                continue
            if name == RULE:
                found = _compiled(settings, number, k, world)
                time[i, k - 1], reward_time[k - 1], silent[k - 1] = found
                continue
            time[i, k - 1] = _identified(
                settings.seed, number, _agent(name, k), _chain(k).environment(world), settings.steps
            )
    growing = []
    for i, name in enumerate((*GROWING, BAYES_OPTIMAL)):
        number = _number(run, len(AGENTS) + i, 0)
        agent = growing_agent(settings.scale, name)
        environment = GrowingChain(settings.scale).environment(world)
        steps = settings.growing_steps if name in GROWING else agent.plan.horizon
        growing.append(_identified(settings.seed, number, agent, environment, steps))
    return {
        "world": np.array(world),
        "time": time,
        "reward_time": reward_time,
        "silent": silent,
        "growing": np.array(growing, np.float64),
    }


def _number(run: int, agent: int, k: int) -> int:
    """A number for each run of each agent on each chain."""
    return (run * 64 + agent) * 64 + k


def _agent(name: str, k: int) -> Any:
    if name == BAYES_OPTIMAL:
        return BayesOptimal(_plan(k))
    return _chain(k).agent(schedule=SCHEDULES[name](k))


def growing_agent(scale: int, name: str) -> Any:
    """The agent of that name on the growing chain.

    >>> growing_agent(3, "doubling").belief
    FiniteBelief(2 modes after 0 observations: A 0.5, B 0.5)
    """
    if name == BAYES_OPTIMAL:
        return BayesOptimal(_growing_plan(scale))
    return GrowingChain(scale).agent(schedule=GROWING[name](scale))


def growing_label(scale: int, name: str) -> str:
    """The schedule of that name with its number, as figures and tables show it.

    >>> growing_label(10, "Every(s²/2)"), growing_label(10, "Geometric(2/s²)")
    ('Every(50)', 'Geometric(0.02)')
    """
    schedule = GROWING[name](scale)
    if isinstance(schedule, Every):
        return f"Every({schedule.k})"
    return f"Geometric({schedule.p:g})" if isinstance(schedule, Geometric) else name


def _identified(seed: int, number: int, agent: Any, environment: Any, steps: int) -> float:
    stream_of_both = play(agent, environment, seed=seed, run=number)
    for t, _ in enumerate(islice(stream_of_both, steps), start=1):
        if agent.belief.posterior().min() == 0.0:
            return t
    return np.inf


def _compiled(settings: Settings, number: int, k: int, world: int) -> tuple[float, float, float]:
    """T, the time of the first reward, and whether T came without one."""
    agent: Any = _chain(k).agent()
    environment = _chain(k).environment(world)
    actions: list[Any] = []
    rewards: list[Any] = []
    rewarded = False
    piece = 2 ** (k + 1)
    streams = both_streams(settings.seed, number)
    for _ in range(-(-settings.steps // piece)):
        record = interact(agent, environment, piece, streams=streams)
        actions.append(record.actions)
        rewards.append(record.observations)
        rewarded = rewarded or bool(record.observations.any())
        if rewarded and agent.belief.posterior().min() == 0.0:
            t = first_run(np.concatenate(actions), k)
            assert t is not None
            o = np.concatenate(rewards)
            return t, int(o.argmax()) + 1, float(o[t - 1] == 0)
    return np.inf, np.inf, np.nan


@lru_cache
def _chain(k: int) -> TabularModes:
    return chain(k)


@lru_cache
def _plan(k: int) -> Plan[int, int, int]:
    """Far enough ahead to be rewarded in both environments."""
    return Plan(_chain(k), _reward, 2 * k)


@lru_cache
def _growing_plan(scale: int) -> Plan[tuple[int, int, int], int, int]:
    return Plan(GrowingChain(scale), _reward, scale * scale + scale)


def _reward(a: int, o: int) -> float:
    return o
