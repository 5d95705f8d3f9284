"""The claims of `divergence`: what is exact has no tolerance, the rest what chance may do.

Means are compared at margins of Student's law, and the band at four standard errors: together
they raise a false alarm once in a thousand seeds. With fewer than FEWEST runs nothing is judged.
"""

import math
from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.convergence.core import core
from bayescontrol.experiments.chance import compare, measured, told
from bayescontrol.experiments.divergence.controller import MODES, OUTSIDE, TRUE, controller
from bayescontrol.experiments.divergence.exact import DELTA, band, band_error, rate
from bayescontrol.experiments.divergence.replica import (
    FEWEST,
    POLICIES,
    ROUNDING,
    SHOWN,
    Settings,
    far_times,
    times,
)
from bayescontrol.lab import Claim, Columns, Outcome, Table

#: Of one in a thousand, the share of each of two claims; what is left is the band's.
_ALARMS: Final = 1e-3 / 2.2
_VANISH: Final = 1e-3
_OTHERS: Final = range(1, len(MODES))
#: C up to t divided by C up to t/4 is above this unless one C holds for all times.
_BOUNDED: Final = 1.2
#: How far the band may be off: standard errors, and a share for steps that are few and not normal.
_BAND: Final = (4.0, 0.02)


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims, and the rates as a table.

    >>> from bayescontrol.experiments.divergence.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(), 0).items()}
    >>> only = score(Settings(runs=1), one)  # a single run is not judged
    >>> only.claims, [table.title for table in only.tables][0]
    ((), 'The five modes')
    """
    growth = _growth(settings, columns)
    tables = _modes(), _table(growth)
    if len(growth) < FEWEST:
        return Outcome((), tables)
    claims = (
        _bound(settings, columns),
        _vanish(settings, columns),
        _stay(columns),
        _rates(growth),
        _adds_up(columns),
        _centred(columns),
        _root(settings, columns),
        _no_band(settings, columns),
    )
    return Outcome(claims, tables)


def _bound(settings: Settings, columns: Columns) -> Claim:
    number = int(columns["violations"].sum())
    cases = len(columns["violations"]) * (settings.steps + 1) * len(MODES)
    return Claim(
        "posterior-bound",
        "no posterior of a mode m is ever above P(m)/P(m*) e^(-d), d = d(m*‖m) the evidence for m* "
        "against m; violations in all runs, steps and modes",
        "paper", 0, number, None, number == 0,
        reason=f"{cases} comparisons, {ROUNDING:g} allowed for rounding; the ln that the paper "
        "prints before the bound is a slip",
        place="section 4.2", threshold_origin="paper: no violation, in any run",
    )  # fmt: skip


def _names(inside: bool) -> list[str]:
    kept = core(controller(), TRUE)
    return [MODES[m] for m in _OTHERS if (m in kept) is inside]


def _vanish(settings: Settings, columns: Columns) -> Claim:
    out = [MODES.index(name) for name in _names(inside=False)]
    weight, error = measured(columns["posterior"][:, -1, out].sum(-1))
    steps = max(n for n in OUTSIDE if n <= settings.steps)
    most = OUTSIDE[steps].mean + OUTSIDE[steps].bounded_margin(len(columns["posterior"]), _VANISH)
    return Claim(
        "two-diverge",
        f"the evidence against {' and '.join(_names(inside=False))} grows without end, so their "
        "posteriors vanish; mean of their weight at the end",
        "paper", "→ 0, from 0.4", weight, error, weight <= most,
        reason="" if weight <= most else f"more than {most:.2g} of it is left",
        place="section 4.2, figure 3",
        threshold_origin=f"pilot on seed 1000, {OUTSIDE[steps].runs:,} runs of {steps} steps: "
        f"{OUTSIDE[steps].mean:.2g}; at most {most:.2g} (false alarms: 1 in 1000)",
    )  # fmt: skip


def _stay(columns: Columns) -> Claim:
    kept = [MODES.index(name) for name in _names(inside=True)]
    rates = [rate(TRUE, m) for m in kept]
    weight = float(np.median(columns["posterior"][:, -1, kept].sum(-1)))
    return Claim(
        "two-stay",
        f"the evidence against {' and '.join(_names(inside=True))} stays bounded: once the others "
        "are out, nothing tells them from m*; its rate under the policy of m*, nats a step",
        "paper", 0.0, max(rates), None, max(rates) == 0.0,
        reason=f"in half of the runs they end with a weight of {weight:.2f} or more",
        place="section 4.2, figure 3", exact=True,
    )  # fmt: skip


def _growth(settings: Settings, columns: Columns) -> FloatArray:
    """d_t(m*‖m3) a step over the second half, when the start is forgotten; [run, policy]."""
    t = times(settings)
    half = t.size // 2
    d = columns["under"]
    return np.asarray((d[:, :, -1] - d[:, :, half]) / (t[-1] - t[half]))


def _rates(growth: FloatArray) -> Claim:
    exact = np.array([rate(policy, SHOWN) for policy in POLICIES])
    found = compare(growth, exact, _ALARMS)
    fastest = int(np.argmax(exact))
    return Claim(
        "rates-by-policy",
        f"how fast evidence against {MODES[SHOWN]} grows hangs on who acts: three policies, each "
        f"alone, three rates; shown: that of {MODES[POLICIES[fastest]]}, nats a step",
        "ours", float(exact[fastest]), *measured(growth[:, fastest]),
        found.holds and len(set(exact.round(6))) == len(exact),
        reason=found.words, threshold_origin="theory: exact rates, Student's margin",
    )  # fmt: skip


def _adds_up(columns: Columns) -> Claim:
    worst = float(columns["unsplit"].max())
    return Claim(
        "parts-add-up",
        "the evidence d is the sum of its parts g, each gathered while one mode was in charge (its "
        "policy acted); largest gap, relative",
        "paper", 0.0, float(f"{worst:.1g}"), None, worst <= ROUNDING,
        reason=f"{ROUNDING:g} allowed for rounding" if worst <= ROUNDING
        else "an identity: the program is wrong",
        place="section 4.2, figure 5", threshold_origin="paper: an identity, but for rounding",
    )  # fmt: skip


def _centred(columns: Columns) -> Claim:
    excess = columns["excess"][:, :, 1:]
    flat = excess.reshape(len(excess), -1)
    found = compare(flat, np.zeros(flat.shape[1]), _ALARMS)
    return Claim(
        "centred-on-its-mean",
        "G is g with every term replaced by its mean: g - G has mean zero, for every mode in "
        "charge and every other mode; shown: m* in charge, evidence against m1, at the end, nats",
        "ours", 0.0, *measured(excess[:, TRUE, 0]), found.holds, reason=found.words,
        threshold_origin="theory: mean zero, Student's margin",
    )  # fmt: skip


def _widths(settings: Settings, columns: Columns) -> tuple[FloatArray, int]:
    """C_t over the runs, and where t is a quarter of the steps."""
    C = np.quantile(columns["far"], 1.0 - DELTA, axis=0, method="inverted_cdf")
    return C, int(np.argmin(np.abs(far_times(settings) - settings.steps / 4)))


def _root(settings: Settings, columns: Columns) -> Claim:
    C, _ = _widths(settings, columns)
    expected = float(band(settings.steps, TRUE, 1))
    error = band_error(settings.steps, TRUE, 1, len(columns["far"]))
    off, (errors, share) = abs(float(C[-1]) - expected), _BAND
    return Claim(
        "band-grows-like-root-t",
        "C, the half-width of the band that holds |g - G| up to step t in 95 % of runs, is "
        f"σ (2.24 √t - 0.58), σ the spread of a term; here t = {settings.steps}, in nats",
        "ours", expected, float(C[-1]), error, off <= errors * error + share * expected,
        reason=f"m* in charge all the time; z = {off / error:.1f} standard errors off, up to "
        f"{errors:g} is chance, and {share:.0%} of C are for steps that are few",
        threshold_origin="theory: the quantile of a random walk, and its standard error",
    )  # fmt: skip


def _no_band(settings: Settings, columns: Columns) -> Claim:
    C, quarter = _widths(settings, columns)
    ratio, t = float(C[-1] / C[quarter]), (settings.steps, settings.steps / 4)
    expected = float(np.divide(*band(t, TRUE, 1)))
    error = expected * math.hypot(
        *(band_error(s, TRUE, 1, len(columns["far"])) / float(band(s, TRUE, 1)) for s in t)
    )
    return Claim(
        "no-band-for-all-times",
        "boundedness, which the theorems of the paper assume, would need one C that holds |g - G| "
        "at all times; here C grows: that up to step t, divided by that up to t/4",
        "ours", expected, ratio, error, ratio > _BOUNDED,
        reason="while m* acts, the terms of g - G are independent but for the room in which the "
        "agent stands, so g - G is a random walk: C doubles whenever t is four times as long. "
        "Nothing is lost: the posterior of m* is bounded from below without it (experiment "
        "lower-bound)",
        threshold_origin=f"theory: a bounded process has 1; {_BOUNDED} is "
        f"{(expected - _BOUNDED) / error:.1f} standard errors below a random walk",
    )  # fmt: skip


def _modes() -> Table:
    modes, kept = controller(), core(controller(), TRUE)
    levers = modes.labels.actions
    rows = []
    for m, name in enumerate(MODES):
        wins = [", ".join(f"{p:g}" for p in room) for room in modes.hypothesis[m, :, :, 1]]
        pulls = levers[int(np.argmax(modes.policy[m, 0]))]
        where = "inside" if m in kept else "outside"
        rows.append((name, f"the {pulls}", *wins, "the true mode" if m == TRUE else where))
    return Table(
        "The five modes",
        ("mode", "pulls", "P(win) in room 0", "P(win) in room 1", "core of m*"),
        tuple(rows),
        f"P(win) of the {', '.join(levers)} lever. A win leads to room 1, a loss to room 0: the "
        "room is where the agent stands. m* is true. The core of m* holds the modes that its own "
        "policy cannot tell from it.",
    )


def _table(growth: FloatArray) -> Table:
    rows = tuple(
        (MODES[policy], *(rate(policy, m) for m in _OTHERS), told(growth[:, k]))
        for k, policy in enumerate(POLICIES)
    )
    return Table(
        "How fast evidence d(m*‖m) grows against each mode, in nats a step, by who acts",
        ("who acts", *(f"{MODES[m]}, exact" for m in _OTHERS), f"{MODES[SHOWN]}, simulated"),
        rows,
        "d(m*‖m) is the sum of ln P(o|m*)/P(o|m) over what was observed. Simulated: second halves "
        f"of {len(growth)} runs, mean ± standard error; one number where all runs agree.",
    )
