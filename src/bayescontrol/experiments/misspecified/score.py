"""Claims and the table of `misspecified`.

    inside     P(alarm, ever) ≤ δ, under every mode
    outside    P(alarm by t) → 1, and no alarm with this δ can do with E[step] < ln(1/δ) / D
    fallback   what resting from the alarm on is worth

Power is claimed of worlds that had the time to show: t D exceeds what q pays for learning. A
sound claim fails by chance with probability of about 1e-3: three standard errors and one run.
With fewer than FEWEST runs nothing is judged. In a pilot on another seed, `bayescontrol run
misspecified --seed 1000`, the alarm was raised in all of 400 runs in each of the worlds of `found`.
"""

import math
from itertools import pairwise
from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.chance import measured, told
from bayescontrol.experiments.misspecified.replica import FEWEST, Settings
from bayescontrol.experiments.misspecified.worlds import (
    ABOUT,
    INSIDE,
    REWARD,
    WORLDS,
    distances,
    machines,
)
from bayescontrol.lab import Claim, Columns, Outcome, Table, wilson
from bayescontrol.report.tables import with_error

_POWER: Final = 0.95
#: What q pays, at most, in nats, for learning the two cells it spends its time in, and some more.
_PRICE: Final = 40.0
_STREAKS: Final = len(WORLDS) - 1
#: What the good lever earns a step: the most that a false alarm can cost.
_BEST: Final = float(machines().hypothesis[0, 0, 0] @ REWARD)


def found(settings: Settings) -> list[int]:
    """The worn worlds in which the steps suffice for the alarm, the nearest first.

    >>> [WORLDS[k] for k in found(Settings())]
    ['worn 0.5', 'worn 0.75', 'worn 1']
    >>> found(Settings(steps=10))
    []
    """
    needed = _PRICE + math.log(1.0 / settings.delta)
    worn = range(len(INSIDE), _STREAKS)
    return [k for k in worn if settings.steps * distances()[WORLDS[k]] >= needed]


def score(settings: Settings, columns: Columns) -> Outcome:
    """All claims, and two tables.

    >>> from bayescontrol.experiments.misspecified.replica import run
    >>> few = Settings(runs=1, steps=50)
    >>> one = {name: column[None] for name, column in run(few, 0).items()}
    >>> only = score(few, one)  # a single run is not judged
    >>> only.claims, [table.title for table in only.tables][0]
    ((), 'Eight machines')
    """
    tables = _machines(), _table(settings, columns)
    if len(columns["step"]) < FEWEST:
        return Outcome((), tables)
    claims = [_false_alarms(settings, columns), _false_alarm_cost(settings, columns)]
    if found(settings):
        claims += [
            _power(settings, columns),
            _delay_bound(settings, columns),
            _delay_order(settings, columns),
            _fallback(settings, columns),
        ]
    if settings.steps * distances()[WORLDS[_STREAKS]] >= _PRICE / 2 + math.log(1 / settings.delta):
        claims.append(_streaks(settings, columns))
    return Outcome(tuple(claims), tables)


def _raised(columns: Columns) -> FloatArray:
    return np.asarray(np.isfinite(columns["step"]).mean(axis=0), np.float64)


def _slack(p: float, runs: int) -> float:
    """Three standard errors of a share with mean p, and one run."""
    return 3.0 * math.sqrt(p * (1.0 - p) / runs) + 1.0 / runs


def _error(share: float, runs: int) -> float:
    """Half of Wilson's interval at one standard error: above 0 also where all runs agree."""
    low, high = wilson(round(share * runs), runs, z=1.0)
    return float(high - low) / 2.0


def _false_alarms(settings: Settings, columns: Columns) -> Claim:
    n, delta = settings.runs, settings.delta
    share = float(_raised(columns)[: len(INSIDE)].max())
    return Claim(
        "false-alarms",
        f"under every mode the alarm is raised, by step {settings.steps}, in at most a share δ "
        "of the runs; here the worst mode",
        "ours", f"at most {delta:g}", share, _error(share, n),
        share <= delta + _slack(delta, n),
        "Ville's inequality: it may be looked at after every step; chance alone would not go "
        f"beyond {delta + _slack(delta, n):.2g}",
        threshold_origin="theory: Ville's inequality, three standard errors and one run",
    )  # fmt: skip


def _false_alarm_cost(settings: Settings, columns: Columns) -> Claim:
    cost = (columns["blind"] - columns["guarded"])[:, : len(INSIDE)].mean(axis=1)
    mean, error = _mean(cost)
    most = settings.delta * _BEST
    return Claim(
        "false-alarm-cost",
        "inside the class, where the alarm is false, resting after it costs at most δ times what "
        "the good lever earns, a step",
        "ours", f"at most {most:.3g}", mean, error,
        mean <= most + 3.0 * error + _BEST / settings.runs,
        threshold_origin="theory: Ville's inequality, three standard errors and one run",
    )  # fmt: skip


def _power(settings: Settings, columns: Columns) -> Claim:
    n = settings.runs
    share = float(_raised(columns)[found(settings)].min())
    names = ", ".join(WORLDS[k] for k in found(settings))
    return Claim(
        "power",
        f"outside the class the alarm is raised by step {settings.steps}; here the worst of "
        f"{names}",
        "ours", f"at least {_POWER:g}", share, _error(share, n),
        share >= _POWER - _slack(_POWER, n),
        threshold_origin="pilot on seed 1000: all of 400 runs in each world; three standard errors "
        "and one run",
    )  # fmt: skip


def _delays(settings: Settings, columns: Columns) -> dict[int, tuple[float, float]]:
    """Mean steps to the alarm with their errors; a run without one has taken all its steps."""
    steps = np.minimum(columns["step"], settings.steps)
    return {k: _mean(steps[:, k]) for k in found(settings)}


def _delay_bound(settings: Settings, columns: Columns) -> Claim:
    bound, far = math.log(1.0 / settings.delta), distances()
    spent = {
        k: (mean * far[WORLDS[k]], error * far[WORLDS[k]])
        for k, (mean, error) in _delays(settings, columns).items()
    }
    least = min(spent, key=lambda k: spent[k][0])
    return Claim(
        "delay-bound",
        "no alarm can do with less than ln 1/δ nats of evidence on average, steps times D; here "
        f"the quickest, in {WORLDS[least]}",
        "ours", f"at least {bound:.3g}", *spent[least],
        all(nats >= bound - 3.0 * error for nats, error in spent.values()),
        f"D: how many nats a step tells; the rest of the {spent[least][0]:.3g} is what the alarm "
        "pays for learning the world, of which it assumes nothing",
        threshold_origin="theory: no alarm is quicker; three standard errors",
    )  # fmt: skip


def _delay_order(settings: Settings, columns: Columns) -> Claim:
    delays = list(_delays(settings, columns).values())
    return Claim(
        "delay-order",
        "the farther the world from the nearest mode, the sooner the alarm; mean steps in "
        f"{', '.join(WORLDS[k] for k in found(settings))}",
        "ours", "falling", ", ".join(f"{mean:.4g}" for mean, _ in delays), None,
        all(near >= far - 3.0 * math.hypot(e, f) for (near, e), (far, f) in pairwise(delays)),
        threshold_origin="theory: the order of D, three standard errors",
    )  # fmt: skip


def _fallback(settings: Settings, columns: Columns) -> Claim:
    gains = {k: _mean(columns["guarded"][:, k] - columns["blind"][:, k]) for k in found(settings)}
    least = min(gains, key=lambda k: gains[k][0])
    mean, error = gains[least]
    return Claim(
        "fallback-gain",
        "where pulling on blindly, deaf to the alarm, loses, resting from the alarm on earns more, "
        f"a step; here the least, {WORLDS[least]}",
        "ours", "above 0", mean, error,
        mean > 3.0 * error, threshold_origin="theory: above 0 by three standard errors",
    )  # fmt: skip


def _streaks(settings: Settings, columns: Columns) -> Claim:
    n, delta = settings.runs, settings.delta
    share = float(_raised(columns)[_STREAKS])
    cost, _ = _mean((columns["blind"] - columns["guarded"])[:, _STREAKS])
    return Claim(
        "streaks-found",
        "losses that come in streaks are found, though no lever wins or loses more often than "
        f"its mode says; by step {settings.steps}",
        "ours", f"above {delta:g}", share, _error(share, n),
        share > delta + 3.0 * math.sqrt(delta * (1.0 - delta) / n),
        "the alarm says that the modes are wrong, not that they do harm: here resting costs "
        f"{cost:.2g} a step",
        threshold_origin="theory: above what false alarms may be, by three standard errors",
    )  # fmt: skip


def _mean(values: FloatArray) -> tuple[float, float]:
    """Mean and standard error; none where all runs agree."""
    mean, error = measured(values)
    return mean, error or 0.0


def _machines() -> Table:
    rows = []
    for k, world in enumerate(WORLDS):
        lever = k if k < len(INSIDE) else 0
        law = machines().hypothesis[k, :, lever]
        rare, often = law[0, 2], law[1, 2]
        share = rare / (1.0 + rare - often)  # of pulls that lose, in the long run
        odds = law[0] + (law[1] - law[0]) * share
        win, miss, loss = (float(f"{p:.6g}") for p in odds)
        rows.append((world, ABOUT[world], win, miss, loss, float(f"{odds @ REWARD:.3g}")))
    return Table(
        "Eight machines",
        ("world", "its good lever", "P(win)", "P(miss)", "P(loss)", "reward a pull"),
        tuple(rows),
        "A machine has three levers; a win pays 1, a miss 0, a loss costs 3. The first three are "
        "the modes: mode k expects lever k to be good and the others poor (.2, .4, .4), and pulls "
        "it. In the others lever 0 is not what any mode expects. Resting is always safe and earns "
        "0.",
    )


def _table(settings: Settings, columns: Columns) -> Table:
    share, far = _raised(columns), distances()
    rows = []
    for k, world in enumerate(WORLDS):
        step = columns["step"][:, k]
        middle = float(np.median(step))
        least = math.log(1.0 / settings.delta) / far[world] if far[world] else math.inf
        rows.append(
            (
                world,
                f"{far[world]:.4f}" if far[world] else "0",
                with_error(float(share[k]), _error(float(share[k]), len(step))),
                f"{middle:.0f}" if math.isfinite(middle) else "none",
                f"{least:.1f}" if math.isfinite(least) else "never",
                told(columns["blind"][:, k]),
                told(columns["guarded"][:, k]),
            )
        )
    return Table(
        f"Alarms by step {settings.steps} at δ = {settings.delta:g}, and what was earned a step",
        (
            "world", "D", "runs with an alarm", "median step", "ln(1/δ) / D",
            "pulls on, blindly", "rests after the alarm",
        ),
        tuple(rows),
        "δ: how often the alarm may be false. D: how far the world is from the nearest mode, nats "
        "a step (0: it is one of them). ln(1/δ) / D: no alarm is quicker on average, whatever it "
        "knows of the world. Last columns: reward a step of an agent that is deaf to the alarm, "
        "and of one that pulls no lever after it.",
    )  # fmt: skip
