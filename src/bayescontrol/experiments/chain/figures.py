"""The figures of `chain`: identification times against k, and the growing chain.

    lines     exact: E T of each agent, P(T ≤ t) of each schedule
    markers   simulated: means with two standard errors, shares of the runs with Wilson's interval

The same colour is the same agent in both figures.
"""

from typing import TYPE_CHECKING, Any, Final

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
from bayescontrol.problems.chain import GrowingChain
from bayescontrol.record import Probe
from bayescontrol.report.figures import PALETTE, figure, legend

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

_MARKERS: Final = "osD^v*"
#: The agents on the growing chain, in the order of their column.
_ORDER: Final = (*GROWING, BAYES_OPTIMAL)
#: Means with a closed form that is worth a place in the legend.
_FORMULAS: Final = {
    RULE: "every step: $2^k - 1$",
    "Every(k)": "Every(k): k",
    BAYES_OPTIMAL: "Bayes-optimal: k",
}
#: The run that is drawn as an example.
_EXAMPLE: Final = 1


def draw(settings: Settings, columns: Columns) -> "Mapping[str, Figure]":
    """Both figures.

    >>> from bayescontrol.experiments.chain.replica import run
    >>> small = Settings(runs=1, k_max=2, scale=2, growing_steps=8)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> sorted(draw(small, columns))
    ['growing-chain', 'identification-time']
    """
    times, (ax,) = figure(6.8, 4.4)
    _times(ax, settings, columns)
    growing, (left, right) = figure(10.0, 4.2, cols=2)
    _runs(left, settings)
    _probabilities(right, settings, columns)
    return {"identification-time": times, "growing-chain": growing}


def _times(ax: "Axes", settings: Settings, columns: Columns) -> None:
    all_k = np.arange(1, settings.k_max + 1)
    for i, name in enumerate(AGENTS):
        means = [exact(name, int(k)).mean for k in all_k]
        ax.plot(all_k, means, color=PALETTE[i], linewidth=1.5)
        ks = [int(k) for k in all_k if simulated(settings, name, int(k))]
        mean, error = mean_and_error(columns["time"][:, i, : len(ks)])
        bars = 2 * np.where(np.isfinite(error), error, 0.0)
        # Every(k) lies under the Bayes-optimal line: a hollow square shows both.
        shape = {"markersize": 9, "markerfacecolor": "none"} if name == "Every(k)" else {}
        _markers(ax, i, ks, mean, bars, _FORMULAS.get(name, name), **shape)
    ax.set_yscale("log", base=2)
    ax.set(
        xlabel="length of the chain, k",
        ylabel="steps to identification",
        title=f"Lines: exact means. Markers: {settings.runs} runs, ± 2 standard errors",
    )
    ax.title.set_fontsize(10)
    ax.set_xticks(all_k)
    legend(ax)


def _markers(ax: "Axes", i: int, x: Any, y: Any, bars: Any, label: str, **shape: Any) -> None:
    style = {"markersize": 4.5, "capsize": 2, "linestyle": "none", **shape}
    ax.errorbar(x, y, bars, label=label, marker=_MARKERS[i], color=PALETTE[i], **style)


def _runs(ax: "Axes", settings: Settings) -> None:
    growing, until = GrowingChain(settings.scale), settings.growing_steps
    t = np.arange(1, until + 1)
    ax.plot(t, [growing.required(int(n)) for n in t], color=PALETTE[6], linestyle="-", linewidth=2)
    label = f"required: k = ⌈{settings.scale} √t⌉"
    ax.text(0.97, 0.72, label, transform=ax.transAxes, ha="right", fontsize=9)
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
        ax.plot(t[:end], record["run"][:end], color=PALETTE[i], linestyle="-", linewidth=1.3)
        if sure.size:
            ax.plot(t[end - 1], record["run"][end - 1], _MARKERS[i], color=PALETTE[i])
    ax.set(xlabel="step t", ylabel="equal actions in a row", title="One run; markers: identified")


def _probabilities(ax: "Axes", settings: Settings, columns: Columns) -> None:
    scale, until, runs = settings.scale, settings.growing_steps, settings.runs
    t = np.arange(1, until + 1)
    at = np.unique(np.linspace(1, until, 9).astype(int))
    for i, name in enumerate(_ORDER):
        if name == BAYES_OPTIMAL:
            law, label = (t == scale**2).astype(float), name
        else:
            law, label = growing_law(scale, name)[:until], growing_label(scale, name)
        ax.plot(t[: law.size], np.cumsum(law), color=PALETTE[i], linestyle="-", linewidth=1.5)
        found = (columns["growing"][:, i, None] <= at).sum(axis=0)
        low, high = wilson(found, runs)
        share = found / runs
        _markers(ax, i, at, share, (share - low, high - share), label)
    ax.set(xlabel="step t", ylabel="P(identified by step t)", ylim=(-0.03, 1.08))
    ax.set_title(f"Lines: exact. Markers: {runs} runs, 95 % intervals")
    legend(ax, loc="center right", bbox_to_anchor=(1.0, 0.31))
