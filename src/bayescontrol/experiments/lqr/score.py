"""Claims and tables of `lqr`.

near-optimal   median over runs of J(K_T)/J* - 1, at most 1 % at T = 10,000 and in proportion
               to 1/√T elsewhere, as √T regret has it
sqrt-regret    the exponent of regret over the last octaves is at most 1/2
beats          the share of runs with less regret, in which both meet the same noise
"""

import math
from typing import Final

import numpy as np

from bayescontrol.experiments.lqr.replica import (
    AGENTS,
    CERTAIN,
    EXPLORING,
    LAZY,
    RULE,
    WARM,
    Settings,
    system,
)
from bayescontrol.experiments.lqr.seen import OCTAVES, Seen, exponent, late
from bayescontrol.lab import Claim, Columns, Outcome, Table, wilson
from bayescontrol.problems.linear import PLANTS

__all__ = ["STABLE", "score"]

#: Plants that are stable by themselves.
STABLE: Final = tuple(name for name in PLANTS if system(name).radius < 1.0 - 1e-9)

#: From so many runs on a median is judged as it is; fewer may miss a bound by chance.
MANY: Final = 50

#: Whom the rule is compared with, and the names of the claims.
_OTHERS: Final = (
    (CERTAIN, "beats-certainty-equivalence", "certainty equivalence after the same"),
    (
        EXPLORING,
        "beats-exploration",
        "certainty equivalence that goes on exploring",
    ),
)


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims of `lqr`, and a table for each plant.

    >>> from bayescontrol.experiments.lqr.replica import run
    >>> small = Settings(runs=2, steps=64)
    >>> rows = [run(small, i) for i in range(2)]
    >>> columns = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    >>> [claim.name for claim in score(small, columns).claims][:4]
    ['posterior-is-regression', 'near-optimal-gain', 'near-optimal-gain-lazy', 'sqrt-regret']
    """
    seen = Seen(settings, columns)
    claims = (
        _posterior(seen),
        _near_optimal(seen, RULE, "near-optimal-gain"),
        _near_optimal(seen, LAZY, "near-optimal-gain-lazy"),
        _sqrt_regret(seen),
        *(_beats(seen, plant, *other) for other in _OTHERS for plant in PLANTS),
    )
    return Outcome(claims, tuple(_table(seen, plant) for plant in PLANTS))


def _posterior(seen: Seen) -> Claim:
    gap = float(seen.columns["gap"].max())
    return Claim(
        "posterior-is-regression",
        "after a run the posterior mean of [A B] is that of a regression on all of it at once: "
        "the largest relative difference, of all plants and runs",
        "ours", "<= 1e-9", gap, None, gap <= 1e-9,
    )  # fmt: skip


def _near_optimal(seen: Seen, agent: str, name: str) -> Claim:
    steps = seen.settings.steps
    allowed = 0.01 * math.sqrt(10_000 / steps)
    worst = max(STABLE, key=lambda plant: seen.gain(plant, agent))
    gain, (low, high) = seen.gain(worst, agent), seen.gain_interval(worst, agent)
    return Claim(
        name,
        f"after {steps:,} steps the gain in use costs at most {100 * allowed:.3g} % more than the "
        f"best one, median of {seen.runs} runs, at each stable plant; here the worst, {worst}: "
        f"{agent}",
        "ours", f"<= {allowed:.3g}", gain, None,
        gain <= allowed if seen.runs >= MANY else low <= allowed,
        f"95 % interval of the median: {100 * low:.2g} … {100 * high:.2g} %"
        + ("" if seen.runs >= MANY else f"; with fewer than {MANY} runs it fails if that is above"),
    )  # fmt: skip


def _sqrt_regret(seen: Seen) -> Claim:
    found = {
        (plant, agent): exponent(seen.octaves(plant, agent))
        for plant in PLANTS
        for agent in (RULE, LAZY, WARM)
    }
    worst = max(found, key=lambda pair: found[pair][0])
    return Claim(
        "sqrt-regret",
        "the regret of the rule grows like the root of T or slower, at every plant and under every "
        f"schedule: its exponent over the last {OCTAVES} octaves; here the worst, "
        f"{worst[0]}: {worst[1]}",
        "ours", "<= 0.5", *found[worst],
        all(p <= 0.5 + 2 * error for p, error in found.values()),
    )  # fmt: skip


def _share(seen: Seen, plant: str, other: str) -> tuple[float, float, float]:
    """The share of runs in which the rule has less regret, with Wilson's interval."""
    better = int((seen.regret(plant, WARM)[:, -1] < seen.regret(plant, other)[:, -1]).sum())
    low, high = wilson(better, seen.runs)
    return better / seen.runs, float(low), float(high)


def _beats(seen: Seen, plant: str, other: str, name: str, what: str) -> Claim:
    share, low, high = _share(seen, plant, other)
    both = (WARM, other)
    regret = " against ".join(f"{seen.total(plant, agent):.3g}" for agent in both)
    gains = " against ".join(f"{100 * seen.gain(plant, agent):.2g}" for agent in both)
    growth = " against ".join(f"{late(seen.octaves(plant, agent)):.2f}" for agent in both)
    told = f"regret {regret} J*, late exponents {growth}, gain in use {gains} % too dear (medians)"
    if low <= 0.5:
        told = f"{'no more than luck' if high >= 0.5 else 'draws must be paid for'}: {told}"
    return Claim(
        f"{name}-{plant}",
        f"after {seen.settings.warm_up} steps of noise the rule has less regret than {what}, in "
        f"most runs of {seen.settings.steps:,} steps: share of the runs",
        "paper", "> 0.5", share, (high - low) / 4, low > 0.5, told,
    )  # fmt: skip


def _table(seen: Seen, plant: str) -> Table:
    def row(agent: str) -> tuple[str | float | int, ...]:
        gain, regret = seen.excess(plant, agent)[:, -1], seen.octaves(plant, agent)
        low, high = np.quantile(gain, [0.25, 0.75], method="nearest")
        p, error = exponent(regret)
        return (
            agent,
            f"{100 * seen.gain(plant, agent):.3g} %",
            f"{100 * low:.3g} … {100 * high:.3g} %",
            seen.total(plant, agent),
            float(np.quantile(regret[:, -1], 0.9, method="nearest")),
            f"{p:.2f} ± {error:.2f}",
            f"{late(regret):.2f}",
            seen.redrawn(plant, agent),
        )

    s = system(plant)
    head = "controller", "J(K) above J*", "quartiles", "regret / J*", "nine in ten below"
    return Table(
        f"{plant}: {s.states} states, {s.inputs} inputs, |λ(A)| up to {s.radius:.3f}, "
        f"J* = {s.best_cost:.4g}",
        (*head, "exponent", "late", "redrawn"),
        tuple(row(agent) for agent in AGENTS),
        f"after {seen.settings.steps:,} steps, medians of {seen.runs} runs",
    )
