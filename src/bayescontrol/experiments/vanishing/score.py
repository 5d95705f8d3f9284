"""The claims of `vanishing`: what the theorem says, and what it leaves open.

A limit that is reached almost surely cannot be refuted by runs that end. A weight counts as
vanishing here if its mean has come down to a quarter of the prior by then, but for three standard
errors, and the claim says in how many runs something is left: there may be few, and they may wait
for very long. With fewer than FEWEST runs nothing is judged.
"""

import math
from functools import cache
from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.convergence.core import core
from bayescontrol.convergence.verdict import Outcome as Fate
from bayescontrol.convergence.verdict import PairVerdict, Verdict, check
from bayescontrol.experiments.chance import measured, small
from bayescontrol.experiments.vanishing.replica import (
    ABOUT,
    BIASES,
    CLASSES,
    FEWEST,
    FIVE,
    Settings,
    class_of,
    times,
)
from bayescontrol.lab import Claim, Columns, Outcome, Table

__all__ = ["GONE", "RIVAL", "TWIN", "exponents", "others", "pair", "score"]

#: (.8, .8) and (.8, .2): in the core of (.8, .5), the first acts differently.
RIVAL: Final = 8
TWIN: Final = 6
#: A weight below this counts as gone.
GONE: Final = 0.01
#: How far from -1 the exponent may be at a finite time.
_SLACK: Final = 0.25


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
        *(_outside(name, columns) for name in CLASSES),
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


def _outside(name: str, columns: Columns) -> Claim:
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
        mean < prior / 4 + 3.0 * (error or 0.0),
        reason=f"in {100 * left:.3g} % of the runs more than {GONE:g} is left"
        + (": while m* weighs little it is rarely in charge for long" if left > 0.02 else ""),
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
    )  # fmt: skip


def _like_one_over_t(settings: Settings, columns: Columns) -> Claim:
    mean, error = measured(exponents(settings, columns))
    return Claim(
        "slower-like-one-over-t",
        "the weight w of (.8, .8) falls like 1/t, not exponentially: the power of t, over the last "
        "three quarters of the steps",
        "ours", -1.0, mean, error, abs(mean + 1.0) <= _SLACK + 4.0 * (error or 0.0),
        reason="its arm is pulled in proportion to its weight, so dw/dt ∝ -w²; at a finite time it "
        f"may be {_SLACK:g} off, and 4 standard errors by chance",
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
