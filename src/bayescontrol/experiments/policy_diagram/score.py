"""The claims: what a policy selects, exactly, is where long runs spend their time.

The chains, their subsets and shares are exact; runs are held against them. All claims with
chance in them together raise a false alarm at a rate of at most 1e-3, at any number of runs.
"""

from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.policy_diagram.chains import chain, strain
from bayescontrol.experiments.policy_diagram.replica import (
    BY_TURNS,
    POLICIES,
    TRUE,
    Settings,
    law,
    modes,
    selected,
    spent,
)
from bayescontrol.lab import Claim, Columns, Outcome, Table, mean_and_error
from bayescontrol.lab.statistics.quantiles import normal_quantile
from bayescontrol.report.tables import with_error

__all__ = ["entered_by", "inside_after", "score"]

#: The rate of false alarms of all claims together, shared by four families of tests.
_ALARMS: Final = 1e-3 / 4
_TOLERANCE: Final = 1e-12


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims, and the shares of the time behind them.

    >>> from bayescontrol.experiments.policy_diagram.replica import run
    >>> few = Settings(runs=2)
    >>> rows = [run(few, i) for i in range(2)]
    >>> columns = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    >>> all(claim.holds for claim in score(few, columns).claims)
    True
    """
    claims = [
        _sums(),
        *(_subset(k, columns) for k in range(2)),
        *(_time(k, columns) for k in range(3)),
        _frequencies(columns),
        _pulled(columns),
        _turns(columns),
    ]
    return Outcome(tuple(claims), (_shares(columns),))


def inside_after(who: str, steps: int) -> FloatArray:
    """P(inside the subset after t steps | start), as an array [t, start], t = 0 … steps.

    >>> inside_after("P2", 2)[:, 1].tolist()
    [0.0, 0.0, 1.0]
    """
    P, inside = chain(modes(), law(who), TRUE), spent(who) > 0.0
    rows = [inside.astype(np.float64)]
    for _ in range(steps):
        rows.append(P @ rows[-1])
    return np.stack(rows)


def entered_by(who: str) -> int:
    """The step by which the subset is entered from every start, for sure.

    >>> entered_by("P1"), entered_by("P2")
    (2, 2)
    """
    sure = inside_after(who, len(modes().labels.situations)).min(axis=1) >= 1 - _TOLERANCE
    return int(np.argmax(sure))


def _names(states: tuple[int, ...]) -> str:
    return " ".join(modes().labels.situations[x] for x in states)


def _sums() -> Claim:
    off = max(float(np.abs(chain(modes(), law(who), TRUE).sum(-1) - 1.0).max()) for who in POLICIES)
    return Claim(
        "transitions-sum-to-1",
        "from every state, the probabilities P(s'|m,s) of the states that follow sum to 1; "
        "the largest deviation",
        "ours", 0.0, off, None, off <= _TOLERANCE,
    )  # fmt: skip


def _subset(k: int, columns: Columns) -> Claim:
    who = POLICIES[k]
    visited = tuple(np.flatnonzero(columns["visits"][:, k].sum(axis=0)).tolist())
    return Claim(
        f"subset-{who.lower()}",
        f"applying {who} is choosing a subset of the states: these are visited for ever, and "
        "no other",
        "paper", _names(selected(who)), _names(visited), None, visited == selected(who),
        reason="expected: where the exact stationary distribution is positive; ours: seen in the "
        f"second halves of {len(columns['visits'])} runs",
    )  # fmt: skip


def _time(k: int, columns: Columns) -> Claim:
    who, runs = POLICIES[k], _in_time(columns)[:, k]
    x = int(np.argmax(spent(who)))
    mean, error = mean_and_error(runs[:, x])
    off = strain(runs, spent(who), _ALARMS / 3)
    return Claim(
        f"time-{who.lower().replace(' ', '-')}",
        f"{who}: every state has its exact share of the time; shown: {_names((x,))}",
        "ours", float(spent(who)[x]), float(mean), float(error), off <= 1.0,
        reason=f"over all states off by {off:.2f} of the margin that chance is given",
    )  # fmt: skip


def _in_time(columns: Columns) -> FloatArray:
    visits = columns["visits"]
    return np.asarray(visits / visits.sum(axis=-1, keepdims=True))


def _frequencies(columns: Columns) -> Claim:
    """Transitions given their state are independent coins: their number is known."""
    strains = []
    for k, who in enumerate(POLICIES):
        P, moves = chain(modes(), law(who), TRUE), columns["moves"][:, k].sum(axis=0)
        left = np.maximum(moves.sum(axis=1, keepdims=True), 1)
        gap = np.where(moves.sum(axis=1, keepdims=True) > 0, np.abs(moves / left - P), 0.0)
        z = normal_quantile(1 - _ALARMS / (2 * P.size * len(POLICIES)))
        # The last term covers few counts, where a share is not yet normal.
        margin = z * np.sqrt(P * (1 - P) / left) + z * z / (3 * left)
        sure = np.where(gap > 0, np.inf, 0.0)
        strains.append(float(np.max(np.where(P * (1 - P) > 0, gap / margin, sure))))
    return Claim(
        "transition-frequencies",
        "every transition is taken as often as P(s'|m,s) says, and one of probability 0 never; "
        "the largest deviation, in margins of chance",
        "ours", "at most 1", max(strains), None, max(strains) <= 1.0,
    )  # fmt: skip


def _pulled(columns: Columns) -> Claim:
    latest = max(entered_by(who) for who in POLICIES)
    early = min(latest, columns["inside"].shape[-1] - 1)
    share = float(columns["inside"][:, :2, early:].mean())
    return Claim(
        "wherever-it-starts",
        f"from any of the states, each policy is inside its subset after {latest} steps and "
        "stays there; share of the runs and steps from then on",
        "ours", 1.0, share, None, share == 1.0,
    )  # fmt: skip


def _turns(columns: Columns) -> Claim:
    alone = set(selected("P1")) | set(selected("P2"))
    new = tuple(x for x in selected(BY_TURNS) if x not in alone)
    runs = _in_time(columns)[:, 2, list(new)].sum(axis=1)
    exact = float(spent(BY_TURNS)[list(new)].sum())
    mean, error = mean_and_error(runs)
    return Claim(
        "by-turns-leads-elsewhere",
        f"two policies by turns visit {_names(new)}, where neither alone ever stays: a mixture "
        "of policies selects more than the two subsets; share of the time",
        "ours", exact, float(mean), float(error),
        bool(new) and strain(runs[:, None], np.array([exact]), _ALARMS) <= 1.0,
    )  # fmt: skip


def _shares(columns: Columns) -> Table:
    mean, error = mean_and_error(_in_time(columns))
    rows = []
    for x, name in enumerate(modes().labels.situations):
        row: list[str | float] = [name]
        for k, who in enumerate(POLICIES):
            row += [float(spent(who)[x]), with_error(float(mean[k, x]), float(error[k, x]))]
        rows.append(tuple(row))
    header = [part for who in POLICIES for part in (f"{who}, exact", f"{who}, simulated")]
    return Table("Share of the time in each state", ("state", *header), tuple(rows))
