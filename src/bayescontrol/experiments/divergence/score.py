"""The claims of `divergence`: what is exact has no tolerance, the rest what chance may do.

Means are compared at margins of Student's law, so that all comparisons of a claim together raise
a false alarm once in a thousand seeds; with fewer than 20 runs nothing is compared.
"""

from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.convergence.core import core
from bayescontrol.experiments.divergence.controller import MODES, TRUE, controller
from bayescontrol.experiments.divergence.exact import DELTA, band, band_error, rate
from bayescontrol.experiments.divergence.replica import (
    POLICIES,
    ROUNDING,
    SHOWN,
    Settings,
    far_times,
    times,
)
from bayescontrol.experiments.policy_diagram.chains import strain
from bayescontrol.lab import Claim, Columns, Outcome, Table, mean_and_error
from bayescontrol.report.tables import with_error

__all__ = ["FEWEST", "judged", "score"]

#: With fewer runs than these, no mean is compared.
FEWEST: Final = 20
_ALARMS: Final = 1e-3
_OTHERS: Final = range(1, len(MODES))


def judged(runs: FloatArray, expected: FloatArray) -> tuple[bool, str]:
    """Are the means of the runs as expected, as far as chance allows; and how far off, in words.

    >>> judged(np.array([[0.1], [0.3]]), np.array([5.0]))
    (True, 'too few runs to tell')
    """
    if len(runs) < FEWEST:
        return True, "too few runs to tell"
    mean, error = mean_and_error(runs)
    gap = np.abs(mean - expected)
    off = np.divide(gap, error, out=np.zeros_like(gap), where=error > 0)
    worst = strain(runs, expected, _ALARMS)
    return worst <= 1.0, (
        f"at most {off.max():.1f} standard errors off, {worst:.2f} of the margin that chance is "
        "given"
    )


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims, and the rates as a table.

    >>> from bayescontrol.experiments.divergence.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(), 0).items()}
    >>> all(claim.holds for claim in score(Settings(runs=1), one).claims if claim.source == "ours")
    True
    """
    growth = _growth(settings, columns)
    claims = (
        _bound(settings, columns),
        _vanish(columns),
        _stay(columns),
        _rates(growth),
        _adds_up(columns),
        _centred(columns),
        _root(settings, columns),
        _one_band(settings, columns),
    )
    return Outcome(claims, (_table(growth),))


def _bound(settings: Settings, columns: Columns) -> Claim:
    number = int(columns["violations"].sum())
    cases = len(columns["violations"]) * (settings.steps + 1) * len(MODES)
    return Claim(
        "posterior-bound",
        "no posterior is ever above P(m)/P(m*) e^(-d); violations in all runs, steps and modes",
        "paper", 0, number, None, number == 0,
        reason=f"{cases} comparisons, {ROUNDING:g} allowed for rounding; the ln that the paper "
        "prints before the bound is a slip",
    )  # fmt: skip


def _names(inside: bool) -> list[str]:
    kept = core(controller(), TRUE)
    return [MODES[m] for m in _OTHERS if (m in kept) is inside]


def _vanish(columns: Columns) -> Claim:
    out = [MODES.index(name) for name in _names(inside=False)]
    mean, error = mean_and_error(columns["posterior"][:, -1, out].sum(-1))
    return Claim(
        "two-diverge",
        f"d of {' and '.join(_names(inside=False))} diverges, so their posteriors vanish; mean of "
        "their weight at the end",
        "paper", "→ 0, from 0.4", float(mean), float(error), bool(mean < 0.1),
        reason="" if mean < 0.1 else "a quarter of it is left: too much for so many steps",
    )  # fmt: skip


def _stay(columns: Columns) -> Claim:
    kept = [MODES.index(name) for name in _names(inside=True)]
    rates = [rate(TRUE, m) for m in kept]
    weight = float(np.median(columns["posterior"][:, -1, kept].sum(-1)))
    return Claim(
        "two-stay",
        f"d of {' and '.join(_names(inside=True))} stays bounded: once the others are out, nothing "
        "tells them from m*; nats a step under its policy",
        "paper", 0.0, max(rates), None, max(rates) == 0.0,
        reason=f"exact; in half of the runs they end with a weight of {weight:.2f} or more",
    )  # fmt: skip


def _growth(settings: Settings, columns: Columns) -> FloatArray:
    """d_t(m*‖m3) a step over the second half, when the start is forgotten; [run, policy]."""
    t = times(settings)
    half = t.size // 2
    d = columns["under"]
    return np.asarray((d[:, :, -1] - d[:, :, half]) / (t[-1] - t[half]))


def _rates(growth: FloatArray) -> Claim:
    exact = np.array([rate(policy, SHOWN) for policy in POLICIES])
    holds, told = judged(growth, exact)
    mean, error = mean_and_error(growth)
    fastest = int(np.argmax(exact))
    return Claim(
        "rates-by-policy",
        f"one process, three policies, three rates: d of {MODES[SHOWN]} under each policy alone; "
        f"shown: that of {MODES[POLICIES[fastest]]}, nats a step",
        "ours", float(exact[fastest]), float(mean[fastest]), float(error[fastest]),
        holds and len(set(exact.round(6))) == len(exact),
        reason=told,
    )  # fmt: skip


def _adds_up(columns: Columns) -> Claim:
    worst = float(columns["unsplit"].max())
    return Claim(
        "parts-add-up",
        "sub-divergences by mode in charge add up to the process; largest gap, relative",
        "paper", 0.0, worst, ROUNDING, worst <= ROUNDING,
        reason="" if worst <= ROUNDING else "an identity: the program is wrong",
    )  # fmt: skip


def _centred(columns: Columns) -> Claim:
    excess = columns["excess"][:, :, 1:]
    flat = excess.reshape(len(excess), -1)
    holds, told = judged(flat, np.zeros(flat.shape[1]))
    mean, error = mean_and_error(excess[:, TRUE, 0])
    return Claim(
        "centred-on-its-mean",
        "g - G has mean zero, for every mode in charge and every other mode; shown: m* in charge, "
        "m1 the other, at the end, in nats",
        "ours", 0.0, float(mean), float(error), holds,
        reason=f"{flat.shape[1]} means: {told}",
    )  # fmt: skip


def _widths(settings: Settings, columns: Columns) -> tuple[FloatArray, int]:
    """C_t over the runs, and where t is a quarter of the steps."""
    C = np.quantile(columns["far"], 1.0 - DELTA, axis=0, method="inverted_cdf")
    return C, int(np.argmin(np.abs(far_times(settings) - settings.steps / 4)))


def _root(settings: Settings, columns: Columns) -> Claim:
    runs = len(columns["far"])
    C, _ = _widths(settings, columns)
    expected = float(band(settings.steps, TRUE, 1))
    error = band_error(settings.steps, TRUE, 1, runs)
    # Four errors, and two per cent of C for steps that are few and not normal.
    near = abs(C[-1] - expected) <= 4.0 * error + 0.02 * expected
    return Claim(
        "band-grows-like-root-t",
        f"the band that holds |g - G| up to time t in 95 % of runs is C = σ (2.24 √t - 0.58); "
        f"here t = {settings.steps}, in nats",
        "ours", expected, float(C[-1]), error, runs < FEWEST or near,
        reason="too few runs to tell" if runs < FEWEST else "m* in charge all the time",
    )  # fmt: skip


def _one_band(settings: Settings, columns: Columns) -> Claim:
    C, quarter = _widths(settings, columns)
    ratio = float(C[-1] / C[quarter])
    return Claim(
        "one-band-for-all-times",
        "bounded: one C holds |g - G| at all times, so C at t and at t/4 are in the long run "
        "the same; their ratio",
        "paper", 1.0, ratio, None, ratio < 1.2,
        reason="while m* acts, likelihood ratios are independent but for the room, and g - G is a "
        "random walk: C doubles whenever t is four times as long. Nothing is lost: the posterior "
        "of m* is bounded from below without it (experiment lower-bound)",
    )  # fmt: skip


def _table(growth: FloatArray) -> Table:
    mean, error = mean_and_error(growth)
    rows = tuple(
        (
            MODES[policy],
            *(rate(policy, m) for m in _OTHERS),
            with_error(float(mean[k]), float(error[k])),
        )
        for k, policy in enumerate(POLICIES)
    )
    return Table(
        "Rates of d(m*‖m) in nats a step, by the policy that is applied",
        ("policy of", *(f"{MODES[m]}, exact" for m in _OTHERS), f"{MODES[SHOWN]}, simulated"),
        rows,
        f"simulated: second halves of {len(growth)} runs, mean and standard error",
    )
