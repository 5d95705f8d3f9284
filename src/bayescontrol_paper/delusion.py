"""Delusion: what goes wrong when an agent takes its own actions for evidence.

    m* ~ P(m)        o_t ~ P(o_t | m*, x_t, a_t)
    naive    P(m | ao_≤t)  ∝ P(m) Π_τ P(a_τ | m, x_τ) P(o_τ | m, x_τ, a_τ)
    causal   P(m | âo_≤t)  ∝ P(m) Π_τ P(o_τ | m, x_τ, a_τ)

Both agents meet prize-or-frog and a process of three modes, with the same m*, drawn from the prior,
and the same random numbers. Four identities hold for the causal agent and fail for the naive one:
other policies with the same hypotheses do not change the posterior of a history, and after any
number of steps t

    prior-preserved    E[posterior(m)] = prior(m)
    match-rate         P(drawn mode = m*) = E[Σ_m posterior(m)²]
    ville              P(∃τ ≤ t: posterior(m*) < δ prior(m*)) ≤ δ

Up to a horizon both sides are computed exactly, as sums over all histories:

    P(m*, ao_≤t) = P(m*) Π_τ P(a_τ | ao_<τ) P(o_τ | m*, x_τ, a_τ)        agent coupled with Q_m*

In simulation the left side is a mean of n independent variables in [0, 1]. With expectation μ and
variance at most σ² it obeys Bernstein's inequality,

    P(|mean - μ| ≥ ε) ≤ 2 exp(-n ε² / (2 σ² + 2 ε / 3)),

for every n, even where a rate is near 0 or 1. Where only μ is known, σ² ≤ μ (1 - μ).

An identity *holds* if it does so exactly, to 1e-12 up to the horizon, and in simulation within
Bernstein's margin. It *fails* if it is off by more than 0.01 exactly, and the simulation agrees
with the exact value. The false-alarm rate of all claims together is below 1e-3 for any number of
runs; the margins are about five of the largest standard errors.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import numpy as np
from msgspec import Meta

from bayescontrol import ControlRule, NaiveMixture, Stream, interact
from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol.finite.examples import PRIZE, THREE_MODES_PRIOR, prize_or_frog, three_modes
from bayescontrol.finite.tabular import TabularModes, random_modes
from bayescontrol.lab import Claim, Columns, Experiment, mean_and_error
from bayescontrol.metrics import delusion
from bayescontrol.plot.chart import Colour, Dash, Guide, Panel, Series
from bayescontrol.record import Probe, Record, drawn_mode, posterior
from bayescontrol.statistics import bernstein
from bayescontrol.systems import AgentSystem
from bayescontrol_paper import _claims as claims
from bayescontrol_paper._figures import Figure, Figures, look, share_of_runs

AGENTS: Final[Mapping[str, type[Any]]] = {"naive": NaiveMixture, "causal": ControlRule}


@dataclass(frozen=True)
class Settings(claims.Size):
    """Size of the experiment, and r = P(a box shows what it contains)."""

    runs: claims.Runs = 1000
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
_TRUST_PROBE = Probe(lambda agent, _a, _o: agent.belief.posterior()[agent.belief.drawn], "before")
_PROBES = {"posterior": posterior, "drawn": drawn_mode, "trust": _TRUST_PROBE}


def run(settings: Settings, i: int) -> Columns:
    """Run both agents in both processes, and measure delusion on every record.

    `changed` is whether other policies with the same hypotheses change the posterior of the record.
    """
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
            columns |= {f"{name} {agent} {column}": value for column, value in values.items()}
    return columns


def _replay(record: Record, agent: ControlRule[Any, int, int, int]) -> FloatArray:
    """Return the posterior of an agent after it acts and observes as in this record."""
    for a, o in record:
        agent.issue(a)
        agent.observe(a, o)
    return np.asarray(posterior.measure(agent, None, None))


#: The number of steps up to which expectations are computed exactly.
HORIZON: Final = 6
#: The values of δ in Ville's bound.
DELTAS: Final = (0.5, 0.2, 0.1, 0.05, 0.01)


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


def expectations(process: Process, agent: str, horizon: int = HORIZON) -> Exact:
    """Sum over all histories, weighted by P(m*, ao_≤t).

    After t steps the nodes are all histories of t steps that can occur.

    >>> expectations(processes(0.8)["prize"], "naive", horizon=1).match
    array([0.5, 0.5])
    """
    modes, prior = process
    system = AgentSystem(process.agent(agent))
    # The agent, P(m*, history) and the lowest P(m* | ·) / P(m*) so far; both arrays by m*.
    nodes: list[tuple[Any, ...]] = [(system.start(), prior, np.ones(len(prior)))]

    def children(s: Any, p: FloatArray, low: FloatArray) -> Iterator[tuple[Any, ...]]:
        """Extend a history by one action and one observation in every possible way."""
        for a, p_a in system.action_probabilities(s).items():
            for o, p_o in modes.observation_probabilities(s.x, a).items() if p_a > 0.0 else ():
                after: Any = system.advance(s, a, o)
                yield after, p * p_a * p_o, np.minimum(low, after.belief.posterior() / prior)

    rows: list[tuple[Any, ...]] = []
    for t in range(horizon + 1):
        parts = ((s.belief.posterior(), p, low) for s, p, low in nodes)
        v, p, low = (np.stack(part) for part in zip(*parts, strict=True))  # [history, mode]
        total = p.sum(1)  # P(history)
        ville = [p[low < delta].sum() for delta in DELTAS]
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
#: The number of families of tests: three identities, each for two agents in two processes.
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


def margin_ratio(gap: FloatArray, variance: FloatArray, runs: int) -> float:
    """Return the largest gap as a multiple of its margin; above 1, chance does not explain it.

    The margin is ε of Bernstein's inequality. FALSE_ALARMS is split equally among all families and
    the tests of a family (Bonferroni).

    >>> some = np.array([0.25, 0.25])
    >>> [round(margin_ratio(np.array([0.0, gap]), some, runs=1000), 2) for gap in (0.02, 0.1)]
    [0.26, 1.3]
    """
    margin = bernstein(variance, runs, FALSE_ALARMS / (_FAMILIES * gap.size))
    return float(np.max(gap / margin))


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
        "prior-preserved", "causal agent: E[posterior] = prior, after every step",
        "naive agent: E[posterior] differs from the prior",
    ),
    Identity(
        "match-rate", "causal agent: P(drawn mode = m*) = E[Σ posterior²], at every draw",
        "naive agent: P(drawn mode = m*) is below E[Σ posterior²]",
    ),
    Identity(
        "ville", "causal agent: P(posterior(m*) < δ prior(m*) at some t) ≤ δ",
        "naive agent: P(posterior(m*) < δ prior(m*) at some t) > δ", bound=True,
    ),
)  # fmt: skip
#: An identity fails if its exact values differ by more than this.
_CLEAR_GAP: Final = 0.01
_ORIGIN: Final = (
    "theory: exact values up to the horizon, Bernstein's margin beyond "
    "(false alarms of all claims: 1 in 1000)"
)
#: The process whose numbers the claims show; the claims are checked on both.
_SHOWN_PROCESS: Final = "three modes"


def _claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Make all claims, two for each identity."""
    runs = all_trajectories(settings, columns)
    yield from _prize_claims(settings)
    for identity in IDENTITIES:
        yield _holds_claim(identity, settings, runs)
        yield _fails_claim(identity, settings, runs)
    yield from _intervention_claims(settings, columns)


def _prize_claims(settings: Settings) -> Iterator[Claim]:
    """Make the exact claims about the first pick in prize or frog: both beliefs, and false bits."""
    process, beliefs = processes(settings.reliability)["prize"], {}
    for name in AGENTS:
        agent = process.agent(name)
        agent.issue(0)
        beliefs[name] = float(posterior.measure(agent, 0, None)[0])
    bits = float(delusion(Record([0], [PRIZE]), process.agent("causal")).step_bits[0])
    claim = "after picking a box, before opening it, the {} agent believes P(prize) = {}"
    for name, text, expected, ours in (
        ("prize-naive", claim.format("naive", "1"), 1.0, beliefs["naive"]),
        ("prize-causal", claim.format("causal", "1/2"), 0.5, beliefs["causal"]),
        ("prize-bits", "taken for evidence, the pick gives one false bit", 1.0, bits),
    ):
        yield Claim(
            name, text, source="ours", expected=expected, ours=ours,
            holds=abs(ours - expected) <= claims.ROUNDING, exact=True,
        )  # fmt: skip


def _holds_claim(identity: Identity, settings: Settings, runs: AllTrajectories) -> Claim:
    """Claim that an identity holds for the causal agent, exactly and in simulation."""
    ratios = []
    for process, (_, prior) in processes(settings.reliability).items():
        left, right, variance = runs[process, "causal"].sides(prior)[identity.name]
        ratios.append(margin_ratio(identity.gap(left.mean(0), right), variance, len(left)))
    gap = _exact_gap(identity, settings, "causal")
    expected, ours, error = _shown_sides(identity, settings, runs, "causal")
    return Claim(
        identity.name, identity.holds, source="ours", ours=ours, error=error,
        expected=f"at most {expected:.4g}" if identity.bound else expected,
        holds=gap <= claims.ROUNDING and max(ratios) <= 1.0, threshold_origin=_ORIGIN,
        reason=f"exact deviation {max(gap, 0.0):.2g} up to step {HORIZON}; in simulation, up to "
        f"step {settings.steps}, {max(0.0, *ratios):.2f} of the margin for chance",
    )  # fmt: skip


def _fails_claim(identity: Identity, settings: Settings, runs: AllTrajectories) -> Claim:
    """Claim that an identity fails for the naive agent, and that the simulation is as computed.

    The simulation is compared up to the horizon, or up to its last step if that comes first.
    """
    exact, ratios = exact_expectations(settings.reliability), []
    for process, (_, prior) in processes(settings.reliability).items():
        left = runs[process, "naive"].sides(prior)[identity.name].left[:, : HORIZON + 1]
        mu = exact[process, "naive"].sides(prior)[identity.name][0][: left.shape[1]]
        ratios.append(margin_ratio(np.abs(left.mean(0) - mu), mu * (1 - mu), len(left)))
    gap = _exact_gap(identity, settings, "naive")
    expected, ours, error = _shown_sides(identity, settings, runs, "naive")
    gap_text = f"{abs(ours - expected) / error:.0f}" if error > 0 else "many"
    return Claim(
        f"{identity.name}-naive-fails", identity.fails, source="ours",
        expected=f"{'above' if identity.bound else 'not'} {expected:.4g}", ours=ours, error=error,
        holds=gap > _CLEAR_GAP and max(ratios) <= 1.0, reason=f"exact deviation {gap:.3f} up to "
        f"step {HORIZON}; in simulation {gap_text} standard errors at step {settings.steps}; it "
        f"differs from the exact values by {max(ratios):.2f} of the margin for chance",
        threshold_origin=_ORIGIN,
    )  # fmt: skip


def _exact_gap(identity: Identity, settings: Settings, agent: str) -> float:
    """Return the largest exact gap of an identity over both processes, all times and components."""
    exact = exact_expectations(settings.reliability)
    return max(
        float(identity.gap(*exact[process, agent].sides(prior)[identity.name]).max())
        for process, (_, prior) in processes(settings.reliability).items()
    )


def _shown_sides(
    identity: Identity, settings: Settings, runs: AllTrajectories, agent: str
) -> tuple[float, float, float]:
    """Return right side, left side and its error after the last step, for claims.

    Of all components (modes, or values of δ) it is the one with the largest gap.
    """
    prior = processes(settings.reliability)[_SHOWN_PROCESS].prior
    left, right, _ = runs[_SHOWN_PROCESS, agent].sides(prior)[identity.name]
    mean, error = mean_and_error(left[:, -1])
    k = int(np.argmax(identity.gap(mean, right[-1])))
    return float(right[-1, k]), float(mean[k]), float(error[k])


def _intervention_claims(settings: Settings, columns: Columns) -> Iterator[Claim]:
    """Claim that other policies leave the causal posterior unchanged, and change the naive one.

    Each run has one history in each process. The naive posterior must change in both processes.
    """
    names = list(processes(settings.reliability))
    # The number of histories whose posterior differs, for each process.
    changed = {
        agent: [int(columns[f"{name} {agent} changed"].sum()) for name in names] for agent in AGENTS
    }
    histories = len(names) * len(columns["prize truth"])
    yield claims.equality(
        "intervention-law", "causal agent: other policies with the same hypotheses give the same "
        "posterior for the same history, bit for bit; histories that differ",
        expected=0, ours=sum(changed["causal"]), reason=f"{histories} histories of "
        f"{settings.steps} steps, random policies for each", origin="theory, bit for bit",
    )  # fmt: skip
    yield Claim(
        "intervention-law-naive-fails",
        "naive agent: other policies change its posterior; histories that differ",
        source="ours", expected="above 0", ours=sum(changed["naive"]), holds=all(changed["naive"]),
        reason=f"of {histories}", threshold_origin="theory: both processes have histories that "
        "differ",
    )  # fmt: skip


def _trust_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Trust in the mode just drawn, before the answer

    In prize or frog the drawn mode predicts that the prize is in the picked box.
    """
    last = f"step {settings.steps}"
    yield f"process | agent | step 1, believed | {last}, believed | {last}, right"
    for (name, agent), runs in all_trajectories(settings, columns).items():
        believed = columns[f"{name} {agent} trust"]
        cells = map(claims.mean_with_error, (believed[:, 0], believed[:, -1], runs.matched[:, -1]))
        yield name, agent, *cells


def _mean_table(settings: Settings, columns: Columns) -> claims.Lines:
    """E[posterior], m* drawn from the prior

    In prize or frog the naive agent keeps the prior only by symmetry.
    """
    exact_at, simulated_at = f"exact, step {HORIZON}", f"simulated, step {settings.steps}"
    yield f"process | agent | mode | prior | {exact_at} | {simulated_at}"
    for (name, agent), runs in all_trajectories(settings, columns).items():
        process = processes(settings.reliability)[name]
        exact = exact_expectations(settings.reliability)[name, agent]
        for m, p in enumerate(process.prior.tolist()):
            simulated = claims.mean_with_error(runs.posterior[:, -1, m])
            yield name, agent, process.modes[m].name, p, float(exact.mean[-1, m]), simulated


def _match_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Match, P(drawn mode = m*) against E[Σ posterior²]"""
    times = (f"exact, step {HORIZON}", f"step {settings.steps}")
    yield " | ".join(["process | agent", *(f"P, {t} | E, {t}" for t in times)])
    for (name, agent), runs in all_trajectories(settings, columns).items():
        exact = exact_expectations(settings.reliability)[name, agent]
        simulated = map(claims.mean_with_error, (runs.matched[:, -1], runs.squares[:, -1]))
        yield name, agent, float(exact.match[-1]), float(exact.squares[-1]), *simulated


def _ville_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Ville's bound, P(posterior(m*) < δ prior(m*) at some t) against δ"""
    exact = exact_expectations(settings.reliability)
    yield f"process | agent | δ | exact, step {HORIZON} | simulated, to step {settings.steps}"
    for (name, agent), runs in all_trajectories(settings, columns).items():
        for delta, share in zip(DELTAS, exact[name, agent].ville[-1].tolist(), strict=True):
            yield name, agent, delta, share, claims.mean_with_error(runs.lowest[:, -1] < delta)


def _bits_table(settings: Settings, columns: Columns) -> claims.Lines:
    """Delusion in bits, on the records of either agent

    Conditioned on single actions, then on all of them. Contradictions: runs in which no mode
    explains all actions; their infinite bits are left out of the mean.
    """
    to, last = f"summed to step {settings.steps}", f"all actions, step {settings.steps}"
    yield f"process | agent | step 1 | {to} | {last} | contradictions"
    for name, agent in exact_expectations(settings.reliability):
        step, total = (columns[f"{name} {agent} {kind} bits"] for kind in ("step", "total"))
        finite_bits = total[np.isfinite(total[:, -1]), -1]
        total_text = claims.mean_with_error(finite_bits) if finite_bits.size else "none finite"
        contradicted = f"{np.isinf(total[:, -1]).mean():.1%}"
        step_text = claims.mean_with_error(step[:, 0]), claims.mean_with_error(step.sum(1))
        yield name, agent, *step_text, total_text, contradicted


_AGENT_COLOURS: Final[Mapping[str, Colour]] = {"naive": "vermillion", "causal": "blue"}
_LOOKS: Final = {
    (process, agent): look(_AGENT_COLOURS[agent], "solid" if process == "prize" else "dash")
    for process in ("prize", "three modes")
    for agent in AGENTS
}


def _delusion_figure(settings: Settings, columns: Columns) -> Figure:
    """The beliefs of an agent that takes its own actions for evidence

    The causal agent is right as often as it believes (a), keeps the prior on average (b) and
    stays below the bound (d); the naive agent does none of this. (c) counts the false bits in the
    actions of each agent; only the naive agent uses them as evidence.

    means of {settings.runs} replicas, bands of two standard errors
    """
    runs = all_trajectories(settings, columns)
    beliefs = [_trust_panel(columns, runs), _mean_panel(settings, runs)]
    return Figure([*beliefs, _bits_panel(columns), _ville_panel(runs)])


def _trust_panel(columns: Columns, runs: AllTrajectories) -> Panel:
    """Draw how probable the drawn mode is to the agent, and how often it is the true one."""
    series = []
    for agent, colour in _AGENT_COLOURS.items():
        believed, matched = columns[f"prize {agent} trust"], runs["prize", agent].matched
        t = np.arange(1, believed.shape[1] + 1)
        series += [
            Series.of_runs(f"{agent}: believed", t, believed, colour=colour),
            Series.of_runs(f"{agent}: right", t, matched, colour=colour, dash="dot"),
        ]
    return Panel(
        "(a) Prize or frog: “the prize is in the box I picked”", "step t", "probability", series,
        ylim=(0.4, 1.03), legend="center right",
    )  # fmt: skip


def _mean_panel(settings: Settings, runs: AllTrajectories) -> Panel:
    """Draw the mean posterior of each of the three modes, and the prior."""
    process = processes(settings.reliability)["three modes"]
    dashes: tuple[Dash, ...] = ("solid", "dash", "dot")
    series = []
    for agent, colour in _AGENT_COLOURS.items():
        v = runs["three modes", agent].posterior
        t = np.arange(v.shape[1])
        series += [
            Series.of_runs(f"{agent}: “{mode.name}”", t, v[:, :, m], colour=colour, dash=dashes[m])
            for m, mode in enumerate(process.modes)
        ]
    guides = [Guide("prior", float(p), dash="dashdot", in_legend=False) for p in process.prior]
    return Panel(
        "(b) Three modes: the mean posterior against the prior", "step t", "E[posterior(m)]",
        series, guides, ylim=(0.1, 0.72), notes=["Dash-dotted: the prior"], legend="upper right",
        legend_columns=2,
    )  # fmt: skip


def _bits_panel(columns: Columns) -> Panel:
    """Draw the false evidence in the actions, summed over the steps."""
    series = []
    for (process, agent), style in _LOOKS.items():
        summed = columns[f"{process} {agent} step bits"].cumsum(1)
        t = np.arange(1, summed.shape[1] + 1)
        series.append(Series.of_runs(f"{process}, {agent}", t, summed, **style))
    return Panel(
        "(c) False evidence in the actions of each agent", "step t",
        "false evidence, summed over steps [bits]", series, yscale="log", legend="upper left",
    )  # fmt: skip


def _ville_panel(runs: AllTrajectories) -> Panel:
    """Draw the share of runs in which the true mode ever falls below δ of its prior, against δ."""
    delta = np.linspace(0.0, 1.0, 101)
    series = [
        share_of_runs(", ".join(pair), delta, runs[pair].lowest[:, -1:] < delta, **style)
        for pair, style in _LOOKS.items()
    ]
    return Panel(
        "(d) Ville's bound: does the true mode lose its weight?", "δ",
        "P(posterior(m*) < δ prior(m*) at some t)", series,
        [Guide("bound: δ", direction="diagonal")], ylim=(-0.02, 1.02), legend="upper left",
    )  # fmt: skip


experiment: Final = Experiment(
    "delusion", "an agent that takes its own actions for evidence, against the control rule",
    Settings, quick=Settings(runs=600), full=Settings(runs=10_000, steps=100), run=run,
    score=claims.Scored(_claims, _trust_table, _mean_table, _match_table, _ville_table,
                        _bits_table), figures=Figures(_delusion_figure),
)  # fmt: skip
