"""Delusion: what goes wrong when an agent takes its own actions for evidence.

    naive    P(m | ao_≤t)  ∝ P(m) Π_τ P(a_τ | m, x_τ) P(o_τ | m, x_τ, a_τ)
    causal   P(m | âo_≤t)  ∝ P(m) Π_τ P(o_τ | m, x_τ, a_τ)

Both agents meet prize-or-frog and a process of three modes, with m* drawn from the prior. Four
identities hold for the causal agent and fail for the naive one: those of `delusion_replica`, and
that other policies with the same hypotheses do not change the posterior of a history.

An identity *holds* if it does so exactly, to 1e-12 up to the horizon, and in simulation within
Bernstein's margin. It *fails* if it is off by more than 0.01 exactly, and the simulation agrees
with the exact value. The false-alarm rate of all claims together is below 1e-3 for any number of
runs; the margins are about five of the largest standard errors.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from bayescontrol.finite.examples import PRIZE
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table, mean_and_error
from bayescontrol.metrics import delusion
from bayescontrol.plot.chart import Chart, Colour, Dash, Guide, Panel, Series
from bayescontrol.record import Record, posterior
from bayescontrol_paper import delusion_replica as replica
from bayescontrol_paper.chance import ROUNDING, mean_with_error
from bayescontrol_paper.curves import share_of_runs
from bayescontrol_paper.delusion_replica import AGENTS, HORIZON, Settings

#: An identity fails if its exact values differ by more than this.
_CLEAR_GAP: Final = 0.01
_ORIGIN: Final = (
    "theory: exact values up to the horizon, Bernstein's margin beyond "
    "(false alarms of all claims: 1 in 1000)"
)
#: The process whose numbers the claims show; the claims are checked on both.
_SHOWN: Final = "three modes"


def score(settings: Settings, columns: Columns) -> Score:
    """Make all claims, two for each identity, and the tables."""
    runs = replica.all_trajectories(settings, columns)
    claims = [*_prize_claims(settings)]
    for identity in replica.IDENTITIES:
        claims += [_holds(identity, settings, runs), _fails(identity, settings, runs)]
    claims += _intervention_claims(settings, columns)
    return Score(tuple(claims), tables(settings, columns, runs))


def _prize_claims(settings: Settings) -> Iterator[Claim]:
    process = replica.processes(settings.reliability)["prize"]
    beliefs = {}
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
        holds = abs(ours - expected) <= ROUNDING
        yield Claim(name, text, "ours", expected, ours, None, holds, exact=True)


def _holds(identity: replica.Identity, settings: Settings, runs: replica.AllTrajectories) -> Claim:
    """Claim that an identity holds for the causal agent."""
    ratios = []
    for process, (_, prior) in replica.processes(settings.reliability).items():
        left, right, variance = runs[process, "causal"].sides(prior)[identity.name]
        ratios.append(replica.margin_ratio(identity.gap(left.mean(0), right), variance, len(left)))
    off = _exact_gap(identity, settings, "causal")
    expected, ours, error = _shown_sides(identity, settings, runs, "causal")
    return Claim(
        name=identity.name, claim=identity.holds, source="ours",
        expected=f"at most {expected:.4g}" if identity.bound else expected, ours=ours, error=error,
        holds=off <= ROUNDING and max(ratios) <= 1.0,
        reason=f"exact deviation {max(off, 0.0):.2g} up to step {HORIZON}; in simulation, up to "
        f"step {settings.steps}, {max(0.0, *ratios):.2f} of the margin for chance",
        threshold_origin=_ORIGIN,
    )  # fmt: skip


def _fails(identity: replica.Identity, settings: Settings, runs: replica.AllTrajectories) -> Claim:
    """Claim that an identity fails for the naive agent."""
    ratios = []
    exact = replica.exact_expectations(settings.reliability)
    for process, (_, prior) in replica.processes(settings.reliability).items():
        left = runs[process, "naive"].sides(prior)[identity.name].left[:, : HORIZON + 1]
        mu = exact[process, "naive"].sides(prior)[identity.name][0][: left.shape[1]]
        ratios.append(replica.margin_ratio(np.abs(left.mean(0) - mu), mu * (1 - mu), len(left)))
    off = _exact_gap(identity, settings, "naive")
    expected, ours, error = _shown_sides(identity, settings, runs, "naive")
    gap_text = f"{abs(ours - expected) / error:.0f}" if error > 0 else "many"
    return Claim(
        name=f"{identity.name}-naive-fails", claim=identity.fails, source="ours",
        expected=f"{'above' if identity.bound else 'not'} {expected:.4g}", ours=ours, error=error,
        holds=off > _CLEAR_GAP and max(ratios) <= 1.0,
        reason=f"exact deviation {off:.3f} up to step {HORIZON}; in simulation {gap_text} "
        f"standard errors at step {settings.steps}; it differs from the exact values by "
        f"{max(ratios):.2f} of the margin for chance",
        threshold_origin=_ORIGIN,
    )  # fmt: skip


def _exact_gap(identity: replica.Identity, settings: Settings, agent: str) -> float:
    exact = replica.exact_expectations(settings.reliability)
    return max(
        float(identity.gap(*exact[process, agent].sides(prior)[identity.name]).max())
        for process, (_, prior) in replica.processes(settings.reliability).items()
    )


def _shown_sides(
    identity: replica.Identity, settings: Settings, runs: replica.AllTrajectories, agent: str
) -> tuple[float, float, float]:
    """Return right side, left side and its error at the end, where the gap is largest."""
    prior = replica.processes(settings.reliability)[_SHOWN].prior
    left, right, _ = runs[_SHOWN, agent].sides(prior)[identity.name]
    mean, error = mean_and_error(left[:, -1])
    k = int(np.argmax(identity.gap(mean, right[-1])))
    return float(right[-1, k]), float(mean[k]), float(error[k])


def _intervention_claims(settings: Settings, columns: Columns) -> tuple[Claim, Claim]:
    changed = {
        agent: [int(columns[f"{process} {agent} changed"].sum()) for process in ("prize", _SHOWN)]
        for agent in AGENTS
    }
    histories = 2 * len(columns["prize truth"])
    return (
        Claim(
            "intervention-law",
            "causal agent: other policies with the same hypotheses give the same posterior for the "
            "same history, bit for bit; histories that differ",
            "ours", 0, sum(changed["causal"]), None, not any(changed["causal"]),
            f"{histories} histories of {settings.steps} steps, random policies for each",
            threshold_origin="theory, bit for bit",
        ),
        Claim(
            "intervention-law-naive-fails",
            "naive agent: other policies change its posterior; histories that differ",
            "ours", "above 0", sum(changed["naive"]), None, all(changed["naive"]),
            f"of {histories}",
            threshold_origin="theory: both processes have histories that differ",
        ),
    )  # fmt: skip


Rows: TypeAlias = list[tuple[str | float | int, ...]]


def tables(
    settings: Settings, columns: Columns, all_runs: replica.AllTrajectories
) -> tuple[Table, ...]:
    """Tabulate trust, E[posterior], match rate, Ville's bound and delusion in bits."""
    exact = replica.exact_expectations(settings.reliability)
    first, last = "step 1", f"step {settings.steps}"
    horizon = f"exact, step {HORIZON}"
    rows: defaultdict[str, Rows] = defaultdict(list)
    kinds = ("trust", "step bits", "total bits")
    for (name, agent), runs in all_runs.items():
        process, expected = replica.processes(settings.reliability)[name], exact[name, agent]
        believed, step, total = (columns[f"{name} {agent} {kind}"] for kind in kinds)
        match_text = mean_with_error(runs.matched[:, -1])
        trust_text = mean_with_error(believed[:, 0]), mean_with_error(believed[:, -1])
        rows["trust"].append((name, agent, *trust_text, match_text))
        for m, p in enumerate(process.prior):
            simulated = mean_with_error(runs.posterior[:, -1, m])
            row = process.modes[m].name, float(p), float(expected.mean[-1, m]), simulated
            rows["mean"].append((name, agent, *row))
        sides = float(expected.match[-1]), float(expected.squares[-1])
        rows["match"].append(
            (name, agent, *sides, match_text, mean_with_error(runs.squares[:, -1]))
        )
        for k, delta in enumerate(replica.DELTAS):
            fell = mean_with_error(runs.lowest[:, -1] < delta)
            rows["ville"].append((name, agent, delta, float(expected.ville[-1, k]), fell))
        finite_bits = total[np.isfinite(total[:, -1]), -1]
        total_text = mean_with_error(finite_bits) if finite_bits.size else "none finite"
        contradicted = f"{np.isinf(total[:, -1]).mean():.1%}"
        step_text = mean_with_error(step[:, 0]), mean_with_error(step.sum(1))
        rows["bits"].append((name, agent, *step_text, total_text, contradicted))
    key_header = ("process", "agent")
    return (
        Table(
            "Trust in the mode just drawn, before the answer",
            (*key_header, f"{first}, believed", f"{last}, believed", f"{last}, right"),
            tuple(rows["trust"]),
            "In prize or frog the drawn mode predicts that the prize is in the picked box.",
        ),
        Table(
            "E[posterior], m* drawn from the prior",
            (*key_header, "mode", "prior", horizon, f"simulated, {last}"),
            tuple(rows["mean"]),
            "In prize or frog the naive agent keeps the prior only by symmetry.",
        ),
        Table(
            "Match, P(drawn mode = m*) against E[Σ posterior²]",
            (*key_header, f"P, {horizon}", f"E, {horizon}", f"P, {last}", f"E, {last}"),
            tuple(rows["match"]),
        ),
        Table(
            "Ville's bound, P(posterior(m*) < δ prior(m*) at some t) against δ",
            (*key_header, "δ", f"{horizon}", f"simulated, to {last}"),
            tuple(rows["ville"]),
        ),
        Table(
            "Delusion in bits, on the records of either agent",
            (*key_header, first, f"summed to {last}", f"all actions, {last}", "contradictions"),
            tuple(rows["bits"]),
            "Conditioned on single actions, then on all of them. Contradictions: runs in which no "
            "mode explains all actions; their infinite bits are left out of the mean.",
        ),
    )


_COLOUR: Final[Mapping[str, Colour]] = {"naive": "vermillion", "causal": "blue"}
_LOOKS: Final[Mapping[tuple[str, str], Any]] = {
    (process, agent): {"colour": _COLOUR[agent], "dash": dash}
    for process, dash in (("prize", "solid"), ("three modes", "dash"))
    for agent in AGENTS
}


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Draw trust, E[posterior], injected bits and Ville's bound."""
    runs = replica.all_trajectories(settings, columns)
    return {
        "delusion": Chart(
            "The beliefs of an agent that takes its own actions for evidence",
            [_trust(columns, runs), _mean(settings, runs), _bits(columns), _ville(runs)],
            "The causal agent is right as often as it believes (a), keeps the prior on average "
            "(b) and stays below the bound (d); the naive agent does none of this. (c) counts the "
            "false bits in the actions of each agent; only the naive agent uses them as evidence.",
            columns=2,
            note=f"means of {settings.runs} replicas, bands of two standard errors",
        )
    }


def _trust(columns: Columns, runs: replica.AllTrajectories) -> Panel:
    series = []
    for agent, colour in _COLOUR.items():
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


def _mean(settings: Settings, runs: replica.AllTrajectories) -> Panel:
    process = replica.processes(settings.reliability)["three modes"]
    dashes: tuple[Dash, ...] = ("solid", "dash", "dot")
    series = []
    for agent, colour in _COLOUR.items():
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


def _bits(columns: Columns) -> Panel:
    series = []
    for (process, agent), style in _LOOKS.items():
        summed = columns[f"{process} {agent} step bits"].cumsum(1)
        t = np.arange(1, summed.shape[1] + 1)
        series.append(Series.of_runs(f"{process}, {agent}", t, summed, **style))
    return Panel(
        "(c) False evidence in the actions of each agent", "step t",
        "false evidence, summed over steps [bits]", series, yscale="log", legend="upper left",
    )  # fmt: skip


def _ville(runs: replica.AllTrajectories) -> Panel:
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
    name="delusion",
    summary="an agent that takes its own actions for evidence, against the control rule",
    settings=Settings, quick=Settings(runs=600), full=Settings(runs=10_000, steps=100),
    run=replica.run, score=score, figures=draw,
)  # fmt: skip
