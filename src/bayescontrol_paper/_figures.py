"""Shared by the figures of the experiments: titles, captions, and series over the runs.

    def regret(settings: Settings, columns: Columns) -> Figure:
        \"\"\"Regret

        Lower is better.

        {settings.runs} runs
        \"\"\"
        return Figure([_regret_panel(settings, columns)])

    experiment = Experiment(…, figures=Figures(regret))

The docstring of such a function is what a reader sees: the title of the figure, the caption, which
says how to read it, and possibly a note. The name of the function, with dashes and without the
ending `_figure`, is the name of the figure.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.lab import Columns, wilson
from bayescontrol.plot.chart import Chart, Colour, Dash, Marker, Panel, Series
from bayescontrol_paper._claims import paragraphs


class Figure(NamedTuple):
    """A chart without its title and caption, and without its note if that is in the docstring.

    `paper` has a remark by the number of each figure of the paper that this one shows. `columns` is
    the number of panels in a row; 0 means three, or two for two or four panels. `more` is added to
    the caption.
    """

    panels: Sequence[Panel]
    note: str = ""
    paper: Mapping[int, str] = {}
    columns: int = 0
    more: str = ""

    def chart(self, title: str, caption: str, note: str = "") -> Chart:
        """Return the chart with its title, its caption and its note."""
        n, full_caption = len(self.panels), f"{caption} {self.more}".rstrip()
        columns = self.columns or (2 if n in (2, 4) else min(n, 3))
        return Chart(title, self.panels, full_caption, columns, self.note or note, self.paper)


class Figures:
    """The `figures` of an experiment, drawn by one function each."""

    def __init__(self, *functions: Callable[[Any, Columns], Figure]) -> None:
        self.functions = functions

    def __call__(self, settings: object, columns: Columns) -> dict[str, Chart]:
        """Draw all figures."""
        drawn = {}
        for draw in self.functions:
            name = draw.__name__.strip("_").removesuffix("_figure").replace("_", "-")
            drawn[name] = draw(settings, columns).chart(*paragraphs(draw, settings=settings))
        return drawn


def spread_of_runs(
    label: str, x: Any, runs: FloatArray, share: float = 0.9, **style: Any
) -> Series:
    """Make a series of the median over the runs, with a band that contains a share of them."""
    levels = ((1.0 - share) / 2.0, 0.5, (1.0 + share) / 2.0)
    low, middle, high = np.quantile(runs, levels, axis=0, method="inverted_cdf")
    return Series(label, x, middle, low, high, **style)


def share_of_runs(label: str, x: Any, hits: Any, z: float = 2.0, **style: Any) -> Series:
    """Make a series of the share of the runs in which hits[run, x] is true, with Wilson's interval.

    The interval has `z` standard errors on either side.

    >>> share_of_runs("found", np.arange(2), np.array([[True, False], [True, True]])).y.tolist()
    [1.0, 0.5]
    """
    count = hits.sum(axis=0)
    low, high = wilson(count, len(hits), z=z)
    return Series(label, x, count / len(hits), low, high, **style)


def mean_of_runs(label: str, x: Any, runs: FloatArray, **style: Any) -> Series:
    """Make a series of the mean over the runs, with a band that contains 90 % of them.

    A mean outside the 90 % widens the band: a few runs may move it a lot.
    """
    mean = runs.mean(axis=0)
    low, high = np.quantile(runs, (0.05, 0.95), axis=0, method="inverted_cdf")
    return Series(label, x, mean, np.minimum(low, mean), np.maximum(high, mean), **style)


def sorted_runs(values: Mapping[str, FloatArray], title: str, ylabel: str, **axes: Any) -> Panel:
    """Draw the values of each agent in increasing order, against the share of runs.

    `values` has one value per run for each agent; every agent has its own marker.
    """
    series = []
    for (agent, runs), marker in zip(values.items(), get_args(Marker), strict=False):
        share_below = (np.arange(runs.size) + 0.5) / runs.size
        series.append(Series(agent, share_below, np.sort(runs), marker=marker))
    xlabel = "share of runs with a lower value"
    return Panel(title, xlabel, ylabel, series, xlim=(0.0, 1.0), legend="below", **axes)


def look(colour: Colour, dash: Dash = "solid") -> dict[str, Any]:
    """Return a colour and a dash as options of a series.

    >>> look("blue")
    {'colour': 'blue', 'dash': 'solid'}
    """
    return {"colour": colour, "dash": dash}
