"""The claims: the verdict of the exact check, and that every run bears it out.

Where nothing can be learnt the claims hold bit for bit or within 1e-12. The two claims with
chance in them raise a false alarm at a rate of at most 1e-3 together. With fewer than FEWEST runs
nothing is judged; nor what a look does, before it had the time to tell.
"""

from typing import Final

import numpy as np

from bayescontrol.convergence import check, core
from bayescontrol.experiments.chance import beyond_chance, compare, measured, told
from bayescontrol.experiments.consistency.replica import (
    AS_IT_WAS,
    FEWEST,
    LOOK,
    NAMES,
    REPAIRED,
    TRUE,
    Settings,
    modes,
)
from bayescontrol.experiments.core.exact import rate
from bayescontrol.lab import Claim, Columns, Outcome, Table
from bayescontrol.problems.tabular import TabularModes

_ALARMS: Final = 1e-3 / 2
_TOLERANCE: Final = 1e-12
_ROUNDING: Final = f"theory, {_TOLERANCE:g} allowed for rounding"
#: So much expected evidence, in nats, is time enough for a look at B to tell.
_ENOUGH: Final = 5.0
#: The outcomes for people to read.
_WORDS: Final = {"NEVER": "never settles", "THEOREM": "settles, for sure"}


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims, and a table of the three classes.

    >>> from bayescontrol.experiments.consistency.replica import run
    >>> few = Settings(runs=FEWEST)
    >>> rows = [run(few, i) for i in range(FEWEST)]
    >>> columns = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    >>> {claim.verdict for claim in score(few, columns).claims}
    {'holds'}
    """
    table = _table(settings, columns)
    if len(columns["weight"]) < FEWEST:
        return Outcome((), (table,))
    claims = [
        _cores(settings),
        _verdict(settings, AS_IT_WAS, "NEVER", "verdict-never"),
        _verdict(settings, REPAIRED, "THEOREM", "verdict-repaired"),
        _verdict(settings, LOOK, "THEOREM", "verdict-with-a-look"),
        _frozen(settings, columns),
        _apart(settings, columns),
        _strange(settings, columns),
        _at_once(columns),
        _same_beliefs(settings, columns),
    ]
    if settings.steps * rate(_class(settings, LOOK), TRUE, 1 - TRUE) >= _ENOUGH:
        claims.append(_told_apart(settings, columns))
    return Outcome(tuple(claims), (table,))


def _class(settings: Settings, name: str) -> TabularModes:
    return modes(name, settings.weight, settings.look)


def _cores(settings: Settings) -> Claim:
    own = _class(settings, AS_IT_WAS)
    found = "; ".join(
        f"[m{m + 1}] = {{{', '.join(own.name(i) for i in core(own, m))}}}" for m in range(2)
    )
    expected = "[m1] = {m1, m2}; [m2] = {m1, m2}"
    return Claim(
        "each-in-the-core-of-the-other",
        "both policies stay in A, where the hypotheses H1 and H2 agree: neither can tell the modes "
        "apart, each is in the core of the other",
        "paper", expected, found, None, found == expected,
        reason="from the graph of situations",
        place="section 4.5, figure 8", exact=True,
    )  # fmt: skip


def _verdict(settings: Settings, name: str, expected: str, claim: str) -> Claim:
    verdict = check(_class(settings, name))
    found = _WORDS.get(verdict.outcome.name, verdict.outcome.name.lower())
    return Claim(
        claim,
        f"{name}: does the agent come to act as the true mode does? The exact check, before "
        "anything is run",
        "ours", _WORDS[expected], found, None, verdict.outcome.name == expected,
        reason="; ".join(dict.fromkeys(pair.reason.value for pair in verdict.pairs)),
        exact=True,
    )  # fmt: skip


def _frozen(settings: Settings, columns: Columns) -> Claim:
    off = float(np.abs(columns["weight"][:, 0] - settings.weight).max())
    return Claim(
        "posterior-frozen",
        f"{AS_IT_WAS}: the posterior stays at the prior; the largest deviation, all runs and steps",
        "ours", 0.0, off, None, off <= _TOLERANCE,
        threshold_origin=_ROUNDING,
    )  # fmt: skip


def _apart(settings: Settings, columns: Columns) -> Claim:
    d = columns["distance"][:, 0]
    off = float(np.abs(d - (1 - settings.weight)).max())
    return Claim(
        "law-stays-apart",
        f"{AS_IT_WAS}: the distance of what the agent does from what m1 would do is the prior "
        "weight of m2, at every step of every run; the least",
        "ours", 1 - settings.weight, float(d.min()), None, off <= _TOLERANCE,
        reason=("the same in every run" if off == 0.0 else f"off by {off:.1g} at most")
        + ": mixing two policies in time never tells the modes apart; the paper (section 4.5) "
        "leaves open whether it does",
        threshold_origin=_ROUNDING,
    )  # fmt: skip


def _strange(settings: Settings, columns: Columns) -> Claim:
    runs = columns["strange"][:, 0].mean(axis=1)
    exact = 1 - settings.weight
    found = compare(runs[:, None], np.array([exact]), _ALARMS)
    return Claim(
        "wrong-actions-for-ever",
        f"{AS_IT_WAS}: share of the steps in which the agent does what m1 never would",
        "ours", exact, *measured(runs), found.holds, reason=found.words,
        threshold_origin="theory: the exact share, Student's margin",
    )  # fmt: skip


def _at_once(columns: Columns) -> Claim:
    most = float(columns["distance"][:, 1].max())
    return Claim(
        "repaired-settles-at-once",
        "repaired: the agent acts as m1 does from the first step on; the largest distance, all "
        "runs and steps",
        "ours", 0.0, most, None, most <= _TOLERANCE,
        reason="who agrees on A and stays in A must act alike there",
        threshold_origin=_ROUNDING,
    )  # fmt: skip


def _same_beliefs(settings: Settings, columns: Columns) -> Claim:
    off = float(np.abs(columns["weight"][:, 1] - settings.weight).max())
    return Claim(
        "repaired-need-not-know",
        "repaired: the agent never learns which mode is true, and need not; the largest change of "
        "its posterior",
        "ours", 0.0, off, None, off <= _TOLERANCE,
        threshold_origin=_ROUNDING,
    )  # fmt: skip


def _told_apart(settings: Settings, columns: Columns) -> Claim:
    d = columns["distance"][:, 2]
    return Claim(
        "a-look-tells-them-apart",
        f"with a look at B in {settings.look:.0%} of the steps the agent comes to act as m1 does; "
        f"mean distance after {settings.steps} steps",
        "ours", f"below {d[:, 0].mean():.3g}, that of the start",
        *measured(d[:, -1]), beyond_chance(d[:, 0] - d[:, -1]),
        reason="in B the hypotheses differ, so a look is evidence",
        threshold_origin="theory: two standard errors of the differences, run by run",
    )  # fmt: skip


def _table(settings: Settings, columns: Columns) -> Table:
    rows = []
    for k, name in enumerate(NAMES):
        verdict = check(_class(settings, name))
        seen = (
            told(columns["weight"][:, k, -1]),
            told(columns["distance"][:, k, -1]),
            told(columns["strange"][:, k].mean(axis=1)),
        )
        words = _WORDS.get(verdict.outcome.name, verdict.outcome.name.lower())
        rows.append((name, words, verdict.pairs[TRUE].reason.value, *seen))
    return Table(
        f"Three classes, m1 true, after {settings.steps} steps",
        ("class", "the agent", "why: m1 against m2", "P(m1)", "distance", "wrong actions"),
        tuple(rows),
        "As it was: each mode has its own policy for region A, where both predict the same; "
        "repaired: one policy for A; with a look: as it was, but each policy goes to B now and "
        "then. P(m1): posterior of the true mode. Distance: total variation between what the agent "
        "does and what m1 would do, 0 to 1. Wrong actions: share of all steps with an action that "
        "m1 never takes there. One number where all runs agree.",
    )
