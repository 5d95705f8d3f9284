"""One replica: two worlds, met by an agent that believes its own actions and by one that does not.

    m* ~ P(m)        o_t ~ P(o_t | m*, x_t, a_t)
    naive   P(m | ao_≤t): its own actions are evidence        causal   P(m | âo_≤t): they are not

Both agents get the same m* and the same random numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.baselines.naive import NaiveMixture
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns
from bayescontrol.metrics import delusion
from bayescontrol.problems.prize import THREE_MODES_PRIOR, prize_or_frog, three_modes
from bayescontrol.problems.tabular import TabularModes, random_modes
from bayescontrol.record import Probe, Record, drawn_mode, posterior
from bayescontrol.rule import ControlRule
from bayescontrol.seeding import stream

AGENTS: Final[Mapping[str, type[Any]]] = {"naive": NaiveMixture, "causal": ControlRule}


@dataclass(frozen=True)
class Settings:
    """Size of the experiment, and r = P(a box shows what it holds).

    >>> Settings().reliability
    0.8
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 1000
    steps: Annotated[int, msgspec.Meta(ge=1, description="steps in a replica")] = 40
    reliability: Annotated[
        float,
        msgspec.Meta(
            gt=0.5,
            lt=1,
            description="how surely a box shows what it holds; with 1 the naive agent breaks down",
        ),
    ] = 0.8


class Process(NamedTuple):
    """A class of modes with its prior P(m).

    >>> processes(0.8)["three modes"].prior
    array([0.5, 0.3, 0.2])
    """

    modes: TabularModes
    prior: FloatArray

    def agent(self, name: str) -> ControlRule[Any, int, int, int]:
        """The naive or the causal agent over this class."""
        agent: ControlRule[Any, int, int, int] = self.modes.agent(self.prior, kind=AGENTS[name])
        return agent


def processes(reliability: float) -> dict[str, Process]:
    """Prize or frog, where P(m) = 1/2 each, and the three modes.

    >>> list(processes(0.8))
    ['prize', 'three modes']
    """
    return {
        "prize": Process(prize_or_frog(reliability), np.array([0.5, 0.5])),
        "three modes": Process(three_modes(), np.array(THREE_MODES_PRIOR)),
    }


#: P(m_t | ·) of the mode m_t just drawn, once it has acted and before it sees what follows.
_TRUST = Probe(lambda agent, _a, _o: agent.belief.posterior()[agent.belief.drawn], "before")
_PROBES = {"posterior": posterior, "drawn": drawn_mode, "trust": _TRUST}


def run(settings: Settings, i: int) -> Columns:
    """Both agents in both processes, what the meter reads, and each history with other policies.

    >>> columns = run(Settings(steps=3), 0)
    >>> columns["prize naive trust"]
    array([1., 1., 1.])
    >>> columns["three modes causal changed"], columns["three modes naive changed"]
    (array(False), array(True))
    """
    truth = stream(settings.seed, i, "truth")
    columns: dict[str, Any] = {}
    for name, process in processes(settings.reliability).items():
        m = truth.categorical(process.prior)
        columns[f"{name} truth"] = np.array(m)
        # The same hypotheses with other policies: the intervention law speaks of them.
        policies = random_modes(len(process.modes), seed=stream(settings.seed, i, "policies"))
        others = Process(TabularModes(policies.policy, process.modes.hypothesis), process.prior)
        for agent in AGENTS:
            record = interact(
                process.agent(agent),
                process.modes.environment(m),
                settings.steps,
                seed=settings.seed,
                run=i,
                probes=_PROBES,
            )
            read = delusion(record, process.agent("causal"))
            other = _read_again(record, others.agent(agent))
            changed = other.tobytes() != record["posterior"][-1].tobytes()
            columns |= {f"{name} {agent} {probe}": record[probe] for probe in _PROBES}
            columns |= {
                f"{name} {agent} step bits": read.step_bits,
                f"{name} {agent} total bits": read.total_bits,
                f"{name} {agent} changed": np.array(changed),
            }
    return columns


def _read_again(record: Record, agent: ControlRule[Any, int, int, int]) -> FloatArray:
    """The posterior of an agent that takes this history for its own."""
    for a, o in record:
        agent.issue(a)
        agent.observe(a, o)
    return np.asarray(posterior.measure(agent, None, None))
