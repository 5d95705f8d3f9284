"""The figures of `maze`: the map, what every agent does on it, and learning curves.

behaviour   one run of each agent: share of the steps in each cell, and the action most often
            taken there, over the first and the last steps
learning    mean reward in windows, and since the start: means of the runs ± 2 standard errors
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from bayescontrol.experiments.maze import maps
from bayescontrol.experiments.maze.replica import AGENTS, BLOCK, CONSTANTS, RULES, Settings, learner
from bayescontrol.experiments.maze.seen import Seen
from bayescontrol.lab import Columns
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Dash, Guide, Series
from bayescontrol.mdp import stationary_distribution

#: The same colour is the same agent in every figure of grid-worlds.
LOOKS: Final[Mapping[str, tuple[Colour, Dash]]] = {
    RULES[0]: ("blue", "solid"),
    RULES[1]: ("sky", "dash"),
    learner(200): ("orange", "dot"),
    learner(30): ("green", "dashdot"),
    learner(5): ("vermillion", "dash"),
}
#: The run whose behaviour is drawn.
_EXAMPLE: Final = 0
#: How many points a curve of windows has, at most, and how many blocks a window may hold.
_POINTS: Final = 60
_WINDOWS: Final = tuple(n * 10**k for k in range(7) for n in (1, 2, 5))


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """All figures.

    >>> from bayescontrol.experiments.maze.replica import run
    >>> small = Settings(runs=1, steps=3000, shown=500)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> sorted(draw(small, columns))
    ['behaviour', 'learning', 'setup']
    """
    seen = Seen(settings, columns)
    return {"setup": _setup(seen), "behaviour": _behaviour(seen), "learning": _learning(seen)}


def _setup(seen: Seen) -> Chart:
    maze, mdp, plan = seen.world.maze, seen.world.mdp, seen.world.plan
    (best,) = stationary_distribution(mdp, plan.policy)
    visits = np.zeros(mdp.allowed.shape)
    visits[np.arange(len(visits)), plan.policy] = best.probability
    return Chart(
        f"The maze {seen.settings.layout}",
        [
            maps.setup(maze, f"The map {seen.settings.layout}", ["ours: the paper's is not known"]),
            maps.behaviour(maze, visits, "The best policy", [f"exact: {plan.gain:.4f} a step"]),
        ],
        "Left: a cell is left for any of its neighbours, with probability 0.9 for the one meant. "
        "A cup is entered through its membranes, for a reward of 1, and left only below; going "
        "round through a cup again and again is the trap. From the goal the next cell is any, at "
        "random. Right: where the best policy spends its time, and what it does.",
        columns=2,
    )


def _behaviour(seen: Seen) -> Chart:
    shown = seen.settings.shown
    panels = []
    for last in (False, True):
        for name in AGENTS:
            visits = seen.visits(name, _EXAMPLE, last)
            note = f"{'last' if last else 'first'} {min(shown, seen.settings.steps):,} steps"
            panels.append(maps.behaviour(seen.world.maze, visits, _capital(name), [note]))
    return Chart(
        "What every agent does, at first and in the end",
        panels,
        "The more colour in a cell, the more of the steps were spent there; an arrow is the action "
        "most often taken. At first the control rule tries everything, because its modes "
        "disagree; in the end it goes straight for the goal. R-learning may come to rest before "
        "it has seen the goal often enough, and then goes round through one cup for ever.",
        columns=len(AGENTS),
        note=f"one run of each agent, the same start and luck: run {_EXAMPLE}",
    )


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _learning(seen: Seen) -> Chart:
    runs = seen.settings.runs
    return Chart(
        "Learning curves",
        [_windows(seen), _cumulative(seen)],
        "The higher the better; no policy earns more than the dotted line. R-learning is ahead at "
        "first, and stays where it comes to rest; the control rule explores for longer, by itself "
        "less and less, and ends at the top. Right: all that was earned since the start, so what "
        "exploration has cost is made up for where the curves cross.",
        columns=2,
        note=f"{runs} run{'s' * (runs > 1)} on {seen.settings.layout}; bands: ± 2 standard errors",
    )


def _windows(seen: Seen) -> Panel:
    blocks = seen.settings.steps // BLOCK
    count = next(n for n in _WINDOWS if blocks <= n * _POINTS)
    series = []
    for name, (colour, dash) in LOOKS.items():
        runs = seen.windows(name, count)
        t = (np.arange(runs.shape[1]) + 0.5) * count * BLOCK
        series.append(Series.of_runs(name, t, runs, colour=colour, dash=dash, in_legend=False))
    return Panel(
        f"In windows of {count * BLOCK:,} steps",
        "step t", "reward per step", series, [_best(seen)],
        ylim=(0.0, None), legend="below",
    )  # fmt: skip


def _cumulative(seen: Seen) -> Panel:
    t = np.arange(1, seen.settings.steps // BLOCK + 1) * BLOCK
    series = [
        Series.of_runs(name, t, seen.cumulative(name), colour=colour, dash=dash)
        for name, (colour, dash) in LOOKS.items()
    ]
    guides = [Guide("the best policy", seen.optimum, in_legend=False)]
    met = seen.crossing(RULES[0], learner(CONSTANTS[1]))[0]
    if np.isfinite(met) and met > 0:
        label = f"prior A passes C = {CONSTANTS[1]}: step {met:,.0f}"
        guides.append(Guide(label, met, "vertical", "blue"))
    return Panel(
        "Since the start",
        "step t", "mean reward of all steps so far", series, guides,
        ylim=(0.0, None), legend="below",
    )  # fmt: skip


def _best(seen: Seen) -> Guide:
    return Guide(f"the best policy: {seen.optimum:.4f}", seen.optimum, group="the best policy")
