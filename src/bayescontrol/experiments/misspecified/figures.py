"""Two figures: the e-process along single runs, and how often and how soon it raises the alarm.

lines    log10 E_t of single runs; the share of runs with an alarm by step t, and its interval
guides   log10 1/δ, where the alarm is raised; δ, which false alarms may not exceed
"""

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bayescontrol.experiments.misspecified.replica import DRAWN, PATHS, Settings, checkpoints
from bayescontrol.experiments.misspecified.worlds import INSIDE, OUTSIDE, WORLDS, distances
from bayescontrol.lab import Columns, wilson
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Dash, Guide, Marker, Series

_LOOKS: Final[Mapping[str, tuple[Colour, Dash]]] = {
    "lever 0": ("blue", "solid"),
    "lever 1": ("blue", "dash"),
    "lever 2": ("blue", "dot"),
    "worn 0.25": ("yellow", "solid"),
    "worn 0.5": ("orange", "solid"),
    "worn 0.75": ("vermillion", "dash"),
    "worn 1": ("vermillion", "solid"),
    "streaks": ("purple", "solid"),
}
#: log10 E beyond these is of no interest.
_SHOWN: Final = (-8.0, 12.0)


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Paths of the e-process, and the alarms.

    >>> from bayescontrol.experiments.misspecified.replica import run
    >>> few = Settings(runs=1, steps=30)
    >>> list(draw(few, {name: column[None] for name, column in run(few, 0).items()}))
    ['evidence', 'alarms']
    """
    shown = min(PATHS, settings.runs)
    return {
        "evidence": Chart(
            "The evidence that no mode fits, along single runs",
            [_paths(settings, columns, k) for k in range(len(DRAWN))],
            "Eₜ is how much better a predictor that assumes nothing explains what was observed up "
            "to step t than the best of the modes does: a ratio of probabilities. The alarm is "
            "raised where a line meets the dotted one, Eₜ = 1/δ. Inside the class (lever 0 is as "
            "a mode expects) the evidence sinks; outside it climbs (worn 0.5: half of the misses "
            "of lever 0 have become losses; streaks: a loss brings on the next). Here the agent "
            "pulls on after the alarm.",
            columns=len(DRAWN),
            note=f"{shown} run{'s' * (shown > 1)} of each world; δ = {settings.delta:g}",
        ),
        "alarms": Chart(
            "False alarms, power, delay, and what the fallback is worth",
            [
                _shares(settings, columns, INSIDE, "(a) Inside the class: false alarms"),
                _shares(settings, columns, OUTSIDE, "(b) Outside the class: power"),
                _delay(settings, columns),
                _earned(columns),
            ],
            "δ is how often the alarm may be false. Lever 0, 1, 2: worlds as one of three modes "
            "expects. Worn θ: a share θ of the misses of the good lever have become losses. "
            "Streaks: a loss brings on the next. (a) False alarms stay below δ at all times at "
            "once. (b) True ones come for sure. (c) The farther the world from the nearest mode, D "
            "nats a step, the sooner the alarm; on average none can be below the dashed line. (d) "
            "The blind agent pulls on after the alarm, the other rests: it pulls no lever any more "
            "and earns 0 from then on. That pays where the lever does harm, and costs where it "
            "does not.",
            columns=2,
            note=f"{settings.runs} run{'s' * (settings.runs > 1)}; bands of (a) and (b): Wilson's "
            "at two standard errors",
        ),
    }


def _paths(settings: Settings, columns: Columns, k: int) -> Panel:
    world, t = DRAWN[k], checkpoints(settings)
    colour, _ = _LOOKS[world]
    paths = columns["path"][: min(PATHS, settings.runs), k]
    series = [Series(world, t, path, colour=colour, in_legend=False) for path in paths]
    where = "inside the class" if world in INSIDE else "outside"
    alarm, (low, high) = -math.log10(settings.delta), _SHOWN
    return Panel(
        f"{world}: {where}", "step t", "log₁₀ Eₜ", series,
        [Guide("alarm: 1/δ", alarm, in_legend=k == 0)],
        ylim=(low, max(high, 2.0 * alarm)), legend="upper right",
    )  # fmt: skip


def _shares(settings: Settings, columns: Columns, worlds: tuple[str, ...], title: str) -> Panel:
    inside, runs = worlds is INSIDE, settings.runs
    t = np.unique(np.append(checkpoints(settings), settings.steps))
    series = []
    for world in worlds:
        colour, dash = _LOOKS[world]
        raised = (columns["step"][:, WORLDS.index(world), None] <= t).sum(axis=0)
        low, high = wilson(raised, runs, z=2.0)
        series.append(Series(world, t, raised / runs, low, high, colour=colour, dash=dash))
    top = max(1.9 * settings.delta, float(max(s.high.max() for s in series if s.high is not None)))
    return Panel(
        title, "step t", "share of runs with an alarm", series,
        [Guide("δ", settings.delta)], ylim=(0.0, min(1.0, 1.05 * top) if inside else 1.02),
        legend="upper right" if inside else "center right",
    )  # fmt: skip


def _delay(settings: Settings, columns: Columns) -> Panel:
    far, series = distances(), []
    for world in OUTSIDE:
        colour, _ = _LOOKS[world]
        step = np.minimum(columns["step"][:, WORLDS.index(world)], settings.steps)
        low, middle, high = (np.array([q]) for q in np.quantile(step, [0.25, 0.5, 0.75]))
        series.append(
            Series(
                world, np.array([far[world]]), middle, low, high,
                kind="points", colour=colour, in_legend=False,
            )
        )  # fmt: skip
    D = np.geomspace(0.8 * min(far[w] for w in OUTSIDE), 1.25 * max(far.values()), 40)
    bound = Series("ln(1/δ) / D", D, math.log(1 / settings.delta) / D, colour="ink", dash="dash")
    return Panel(
        "(c) Steps to the alarm", "D, nats a step", "step of the alarm, median",
        [*series, bound], yscale="log", xlim=(0.0, None),
        notes=["colours as in (b), bars: the middle half of the runs"], legend="upper right",
    )  # fmt: skip


def _earned(columns: Columns) -> Panel:
    x = np.arange(len(WORLDS))
    series = []
    looks: Mapping[str, tuple[str, Colour, Marker]] = {
        "blind": ("pulls on, blindly", "ink", "square-open"),
        "guarded": ("rests after the alarm", "green", "circle"),
    }
    for name, (label, colour, marker) in looks.items():
        look: Any = {"kind": "points", "colour": colour, "marker": marker}
        series.append(Series.of_runs(label, x, columns[name], **look))
    return Panel(
        "(d) What was earned",
        "world, by number", "reward a step",
        series, [Guide("resting", 0.0)], xticks=x.tolist(), legend="lower left",
        notes=["0 1 2: levers 0 1 2; 3 to 6: worn 0.25 to 1; 7: streaks"],
    )  # fmt: skip
