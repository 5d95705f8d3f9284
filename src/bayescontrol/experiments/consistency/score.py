"""The claims: the verdict of the exact check, and that every run bears it out.

Where nothing can be learnt the claims hold bit for bit or within 1e-12. The two claims with
chance in them raise a false alarm at a rate of at most 1e-3 together.
"""

from typing import Final

import numpy as np

from bayescontrol.convergence import check, core
from bayescontrol.experiments.consistency.replica import (
    AS_IT_WAS,
    LOOK,
    NAMES,
    REPAIRED,
    TRUE,
    Settings,
    modes,
)
from bayescontrol.experiments.policy_diagram.chains import strain
from bayescontrol.lab import Claim, Columns, Outcome, Table, mean_and_error
from bayescontrol.lab.statistics.quantiles import t_quantile
from bayescontrol.problems.tabular import TabularModes
from bayescontrol.report.tables import with_error

__all__ = ["score"]

_ALARMS: Final = 1e-3 / 2
_TOLERANCE: Final = 1e-12


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims, and a table of the three classes.

    >>> from bayescontrol.experiments.consistency.replica import run
    >>> few = Settings(runs=1)
    >>> one = {name: column[None] for name, column in run(few, 0).items()}
    >>> all(claim.holds for claim in score(few, one).claims)
    True
    """
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
        _told_apart(settings, columns),
    ]
    return Outcome(tuple(claims), (_table(settings, columns),))


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
        "both policies stay in A, where H1 and H2 agree: neither can tell the modes apart",
        "paper", expected, found, None, found == expected,
        reason="exact, from the graph of situations",
    )  # fmt: skip


def _verdict(settings: Settings, name: str, expected: str, claim: str) -> Claim:
    verdict = check(_class(settings, name))
    words = {"NEVER": "the agent never settles", "THEOREM": "the agent settles, for sure"}
    return Claim(
        claim,
        f"{name}: the exact check says that {words[expected]}",
        "ours", expected, verdict.outcome.name, None, verdict.outcome.name == expected,
        reason="; ".join(dict.fromkeys(pair.reason.value for pair in verdict.pairs)),
    )  # fmt: skip


def _frozen(settings: Settings, columns: Columns) -> Claim:
    off = float(np.abs(columns["weight"][:, 0] - settings.weight).max())
    return Claim(
        "posterior-frozen",
        f"{AS_IT_WAS}: the posterior stays at the prior; the largest deviation, all runs and steps",
        "ours", 0.0, off, None, off <= _TOLERANCE,
    )  # fmt: skip


def _apart(settings: Settings, columns: Columns) -> Claim:
    d = columns["distance"][:, 0]
    off = float(np.abs(d - (1 - settings.weight)).max())
    return Claim(
        "law-stays-apart",
        f"{AS_IT_WAS}: the distance of the action law from that of m1 is the prior weight of m2, "
        "at every step of every run; the least",
        "paper", 1 - settings.weight, float(d.min()), None, off <= _TOLERANCE,
        reason=f"off by {off:.1g} at most: mixing two policies in time never tells the modes apart",
    )  # fmt: skip


def _strange(settings: Settings, columns: Columns) -> Claim:
    runs = columns["strange"][:, 0].mean(axis=1)
    mean, error = mean_and_error(runs)
    exact = 1 - settings.weight
    return Claim(
        "wrong-actions-for-ever",
        f"{AS_IT_WAS}: share of the steps in which the agent does what m1 never would",
        "ours", exact, float(mean), float(error),
        strain(runs[:, None], np.array([exact]), _ALARMS) <= 1.0,
    )  # fmt: skip


def _at_once(columns: Columns) -> Claim:
    most = float(columns["distance"][:, 1].max())
    return Claim(
        "repaired-settles-at-once",
        "repaired: the action law is that of m1 from the first step on; the largest distance, "
        "all runs and steps",
        "ours", 0.0, most, None, most <= _TOLERANCE,
        reason="who agrees on A and stays in A must act alike there",
    )  # fmt: skip


def _same_beliefs(settings: Settings, columns: Columns) -> Claim:
    off = float(np.abs(columns["weight"][:, 1] - settings.weight).max())
    return Claim(
        "repaired-need-not-know",
        "repaired: the agent never learns which mode is true, and need not; the largest change of "
        "its posterior",
        "ours", 0.0, off, None, off <= _TOLERANCE,
    )  # fmt: skip


def _told_apart(settings: Settings, columns: Columns) -> Claim:
    d = columns["distance"][:, 2]
    mean, error = mean_and_error(d[:, -1])
    drop, its_error = mean_and_error(d[:, 0] - d[:, -1])
    margin = 0.0 if its_error == 0.0 else t_quantile(1 - _ALARMS, len(d) - 1) * its_error
    return Claim(
        "a-look-tells-them-apart",
        f"with a look at B in {settings.look:.0%} of the steps the law of the agent comes to that "
        f"of m1; mean distance after {settings.steps} steps",
        "ours", f"below {d[:, 0].mean():.3g}, that of the start",
        float(mean), float(error), bool(drop > -margin),
    )  # fmt: skip


def _table(settings: Settings, columns: Columns) -> Table:
    rows = []
    for k, name in enumerate(NAMES):
        verdict = check(_class(settings, name))
        told = [
            with_error(*map(float, mean_and_error(values)))
            for values in (
                columns["weight"][:, k, -1],
                columns["distance"][:, k, -1],
                columns["strange"][:, k].mean(axis=1),
            )
        ]
        rows.append((name, verdict.outcome.name.lower(), verdict.pairs[TRUE].reason.value, *told))
    return Table(
        f"Three classes, m1 true, after {settings.steps} steps",
        ("class", "verdict", "of m1 against m2", "P(m1)", "distance", "wrong actions"),
        tuple(rows),
        "Distance: of the agent's action law from that of m1. Wrong actions: share of all steps "
        "with an action that m1 never takes there.",
    )
