"""The figures of `lqr`: what the gain in use costs, regret, and the posterior on its way.

gains       J(K_t)/J* - 1, exact: medians of the runs, and the middle half of them
regret      in units of J*, with √t to compare with
posterior   where 95 % of two coefficients are, after so many steps of one run
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.experiments.lqr.replica import (
    CERTAIN,
    EXPLORING,
    LAZY,
    PAIRS,
    RULE,
    WARM,
    Settings,
    checkpoints,
    system,
)
from bayescontrol.experiments.lqr.seen import Seen
from bayescontrol.lab import Columns
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Dash, Region, Series
from bayescontrol.linear import PLANTS

#: Low, middle and high.
_Band: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
_LOOKS: Final[Mapping[str, tuple[Colour, Dash]]] = {
    RULE: ("blue", "solid"),
    LAZY: ("sky", "dash"),
    WARM: ("green", "solid"),
    CERTAIN: ("vermillion", "dashdot"),
    EXPLORING: ("orange", "dot"),
}
#: The run whose posterior is drawn, and the radius of 95 % of a Gaussian in the plane.
_EXAMPLE: Final = 0
_RADIUS: Final = 2.4477468306808166
_SHADES: Final = (0.12, 0.3, 0.55, 0.9)
_COEFFICIENTS: Final = {
    "double-integrator": ("A₂₂: speed on speed", "B₂₁: push on speed"),
    "aircraft": ("A₂₂: vertical speed on itself", "B₂₁: elevator on vertical speed"),
}


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """All figures.

    >>> from bayescontrol.experiments.lqr.replica import run
    >>> small = Settings(runs=1, steps=64)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> sorted(draw(small, columns))
    ['gains', 'posterior', 'regret']
    """
    seen = Seen(settings, columns)
    runs = seen.runs
    note = f"{runs} run{'s' * (runs > 1)}: medians, and the middle half of them"
    return {
        "gains": Chart(
            "What the gain in use costs",
            [_gains(seen, name) for name in PLANTS],
            "The lower the better: how much more than the best gain the one in use would cost for "
            "ever, computed from the true plant. A line begins where half of the runs have a gain "
            "that stabilises. Whoever explores most has the best gain in the end, and has paid for "
            "it: see the regret.",
            columns=3,
            note=note,
        ),
        "regret": Chart(
            "Regret",
            [_regrets(seen, name) for name in PLANTS],
            "The lower the better: costs so far beyond those of the best controller with the same "
            "noise. A line no steeper than the dotted one grows like the root of time or slower. "
            "The rule without a warm start pays for its first draws, before it knows anything, and "
            "little after that.",
            columns=3,
            note=f"{note}; where regret is negative there is no line",
        ),
        "posterior": Chart(
            "The posterior shrinks onto the truth",
            [_posterior(seen, name) for name in PAIRS],
            "Each ellipse holds 95 % of the posterior of two coefficients of the plant; the darker "
            "the later. The star is the truth: nineteen of twenty ellipses should hold it.",
            columns=2,
            note=f"run {_EXAMPLE} of the {WARM}",
        ),
    }


def _middle(runs: FloatArray) -> _Band:
    """Median and quartiles; of few runs those that are there, so that ∞ stays ∞."""
    low, middle, high = np.quantile(runs, [0.25, 0.5, 0.75], axis=0, method="nearest")
    return low, middle, high


def _gains(seen: Seen, plant: str) -> Panel:
    t, series = checkpoints(seen.settings), []
    for agent, (colour, dash) in _LOOKS.items():
        band = _middle(seen.excess(plant, agent))
        series.append(_band(plant, agent, t, band, colour, dash))
    return Panel(
        plant, "step t", "J(K) / J* − 1", series,
        xscale="log", yscale="log", xlim=(1.0, None), ylim=(None, 30.0),
        legend="below", legend_columns=3,
    )  # fmt: skip


def _band(plant: str, agent: str, t: IntArray, band: _Band, colour: Colour, dash: Dash) -> Series:
    low, middle, high = band
    first = plant == next(iter(PLANTS))  # one legend for all panels
    return Series(agent, t, middle, low, high, colour=colour, dash=dash, in_legend=first)


def _regrets(seen: Seen, plant: str) -> Panel:
    t, series = checkpoints(seen.settings), []
    for agent, (colour, dash) in _LOOKS.items():
        band = _middle(seen.regret(plant, agent))
        series.append(_band(plant, agent, t, band, colour, dash))
    ends = [float(s.y[-1]) for s in series if 0 < s.y[-1] < np.inf]
    guide = 0.5 * min(ends, default=1.0) * np.sqrt(t / t[-1])
    first = plant == next(iter(PLANTS))
    series.append(Series("∝ √t", t, guide, colour="ink", dash="dot", in_legend=first))
    return Panel(
        plant, "step t", "regret / J*", series,
        xscale="log", yscale="log", xlim=(1.0, None), legend="below", legend_columns=3,
    )  # fmt: skip


def _posterior(seen: Seen, plant: str) -> Panel:
    settings, (row, j, k) = seen.settings, PAIRS[plant]
    t, posterior = checkpoints(settings), seen.columns["posterior"]
    shown = posterior[_EXAMPLE, list(PAIRS).index(plant)]
    begun = min(max(4, settings.warm_up), settings.steps)
    wanted = np.geomspace(begun, settings.steps, len(_SHADES))
    places = [int(np.argmin(np.abs(np.log(t / w)))) for w in wanted]
    angle = np.linspace(0.0, 2 * np.pi, 120, endpoint=False)
    circle = _RADIUS * np.stack([np.cos(angle), np.sin(angle)])
    regions = []
    for place, shade in zip(places, _SHADES, strict=True):
        a, b, aa, ab, bb = shown[place]
        x, y = np.linalg.cholesky([[aa, ab], [ab, bb]]) @ circle
        regions.append(Region(f"t = {t[place]:,}", a + x, b + y, shade=shade))
    truth = np.hstack([system(plant).A, system(plant).B])[row]
    x_name, y_name = _COEFFICIENTS[plant]
    return Panel(
        plant, x_name, y_name,
        [Series("truth", truth[[j]], truth[[k]], kind="points", colour="orange", marker="star")],
        regions=regions, legend="best",
    )  # fmt: skip
