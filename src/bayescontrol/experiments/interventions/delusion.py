"""Delusion: what goes wrong when an agent takes its own actions for evidence.

    naive    P(m | ao_≤t)  ∝ P(m) Π_τ P(a_τ | m, x_τ) P(o_τ | m, x_τ, a_τ)
    causal   P(m | âo_≤t)  ∝ P(m) Π_τ P(o_τ | m, x_τ, a_τ)

Both agents meet prize-or-frog and a process of three modes, with m* drawn from the prior. Four
identities hold for the causal agent and fail for the naive one: `identities`, and that other
policies with the same hypotheses leave the posterior of a history alone.

The claims: what holds for the causal agent, and that it fails for the naive one.

An identity *holds* if it does exactly, within 1e-12 up to the horizon, and in simulation
within what chance may do. It *fails* if it is off by more than 0.01, exactly, and if the
simulation agrees with the exact value. The rate of false alarms is below 1e-3 for all claims
together, at any number of runs (`seen.margin`), some five of the largest standard errors.

The numbers behind the claims: exact at the horizon, simulated at the last step, ± one s.e.

    trust    P(m | ·) of the mode in charge once it has acted; in prize or frog, "it is in my box"

A reader who doubts a claim finds here what it was made of.

Four pictures of the delusion: trust, E[posterior], bits injected, Ville's bound.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bayescontrol.experiments.interventions.delusion_replica import (
    AGENTS,
    DELTAS,
    HORIZON,
    IDENTITIES,
    Exact,
    Identity,
    Process,
    Seen,
    Settings,
    all_exact,
    all_seen,
    processes,
    run,
    strain,
)
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table, mean_and_error, wilson
from bayescontrol.lab.chart import Chart, Colour, Dash, Guide, Panel, Series
from bayescontrol.metrics import delusion
from bayescontrol.problems.prize import PRIZE
from bayescontrol.record import Record, posterior
from bayescontrol.report.tables import with_error

_TOLERANCE: Final = 1e-12
_BROKEN: Final = 0.01
_ORIGIN: Final = (
    "theory: exact values up to the horizon, Bernstein's margin beyond "
    "(false alarms of all claims: 1 in 1000)"
)
#: The process whose numbers the claims show; they are checked on both.
_SHOWN: Final = "three modes"


def score(settings: Settings, columns: Columns) -> Score:
    """All claims, two for each identity, and the tables behind them."""
    seen = all_seen(settings, columns)
    claims = list(_prize(settings))
    for identity in IDENTITIES:
        claims += [_holds(identity, settings, seen), _fails(identity, settings, seen)]
    claims += _intervention_law(settings, columns)
    return Score(tuple(claims), tables(settings, columns, seen))


def _prize(settings: Settings) -> tuple[Claim, ...]:
    process = processes(settings.reliability)["prize"]
    picked = {name: process.agent(name) for name in AGENTS}
    for agent in picked.values():
        agent.issue(0)
    believed = {name: float(posterior.measure(agent, 0, None)[0]) for name, agent in picked.items()}
    bits = float(delusion(Record([0], [PRIZE]), process.agent("causal")).step_bits[0])
    said = "having picked a box, and before it opens it, the {} agent believes P(prize) = {}"
    return (
        _exactly("prize-naive", said.format("naive", "1"), 1.0, believed["naive"]),
        _exactly("prize-causal", said.format("causal", "1/2"), 0.5, believed["causal"]),
        _exactly("prize-bits", "taken for evidence, the pick is worth one false bit", 1.0, bits),
    )


def _exactly(name: str, claim: str, expected: float, ours: float) -> Claim:
    holds = abs(ours - expected) <= _TOLERANCE
    return Claim(name, claim, "ours", expected, ours, None, holds, exact=True)


def _holds(identity: Identity, settings: Settings, seen: dict[tuple[str, str], Seen]) -> Claim:
    strains = []
    for process, (_, prior) in processes(settings.reliability).items():
        left, right, variance = identity.simulated(prior, seen[process, "causal"])
        strains.append(strain(identity.gap(left.mean(0), right), variance, len(left)))
    off = _exact_gap(identity, settings, "causal")
    expected, ours, error = _shown(identity, settings, seen, "causal")
    return Claim(
        name=identity.name,
        claim=identity.holds,
        source="ours",
        expected=f"at most {expected:.4g}" if identity.bound else expected,
        ours=ours,
        error=error,
        holds=off <= _TOLERANCE and max(strains) <= 1.0,
        reason=f"exactly off by {max(off, 0.0):.2g} up to step {HORIZON}; simulated, up to step "
        f"{settings.steps}, by {max(0.0, *strains):.2f} of the margin that chance is given",
        threshold_origin=_ORIGIN,
    )


def _fails(identity: Identity, settings: Settings, seen: dict[tuple[str, str], Seen]) -> Claim:
    strains = []
    exact = all_exact(settings.reliability)
    for process, (_, prior) in processes(settings.reliability).items():
        left = identity.simulated(prior, seen[process, "naive"]).left[:, : HORIZON + 1]
        mu = identity.exact(prior, exact[process, "naive"]).left[: left.shape[1]]
        strains.append(strain(np.abs(left.mean(0) - mu), mu * (1 - mu), len(left)))
    off = _exact_gap(identity, settings, "naive")
    expected, ours, error = _shown(identity, settings, seen, "naive")
    far = f"{abs(ours - expected) / error:.0f}" if error > 0 else "many"
    return Claim(
        name=f"{identity.name}-naive-fails",
        claim=identity.fails,
        source="ours",
        expected=f"{'above' if identity.bound else 'not'} {expected:.4g}",
        ours=ours,
        error=error,
        holds=off > _BROKEN and max(strains) <= 1.0,
        reason=f"exactly off by {off:.3f} up to step {HORIZON}; simulated, at step "
        f"{settings.steps}, by {far} standard errors, and where there are exact values it misses "
        f"them by {max(strains):.2f} of the margin that chance is given",
        threshold_origin=_ORIGIN,
    )


def _exact_gap(identity: Identity, settings: Settings, agent: str) -> float:
    gaps = [
        identity.gap(*identity.exact(prior, all_exact(settings.reliability)[process, agent]))
        for process, (_, prior) in processes(settings.reliability).items()
    ]
    return max(float(gap.max()) for gap in gaps)


def _shown(
    identity: Identity, settings: Settings, seen: dict[tuple[str, str], Seen], agent: str
) -> tuple[float, float, float]:
    """Right side, left side and its error, at the end, where they differ most."""
    prior = processes(settings.reliability)[_SHOWN].prior
    left, right, _ = identity.simulated(prior, seen[_SHOWN, agent])
    mean, error = mean_and_error(left[:, -1])
    k = int(np.argmax(identity.gap(mean, right[-1])))
    return float(right[-1, k]), float(mean[k]), float(error[k])


def _intervention_law(settings: Settings, columns: Columns) -> tuple[Claim, Claim]:
    changed = {
        agent: [int(columns[f"{process} {agent} changed"].sum()) for process in ("prize", _SHOWN)]
        for agent in AGENTS
    }
    histories = 2 * len(columns["prize truth"])
    return (
        Claim(
            name="intervention-law",
            claim="causal agent: other policies, same hypotheses, same history: the same "
            "posterior, bit for bit; histories that differ",
            source="ours",
            expected=0,
            ours=sum(changed["causal"]),
            error=None,
            holds=not any(changed["causal"]),
            reason=f"{histories} histories of {settings.steps} steps, random policies for each",
            threshold_origin="theory, bit for bit",
        ),
        Claim(
            name="intervention-law-naive-fails",
            claim="naive agent: other policies change its posterior; histories that differ",
            source="ours",
            expected="above 0",
            ours=sum(changed["naive"]),
            error=None,
            holds=all(changed["naive"]),
            reason=f"of {histories}",
            threshold_origin="theory: both processes have histories that differ",
        ),
    )


Rows = list[tuple[str | float | int, ...]]


def tables(
    settings: Settings, columns: Columns, seen: dict[tuple[str, str], Seen]
) -> tuple[Table, ...]:
    """Trust, E[posterior], match rate, Ville's bound and what the meter read."""
    exact, known = all_exact(settings.reliability), processes(settings.reliability)
    first, last, horizon = "step 1", f"step {settings.steps}", f"exact, step {HORIZON}"

    def rows(of: Callable[[str, str, Process, Exact, Seen], Rows]) -> Rows:
        return [
            (name, agent, *row)
            for name, process in known.items()
            for agent in AGENTS
            for row in of(name, agent, process, exact[name, agent], seen[name, agent])
        ]

    def trust(name: str, agent: str, _p: Process, _e: Exact, own: Seen) -> Rows:
        believed = columns[f"{name} {agent} trust"]
        return [
            (
                _with_error(believed[:, 0]),
                _with_error(believed[:, -1]),
                _with_error(own.matched[:, -1]),
            )
        ]

    def mean(_n: str, _a: str, process: Process, exact: Exact, own: Seen) -> Rows:
        return [
            (
                process.modes[m].name,
                float(p),
                float(exact.mean[-1, m]),
                _with_error(own.posterior[:, -1, m]),
            )
            for m, p in enumerate(process.prior)
        ]

    def match(_n: str, _a: str, _p: Process, exact: Exact, own: Seen) -> Rows:
        sides = float(exact.match[-1]), float(exact.squares[-1])
        return [(*sides, _with_error(own.matched[:, -1]), _with_error(own.squares[:, -1]))]

    def ville(_n: str, _a: str, _p: Process, exact: Exact, own: Seen) -> Rows:
        return [
            (delta, float(exact.ville[-1, k]), _with_error(own.lowest[:, -1] < delta))
            for k, delta in enumerate(DELTAS)
        ]

    def bits(name: str, agent: str, _p: Process, _e: Exact, _s: Seen) -> Rows:
        step, total = (columns[f"{name} {agent} {kind} bits"] for kind in ("step", "total"))
        contradicted = np.isinf(total[:, -1])
        return [
            (
                _with_error(step[:, 0]),
                _with_error(step.sum(1)),
                _with_error(total[~contradicted, -1]) if not contradicted.all() else "none finite",
                f"{contradicted.mean():.1%}",
            )
        ]

    who = ("process", "agent")
    return (
        Table(
            "Trust in the mode just drawn, before the answer",
            (*who, f"{first}, believed", f"{last}, believed", f"{last}, right"),
            tuple(rows(trust)),
            "In prize or frog the mode says: the prize is in the box I picked.",
        ),
        Table(
            "E[posterior], m* drawn from the prior",
            (*who, "mode", "prior", horizon, f"simulated, {last}"),
            tuple(rows(mean)),
            "In prize or frog the naive agent keeps the prior by symmetry alone.",
        ),
        Table(
            "Match, P(drawn mode = m*) against E[Σ posterior²]",
            (*who, f"P, {horizon}", f"E, {horizon}", f"P, {last}", f"E, {last}"),
            tuple(rows(match)),
        ),
        Table(
            "Ville's bound, P(posterior(m*) < δ prior(m*) at some t) against δ",
            (*who, "δ", f"{horizon}", f"simulated, to {last}"),
            tuple(rows(ville)),
        ),
        Table(
            "Delusion in bits, on the records of either agent",
            (*who, first, f"summed to {last}", f"all actions, {last}", "contradictions"),
            tuple(rows(bits)),
            "Conditioned on single actions, then on all of them. A contradiction: no mode would "
            "have acted so; its infinite bits are left out of the mean.",
        ),
    )


def _with_error(values: npt.ArrayLike) -> str:
    mean, error = mean_and_error(values)
    return with_error(float(mean), float(error))


_COLOUR: Final[Mapping[str, Colour]] = {"naive": "vermillion", "causal": "blue"}
_DASH: Final[Mapping[str, Dash]] = {"prize": "solid", "three modes": "dash"}


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Means over replicas with bands of two standard errors."""
    seen = all_seen(settings, columns)
    panels = [_trust(columns, seen), _mean(settings, seen), _bits(columns), _ville(seen)]
    return {
        "delusion": Chart(
            "What an agent comes to believe by taking its own actions for evidence",
            panels,
            "The causal agent is right as often as it believes (a), keeps the prior on average "
            "(b) and stays below the bound (d); the naive agent does none of this. (c) counts the "
            "false bits in each agent's own actions, which the naive agent alone takes in.",
            columns=2,
            note=f"means of {settings.runs} replicas, bands of two standard errors",
        )
    }


def _trust(columns: Columns, seen: Mapping[tuple[str, str], Seen]) -> Panel:
    series = []
    for agent, colour in _COLOUR.items():
        believed, matched = columns[f"prize {agent} trust"], seen["prize", agent].matched
        t = np.arange(1, believed.shape[1] + 1)
        series += [
            Series.of_runs(f"{agent}: believed", t, believed, colour=colour),
            Series.of_runs(f"{agent}: right", t, matched, colour=colour, dash="dot"),
        ]
    return Panel(
        "(a) Prize or frog: “the prize is in the box I picked”",
        "step t",
        "probability",
        series,
        ylim=(0.4, 1.03),
        legend="center right",
    )


def _mean(settings: Settings, seen: Mapping[tuple[str, str], Seen]) -> Panel:
    process = processes(settings.reliability)["three modes"]
    dashes: tuple[Dash, ...] = ("solid", "dash", "dot")
    series = []
    for agent, colour in _COLOUR.items():
        v = seen["three modes", agent].posterior
        t = np.arange(v.shape[1])
        series += [
            Series.of_runs(f"{agent}: “{mode.name}”", t, v[:, :, m], colour=colour, dash=dashes[m])
            for m, mode in enumerate(process.modes)
        ]
    guides = [Guide("prior", float(p), dash="dashdot", in_legend=False) for p in process.prior]
    return Panel(
        "(b) Three modes: the mean posterior against the prior",
        "step t",
        "E[posterior(m)]",
        series,
        guides,
        ylim=(0.1, 0.72),
        notes=["Dash-dotted: the prior"],
        legend="upper right",
        legend_columns=2,
    )


def _bits(columns: Columns) -> Panel:
    series = []
    for process, dash in _DASH.items():
        for agent in AGENTS:
            summed = columns[f"{process} {agent} step bits"].cumsum(1)
            t = np.arange(1, summed.shape[1] + 1)
            look = {"colour": _COLOUR[agent], "dash": dash}
            series.append(Series.of_runs(f"{process}, {agent}", t, summed, **look))
    return Panel(
        "(c) What each agent's own actions would have injected",
        "step t",
        "false evidence, summed over steps [bits]",
        series,
        yscale="log",
        legend="upper left",
    )


def _ville(seen: Mapping[tuple[str, str], Seen]) -> Panel:
    delta = np.linspace(0.0, 1.0, 101)
    series = []
    for process, dash in _DASH.items():
        for agent in AGENTS:
            lowest = seen[process, agent].lowest[:, -1]
            fell = (lowest[:, None] < delta).sum(0)
            share, bounds = fell / len(lowest), wilson(fell, len(lowest), z=2.0)
            look: Any = {"colour": _COLOUR[agent], "dash": dash}
            series.append(Series(f"{process}, {agent}", delta, share, *bounds, **look))
    return Panel(
        "(d) Ville's bound: does the truth lose its weight?",
        "δ",
        "P(posterior(m*) < δ prior(m*) at some t)",
        series,
        [Guide("bound: δ", direction="diagonal")],
        ylim=(-0.02, 1.02),
        legend="upper left",
    )


experiment: Final = Experiment(
    name="delusion",
    summary="an agent that takes its own actions for evidence, against the control rule",
    settings=Settings,
    quick=Settings(runs=1200),
    full=Settings(runs=10_000, steps=100),
    run=run,
    score=score,
    figures=draw,
)
