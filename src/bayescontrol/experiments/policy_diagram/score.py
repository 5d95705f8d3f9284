"""The claims: what a policy selects, exactly, is where long runs spend their time.

The chains, their subsets and shares are exact; runs are held against them. All claims with
chance in them together raise a false alarm at a rate of at most 1e-3. With fewer than FEWEST runs
nothing is judged.
"""

from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.chains import chain
from bayescontrol.experiments.chance import compare, measured, told
from bayescontrol.experiments.policy_diagram.replica import (
    BY_TURNS,
    FEWEST,
    POLICIES,
    TRUE,
    Settings,
    law,
    modes,
    selected,
    spent,
)
from bayescontrol.lab import Claim, Columns, Outcome, Table
from bayescontrol.lab.statistics.quantiles import normal_quantile

#: The rate of false alarms of all claims together, shared by four families of tests.
_ALARMS: Final = 1e-3 / 4
_TOLERANCE: Final = 1e-12
_ORIGIN: Final = "theory: exact shares, Student's margin"


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims, and the shares of the time behind them.

    >>> from bayescontrol.experiments.policy_diagram.replica import run
    >>> few = Settings(runs=FEWEST, steps=400)
    >>> rows = [run(few, i) for i in range(FEWEST)]
    >>> columns = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    >>> {claim.verdict for claim in score(few, columns).claims}
    {'holds'}
    """
    table = _shares(columns)
    if len(columns["visits"]) < FEWEST:
        return Outcome((), (table,))
    claims = [
        _sums(),
        *(_subset(k, columns) for k in range(2)),
        *(_time(k, columns) for k in range(3)),
        _frequencies(columns),
        _pulled(columns),
        _turns(columns),
    ]
    return Outcome(tuple(claims), (table,))


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
        "from every state s, the probabilities P(s'|m,s) of the next state s' under the policy of "
        "m sum to 1; the largest deviation",
        "ours", 0.0, off, None, off <= _TOLERANCE, exact=True,
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
        place="section 4.1, figure 2",
        threshold_origin="theory: the exact stationary distribution",
    )  # fmt: skip


def _time(k: int, columns: Columns) -> Claim:
    who, runs = POLICIES[k], _in_time(columns)[:, k]
    x = int(np.argmax(spent(who)))
    found = compare(runs, spent(who), _ALARMS / 3)
    return Claim(
        f"time-{who.lower().replace(' ', '-')}",
        f"{who}: every state has its exact share of the time; shown: {_names((x,))}",
        "ours", float(spent(who)[x]), *measured(runs[:, x]), found.holds,
        reason=f"all states: {found.words}",
        threshold_origin=_ORIGIN,
    )  # fmt: skip


def _in_time(columns: Columns) -> FloatArray:
    visits = columns["visits"]
    return np.asarray(visits / visits.sum(axis=-1, keepdims=True))


def _frequencies(columns: Columns) -> Claim:
    """Transitions given their state are independent coins: their number is known."""
    within, pairs = 0, 0
    for k, who in enumerate(POLICIES):
        P, moves = chain(modes(), law(who), TRUE), columns["moves"][:, k].sum(axis=0)
        left = np.maximum(moves.sum(axis=1, keepdims=True), 1)
        gap = np.where(moves.sum(axis=1, keepdims=True) > 0, np.abs(moves / left - P), 0.0)
        z = normal_quantile(1 - _ALARMS / (2 * P.size * len(POLICIES)))
        # The last term covers few counts, where a share is not yet normal.
        margin = z * np.sqrt(P * (1 - P) / left) + z * z / (3 * left)
        within += int((gap <= np.where(P * (1 - P) > 0, margin, 0.0)).sum())
        pairs += P.size
    return Claim(
        "transition-frequencies",
        "every transition is taken as often as P(s'|m,s) says, and one of probability 0 never; "
        "pairs (s, s') of which that is so, for three policies",
        "ours", pairs, within, None, within == pairs,
        reason="as far as chance allows, with one false alarm in 1,000 seeds",
        threshold_origin="theory: exact probabilities, binomial margin",
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
        threshold_origin="theory: the exact chain is inside by then, surely",
    )  # fmt: skip


def _turns(columns: Columns) -> Claim:
    alone = set(selected("P1")) | set(selected("P2"))
    new = tuple(x for x in selected(BY_TURNS) if x not in alone)
    runs = _in_time(columns)[:, 2, list(new)].sum(axis=1)
    exact = float(spent(BY_TURNS)[list(new)].sum())
    found = compare(runs[:, None], np.array([exact]), _ALARMS)
    return Claim(
        "by-turns-leads-elsewhere",
        f"two policies by turns visit {_names(new)}, where neither alone ever stays: a mixture "
        "of policies selects more than the two subsets; share of the time",
        "ours", exact, *measured(runs), bool(new) and found.holds, reason=found.words,
        threshold_origin=_ORIGIN,
    )  # fmt: skip


def _shares(columns: Columns) -> Table:
    runs, rows = _in_time(columns), []
    for x, name in enumerate(modes().labels.situations):
        row: list[str | float] = [name]
        for k, who in enumerate(POLICIES):
            row += [float(spent(who)[x]), told(runs[:, k, x])]
        rows.append(tuple(row))
    header = [part for who in POLICIES for part in (f"{who}, exact", f"{who}, simulated")]
    return Table(
        "Share of the time in each state",
        ("state", *header),
        tuple(rows),
        "P1: always action a. P2: always action b. By turns: either, with probability 1/2 at every "
        "step. Exact: what the share tends to. Simulated: second halves of "
        f"{len(runs)} runs, mean ± standard error; one number where all runs agree.",
    )
