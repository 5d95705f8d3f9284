"""Claims and tables of `bandit-zoo`: regret with intervals, and what is more than luck.

    rank of an agent   1 + agents that are better … all - agents that are worse

"Better" is said where a paired test of sign flips, corrected by Holm for all pairs of agents
at one kind of bandit, says so and the interval of the difference leaves 0 out.
"""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.bandits.bounds import lai_robbins
from bayescontrol.experiments.bandit_zoo.replica import (
    AGENTS,
    KINDS,
    ORACLE,
    RULE,
    UCB,
    UNIFORM,
    Settings,
)
from bayescontrol.lab import Claim, Columns, Outcome, Table
from bayescontrol.lab.statistics import Comparison, compare, holm, mean_interval
from bayescontrol.lab.statistics.sample import shown

#: P(a mean is further off than 5 standard errors) < 6e-7.
_ERRORS: Final = 5.0
#: With fewer runs no difference is beyond luck, and a claim fails by contradiction only.
_ENOUGH: Final = 20


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims of `bandit-zoo`, and a table for each kind of bandit.

    >>> from bayescontrol.experiments.bandit_zoo.replica import run
    >>> small = Settings(runs=2, steps=10, levers=3)
    >>> rows = [run(small, i) for i in range(2)]
    >>> columns = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    >>> [claim.name for claim in score(small, columns).claims]
    ['rule-beats-ucb1', 'uniform-regret', 'oracle-regret', 'lai-robbins-constant']
    """
    final = {
        kind: dict(zip(AGENTS, columns["regret"][:, k, :, -1].T, strict=True))
        for k, kind in enumerate(KINDS)
    }
    claims = (
        _beats_ucb1(final),
        _uniform_regret(settings, columns, final),
        _oracle_regret(final),
        _lai_robbins(),
    )
    tables = (_table(kind, _without_oracle(regrets)) for kind, regrets in final.items())
    return Outcome(claims, tuple(tables))


def _without_oracle(regrets: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    return {name: values for name, values in regrets.items() if name != ORACLE}


def ranks(agents: Mapping[str, FloatArray]) -> dict[str, tuple[int, int]]:
    """The first and the last rank that each agent may have, lower regret being better.

    >>> luck = np.linspace(0, 1, 30)
    >>> same = luck + 0.01 * (-1) ** np.arange(30)
    >>> ranks({"good": luck, "as good": same, "bad": luck + 1 + luck**2})
    {'good': (1, 2), 'as good': (1, 2), 'bad': (3, 3)}
    """
    better, worse = dict.fromkeys(agents, 0), dict.fromkeys(agents, 0)
    compared = (_paired(agents, a, b) for a, b in itertools.combinations(agents, 2))
    pairs = [pair for pair in compared if pair is not None]
    for one, p in zip(pairs, holm([pair.p_value for pair in pairs]), strict=True):
        verdict = replace(one, corrected_p_value=float(p), family=len(pairs)).verdict
        a, b = one.names if verdict == "better" else one.names[::-1]
        if verdict != "undecided":
            worse[a] += 1
            better[b] += 1
    return {name: (1 + better[name], len(agents) - worse[name]) for name in agents}


def _paired(agents: Mapping[str, FloatArray], a: str, b: str) -> Comparison | None:
    """On the runs in which both have played."""
    both = ~np.isnan(agents[a] + agents[b])
    if both.sum() < 2:
        return None
    return compare(agents[a][both], agents[b][both], names=(a, b), higher_is_better=False)


def _beats_ucb1(final: Mapping[str, Mapping[str, FloatArray]]) -> Claim:
    pairs = {kind: _paired(regrets, RULE, UCB) for kind, regrets in final.items()}
    judged = {kind: pair for kind, pair in pairs.items() if pair is not None}
    verdicts = [pair.verdict for pair in judged.values()]
    enough = len(final["uniform"][RULE]) >= _ENOUGH
    told = (f"{kind} by {-float(pair.difference.mean):.3g}" for kind, pair in judged.items())
    return Claim(
        "rule-beats-ucb1",
        "the control rule has less regret than UCB1 at every kind of bandit, more than by luck: "
        "number of kinds",
        "ours", len(KINDS), verdicts.count("better"), None,
        verdicts.count("better") == len(KINDS) if enough else "worse" not in verdicts,
        ", ".join(told) or "one run tells nothing",
        threshold_origin="theory: a paired test of sign flips at 5 %"
        + ("" if enough else f"; with fewer than {_ENOUGH} runs it must not say the contrary"),
    )  # fmt: skip


def _uniform_regret(
    settings: Settings, columns: Columns, final: Mapping[str, Mapping[str, FloatArray]]
) -> Claim:
    """Given the biases, R_T of uniform play has mean T (max m - mean m), variance T Var m."""
    bias, runs = columns["bias"], len(columns["bias"])
    expected = settings.steps * (bias.max(axis=2) - bias.mean(axis=2)).mean(axis=0)
    error = np.sqrt(settings.steps * bias.var(axis=2).sum(axis=0)) / runs
    ours = np.array([regrets[UNIFORM].mean() for regrets in final.values()])
    off = np.abs(ours - expected) / error
    worst = int(off.argmax())
    return Claim(
        "uniform-regret",
        "uniform play costs T (max m - mean m) on average at every kind of bandit; here "
        f"{list(KINDS)[worst]}, within {_ERRORS:g} standard errors",
        "ours", expected[worst], ours[worst], float(error[worst]),
        bool(off.max() <= _ERRORS),
        threshold_origin="theory: exact mean and variance (false alarms: 6e-7 for each kind)",
    )  # fmt: skip


def _oracle_regret(final: Mapping[str, Mapping[str, FloatArray]]) -> Claim:
    largest = max(float(regrets[ORACLE].max()) for regrets in final.values())
    return Claim(
        "oracle-regret", "who knows the biases has no regret", "ours", 0.0, largest, None,
        largest == 0.0, threshold_origin="theory: no regret, in any run",
    )  # fmt: skip


def _lai_robbins() -> Claim:
    c = lai_robbins([0.5, *[0.4] * 9])
    return Claim(
        "lai-robbins-constant",
        "one lever of 0.5 among nine of 0.4: regret must come to grow as c ln t, "
        "c = Σ_j Δ_j / KL(m_j ‖ m*)",
        "ours", 44.697, c, 5e-4,
        abs(c - 44.697) <= 5e-4,
        "asymptotic: at 1,000 steps uniform play, with a regret of 90, is below c ln t",
        exact=True,
    )  # fmt: skip


def _table(kind: str, regrets: Mapping[str, FloatArray]) -> Table:
    places = ranks(regrets)
    played = {name: values[~np.isnan(values)] for name, values in regrets.items()}
    played = {name: values for name, values in played.items() if values.size}
    rows = []
    for name in sorted(played, key=lambda name: float(played[name].mean())):
        first, last = places[name]
        rank = f"{first}" if first == last else f"{first} to {last}"
        rows.append((name, *_interval(played[name]), played[name].size, rank))
    return Table(
        f"Regret at {kind}",
        ("agent", "regret", "95 % from", "to", "runs", "rank"),
        tuple(rows),
        "ranks are told apart where the difference, run by run, is more than luck (sign flips, "
        "corrected by Holm for all pairs)",
    )


def _interval(values: FloatArray) -> tuple[str, str, str]:
    if len(values) < 2:
        return f"{float(values[0]):.4g}", "", ""
    interval = mean_interval(values)
    return shown(interval.mean, interval.low, interval.high)
