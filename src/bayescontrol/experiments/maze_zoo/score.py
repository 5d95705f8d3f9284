"""Claims and tables of `maze-zoo`: regret, and the share of the optimum that is earned late.

The oracle's regret is a martingale but for where it begins and ends:

    R_T = h(x_0) - h(x_T) + Σ_t w_t,     w_t = ρ* + h(x_{t-1}) - r_t - h(x_t),  E[w_t | past] = 0

so |E R_T| ≤ max h - min h, and Var Σ w = T σ², σ² = Σ_x d(x) Var(r + h(y) | x, π*(x)) once d is
the distribution of its states.

In a pilot on another seed, `bayescontrol run maze-zoo --seed 1000 --runs 9`, the rule with unknown
p had less regret than R-learning in all nine runs on seven maps and in eight on the chain, and less
than with p = 1 in all runs on all maps.
"""

import math
from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.maze_zoo.replica import (
    AGENTS,
    CHAIN,
    MAPS,
    ORACLE,
    R_LEARNING,
    RULE,
    UNKNOWN,
    Settings,
    plan,
)
from bayescontrol.lab import Claim, Columns, Outcome, Table, mean_and_error
from bayescontrol.lab.statistics.quantiles import t_quantile
from bayescontrol.mdp import stationary_distribution
from bayescontrol.report.tables import with_error

#: P(a mean is further off than 5 standard errors) < 6e-7.
_ERRORS: Final = 5.0
#: How narrow the bounds of every optimum are.
_CERTIFIED: Final = 1e-10
#: One agent is better on most maps if it is better on this many and worse on none; false
#: alarms of the second part for all maps together.
_MOST: Final = 6
_ALARMS: Final = 1e-3
#: The least number of steps that leave time to learn.
_ENOUGH: Final = 10_000


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims of `maze-zoo`, and a table for each map.

    >>> from bayescontrol.experiments.maze_zoo.replica import run
    >>> small = Settings(runs=1, steps=40, costly_states=1)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> [claim.name for claim in score(small, columns).claims]
    ['optima-certified', 'chain-optimum', 'oracle-regret']
    """
    claims = [_certified(), _chain(), _oracle(settings, columns)]
    if settings.steps >= _ENOUGH:
        claims += [_less(columns, R_LEARNING), _less(columns, RULE)]
    return Outcome(tuple(claims), (_regrets(settings, columns), _late(settings, columns)))


def _certified() -> Claim:
    widths = {name: plan(name).upper - plan(name).lower for name in MAPS}
    worst = max(widths, key=widths.__getitem__)
    return Claim(
        "optima-certified",
        f"ρ* of every map lies between certified bounds; the widest, {worst}",
        "ours", f"≤ {_CERTIFIED:g}", widths[worst], None,
        widths[worst] <= _CERTIFIED, exact=True,
    )  # fmt: skip


def _chain() -> Claim:
    solved = plan(CHAIN)
    expected = 1 / len(solved.mdp.states)
    return Claim(
        "chain-optimum", f"the best policy of the {CHAIN} is paid once every time round",
        "ours", expected, solved.gain, 1e-12, abs(solved.gain - expected) <= 1e-12, exact=True,
    )  # fmt: skip


def oracle_spread(name: str) -> tuple[float, float]:
    """max h - min h, and σ, of the best policy of a map.

    >>> [round(value, 3) for value in oracle_spread("chain of 6")]
    [0.833, 0.0]
    """
    solved = plan(name)
    mdp, h = solved.mdp, solved.bias
    d = stationary_distribution(mdp, solved.policy)[0].probability
    variance = 0.0
    for x, a in enumerate(solved.policy):
        outcomes = mdp.outcomes(mdp.states[x], mdp.actions[int(a)])
        worth = np.array([step.reward + h[mdp.states.place(step.state)] for step in outcomes])
        p = np.array(list(outcomes.values()))
        variance += float(d[x]) * float(p @ worth**2 - (p @ worth) ** 2)
    return float(np.ptp(h)), math.sqrt(max(variance, 0.0))


def _oracle(settings: Settings, columns: Columns) -> Claim:
    runs, place = len(columns["late"]), list(AGENTS).index(ORACLE)
    regret = columns["regret"][:, :, place, -1].mean(axis=0)
    spans, errors = [], []
    for name in MAPS:
        span, sigma = oracle_spread(name)
        spans.append(span)
        errors.append(sigma * math.sqrt(settings.steps / runs))
    over = np.abs(regret) / (np.array(spans) + _ERRORS * np.array(errors))
    worst = int(over.argmax())
    return Claim(
        "oracle-regret",
        f"who plays the best policy has no regret, but for luck ({_ERRORS:g} standard errors) and "
        f"where it began (at most {spans[worst]:.3g}); here {MAPS[worst]}",
        "ours", 0.0, float(regret[worst]), errors[worst],
        bool(over.max() <= 1.0),
        threshold_origin="theory: exact bias and variance (false alarms: 6e-7 for each map)",
    )  # fmt: skip


def _less(columns: Columns, other: str) -> Claim:
    final = columns["regret"][..., -1]
    ours, its, fixed = (final[..., list(AGENTS).index(name)] for name in (UNKNOWN, other, RULE))
    more, error = mean_and_error(ours - its)
    luck = t_quantile(1 - _ALARMS / len(MAPS), len(ours) - 1)
    told = f"its regret as a share of the other's: {_shares(ours, its)}"
    if other != RULE:
        told += f"; with p = 1: {_shares(fixed, its)}"
    return Claim(
        "unknown-p-beats-R30" if other == R_LEARNING else "unknown-p-beats-fixed-p",
        "the control rule that finds the precision p by itself has less regret than "
        f"{other + (', p = 1,' if other == RULE else '')} on most maps, and on none more beyond "
        "luck: number of maps with less",
        "ours", f"≥ {_MOST} of {len(MAPS)}", int((more < 0).sum()), None,
        bool((more < 0).sum() >= _MOST and (more <= luck * error).all()),
        told,
        threshold_origin="pilot on seed 1000, 9 runs: less on 7 or 8 maps, by twice the standard "
        "deviation or more on 7; luck: Student's margin (false alarms: 1 in 1000)",
    )  # fmt: skip


def _shares(ours: FloatArray, its: FloatArray) -> str:
    ratio = ours.mean(axis=0) / its.mean(axis=0)
    return ", ".join(f"{name} {share:.0%}" for name, share in zip(MAPS, ratio, strict=True))


def _regrets(settings: Settings, columns: Columns) -> Table:
    rows: list[tuple[str, ...]] = []
    for i, agent in enumerate(AGENTS):
        rows.append((agent, *(_regret(columns["regret"][:, k, i, -1]) for k in range(len(MAPS)))))
    rows.append(("all that can be earned", *(f"{settings.steps * plan(n).gain:.0f}" for n in MAPS)))
    return Table(
        f"Regret after {settings.steps:,} steps",
        ("agent", *MAPS),
        tuple(rows),
        f"means of {settings.runs} runs and their standard errors; {_planners(settings)}",
    )


def _regret(runs: FloatArray) -> str:
    played = runs[~np.isnan(runs)]
    if not played.size:
        return ""
    mean, error = mean_and_error(played)
    return with_error(float(mean), float(error)) if played.size > 1 else f"{mean:.0f}"


def _late(settings: Settings, columns: Columns) -> Table:
    late = columns["late"]
    rows = []
    for i, agent in enumerate(AGENTS):
        cells = []
        for k, name in enumerate(MAPS):
            played = late[:, k, i][~np.isnan(late[:, k, i])]
            cells.append(f"{played.mean() / plan(name).gain:.0%}" if played.size else "")
        rows.append((agent, *cells))
    return Table(
        "Share of the optimum over the last fifth of the steps",
        ("agent", *MAPS),
        tuple(rows),
        f"means of {settings.runs} runs of {settings.steps:,} steps; {_planners(settings)}",
    )


def _planners(settings: Settings) -> str:
    steps = min(settings.steps, settings.costly_steps)
    return (
        f"posterior sampling and UCRL2: {settings.costly_runs} run"
        f"{'s' * (settings.costly_runs != 1)} of {steps:,} steps, on maps of at most "
        f"{settings.costly_states} states"
    )
