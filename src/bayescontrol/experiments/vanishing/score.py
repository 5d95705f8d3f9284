"""The claims of `vanishing`: what the theorem says, and what it leaves open.

A limit that is reached almost surely cannot be refuted by runs that end, and theory gives no mean
for a finite time. Thresholds come from pilots on another seed, at two sizes:

    bayescontrol run vanishing --seed 1000 --runs 1000
    bayescontrol run vanishing --seed 1000 --runs 1000 --set steps=200 --set long_steps=500

                                                      default    smallest
    five modes, weight outside the core: mean         0.0035     0.036      400 and 200 steps
    core diagram, weight outside the core: mean       0.055      0.118      4,000 and 500 steps
    bias grid, weight outside the core: largest       1e-279     2e-21
    five modes, inside: runs above half of the prior  916        909        of 1,000
    bias grid, (.8, .8): runs below a fifth           991        813
    power of t of (.8, .8): mean, standard deviation  -0.91, 0.96   -0.87, 1.00

The weight of the true mode grows on average, so a limit holds for longer runs as well. The claim
says in how many runs something is left. With fewer than FEWEST runs nothing is judged.
"""

import math
from collections.abc import Mapping
from functools import cache
from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.convergence.core import core
from bayescontrol.convergence.verdict import Outcome as Fate
from bayescontrol.convergence.verdict import PairVerdict, Verdict, check
from bayescontrol.experiments.chance import Pilot, measured, small
from bayescontrol.experiments.divergence.controller import OUTSIDE
from bayescontrol.experiments.vanishing.replica import (
    ABOUT,
    BIASES,
    CLASSES,
    CORE,
    FEWEST,
    FIVE,
    Settings,
    class_of,
    times,
)
from bayescontrol.lab import Claim, Columns, Outcome, Table

#: (.8, .8) and (.8, .2): in the core of (.8, .5), the first acts differently.
RIVAL: Final = 8
TWIN: Final = 6
#: A weight below this counts as gone.
GONE: Final = 0.01
#: The weights outside the core and the power of t in the pilots, by their number of steps.
_OUTSIDE: Final[Mapping[str, Mapping[int, Pilot]]] = {
    FIVE: OUTSIDE,
    CORE: {500: Pilot(0.118, 0.295, 1000), 4000: Pilot(0.0554, 0.222, 1000)},
    BIASES: {500: Pilot(0.0, 0.0, 1000)},
}
_POWER: Final = {500: Pilot(-0.870, 0.996, 1000), 4000: Pilot(-0.905, 0.965, 1000)}
_ALARMS: Final = 1e-3


def pair(name: str, m: int) -> PairVerdict:
    """The exact verdict on mode m in the world of the class's true mode.

    >>> pair("bias grid", RIVAL).in_core, pair("bias grid", RIVAL).outcome.name
    (True, 'SETTLES')
    """
    return _verdict(name).pair(CLASSES[name], m)


@cache
def _verdict(name: str) -> Verdict:
    return check(class_of(name))


def exponents(settings: Settings, columns: Columns) -> FloatArray:
    """d ln P(m | ·) / d ln t of (.8, .8) over the last factor of four in time, of each run.

    >>> from bayescontrol.experiments.vanishing.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(), 0).items()}
    >>> exponents(Settings(), one).shape
    (1,)
    """
    t, v = times(settings, BIASES), columns[f"{BIASES} posterior"][:, :, RIVAL]
    early = int(np.argmin(np.abs(t - t[-1] / 4)))
    return np.asarray(np.log(v[:, -1] / v[:, early]) / math.log(t[-1] / t[early]))


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims, and a table of who is where.

    >>> from bayescontrol.experiments.vanishing.replica import run
    >>> one = {name: column[None] for name, column in run(Settings(), 0).items()}
    >>> only = score(Settings(runs=1), one)  # a single run is not judged
    >>> only.claims, [table.title for table in only.tables][0]
    ((), 'Three classes of modes')
    """
    tables = _classes(), _table(columns)
    if len(columns[f"{FIVE} posterior"]) < FEWEST:
        return Outcome((), tables)
    claims = (
        *(_outside(settings, name, columns) for name in CLASSES),
        _bound(columns),
        _keeps(columns),
        _own_policy(columns),
        _like_one_over_t(settings, columns),
    )
    return Outcome(claims, tables)


def others(name: str, inside: bool) -> list[int]:
    """The modes inside the core of the class's true mode, or outside; not the true one.

    >>> others("five modes", inside=True)
    [3, 4]
    """
    kept = core(class_of(name), CLASSES[name])
    return [m for m in range(len(class_of(name))) if (m in kept) is inside and m != CLASSES[name]]


def _pilot(pilots: Mapping[int, Pilot], steps: int) -> tuple[Pilot, str]:
    """The pilot with the most steps up to ours, and what it is called."""
    size = max(n for n in pilots if n <= steps)
    return pilots[size], f"pilot on seed 1000, {pilots[size].runs:,} runs of {size:,} steps"


def _outside(settings: Settings, name: str, columns: Columns) -> Claim:
    pilot, called = _pilot(_OUTSIDE[name], int(times(settings, name)[-1]))
    most = pilot.mean + pilot.bounded_margin(len(columns[f"{name} posterior"]), _ALARMS)
    out = others(name, inside=False)
    v = columns[f"{name} posterior"][:, -1, out].sum(-1)
    mean, error = measured(v)
    prior = float(class_of(name).prior[out].sum())
    left = float((v > GONE).mean())
    return Claim(
        f"outside-the-core-{name.replace(' ', '-')}",
        f"{name}: the weight of all {len(out)} modes outside the core of the true one vanishes "
        "almost surely; its mean at the end",
        "paper", f"→ 0, from {prior:.3g}", *_ours(mean, error),
        mean <= most,
        reason=f"in {100 * left:.3g} % of the runs more than {GONE:g} is left"
        + (": while m* weighs little it is rarely in charge for long" if left > 0.02 else ""),
        place="section 4.4, theorem 3",
        threshold_origin=f"{called}: {small(pilot.mean)}; at most {most:.2g} (false alarms: 1 in "
        "1000)",
    )  # fmt: skip


def _ours(mean: float, error: float | None) -> tuple[float | str, float | None]:
    return (small(mean), None) if small(mean) == small(0.0) else (mean, error)


def _bound(columns: Columns) -> Claim:
    number = sum(int(columns[f"{name} violations"].sum()) for name in CLASSES)
    cases = sum(columns[f"{name} bound"].size for name in CLASSES)
    return Claim(
        "never-above-the-bound",
        "no posterior of a mode m is ever above P(m)/P(m*) e^(-d), m* the true mode and d the "
        "evidence for it against m; violations",
        "ours", 0, number, None, number == 0, reason=f"{cases} comparisons",
        threshold_origin="theory: no violation, but for rounding",
    )  # fmt: skip


def _keeps(columns: Columns) -> Claim:
    kept = others(FIVE, inside=True)
    v = columns[f"{FIVE} posterior"][:, -1, kept].sum(-1)
    alike = all(pair(FIVE, m).consistent for m in kept)
    middle, prior = float(np.median(v)), float(class_of(FIVE).prior[kept].sum())
    return Claim(
        "inside-the-core-stays",
        f"{FIVE}: modes inside the core that act as m* does need not vanish "
        f"({', '.join(class_of(FIVE).name(m) for m in kept)}); median of their weight at the end",
        "ours", f"about {prior:g}", middle, None, alike and middle > prior / 2,
        reason="nobody is left who does what would tell them apart; they do no harm",
        threshold_origin="pilot on seed 1000, 1,000 runs: nine in ten are above half of the prior "
        "(false alarms: below 1e-9)",
    )  # fmt: skip


def _own_policy(columns: Columns) -> Claim:
    found = pair(BIASES, RIVAL)
    v = columns[f"{BIASES} posterior"][:, -1, RIVAL]
    exact = found.in_core and bool(found.act_differently) and found.outcome is Fate.SETTLES
    middle = float(np.median(v))
    prior = float(class_of(BIASES).prior[RIVAL])
    return Claim(
        "refuted-by-its-own-policy",
        "bias grid: the mode (.8, .8) is in the core of the true one, (.8, .5), and acts "
        "differently, and yet it vanishes; median of its weight at the end",
        "ours", f"→ 0, from {prior:.3g}", middle, None,
        exact and middle < prior / 5,
        reason="it says that the second arm wins with .8, pulls it half of the time, and is "
        "refuted by what it sees",
        threshold_origin="pilot on seed 1000, 1,000 runs of 500 steps: eight in ten are below a "
        "fifth of the prior (false alarms: below 1e-9)",
    )  # fmt: skip


def _like_one_over_t(settings: Settings, columns: Columns) -> Claim:
    runs = exponents(settings, columns)
    mean, error = measured(runs)
    pilot, called = _pilot(_POWER, settings.long_steps)
    slack = abs(pilot.mean + 1.0) + pilot.margin(len(runs), _ALARMS)
    return Claim(
        "slower-like-one-over-t",
        "the weight w of (.8, .8) falls like 1/t, not exponentially: the power of t, over the last "
        "three quarters of the steps",
        "ours", -1.0, mean, error, abs(mean + 1.0) <= slack,
        reason="its arm is pulled in proportion to its weight, so dw/dt ∝ -w²",
        threshold_origin=f"{called}: {pilot.mean:.2g} at a finite time; within {slack:.2g} of -1 "
        "(false alarms: 1 in 1000)",
    )  # fmt: skip


def _classes() -> Table:
    rows = tuple(
        (name, len(class_of(name)), class_of(name).name(true), ABOUT[name])
        for name, true in CLASSES.items()
    )
    return Table(
        "Three classes of modes",
        ("class", "modes", "true mode m*", "what it is"),
        rows,
        "The core of m*: the modes that its own policy cannot tell from it.",
    )


def _table(columns: Columns) -> Table:
    rows = []
    for name, true in CLASSES.items():
        v = columns[f"{name} posterior"][:, -1]
        for m in range(len(class_of(name))):
            if m == true:
                continue
            found = pair(name, m)
            low, middle, high = np.quantile(v[:, m], (0.05, 0.5, 0.95), method="inverted_cdf")
            rows.append(
                (
                    name,
                    class_of(name).name(m),
                    "inside" if found.in_core else "outside",
                    "differently" if found.act_differently else "alike",
                    small(float(middle)),
                    _between(float(low), float(high)),
                )
            )
    return Table(
        "Posterior weights at the end, by where a mode stands",
        ("class", "mode", "core of m*", "acts", "median weight", "nine runs in ten"),
        tuple(rows),
        "Core: whether the policy of the true mode m* can tell the mode from m* (outside) or not "
        "(inside). Acts: as m* does, or differently. Both are exact; weights are of "
        f"{len(v)} runs, (.8, .5) is a bandit whose arms win with .8 and .5.",
    )


def _between(low: float, high: float) -> str:
    """The two ends of an interval of weights; one, where both are as good as nothing."""
    ends = dict.fromkeys((small(low), small(high)))
    return " … ".join(ends)
