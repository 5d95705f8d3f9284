"""Claims and tables of `chain`: exact values, and simulated ones within what chance allows.

    |mean of n runs - E T| ≤ σ (√(2x/n) + x/n),   x = 17        exponential tails
    |share of n runs - p|  ≤ √(x / 2n)                          Hoeffding

σ is the exact standard deviation. Each comparison fails by chance with probability below
1e-7, for any number of runs, so that of all of them together is below 1e-5.
"""

import math
from functools import lru_cache
from typing import Any, Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.chain.replica import (
    AGENTS,
    BAYES_OPTIMAL,
    GROWING,
    RULE,
    SCHEDULES,
    Settings,
    growing_label,
    longest_chain,
    simulated,
)
from bayescontrol.lab import Claim, Columns, Outcome, Table
from bayescontrol.problems.chain import GrowingChain, chain
from bayescontrol.problems.chain_times import (
    Waiting,
    first_reward_time,
    identification_law,
    identification_time,
    tail_bound,
)
from bayescontrol.report.tables import with_error
from bayescontrol.schedules import doubling

_X: Final = 17.0
_MEANS: Final = "theory: exact means, exponential tails (false alarms: 1e-7 each)"
_SHARES: Final = "theory: exact probabilities, Hoeffding's margin (false alarms: 1e-7 each)"
#: Where the paper makes its claims about chains, and how its growing chain grows.
_PLACE: Final = "section 6.1, on Bayes-optimal control"
_SCALE: Final = 10
#: The growing chain is followed exactly for this many times scale² steps, then bounded.
_FAR: Final = 400


def exact(agent: str, k: int) -> Waiting:
    """E T and its standard deviation, for the agent of that name on a chain of k.

    >>> exact("every step", 12).mean, exact("Bayes-optimal", 12).mean
    (4095.0, 12.0)
    """
    if agent == BAYES_OPTIMAL:
        return Waiting(float(k), 0.0)
    return identification_time(k, SCHEDULES[agent](k))


@lru_cache
def growing_law(scale: int, schedule: str) -> FloatArray:
    """P(T = t) in the growing chain, t = 1 … 400 scale².

    >>> law = growing_law(2, "doubling")
    >>> int(np.flatnonzero(law)[0]) + 1, float(law.sum())
    (4, 1.0)
    """
    growing = GrowingChain(scale)
    return identification_law(growing.required, GROWING[schedule](scale), _FAR * scale**2)


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims of `chain`, and two tables.

    >>> from bayescontrol.experiments.chain.replica import run
    >>> small = Settings(runs=1, k_max=2, scale=2, growing_steps=8)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> [claim.name for claim in score(small, columns).claims][:2]
    ['identification-time', 'about-2^k']
    """
    return Outcome(
        (*_chain_claims(settings, columns), *_growing_claims(settings, columns)),
        (_times(settings, columns), _growing_table(settings, columns)),
    )


def _chain_claims(settings: Settings, columns: Columns) -> tuple[Claim, ...]:
    last, n = settings.k_max, settings.runs
    lengths = range(1, last + 1)
    near = longest_chain(settings, RULE)
    planned, held = longest_chain(settings, BAYES_OPTIMAL), longest_chain(settings, "Every(k)")
    rule, first = exact(RULE, near), first_reward_time(near)
    time, reward_time = columns["time"], columns["reward_time"]
    agree = {
        name: all(
            _close(time[:, i, k - 1], exact(name, k))
            for k in lengths
            if simulated(settings, name, k)
        )
        for i, name in enumerate(AGENTS)
    }
    silent = columns["silent"][:, :near]
    share = float(silent.mean())
    witness: Any = chain(last).agent()
    for _ in range(last):  # k B's, and no reward
        witness.observe(1, 0)
    unpaid = float(witness.belief.posterior()[1])
    return (
        Claim(
            "identification-time",
            f"the rule identifies a chain in 2^k - 1 steps on average, k = 1 .. {last}; "
            f"here k = {last}",
            "ours", 2**last - 1, exact(RULE, last).mean, None,
            all(exact(RULE, k).mean == 2**k - 1 for k in lengths), exact=True,
        ),
        Claim(
            "about-2^k",
            f"the rule needs about 2^k steps; here k = {last}",
            "paper", 2**last, exact(RULE, last).mean, None,
            0.5 <= exact(RULE, last).mean / 2**last <= 1.0,
            "2^k - 1 exactly: k equal actions identify, whether they are paid or not",
            place=_PLACE, exact=True, threshold_origin="paper: \"about\" is within a factor of 2",
        ),
        Claim(
            "simulated-times",
            f"simulated, every agent takes its exact time for each k; here the rule, k = {near}",
            "ours", rule.mean, float(time[:, 0, near - 1].mean()), rule.sd / math.sqrt(n),
            all(agree.values()), threshold_origin=_MEANS,
        ),
        Claim(
            "bayes-optimal-time",
            f"a Bayes-optimal controller identifies in k actions; here k = {planned}",
            "paper", planned, _slowest(time, BAYES_OPTIMAL, planned), None,
            agree[BAYES_OPTIMAL],
            "" if agree[BAYES_OPTIMAL] else "some run took another number of actions",
            place=_PLACE, threshold_origin="paper: k, in every run",
        ),
        Claim(
            "held-mode-time",
            f"the rule with modes held for k steps identifies in exactly k; here k = {held}",
            "ours", held, _slowest(time, "Every(k)", held), None,
            agree["Every(k)"], threshold_origin="theory: k, in every run",
        ),
        Claim(
            "uniform-until-reward",
            "the posterior stays uniform until a reward: probability of the environment that pays "
            f"for B's, after {last} of them without a reward",
            "paper", 0.5, unpaid, None, unpaid == 0.5,
            "k B's in a row without a reward refute the environment that pays for them",
            place=_PLACE, exact=True,
        ),
        Claim(
            "identified-without-reward",
            "half of the runs identify without a reward",
            "ours", 0.5, share, 0.5 / math.sqrt(silent.size),
            abs(share - 0.5) <= math.sqrt(_X / (2 * silent.size)), threshold_origin=_SHARES,
        ),
        Claim(
            "first-reward-time",
            f"the rule is first rewarded after 2^k - 1 + k/2 steps on average; here k = {near}",
            "ours", first.mean, float(reward_time[:, near - 1].mean()), first.sd / math.sqrt(n),
            all(
                _close(reward_time[:, k - 1], first_reward_time(k))
                for k in lengths
                if simulated(settings, RULE, k)
            ),
            threshold_origin=_MEANS,
        ),
    )  # fmt: skip


def _growing_claims(settings: Settings, columns: Columns) -> tuple[Claim, ...]:
    scale, n, until = settings.scale, settings.runs, settings.growing_steps
    soonest = scale**2
    optimal = columns["growing"][:, -1]
    rule, held = _ever(scale, RULE), _ever(scale, "Every(s)")
    law = growing_law(scale, "doubling")
    steps = np.arange(1, law.size + 1)
    by_then = {name: float(growing_law(scale, name)[:until].sum()) for name in GROWING}
    shares = np.isfinite(columns["growing"]).mean(axis=0)
    gaps = {
        name: abs(float(share) - by_then[name])
        for name, share in zip(GROWING, shares, strict=False)
    }
    worst = max(gaps, key=gaps.__getitem__)
    note = "" if scale == _SCALE else f"the paper's chain grows as ⌈{_SCALE} √t⌉, not {scale} √t"
    return (
        Claim(
            "growing-chain-optimal",
            f"with k = ceil({scale} sqrt t) Bayes-optimal control converges in {soonest} steps",
            "paper", soonest, float(optimal.max()), None,
            None if note else bool(np.all(optimal == soonest)),
            note or ("" if np.all(optimal == soonest) else "some run took another number of steps"),
            place=_PLACE, threshold_origin="paper: 100 steps, in every run",
        ),
        Claim(
            "growing-chain",
            "there the rule does not converge at all in most realizations: P(it ever does)",
            "paper", "< 0.5", rule, None,
            None if note else rule < 0.5,
            note or f"exact for {_FAR * scale**2} steps, bounded from above beyond",
            place=_PLACE, exact=True, threshold_origin="paper: \"most\" is more than half",
        ),
        Claim(
            "growing-chain-held",
            f"holding a mode can break down too: P(it ever converges), held for {scale} steps",
            "paper", "< 0.5", held, None,
            None if note else held < 0.5,
            note or f"any fixed time below the {soonest} steps that are required first may fail "
            "for ever",
            place=_PLACE, exact=True, threshold_origin="paper: as for a mode at every step",
        ),
        Claim(
            "growing-chain-doubling",
            "but modes held ever longer converge: P(it ever does), doubling",
            "ours", 1.0, float(law.sum()), None,
            bool(abs(law.sum() - 1.0) < 1e-12),
            f"surely by step {int(np.flatnonzero(law)[-1]) + 1}, "
            f"after {float(steps @ law):.1f} on average",
            exact=True,
        ),
        Claim(
            "growing-chain-simulated",
            f"every schedule converges within {until} steps as often as computed; "
            f"here the worst, {growing_label(scale, worst)}",
            "ours", by_then[worst], float(shares[list(GROWING).index(worst)]),
            math.sqrt(by_then[worst] * (1.0 - min(1.0, by_then[worst])) / n),
            all(gap <= math.sqrt(_X / (2 * n)) for gap in gaps.values()),
            threshold_origin=_SHARES,
        ),
    )  # fmt: skip


def _ever(scale: int, name: str) -> float:
    """P(T < ∞): exact as far as the law goes, bounded from above beyond."""
    law, schedule = growing_law(scale, name), GROWING[name](scale)
    rest = 0.0 if schedule is doubling else tail_bound(GrowingChain(scale), schedule, law.size)
    return min(1.0, float(law.sum()) + rest)


def _close(times: FloatArray, expected: Waiting) -> bool:
    n = times.size
    slack = expected.sd * (math.sqrt(2 * _X / n) + _X / n)
    return bool(abs(times.mean() - expected.mean) <= slack + 1e-9 * expected.mean)


def _slowest(time: FloatArray, agent: str, k: int) -> float:
    return float(time[:, AGENTS.index(agent), k - 1].max())


def _times(settings: Settings, columns: Columns) -> Table:
    def simulation(k: int) -> str:
        if not simulated(settings, RULE, k):
            return "not simulated"
        error = exact(RULE, k).sd / math.sqrt(settings.runs)
        return with_error(float(columns["time"][:, 0, k - 1].mean()), error)

    rows: tuple[tuple[str | float | int, ...], ...] = tuple(
        (k, exact(RULE, k).mean, simulation(k), *(exact(name, k).mean for name in AGENTS[1:]))
        for k in range(1, settings.k_max + 1)
    )
    return Table(
        "Steps to identification of a k-step chain",
        ("k", "every step", "simulated", *AGENTS[1:]),
        rows,
        f"exact means; simulated: mean of {settings.runs} runs and its standard error",
    )


def _growing_table(settings: Settings, columns: Columns) -> Table:
    scale, until = settings.scale, settings.growing_steps
    identified = np.mean(columns["growing"] <= until, axis=0)
    rows: list[tuple[str | float, ...]] = [
        (
            growing_label(scale, name),
            float(growing_law(scale, name)[: scale**2].sum()),
            float(growing_law(scale, name)[:until].sum()),
            float(share),
            _ever(scale, name),
        )
        for name, share in zip(GROWING, identified, strict=False)
    ]
    rows.append((BAYES_OPTIMAL, 1.0, float(until >= scale**2), float(identified[-1]), 1.0))
    return Table(
        f"The growing chain, k = ⌈{scale} √t⌉: probability that it has been identified",
        ("schedule", f"by t = {scale**2}", f"by t = {until}", "simulated", "ever, at most"),
        tuple(rows),
        f"exact; beyond t = {_FAR * scale**2} an upper bound is added",
    )
