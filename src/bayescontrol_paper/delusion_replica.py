"""One replica of `delusion`, its identities, and their exact values.

    m* ~ P(m)        o_t ~ P(o_t | m*, x_t, a_t)
    naive   P(m | ao_≤t): its own actions are evidence        causal   P(m | âo_≤t): they are not

Both agents get the same m* and the same random numbers. Three identities hold for the causal agent
after any number of steps t:

    prior-preserved    E[posterior(m)] = prior(m)
    match-rate         P(drawn mode = m*) = E[Σ_m posterior(m)²]
    ville              P(∃τ ≤ t: posterior(m*) < δ prior(m*)) ≤ δ

Up to a horizon both sides are computed exactly, as sums over all histories:

    P(m*, ao_≤t) = P(m*) Π_τ P(a_τ | ao_<τ) P(o_τ | m*, x_τ, a_τ)        agent coupled with Q_m*

In simulation the left side is a mean of n independent variables in [0, 1]. With expectation μ and
variance at most σ² it obeys Bernstein's inequality,

    P(|mean - μ| ≥ ε) ≤ 2 exp(-n ε² / (2 σ² + 2 ε / 3)),

for every n, even where a rate is near 0 or 1. Where only μ is known, σ² ≤ μ (1 - μ).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import numpy as np
from msgspec import Meta

from bayescontrol import ControlRule, NaiveMixture, Stream, interact
from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.finite.examples import THREE_MODES_PRIOR, prize_or_frog, three_modes
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.lab import Columns
from bayescontrol.metrics import delusion
from bayescontrol.record import Probe, Record, drawn_mode, posterior
from bayescontrol.statistics import bernstein
from bayescontrol.systems import AgentSystem
from bayescontrol_paper.settings import Runs, Seed

AGENTS: Final[Mapping[str, type[Any]]] = {"naive": NaiveMixture, "causal": ControlRule}


@dataclass(frozen=True)
class Settings:
    """Size of the experiment, and r = P(a box shows what it contains)."""

    seed: Seed = 0
    runs: Runs = 1000
    steps: Annotated[int, Meta(ge=1, description="steps in a replica")] = 40
    reliability: Annotated[float, Meta(gt=0.5, lt=1, description="P(a box tells the truth)")] = 0.8


class Process(NamedTuple):
    """A class of modes with its prior P(m)."""

    modes: TabularModes
    prior: FloatArray

    def agent(self, name: str) -> ControlRule[Any, int, int, int]:
        """Return the naive or the causal agent over this class."""
        return self.modes.agent(self.prior, kind=AGENTS[name])


def processes(reliability: float) -> dict[str, Process]:
    """Return prize or frog, with a uniform prior, and the process of three modes."""
    return {
        "prize": Process(prize_or_frog(reliability), np.array([0.5, 0.5])),
        "three modes": Process(three_modes(), np.array(THREE_MODES_PRIOR)),
    }


#: P(m_t | ·) of the drawn mode m_t, after its action and before the observation.
_TRUST = Probe(lambda agent, _a, _o: agent.belief.posterior()[agent.belief.drawn], "before")
_PROBES = {"posterior": posterior, "drawn": drawn_mode, "trust": _TRUST}


def run(settings: Settings, i: int) -> Columns:
    """Run both agents in both processes, and measure delusion on every record."""
    truth = Stream.named(settings.seed, i, "truth")
    columns: dict[str, Any] = {}
    for name, process in processes(settings.reliability).items():
        m = truth.categorical(process.prior)
        columns[f"{name} truth"] = np.array(m)
        # The same hypotheses with other policies, for the claims about interventions.
        policies = random_modes(len(process.modes), seed=Stream.named(settings.seed, i, "policies"))
        other = Process(TabularModes(policies.policy, process.modes.hypothesis), process.prior)
        for agent in AGENTS:
            pair = process.agent(agent), process.modes.environment(m)
            record = interact(*pair, settings.steps, seed=settings.seed, run=i, probes=_PROBES)
            measured = delusion(record, process.agent("causal"))
            other_posterior = _replay(record, other.agent(agent))
            changed = other_posterior.tobytes() != record["posterior"][-1].tobytes()
            values = {probe: record[probe] for probe in _PROBES} | {"changed": np.array(changed)}
            values |= {"step bits": measured.step_bits, "total bits": measured.total_bits}
            columns |= {f"{name} {agent} {column}": x for column, x in values.items()}
    return columns


def _replay(record: Record, agent: ControlRule[Any, int, int, int]) -> FloatArray:
    """Return the posterior of an agent after it acts and observes as in this record."""
    for a, o in record:
        agent.issue(a)
        agent.observe(a, o)
    return np.asarray(posterior.measure(agent, None, None))


HORIZON: Final = 6
DELTAS: Final = (0.5, 0.2, 0.1, 0.05, 0.01)

#: The agent, P(m*, history) and the lowest P(m* | ·) / P(m*) so far; both arrays by m*.
Node: TypeAlias = tuple[Any, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Exact:
    """Expectations over m* ~ P(m) and all histories, after t = 0 … horizon steps.

    >>> exact_expectations(0.8)["prize", "causal"].mean[6].round(12)
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

    def sides(self, prior: FloatArray) -> Mapping[str, tuple[FloatArray, FloatArray]]:
        """Return both sides of each identity; shape (times, components)."""
        return {
            "prior-preserved": (self.mean, np.broadcast_to(prior, self.mean.shape)),
            "match-rate": (self.match[:, None], self.squares[:, None]),
            "ville": (self.ville, np.broadcast_to(DELTAS, self.ville.shape)),
        }


def expectations(
    process: Process, agent: str, horizon: int = HORIZON, deltas: Sequence[float] = DELTAS
) -> Exact:
    """Sum over all histories, weighted by P(m*, ao_≤t).

    >>> expectations(processes(0.8)["prize"], "naive", horizon=1).match
    array([0.5, 0.5])
    """
    modes, prior = process
    system = AgentSystem(process.agent(agent))
    nodes: list[Node] = [(system.start(), prior, np.ones(len(prior)))]

    def children(s: Any, p: FloatArray, low: FloatArray) -> Iterator[Node]:
        for a, p_a in system.action_probabilities(s).items():
            for o, p_o in modes.observation_probabilities(s.x, a).items() if p_a > 0.0 else ():
                after: Any = system.advance(s, a, o)
                yield after, p * p_a * p_o, np.minimum(low, after.belief.posterior() / prior)

    rows: list[tuple[Any, ...]] = []
    for t in range(horizon + 1):
        parts = ((s.belief.posterior(), p, low) for s, p, low in nodes)
        v, p, low = (np.stack(part) for part in zip(*parts, strict=True))
        total = p.sum(1)
        ville = [p[low < delta].sum() for delta in deltas]
        rows.append((total @ v, (p * v).sum(), total @ (v * v).sum(1), ville))
        if t < horizon:
            nodes = [child for node in nodes for child in children(*node)]
    return Exact(*(np.array(column) for column in zip(*rows, strict=True)))


@cache
def exact_expectations(reliability: float) -> dict[tuple[str, str], Exact]:
    """Return the exact expectations by (process, agent), for example ("prize", "causal")."""
    return {
        (name, agent): expectations(process, agent)
        for name, process in processes(reliability).items()
        for agent in AGENTS
    }


#: The rate of false alarms of all statistical claims together.
FALSE_ALARMS: Final = 1e-3
# Three identities, each for two agents in two processes.
_FAMILIES: Final = 12


class Sides(NamedTuple):
    """Both sides of an identity, and a bound on the variance of one run's left side if it holds."""

    left: FloatArray  #: shape (runs, times, components)
    right: FloatArray  #: shape (times, components)
    variance: FloatArray  #: shape (times, components)


def _sides(left: FloatArray, right: ArrayLike) -> Sides:
    """Return both sides with the variance bound μ (1 - μ), where μ is the right side."""
    right = np.broadcast_to(right, left.shape[1:])
    return Sides(left, right, right * (1 - right))


@dataclass(frozen=True, eq=False)
class Trajectories:
    """One agent in one process, in all replicas; index t is after t steps."""

    #: P(m | ·), the prior first; shape (runs, steps + 1, modes).
    posterior: FloatArray
    #: 1 where the mode drawn next is m*; shape (runs, steps).
    matched: FloatArray
    #: Σ_m P(m | ·)² when that mode is drawn; shape (runs, steps).
    squares: FloatArray
    #: The lowest P(m* | ·) / P(m*) so far; shape (runs, steps + 1).
    lowest: FloatArray

    def sides(self, prior: FloatArray) -> Mapping[str, Sides]:
        """Return both sides of each identity."""
        fell = np.asarray(self.lowest[:, :, None] < np.array(DELTAS), np.float64)
        # If the identity holds, a match has probability q given the history: variance q (1 - q).
        q = self.squares[:, :, None]
        return {
            "prior-preserved": _sides(self.posterior, prior),
            "match-rate": Sides(self.matched[:, :, None], q.mean(0), (q * (1 - q)).mean(0)),
            "ville": _sides(fell, DELTAS),
        }


#: The trajectories by process and agent.
AllTrajectories: TypeAlias = Mapping[tuple[str, str], Trajectories]


def all_trajectories(settings: Settings, columns: Columns) -> AllTrajectories:
    """Collect the trajectories of both agents in both processes."""
    trajectories = {}
    for name, (_, prior) in processes(settings.reliability).items():
        truth = columns[f"{name} truth"]
        runs = np.arange(len(truth))
        for agent in AGENTS:
            first = np.broadcast_to(prior, (len(runs), 1, len(prior)))
            v = np.concatenate([first, columns[f"{name} {agent} posterior"]], axis=1)
            matched = columns[f"{name} {agent} drawn"] == truth[:, None]
            trajectories[name, agent] = Trajectories(
                posterior=v,
                matched=np.asarray(matched, np.float64),
                squares=(v * v).sum(-1)[:, :-1],
                lowest=np.minimum.accumulate(v[runs, :, truth] / prior[truth, None], axis=1),
            )
    return trajectories


def margin(variance: ArrayLike, runs: int, tests: int) -> FloatArray:
    """Return ε of Bernstein's inequality: how far a mean over the runs may deviate by chance.

    FALSE_ALARMS is split equally among all families and the `tests` of a family (Bonferroni).

    >>> print(f"{margin(0.25, runs=1000, tests=1):.4f}")
    0.0745
    """
    return bernstein(variance, runs, FALSE_ALARMS / (_FAMILIES * tests))


def margin_ratio(gap: FloatArray, variance: FloatArray, runs: int) -> float:
    """Return the largest gap as a multiple of its margin; above 1, chance does not explain it.

    >>> some = np.array([0.25, 0.25])
    >>> [round(margin_ratio(np.array([0.0, gap]), some, runs=1000), 2) for gap in (0.02, 0.1)]
    [0.26, 1.3]
    """
    return float(np.max(gap / margin(variance, runs, gap.size)))


class Identity(NamedTuple):
    """An identity: the claim that it holds for the causal agent and fails for the naive agent."""

    name: str
    holds: str
    fails: str
    bound: bool = False  #: left ≤ right instead of left = right

    def gap(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return |left - right|, or left - right if right is a bound."""
        return left - right if self.bound else np.abs(left - right)


IDENTITIES: Final = (
    Identity(
        "prior-preserved",
        "causal agent: E[posterior] = prior, after every step",
        "naive agent: E[posterior] differs from the prior",
    ),
    Identity(
        "match-rate",
        "causal agent: P(drawn mode = m*) = E[Σ posterior²], at every draw",
        "naive agent: P(drawn mode = m*) is below E[Σ posterior²]",
    ),
    Identity(
        "ville",
        "causal agent: P(posterior(m*) < δ prior(m*) at some t) ≤ δ",
        "naive agent: P(posterior(m*) < δ prior(m*) at some t) > δ",
        bound=True,
    ),
)
