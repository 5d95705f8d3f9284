"""The figures of `chain`: identification times against k, and the growing chain.

    lines     exact: E T of each agent, P(T ≤ t) of each schedule
    markers   simulated: means with two standard errors, shares of the runs with Wilson's interval

The same colour is the same agent in both figures.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bayescontrol.experiments.chain.replica import (
    AGENTS,
    BAYES_OPTIMAL,
    GROWING,
    RULE,
    Settings,
    growing_agent,
    growing_label,
    simulated,
)
from bayescontrol.experiments.chain.score import exact, growing_law
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns, mean_and_error, wilson
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import PALETTE, Dash, Marker, Series
from bayescontrol.problems.chain import GrowingChain
from bayescontrol.record import Probe

_MARKERS: Final[tuple[Marker, ...]] = (
    "circle", "square", "diamond", "triangle-up", "triangle-down", "star",
)  # fmt: skip
_DASHES: Final[tuple[Dash, ...]] = ("solid", "dash", "dashdot", "dot", "solid", "dash")
#: The agents on the growing chain, in the order of their column.
_ORDER: Final = (*GROWING, BAYES_OPTIMAL)
#: Means with a closed form that is worth a place in the legend.
_FORMULAS: Final = {
    RULE: "every step: 2ᵏ − 1",
    "Every(k)": "Every(k): k",
    BAYES_OPTIMAL: "Bayes-optimal: k",
}
#: The run that is drawn as an example.
_EXAMPLE: Final = 1


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """Both figures.

    >>> from bayescontrol.experiments.chain.replica import run
    >>> small = Settings(runs=1, k_max=2, scale=2, growing_steps=8)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> sorted(draw(small, columns))
    ['growing-chain', 'identification-time']
    """
    return {
        "identification-time": Chart(
            "Steps to identify a chain of length k",
            [_times(settings, columns)],
            "The lower, the sooner an agent knows its world. The rule that draws a mode anew at "
            "each step needs twice as long for every further link (a straight line, as the axis "
            "counts doublings); agents that hold a mode, or plan, stay near k steps.",
        ),
        "growing-chain": Chart(
            "The growing chain",
            [_runs(settings), _probabilities(settings, columns)],
            "Left: an agent identifies its world when its row of equal actions meets the curve "
            "of those required, which grows as it waits. Right: the higher, the more runs have "
            "got there; the rule and modes held for a fixed, short time stay at zero, modes held "
            "ever longer reach one.",
            columns=2,
        ),
    }


def _times(settings: Settings, columns: Columns) -> Panel:
    all_k = np.arange(1, settings.k_max + 1)
    lines, markers = [], []
    for i, name in enumerate(AGENTS):
        means = np.array([exact(name, int(k)).mean for k in all_k])
        lines.append(_line(i, name, all_k, means, dash=_DASHES[i]))
        ks = np.array([k for k in all_k if simulated(settings, name, int(k))])
        mean, error = mean_and_error(columns["time"][:, i, : len(ks)])
        label = _FORMULAS.get(name, name)
        markers.append(_points(i, name, label, ks, mean, mean - 2 * error, mean + 2 * error))
    return Panel(
        "",
        "length of the chain, k",
        "steps to identification",
        [*lines, *markers],
        yscale="log2",
        xticks=all_k.tolist(),
        notes=[f"Lines: exact means. Markers: {settings.runs} runs, ± 2 standard errors"],
        legend="upper left",
    )


def _line(i: int, agent: str, x: Any, y: Any, **look: Any) -> Series:
    return Series(agent, x, y, colour=PALETTE[i], in_legend=False, **look)


def _points(i: int, agent: str, label: str, x: Any, y: Any, low: Any, high: Any) -> Series:
    # Every(k) lies under the Bayes-optimal line: an open square shows both.
    marker = "square-open" if agent == "Every(k)" else _MARKERS[i]
    return Series(label, x, y, low, high, "points", PALETTE[i], marker=marker, group=agent)


def _runs(settings: Settings) -> Panel:
    growing, until = GrowingChain(settings.scale), settings.growing_steps
    t = np.arange(1, until + 1)
    required = np.array([growing.required(int(n)) for n in t])
    series = [Series(f"required: k = ⌈{settings.scale} √t⌉", t, required, colour="ink")]
    probes = {
        "run": Probe(lambda agent, _a, _o: agent.x[2]),
        "sure": Probe(lambda agent, _a, _o: bool(agent.belief.posterior().min() == 0.0)),
    }
    for i, name in enumerate(_ORDER):
        if name in ("Every(s²/2)", "Geometric(2/s²)"):
            continue
        agent = growing_agent(settings.scale, name)
        steps = until if name in GROWING else min(until, agent.plan.horizon)
        world = growing.environment(_EXAMPLE)
        record = interact(agent, world, steps, seed=settings.seed, run=_EXAMPLE, probes=probes)
        sure = np.flatnonzero(record["sure"])
        end = int(sure[0]) + 1 if sure.size else steps
        series.append(_line(i, name, t[:end], record["run"][:end]))
        if sure.size:
            met = slice(end - 1, end)
            found = _line(i, name, t[met], record["run"][met], kind="points", marker=_MARKERS[i])
            series.append(found)
    return Panel(
        "One run of each agent",
        "step t",
        "equal actions in a row",
        series,
        notes=["Markers: identified"],
        legend="upper left",
    )


def _probabilities(settings: Settings, columns: Columns) -> Panel:
    scale, until, runs = settings.scale, settings.growing_steps, settings.runs
    t = np.arange(1, until + 1)
    at = np.unique(np.linspace(1, until, 9).astype(int))
    lines, markers = [], []
    for i, name in enumerate(_ORDER):
        if name == BAYES_OPTIMAL:
            law, label = (t == scale**2).astype(float), name
        else:
            law, label = growing_law(scale, name)[:until], growing_label(scale, name)
        lines.append(_line(i, name, t[: law.size], np.cumsum(law), kind="step"))
        found = (columns["growing"][:, i, None] <= at).sum(axis=0)
        markers.append(_points(i, name, label, at, found / runs, *wilson(found, runs)))
    return Panel(
        "Who has identified its world",
        "step t",
        "P(identified by step t)",
        [*lines, *markers],
        ylim=(-0.03, 1.08),
        notes=[f"Lines: exact. Markers: {runs} runs, 95 % intervals"],
        legend="below",
    )
