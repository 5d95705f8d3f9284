"""Compare the regret of all bandit agents on four kinds of bandits, run by run.

    uniform       m_j ~ U(0, 1), as in the paper
    low rates     m_j ~ Beta(1, 9), such as clicks on advertisements
    high rates    m_j ~ Beta(9, 1), such as treatments that mostly work
    close race    one lever of 0.5 among levers of 0.4

All agents of a run play the same biases with the same random numbers. No agent knows the kind; the
Bayesian ones assume uniform biases.

    rank of an agent   1 + agents that are better … all - agents that are worse

An agent is better if a paired sign-flip test, corrected by Holm for all pairs of agents at one kind
of bandit, is significant and the interval of the difference excludes 0. In the figure of the close
race a black line has the slope of Lai and Robbins, c ln t.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Final

import numpy as np
from benchmarks.arena import (
    MOSS,
    BayesUCB,
    InformationDirected,
    KnowledgeGradient,
    UCBTuned,
)
from msgspec import Meta

from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.bandits import BernoulliBandit
from bayescontrol.bandits.bandit import lai_robbins
from bayescontrol.baselines import (
    KLUCB,
    UCB1,
    EpsilonGreedy,
    GittinsAgent,
    GittinsTable,
    Oracle,
    Softmax,
    UniformLevers,
)
from bayescontrol.interaction import interact
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table
from bayescontrol.metrics import regret
from bayescontrol.plot.chart import Chart, Colour, Dash, Panel, Series
from bayescontrol.seeding import Stream
from bayescontrol.statistics import Comparison, compare_pair, holm, mean_interval
from bayescontrol.statistics.intervals import format_interval
from bayescontrol_paper._claims import Runs, Seed

RULE: Final = "control rule"
UCB: Final = "UCB1"
ORACLE: Final = "oracle"
#: Pulls all levers equally often.
UNIFORM: Final = "uniform"
#: A decision of this agent takes about a hundred times as long as one of the control rule.
COSTLY: Final = "information-directed"
CLOSE_RACE: Final = "close race"


@dataclass(frozen=True)
class Settings:
    """Settings of `bandit-zoo`."""

    seed: Seed = 0
    runs: Runs = 100
    steps: Annotated[int, Meta(ge=2, le=5000, description="pulls in a run")] = 1000
    levers: Annotated[int, Meta(ge=2, le=256, description="number of levers")] = 10
    costly_runs: Annotated[int, Meta(ge=0, description=f"number of runs of the {COSTLY} agent")] = (
        20
    )
    discount: Annotated[
        float, Meta(gt=0, le=0.9999, description="discount of the Gittins indices")
    ] = 0.999


@lru_cache(maxsize=2)
def _gittins_table(discount: float, pulls: int) -> GittinsTable:
    return GittinsTable(discount, pulls)


#: Draws the biases of each kind, in the order of the columns.
KINDS: Final[Mapping[str, Callable[[int, Stream], FloatArray]]] = {
    "uniform": lambda n, rng: rng.random(size=n),
    "low rates": lambda n, rng: rng.beta(1, 9, size=n),
    "high rates": lambda n, rng: rng.beta(9, 1, size=n),
    CLOSE_RACE: lambda n, rng: np.where(np.arange(n) == rng.integers(n), 0.5, 0.4),
}

#: The constructor of each agent, in the order of the columns.
AGENTS: Final[Mapping[str, Callable[[Settings, FloatArray], Any]]] = {
    RULE: lambda s, _: BernoulliBandit(s.levers).agent(),
    "Gittins": lambda s, _: GittinsAgent(s.levers, _gittins_table(s.discount, s.steps)),
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
    """Return the steps at which regret is stored, evenly spaced in log t."""
    return np.unique(np.geomspace(1, settings.steps, 40).round()).astype(np.int64)


def run(settings: Settings, run: int) -> Columns:
    """Biases of each kind, and regret of each agent at the checkpoints; NaN if it did not play."""
    bandit = BernoulliBandit(settings.levers)
    at = checkpoints(settings) - 1
    biases, regrets = [], np.full((len(KINDS), len(AGENTS), at.size), np.nan)
    for k, (kind, draw) in enumerate(KINDS.items()):
        bias = draw(settings.levers, Stream.named(settings.seed, run, f"{kind}: world"))
        world = bandit.environment(bias)
        for i, (name, make) in enumerate(AGENTS.items()):
            if name == COSTLY and run >= settings.costly_runs:
                continue
            streams = (
                Stream.named(settings.seed, run, f"{kind}: {name}"),
                Stream.named(settings.seed, run, f"{kind}: environment"),
            )
            record = interact(make(settings, bias), world, settings.steps, streams=streams)
            regrets[k, i] = regret(record, world)[at]
        biases.append(bias)
    return {"bias": np.array(biases), "regret": regrets}


#: P(a mean is further off than 5 standard errors) < 6e-7.
_ERRORS: Final = 5.0
#: With fewer runs no difference is significant, and a claim fails only if it is contradicted.
_ENOUGH: Final = 20


def score(settings: Settings, columns: Columns) -> Score:
    """All claims of `bandit-zoo`, and a table for each kind of bandit."""
    final = {
        kind: dict(zip(AGENTS, columns["regret"][:, k, :, -1].T, strict=True))
        for k, kind in enumerate(KINDS)
    }
    claims = (
        _beats_ucb1(final),
        _uniform_regret(settings, columns, final),
        _oracle_regret(final),
        _lai_robbins(),
    )
    tables = (_table(kind, _without_oracle(regrets)) for kind, regrets in final.items())
    return Score(claims, tuple(tables))


def _without_oracle(regrets: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    return {name: values for name, values in regrets.items() if name != ORACLE}


def ranks(agents: Mapping[str, FloatArray]) -> dict[str, tuple[int, int]]:
    """Return the first and last possible rank of each agent; lower regret is better.

    >>> regret = np.linspace(0, 1, 30)
    >>> same = regret + 0.01 * (-1) ** np.arange(30)
    >>> ranks({"good": regret, "as good": same, "bad": regret + 1 + regret**2})
    {'good': (1, 2), 'as good': (1, 2), 'bad': (3, 3)}
    """
    better, worse = dict.fromkeys(agents, 0), dict.fromkeys(agents, 0)
    compared = (_paired(agents, a, b) for a, b in itertools.combinations(agents, 2))
    pairs = [pair for pair in compared if pair is not None]
    for one, p in zip(pairs, holm([pair.p_value for pair in pairs]), strict=True):
        verdict = replace(one, corrected_p_value=float(p), family=len(pairs)).verdict
        a, b = one.names if verdict == "better" else one.names[::-1]
        if verdict != "undecided":
            worse[a] += 1
            better[b] += 1
    return {name: (1 + better[name], len(agents) - worse[name]) for name in agents}


def _paired(agents: Mapping[str, FloatArray], a: str, b: str) -> Comparison | None:
    """Compare two agents on the runs that both played."""
    both = ~np.isnan(agents[a] + agents[b])
    if both.sum() < 2:
        return None
    return compare_pair(agents[a][both], agents[b][both], names=(a, b), higher_is_better=False)


def _beats_ucb1(final: Mapping[str, Mapping[str, FloatArray]]) -> Claim:
    pairs = {kind: _paired(regrets, RULE, UCB) for kind, regrets in final.items()}
    judged = {kind: pair for kind, pair in pairs.items() if pair is not None}
    verdicts = [pair.verdict for pair in judged.values()]
    enough = len(final["uniform"][RULE]) >= _ENOUGH
    margins = (f"{kind} by {-float(pair.difference.mean):.3g}" for kind, pair in judged.items())
    return Claim(
        "rule-beats-ucb1",
        "the control rule has less regret than UCB1 at every kind of bandit, significantly: number "
        "of kinds",
        "ours", len(KINDS), verdicts.count("better"), None,
        verdicts.count("better") == len(KINDS) if enough else "worse" not in verdicts,
        ", ".join(margins) or "one run cannot show a difference",
        threshold_origin="theory: a paired test of sign flips at 5 %"
        + ("" if enough else f"; with fewer than {_ENOUGH} runs it must not say the contrary"),
    )  # fmt: skip


def _uniform_regret(
    settings: Settings, columns: Columns, final: Mapping[str, Mapping[str, FloatArray]]
) -> Claim:
    """Compare with the exact mean T (max m - mean m) and variance T Var m of uniform play."""
    bias, runs = columns["bias"], len(columns["bias"])
    expected = settings.steps * (bias.max(axis=2) - bias.mean(axis=2)).mean(axis=0)
    error = np.sqrt(settings.steps * bias.var(axis=2).sum(axis=0)) / runs
    ours = np.array([regrets[UNIFORM].mean() for regrets in final.values()])
    off = np.abs(ours - expected) / error
    worst = int(off.argmax())
    return Claim(
        "uniform-regret",
        "uniform play costs T (max m - mean m) on average at every kind of bandit; here "
        f"{list(KINDS)[worst]}, within {_ERRORS:g} standard errors",
        "ours", expected[worst], ours[worst], float(error[worst]),
        bool(off.max() <= _ERRORS),
        threshold_origin="theory: exact mean and variance (false alarms: 6e-7 for each kind)",
    )  # fmt: skip


def _oracle_regret(final: Mapping[str, Mapping[str, FloatArray]]) -> Claim:
    largest = max(float(regrets[ORACLE].max()) for regrets in final.values())
    return Claim(
        "oracle-regret", "an agent that knows the biases has no regret", "ours", 0.0, largest, None,
        largest == 0.0, threshold_origin="theory: no regret, in any run",
    )  # fmt: skip


def _lai_robbins() -> Claim:
    c = lai_robbins([0.5, *[0.4] * 9])
    return Claim(
        "lai-robbins-constant",
        "one lever of 0.5 among nine of 0.4: regret must finally grow as c ln t, "
        "c = Σ_j Δ_j / KL(m_j ‖ m*)",
        "ours", 44.697, c, 5e-4,
        abs(c - 44.697) <= 5e-4,
        "asymptotic: at 1,000 steps uniform play, with a regret of 90, is below c ln t",
        exact=True,
    )  # fmt: skip


def _table(kind: str, regrets: Mapping[str, FloatArray]) -> Table:
    places = ranks(regrets)
    played = {name: values[~np.isnan(values)] for name, values in regrets.items()}
    played = {name: values for name, values in played.items() if values.size}
    rows = []
    for name in sorted(played, key=lambda name: float(played[name].mean())):
        first, last = places[name]
        rank = f"{first}" if first == last else f"{first} to {last}"
        rows.append((name, *_interval(played[name]), played[name].size, rank))
    return Table(
        f"Regret at {kind}",
        ("agent", "regret", "95 % from", "to", "runs", "rank"),
        tuple(rows),
        "ranks differ where the difference, run by run, is significant (sign flips, corrected by "
        "Holm for all pairs)",
    )


def _interval(values: FloatArray) -> tuple[str, str, str]:
    if len(values) < 2:
        return f"{float(values[0]):.4g}", "", ""
    interval = mean_interval(values)
    return format_interval(interval.mean, interval.low, interval.high)


#: The colour shows the family, the dash pattern the agent.
_LOOKS: Final[Mapping[str, tuple[Colour, Dash]]] = {
    RULE: ("blue", "solid"),
    "Gittins": ("green", "solid"),
    COSTLY: ("purple", "solid"),
    "knowledge gradient": ("purple", "dash"),
    "Bayes-UCB": ("sky", "solid"),
    "KL-UCB": ("sky", "dash"),
    "MOSS": ("orange", "solid"),
    "UCB-tuned": ("orange", "dash"),
    "UCB1": ("orange", "dot"),
    "ε-greedy, 0.1": ("vermillion", "solid"),
    "ε-greedy, 0.1·0.99ᵗ": ("vermillion", "dash"),
    "softmax": ("vermillion", "dot"),
    UNIFORM: ("ink", "dash"),
}
_TITLES: Final[Mapping[str, str]] = {
    "uniform": "Uniform biases, U(0, 1)",
    "low rates": "Low rates, Beta(1, 9)",
    "high rates": "High rates, Beta(9, 1)",
    CLOSE_RACE: "Close race, 0.5 among levers of 0.4",
}


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """The figure."""
    few = settings.costly_runs
    panels = [_panel(settings, columns, k, kind) for k, kind in enumerate(KINDS)]
    return {
        "regret": Chart(
            f"Regret of all agents at {settings.levers} levers",
            panels,
            "The lower the better. Time is logarithmic. Uniform play never learns, and leaves the "
            "figure; who learns bends away from it. Who leads depends on the kind of bandit. In "
            "the close race the black line has the slope that Lai and Robbins prove: in the end no "
            "agent that learns in every world rises less steeply.",
            columns=2,
            note=f"{settings.runs:,} runs, the same for all agents"
            + (f", {few:,} of them for the {COSTLY} agent" if few < settings.runs else "")
            + "; bands: ± 2 standard errors",
        )
    }


def _panel(settings: Settings, columns: Columns, k: int, kind: str) -> Panel:
    t = checkpoints(settings)
    series = []
    for i, name in enumerate(AGENTS):
        if name == ORACLE:
            continue
        colour, dash = _LOOKS[name]
        runs = columns["regret"][:, k, i]
        runs = runs[~np.isnan(runs[:, 0])]
        if not len(runs):
            continue
        series.append(
            Series.of_runs(name, t, runs, colour=colour, dash=dash, in_legend=kind == CLOSE_RACE)
        )
    if kind == CLOSE_RACE:
        series.append(_slope(t, columns["bias"][0, k], series[0].y[-1]))
    regrets = [one.y for one in series if one.label != UNIFORM]
    return Panel(
        _TITLES[kind],
        "step t",
        "regret Rₜ",
        series,
        xscale="log",
        xlim=(max(1, settings.steps // 100), None),
        ylim=(0, 1.08 * float(np.max(np.concatenate(regrets)))),
        legend="below",
    )


def _slope(t: IntArray, bias: FloatArray, end: float) -> Series:
    c = lai_robbins(bias)
    line = end + c * np.log(t / t[-1])
    return Series("Lai and Robbins's slope", t, line, colour="ink")


experiment = Experiment(
    name="bandit-zoo",
    summary="all agents for bandits, at bandits of several kinds: regret, paired run by run",
    settings=Settings,
    quick=Settings(runs=50, costly_runs=12),
    full=Settings(runs=1000, steps=3000, costly_runs=50),
    run=run,
    score=score,
    figures=draw,
)
