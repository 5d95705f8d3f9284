"""The claims of `vanishing`: what the theorem says, and what it leaves open.

A limit that is reached almost surely cannot be refuted by runs that end. A weight counts as
vanishing here if its mean has come down to a quarter of the prior by then, and the claim says in
how many runs something is left: there may be few, and they may wait for very long.
"""

import math
from functools import cache
from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.convergence.core import core
from bayescontrol.convergence.verdict import Outcome as Fate
from bayescontrol.convergence.verdict import PairVerdict, Verdict, check
from bayescontrol.experiments.divergence.score import FEWEST
from bayescontrol.experiments.vanishing.replica import (
    BIASES,
    CLASSES,
    FIVE,
    Settings,
    class_of,
    times,
)
from bayescontrol.lab import Claim, Columns, Outcome, Table, mean_and_error

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
    >>> all(claim.holds for claim in score(Settings(runs=1), one).claims if claim.source == "ours")
    True
    """
    claims = (
        *(_outside(name, columns) for name in CLASSES),
        _bound(columns),
        _keeps(columns),
        _own_policy(columns),
        _like_one_over_t(settings, columns),
    )
    return Outcome(claims, (_table(columns),))


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
    mean, error = mean_and_error(v)
    prior = float(class_of(name).prior[out].sum())
    left = float((v > GONE).mean())
    return Claim(
        f"outside-the-core-{name.replace(' ', '-')}",
        f"{name}: the weight of all {len(out)} modes outside the core vanishes almost surely; its "
        "mean at the end",
        "paper", f"→ 0, from {prior:.3g}", float(mean), float(error), bool(mean < prior / 4),
        reason=f"in {100 * left:.3g} % of the runs more than {GONE:g} is left"
        + (": while m* weighs little it is rarely in charge for long" if left > 0.02 else ""),
    )  # fmt: skip


def _bound(columns: Columns) -> Claim:
    number = sum(int(columns[f"{name} violations"].sum()) for name in CLASSES)
    cases = sum(columns[f"{name} bound"].size for name in CLASSES)
    return Claim(
        "never-above-the-bound",
        "no posterior is ever above P(m)/P(m*) e^(-d); violations",
        "ours", 0, number, None, number == 0, reason=f"{cases} comparisons",
    )  # fmt: skip


def _keeps(columns: Columns) -> Claim:
    kept = others(FIVE, inside=True)
    v = columns[f"{FIVE} posterior"][:, -1, kept].sum(-1)
    alike = all(pair(FIVE, m).consistent for m in kept)
    middle, prior = float(np.median(v)), float(class_of(FIVE).prior[kept].sum())
    few = len(v) < FEWEST
    return Claim(
        "inside-the-core-stays",
        f"{FIVE}: modes inside the core that act as m* does need not vanish "
        f"({', '.join(class_of(FIVE).name(m) for m in kept)}); median of their weight at the end",
        "ours", f"about {prior:g}", middle, None, alike and (few or middle > prior / 2),
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
        "bias grid: (.8, .8) is in the core of (.8, .5) and acts differently, and yet it "
        "vanishes; median of its weight at the end",
        "ours", f"→ 0, from {prior:.3g}", middle, None,
        exact and (len(v) < FEWEST or middle < prior / 5),
        reason=f"exact verdict: {found.outcome.name.lower()}, {found.reason.value}",
    )  # fmt: skip


def _like_one_over_t(settings: Settings, columns: Columns) -> Claim:
    mean, error = mean_and_error(exponents(settings, columns))
    few = len(columns[f"{BIASES} posterior"]) < FEWEST
    near = abs(mean + 1.0) <= _SLACK + 4.0 * error
    return Claim(
        "slower-like-one-over-t",
        "its weight falls like 1/t, not exponentially: exponent of t over the last factor of four",
        "ours", -1.0, float(mean), float(error), bool(few or near),
        reason="too few runs to tell" if few else "its arm is pulled in proportion to its weight, "
        f"so dw/dt ∝ -w²; at a finite time the exponent is {_SLACK:g} off at most",
    )  # fmt: skip


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
                    float(f"{middle:.3g}"),
                    f"{low:.2g} … {high:.2g}",
                )
            )
    return Table(
        "Weights at the end, by where a mode stands",
        ("class", "mode", "core of m*", "acts", "median", "nine runs in ten"),
        tuple(rows),
        "core and actions are exact",
    )
