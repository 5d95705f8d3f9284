"""One adaptive controller made of tuned ones, on the classic plants of Gymnasium.

    CartPole       twenty hypotheses: length and mass of the pole, sign of the force
    Pendulum       nine rods, swung up and held            MountainCar   ten hills, both gears

The control rule is compared with the right expert, every wrong one, the mean of their actions,
their vote, and the naive mixture. A motor that is rewired while the pole stands cannot be followed
by a static posterior; switching modes and fading evidence follow it.

    survived       the pole stands, and the cart is on its track, after all steps
    identified     P(m* | âo_≤t) ≥ .99 from some step to the end
    upright        cos φ > .95 over the last quarter of an episode

Shares are of episodes, each with a new plant, start and belief. The number of episodes that may
fail comes from a pilot on another seed,

    bayescontrol run experts --seed 1000 --runs 40

in which the rule identified and balanced the pole, followed its change, held the rod and climbed
the hill in 40 of 40 episodes. The mean and the vote of the experts did not keep the pole up in any.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.chance import least_successes
from bayescontrol.experiments.control.experts_replica import (
    AGENTS,
    BUMPLESS,
    CHANGES,
    HILL_AGENTS,
    HILL_STEPS,
    MEAN,
    NAIVE,
    RIGHT,
    ROD_AGENTS,
    RULE,
    VOTE,
    Settings,
    run,
)
from bayescontrol.experts import CARTPOLE_HYPOTHESES
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table, wilson
from bayescontrol.lab.chart import Chart, Colour, Guide, Marker, Panel, Series
from bayescontrol.report.tables import with_error

#: A rod counts as held if it is upright for this share of the right expert's time.
_MOST: Final = 0.95
_PILOT: Final = (40, 40)
_ALARMS: Final = 1e-3
_ORIGIN: Final = (
    "pilot on seed 1000: 40 of 40 episodes, and at least one here "
    "(false alarms: 1 in 1000; more with fewer than 3 episodes)"
)
_NONE: Final = "pilot on seed 1000: 0 of 40 episodes (false alarms: 1 in 100 at most)"


def score(settings: Settings, columns: Columns) -> Score:
    """Make all claims and four tables."""
    return Score(
        (*_pole_claims(settings, columns), *_other_claims(settings, columns)),
        (
            _agents(settings, columns),
            _experts(settings, columns),
            _change(settings, columns),
            _others(settings, columns),
        ),
    )


def upright(settings: Settings, columns: Columns) -> FloatArray:
    """Return the share of the last quarter of the steps with cos φ > .95, as [run, agent]."""
    last = max(1, settings.rod_steps // 4)
    return np.asarray((columns["height"][:, :, -last:] > 0.95).mean(axis=2))


def _share(stands: npt.NDArray[Any]) -> tuple[float, float]:
    """Return a share of episodes and its error, a quarter of Wilson's 95 % interval."""
    low, high = wilson(np.sum(stands), np.size(stands))
    return float(np.mean(stands)), float(high - low) / 4


def _enough(stands: npt.NDArray[np.bool_]) -> tuple[str, float, float, bool]:
    """Return the expected share, ours, its error, and whether chance explains ours."""
    least = max(1, least_successes(stands.size, _PILOT, _ALARMS))
    return f">= {least / stands.size:.3g}", *_share(stands), bool(stands.sum() >= least)


def _pole_claims(settings: Settings, columns: Columns) -> tuple[Claim, ...]:
    stood = columns["survived"] == settings.steps
    rule, mean, vote = (stood[:, AGENTS.index(name)] for name in (RULE, MEAN, VOTE))
    times, wired = columns["identified"], columns["wired"]
    found = np.isfinite(times)
    survived = {name: columns["changed"][:, i] == settings.steps for i, name in enumerate(CHANGES)}
    slower = min(CHANGES[1:], key=lambda name: survived[name].sum())
    followed, static = _enough(survived[slower]), _share(survived["static"])[0]
    fair, unfair = _share(mean)[0], _share(vote)[0]
    return (
        Claim(
            "identifies",
            "the control rule identifies the pole, one of twenty: share of the episodes",
            "ours", *_enough(found),
            f"median: the sign of the force after {np.median(wired):g} steps, the pole after "
            f"{np.median(times):g}", threshold_origin=_ORIGIN,
        ),
        Claim(
            "balances",
            f"the control rule keeps an unknown pole up for {settings.steps} steps",
            "ours", *_enough(rule), threshold_origin=_ORIGIN,
        ),
        Claim(
            "average-expert-fails",
            f"the mean of the experts' actions keeps the pole up for {settings.steps} steps in "
            "less than half of the episodes",
            "ours", "< 0.5", *_share(mean), max(fair, unfair) < 0.5,
            f"the vote of the experts: {unfair:g}. Half of the experts push the wrong way",
            threshold_origin=_NONE,
        ),
        Claim(
            "follows-change",
            f"rewired after {settings.change} steps, the pole still stands after {settings.steps}: "
            f"the lower of switching and fading, {slower}",
            "ours", *followed[:3], followed[3] and static < 0.5,
            f"a static posterior cannot follow: {static:g}", threshold_origin=_ORIGIN,
        ),
    )  # fmt: skip


def _other_claims(settings: Settings, columns: Columns) -> tuple[Claim, ...]:
    held = upright(settings, columns)
    rule, right = (held[:, ROD_AGENTS.index(name)] for name in (RULE, RIGHT))
    arrived = np.isfinite(columns["goal"][:, HILL_AGENTS.index(RULE)])
    return (
        Claim(
            "holds-the-rod",
            "an unknown rod is swung up and held: share of the last quarter of the steps, compared "
            "with the right expert",
            "ours", float(right.mean()), float(rule.mean()), _error(rule),
            _enough(rule >= _MOST * right)[-1], threshold_origin=_ORIGIN,
        ),
        Claim(
            "climbs-the-hill",
            "unknown hill and unknown gear: share of the episodes that reach the goal",
            "ours", *_enough(arrived), threshold_origin=_ORIGIN,
        ),
    )  # fmt: skip


def _error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else 0.0


def _agents(settings: Settings, columns: Columns) -> Table:
    rows = []
    for i, name in enumerate(AGENTS):
        steps = columns["survived"][:, i]
        rows.append((name, with_error(*_share(steps == settings.steps)), float(np.median(steps))))
    return Table(
        f"CartPole, one of twenty: who is up after {settings.steps} steps",
        ("agent", "share of the episodes", "median steps"), tuple(rows),
        f"{settings.runs} episodes; both velocities disturbed by {settings.noise:g} a step",
    )  # fmt: skip


def _experts(settings: Settings, columns: Columns) -> Table:
    stood, true = columns["experts"] == settings.steps, columns["pole"]
    signs = np.array([pole.sign for pole in CARTPOLE_HYPOTHESES])
    rows = []
    for m, pole in enumerate(CARTPOLE_HYPOTHESES):
        same, wired = true == m, signs[true] == pole.sign
        groups = (same, wired & ~same, ~wired)
        shares = (_percent(stood[group, m]) for group in groups)
        rows.append((pole.name, *shares))
    return Table(
        "Each expert by itself: share of the episodes survived",
        ("expert", "right", "right force, wrong pole", "wrong force"), tuple(rows),
        "the number of episodes in brackets",
    )  # fmt: skip


def _percent(stood: FloatArray) -> str:
    return f"{stood.mean():.2f} ({stood.size})" if stood.size else "none"


def _change(settings: Settings, columns: Columns) -> Table:
    rows = []
    for i, name in enumerate(CHANGES):
        steps = columns["changed"][:, i]
        force, pole = np.moveaxis(columns["after"][:, i, :, settings.change :], 1, 0)
        knows = force >= 0.5
        delay = np.where(knows.any(axis=1), knows.argmax(axis=1) + 1.0, np.inf)
        stood = steps == settings.steps
        end = f"{pole[stood, -1].mean():.2f}" if stood.any() else "none stands"
        rows.append((name, with_error(*_share(stood)), float(np.median(delay)), end))
    return Table(
        f"The motor is rewired after {settings.change} steps",
        (
            "belief",
            "share that stands",
            "steps until it believes in the new force",
            "P(the pole) at the end",
        ),
        tuple(rows),
        f"hazard {settings.hazard:g}, forgetting {settings.forgetting:g}; median of the steps, "
        "mean of the probability",
    )


def _others(settings: Settings, columns: Columns) -> Table:
    held = upright(settings, columns)
    rows: list[tuple[str | float, ...]] = []
    for i, name in enumerate(ROD_AGENTS):
        bump = f"{columns['bump'][:, i].mean():.2f}" if "rule" in name else ""
        rows.append(("Pendulum", name, f"{held[:, i].mean():.3f} upright", bump))
    for i, name in enumerate(HILL_AGENTS):
        goal = columns["goal"][:, i]
        reached = f"{np.isfinite(goal).mean():.3f} at the goal"
        rows.append(("MountainCar", name, reached, f"{np.median(goal):g} steps"))
    return Table(
        "Rods and hills",
        ("plant", "agent", "share", "largest jump of the torque, or median steps"), tuple(rows),
        "jumps: when the mode changes, mean over episodes of the largest",
    )  # fmt: skip


_MARKERS: Final[tuple[Marker, ...]] = (
    "circle", "square-open", "diamond", "triangle-up", "triangle-down",
)  # fmt: skip
_LOOKS: Final[Mapping[str, Any]] = {
    RULE: {"colour": "blue", "dash": "solid"},
    RIGHT: {"colour": "green", "dash": "dash"},
    NAIVE: {"colour": "vermillion", "dash": "solid"},
    MEAN: {"colour": "orange", "dash": "dashdot"},
    VOTE: {"colour": "purple", "dash": "dot"},
    BUMPLESS: {"colour": "sky", "dash": "dash"},
    "static": {"colour": "vermillion", "dash": "solid"},
    "switching": {"colour": "blue", "dash": "solid"},
    "fading": {"colour": "sky", "dash": "dash"},
}


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Draw survival, identification, the rewired motor, and the other plants."""
    note = f"{settings.runs} episode{'s' * (settings.runs > 1)}, bars: 95 % intervals"
    return {
        "balance": Chart(
            "CartPole, one of twenty: who is still up",
            [_survival(settings, columns["survived"], AGENTS, "")],
            "Higher is better. The control rule, which knows neither the pole nor the sign of the "
            "force, lasts as long as the expert who knows both. The mean of the experts and their "
            "vote fall at once: half of them push the wrong way. The naive mixture takes its first "
            "push for evidence, and falls if that was the wrong one.",
            note=note,
        ),
        "identify": Chart(
            "What the control rule knows",
            [_known(settings, columns), _times(settings, columns)],
            "Left: the probability of the true hypothesis, of twenty; it starts at 1/20. Right: "
            "the share of the episodes in which it stays above .99. One push shows the sign of the "
            "force; length and mass take longer, and even longer with a larger disturbance.",
            columns=2,
            note=f"{settings.runs} episodes",
        ),
        "change": Chart(
            "The motor is rewired while the pole stands",
            [
                _survival(settings, columns["changed"], CHANGES, "Still up"),
                _after(settings, columns),
            ],
            "At the dotted line the force changes its sign. A static posterior is so certain by "
            "then that it would need as many steps again to change, and the pole falls. Switching "
            "modes and fading evidence follow within a few steps. Right: the probability of the "
            "new sign of the force, median and quartiles.",
            columns=2,
            note=note,
        ),
        "rods-and-hills": Chart(
            "Unknown rods and hills",
            [_rods(settings, columns), _hills(settings, columns)],
            "Left: cos φ, 1 for a rod that stands upright, as a mean over the episodes. Right: the "
            "share of the episodes in which the car has reached the goal. The rule is as good as "
            "the right expert; on some hills a first push in the wrong direction even helps, "
            "because the experts are good but not optimal.",
            columns=2,
            note=f"{settings.runs} episodes",
        ),
    }


def _survival(settings: Settings, steps: FloatArray, names: tuple[str, ...], title: str) -> Panel:
    t = np.arange(1, settings.steps + 1)
    n = len(steps)
    series, ends = [], []
    for i, name in enumerate(names):
        # An episode that ends at step t does not count at t, unless it lasted all steps.
        up = (steps[:, i, None] > t).sum(axis=0)
        up[-1] = (steps[:, i] == settings.steps).sum()
        low, high = wilson(up[-1:], n)
        series.append(Series(name, t, up / n, kind="step", **_LOOKS[name]))
        look = {"colour": _LOOKS[name]["colour"], "marker": _MARKERS[i], "in_legend": False}
        ends.append(Series(name, t[-1:], up[-1:] / n, low, high, "points", **look))
    changes = names is CHANGES
    return Panel(
        title, "step t", "share of the episodes", [*series, *ends],
        [Guide("rewired", settings.change, "vertical")] if changes else [],
        xscale="linear" if changes else "log", ylim=(-0.03, 1.05), legend="below",
    )  # fmt: skip


def _quartiles(label: str, t: Any, values: FloatArray, **look: Any) -> Series:
    """Make a series of median and quartiles over the episodes that are still running."""
    runs = np.flatnonzero(np.isfinite(values).any(axis=0))
    low, middle, high = np.nanquantile(values[:, runs], (0.25, 0.5, 0.75), axis=0)
    return Series(label, t[runs], middle, low, high, **look)


def _known(settings: Settings, columns: Columns) -> Panel:
    t = np.arange(1, settings.steps + 1)
    known = _quartiles("median, quartiles", t, columns["posterior"])
    return Panel(
        "Probability of the true pole",
        "step t", "P(m* | past)", [known],
        [Guide("prior", 0.05)], xscale="log", ylim=(0.0, 1.05), legend="lower right",
    )  # fmt: skip


def _times(settings: Settings, columns: Columns) -> Panel:
    t = np.arange(1, settings.steps + 1)
    series = []
    looks: tuple[tuple[str, str, Colour], ...] = (
        ("the sign of the force", "wired", "green"), ("the pole", "identified", "blue"),
    )  # fmt: skip
    for label, name, colour in looks:
        share = (columns[name][:, None] <= t).mean(axis=0)
        series.append(Series(label, t, share, kind="step", colour=colour))
    return Panel(
        "Identified: above .99 until the end",
        "step t", "share of the episodes", series,
        xscale="log", ylim=(0.0, 1.05), legend="lower right",
    )  # fmt: skip


def _after(settings: Settings, columns: Columns) -> Panel:
    around = slice(max(0, settings.change - 10), min(settings.steps, settings.change + 40))
    t = np.arange(1, settings.steps + 1)[around]
    series = []
    for i, name in enumerate(CHANGES):
        values = columns["after"][:, i, 0, around]
        if np.isfinite(values).any():
            series.append(_quartiles(name, t, values, in_legend=False, **_LOOKS[name]))
    return Panel(
        "Belief in the new force", "step t", "probability", series,
        [Guide("rewired", settings.change, "vertical", in_legend=False)],
        ylim=(-0.03, 1.05),
    )  # fmt: skip


def _rods(settings: Settings, columns: Columns) -> Panel:
    t = np.arange(1, settings.rod_steps + 1)
    series = []
    for i, name in enumerate(ROD_AGENTS):
        mean = columns["height"][:, i].mean(axis=0)
        series.append(Series(name, t, mean, **_LOOKS[name]))
    return Panel(
        "Pendulum: nine rods", "step t", "cos φ, mean", series,
        ylim=(-1.05, 1.05), legend="below",
    )  # fmt: skip


def _hills(settings: Settings, columns: Columns) -> Panel:
    t = np.arange(1, HILL_STEPS + 1)
    series = []
    for i, name in enumerate(HILL_AGENTS):
        share = (columns["goal"][:, i, None] <= t).mean(axis=0)
        in_legend = name not in ROD_AGENTS
        series.append(Series(name, t, share, kind="step", in_legend=in_legend, **_LOOKS[name]))
    return Panel(
        "MountainCar: ten hills", "step t", "share at the goal", series,
        ylim=(-0.03, 1.05), legend="below",
    )  # fmt: skip


experiment = Experiment(
    name="experts",
    summary="experts for unknown plants: CartPole with either sign of force, rods, hills",
    settings=Settings, quick=Settings(runs=6), full=Settings(runs=200),
    run=run, score=score, figures=draw,
)  # fmt: skip
