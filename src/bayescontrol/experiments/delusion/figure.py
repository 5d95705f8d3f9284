"""Four pictures of the delusion: trust, E[posterior], bits injected, Ville's bound."""

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.delusion.replica import AGENTS, Settings, processes
from bayescontrol.experiments.delusion.seen import Seen, all_seen
from bayescontrol.lab import Columns, mean_and_error, wilson
from bayescontrol.report import figures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

_COLOUR: Final = {"naive": figures.PALETTE[1], "causal": figures.PALETTE[0]}
_LINE: Final = {"prize": "-", "three modes": "--"}


def draw(settings: Settings, columns: Columns) -> "Mapping[str, Figure]":
    """Means over replicas with bands of two standard errors.

    >>> from bayescontrol.experiments.delusion.replica import run
    >>> few = Settings(runs=1, steps=3)
    >>> list(draw(few, {name: column[None] for name, column in run(few, 0).items()}))
    ['delusion']
    """
    seen = all_seen(settings, columns)
    fig, (trust, mean, bits, ville) = figures.figure(11, 8, rows=2, cols=2)
    _trust(trust, columns, seen)
    _mean(mean, settings, seen)
    _bits(bits, columns)
    _ville(ville, seen)
    fig.suptitle(f"means of {settings.runs} replicas, bands of two standard errors", fontsize=9)
    return {"delusion": fig}


def _band(ax: "Axes", x: FloatArray, samples: FloatArray, label: str, **line: Any) -> None:
    mean, error = mean_and_error(samples)
    figures.line_with_band(ax, x, mean, mean - 2 * error, mean + 2 * error, label, **line)


def _trust(ax: "Axes", columns: Columns, seen: dict[tuple[str, str], Seen]) -> None:
    for agent in AGENTS:
        believed, matched = columns[f"prize {agent} trust"], seen["prize", agent].matched
        t = np.arange(1.0, believed.shape[1] + 1)
        colour = _COLOUR[agent]
        _band(ax, t, believed, f"{agent}: believed", color=colour, linestyle="-")
        _band(ax, t, matched, f"{agent}: right", color=colour, linestyle=":")
    ax.set(
        xlabel="step t",
        ylabel="probability",
        ylim=(0.4, 1.03),
        title="(a) Prize or frog: “the prize is in the box I picked”",
    )
    figures.legend(ax, loc="center right")


def _mean(ax: "Axes", settings: Settings, seen: dict[tuple[str, str], Seen]) -> None:
    process = processes(settings.reliability)["three modes"]
    colours = [figures.PALETTE[k] for k in (0, 2, 5)]
    for agent, line in (("naive", "--"), ("causal", "-")):
        v = seen["three modes", agent].posterior
        t = np.arange(float(v.shape[1]))
        for m, colour in enumerate(colours):
            label = f"{agent}: “{process.modes[m].name}”"
            _band(ax, t, v[:, :, m], label, color=colour, linestyle=line)
        if agent == "naive":  # here, so that the legend has a column for each agent
            for m, prior in enumerate(process.prior):
                label = "_" if m else "prior"
                ax.axhline(prior, color="black", linewidth=1, linestyle=":", label=label)
    ax.set(
        xlabel="step t",
        ylabel="E[posterior(m)]",
        ylim=(0.1, 0.72),
        title="(b) Three modes: the mean posterior against the prior",
    )
    figures.legend(ax, ncols=2, loc="upper right", fontsize=8)


def _bits(ax: "Axes", columns: Columns) -> None:
    for process, line in _LINE.items():
        for agent in AGENTS:
            summed = columns[f"{process} {agent} step bits"].cumsum(1)
            t = np.arange(1.0, summed.shape[1] + 1)
            _band(ax, t, summed, f"{process}, {agent}", color=_COLOUR[agent], linestyle=line)
    ax.set(
        xlabel="step t",
        ylabel="false evidence, summed over steps [bits]",
        yscale="log",
        title="(c) What each agent's own actions would have injected",
    )
    figures.legend(ax)


def _ville(ax: "Axes", seen: dict[tuple[str, str], Seen]) -> None:
    delta = np.linspace(0.0, 1.0, 101)
    for process, line in _LINE.items():
        for agent in AGENTS:
            lowest = seen[process, agent].lowest[:, -1]
            fell = (lowest[:, None] < delta).sum(0)
            low, high = wilson(fell, len(lowest), z=2.0)
            figures.line_with_band(
                ax,
                delta,
                fell / len(lowest),
                low,
                high,
                f"{process}, {agent}",
                color=_COLOUR[agent],
                linestyle=line,
            )
    ax.plot(delta, delta, color="black", linewidth=1, linestyle=":", label="bound: δ")
    ax.set(
        xlabel="δ",
        ylabel="P(posterior(m*) < δ prior(m*) at some t)",
        ylim=(-0.02, 1.02),
        title="(d) Ville's bound: does the truth lose its weight?",
    )
    figures.legend(ax, loc="upper left")
