"""The claims: the exact cores, and what each policy can and cannot refute, in all runs.

All claims with chance in them together raise a false alarm at a rate of at most 1e-3.
"""

from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.convergence import core
from bayescontrol.experiments.core.exact import expected_divergences, rate
from bayescontrol.experiments.core.replica import (
    HELD,
    OTHERS,
    SPELLS,
    TRUE,
    WHO,
    Settings,
    acts,
    modes,
    spell,
    times,
)
from bayescontrol.experiments.policy_diagram.chains import strain
from bayescontrol.lab import Claim, Columns, Outcome, Table, mean_and_error
from bayescontrol.lab.statistics.quantiles import t_quantile
from bayescontrol.report.tables import with_error

__all__ = ["score"]

#: The rate of false alarms of all claims together, shared by seven of them.
_ALARMS: Final = 1e-3 / 7
#: A wrong mode is refuted when less than this is left of it.
_BELOW: Final = 0.01
_CORES: Final = (
    ("{m1}", "P1 enters B, where H1 and H2 differ"),
    ("{m1, m2}", "P2 stays in A, where H1 and H2 say the same"),
    ("{m3}", "H3 differs from both wherever P3 goes"),
)


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims, and two tables.

    >>> from bayescontrol.experiments.core.replica import run
    >>> few = Settings(runs=1, steps=300)
    >>> one = {name: column[None] for name, column in run(few, 0).items()}
    >>> all(claim.holds for claim in score(few, one).claims)
    True
    """
    claims = [
        *(_core(m) for m in range(len(modes()))),
        _blind(columns),
        _refutes("p2-refutes-h3", 1, 1, columns),
        _refutes("p1-refutes-h2", 0, 0, columns),
        _refutes("p1-refutes-h3", 0, 1, columns),
        _not_before(columns),
        _short(columns),
        _long(columns),
        _rule_h3(settings, columns),
        _rule_h2(settings, columns),
        _hold(settings, columns),
    ]
    return Outcome(tuple(claims), (_rates(columns), _weights(settings, columns)))


def _core(m: int) -> Claim:
    expected, why = _CORES[m]
    found = "{" + ", ".join(modes().name(i) for i in core(modes(), m)) + "}"
    return Claim(
        f"core-of-m{m + 1}",
        f"modes that the policy of m{m + 1} cannot tell from it: {why}",
        "ours", expected, found, None, found == expected,
        reason="exact, from the graph of situations",
    )  # fmt: skip


def _blind(columns: Columns) -> Claim:
    most = float(np.abs(columns["divergence"][:, 1, :, 0]).max())
    exact = rate(acts(WHO[1]), TRUE, OTHERS[0])
    return Claim(
        "p2-spares-h2",
        "as long as P2 acts, no evidence against H2 is accumulated; the largest |d_t(m1‖m2)|, "
        "all runs and steps [nats]",
        "paper", 0.0, most, None, most == 0.0 and exact == 0.0,
        reason="it never leaves region A, where H1 and H2 say the same",
    )  # fmt: skip


def _refutes(name: str, who: int, other: int, columns: Columns) -> Claim:
    """Mean evidence at the end, against its exact expectation."""
    last = columns["divergence"][:, who, -1, other]
    T = columns["divergence"].shape[2] - 1
    exact = expected_divergences(acts(WHO[who]), TRUE, T)[-1, OTHERS[other]]
    mean, error = mean_and_error(last)
    m = OTHERS[other] + 1
    return Claim(
        name,
        f"{WHO[who]}: evidence against H{m} grows, and as fast as it must; "
        f"mean d_t(m1‖m{m}) at step {T} [nats]",
        "paper", float(exact), float(mean), float(error),
        exact > 0 and strain(last[:, None], np.array([exact]), _ALARMS) <= 1.0,
        reason=f"exact rate {rate(acts(WHO[who]), TRUE, OTHERS[other]):.4f} nats a step; expected: "
        "the exact mean",
    )  # fmt: skip


def _not_before(columns: Columns) -> Claim:
    d = columns["divergence"][:, 0, :, 0]
    first = np.where((d != 0).any(axis=1), (d != 0).argmax(axis=1), d.shape[1])
    return Claim(
        "long-enough",
        "P1 must act for long enough: the first step with evidence about H2, in every run",
        "paper", 4, f"{first.min()} to {first.max()}" if np.ptp(first) else int(first[0]),
        None, bool((first == 4).all()),
        reason="three steps lead into B, and what is seen there is the fourth",
    )  # fmt: skip


def _short(columns: Columns) -> Claim:
    short = [i for i, k in enumerate(SPELLS) if k < 3]
    most = float(np.abs(columns["spells"][:, short]).max())
    exact = max(rate(spell(SPELLS[i]), TRUE, OTHERS[0]) for i in short)
    return Claim(
        "short-spells-are-in-vain",
        "P1 for one or two steps at a time, P2 between, never tells H2 from H1; the largest "
        "|d_t(m1‖m2)|, all runs [nats]",
        "paper", 0.0, most, None, most == 0.0 and exact == 0.0,
        reason="although P1 acts in half or two thirds of all steps",
    )  # fmt: skip


def _long(columns: Columns) -> Claim:
    T = columns["divergence"].shape[2] - 1
    long = [i for i, k in enumerate(SPELLS) if k >= 3]
    exact = np.array([expected_divergences(spell(SPELLS[i]), TRUE, T)[-1, OTHERS[0]] for i in long])
    runs = columns["spells"][:, long]
    mean, error = mean_and_error(runs[:, 0])
    off = strain(runs, exact, _ALARMS)
    return Claim(
        "longer-spells-tell",
        f"P1 for three steps or more at a time does; mean d_t(m1‖m2) at step {T} for spells of "
        "three [nats]",
        "paper", float(exact[0]), float(mean), float(error),
        bool((exact > 0).all()) and off <= 1.0,
        reason=f"spells of {', '.join(str(SPELLS[i]) for i in long)}: off by {off:.2f} of the "
        "margin that chance is given",
    )  # fmt: skip


def _rule_h3(settings: Settings, columns: Columns) -> Claim:
    left = columns["weights"][:, -1, 2]
    share = float((left < _BELOW).mean())
    return Claim(
        "rule-refutes-h3",
        f"the rule: less than 1 % is left of m3 after {settings.steps} steps; share of the runs",
        "ours", 1.0, share, None, share == 1.0,
    )  # fmt: skip


def _rule_h2(settings: Settings, columns: Columns) -> Claim:
    weight = columns["weights"][:, :, 1]
    early = int(np.argmin(np.abs(times(settings.steps) - settings.steps / 30)))
    mean, error = mean_and_error(weight[:, -1])
    before = float(weight[:, early].mean())
    settled = float((weight[:, -1] < _BELOW).mean())
    return Claim(
        "rule-refutes-h2",
        f"the rule: the weight of m2 vanishes, for it is outside [m1]; mean weight after "
        f"{settings.steps} steps",
        "paper", f"below {before:.3g}, that of step {times(settings.steps)[early]}",
        float(mean), float(error), _falls(weight[:, early] - weight[:, -1]),
        reason=f"it takes three draws of m1 in a row to find out, so it is slow: in {settled:.1%} "
        "of the runs less than 1 % is left",
    )  # fmt: skip


def _hold(settings: Settings, columns: Columns) -> Claim:
    after = times(settings.held_steps)[-1]
    k = int(np.argmin(np.abs(times(settings.steps) - after)))
    held, rule = columns["held"][:, -1, 1], columns["weights"][:, k, 1]
    mean, error = mean_and_error(held)
    return Claim(
        "holding-helps",
        f"to hold each mode for {HELD} steps refutes H2 sooner; mean weight of m2 after {after} "
        "steps",
        "ours", f"below {rule.mean():.3g}, with a draw at every step",
        float(mean), float(error), _falls(rule - held),
    )  # fmt: skip


def _falls(differences: FloatArray) -> bool:
    """Whether a mean is positive, as far as chance lets us see."""
    mean, error = mean_and_error(differences)
    if error == 0.0:
        return bool(mean > 0.0)
    return bool(mean > -t_quantile(1 - _ALARMS, len(differences) - 1) * error)


def _rates(columns: Columns) -> Table:
    T = columns["divergence"].shape[2] - 1
    rows: list[tuple[str | float, ...]] = []
    for k, who in enumerate(WHO[:2]):
        mean, error = mean_and_error(columns["divergence"][:, k, -1] / T)
        exact = expected_divergences(acts(who), TRUE, T)[-1] / T
        for j, m in enumerate(OTHERS):
            told = with_error(float(mean[j]), float(error[j]))
            rows.append((who, f"H{m + 1}", rate(acts(who), TRUE, m), float(exact[m]), told))
    for i, k in enumerate(SPELLS):
        mean, error = mean_and_error(columns["spells"][:, i] / T)
        exact = expected_divergences(spell(k), TRUE, T)[-1] / T
        told = with_error(float(mean), float(error))
        long_run = rate(spell(k), TRUE, OTHERS[0])
        rows.append((f"P1 for {k}, P2 for 1", "H2", long_run, float(exact[OTHERS[0]]), told))
    return Table(
        "Evidence against H2 and H3 when H1 is true, in nats a step",
        ("who acts", "against", "exact, in the long run", f"exact, {T} steps", "simulated"),
        tuple(rows),
    )


def _weights(settings: Settings, columns: Columns) -> Table:
    rows: list[tuple[str | float, ...]] = []
    for name, last in (("weights", settings.steps), ("held", settings.held_steps)):
        v = columns[name]
        who = "drawn at every step" if name == "weights" else f"held for {HELD} steps"
        for k in np.unique(np.searchsorted(times(last), [10, 100, 1000, last])):
            if k < len(times(last)):
                mean, error = mean_and_error(v[:, k])
                told = [with_error(float(a), float(b)) for a, b in zip(mean, error, strict=True)]
                share = float((v[:, k, 1] < _BELOW).mean())
                rows.append((who, int(times(last)[k]), *told, f"{share:.1%}"))
    return Table(
        "Mean weights of the modes, and how often m2 is as good as refuted",
        ("modes are", "step", "m1", "m2", "m3", "P(m2) < 1 %"),
        tuple(rows),
    )
