"""Plots of one run: each function draws on Matplotlib axes and returns them.

    running mean    (y_{t-w+1} + … + y_t) / w, over the last w steps, or all steps if t < w

Without `ax` a new figure is made. Lines differ in colour and in dashes. Long runs are thinned to
about a thousand points.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, get_args

import numpy as np
import numpy.typing as npt

from bayescontrol import performance
from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.errors import MissingCapability
from bayescontrol.plot import figures
from bayescontrol.plot.chart import PALETTE, Dash, Guide, Panel, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: At most this many points on a line, and lines in a plot.
_POINTS: Final = 1000
_LINES: Final = 7
#: The default window of a running mean, as a share of the steps.
_WINDOW: Final = 0.05
_DASHES: Final = get_args(Dash)


class Record(performance.Run, Protocol):
    """A `bayescontrol.Record`."""

    probes: dict[str, npt.NDArray[Any]]
    mode_names: tuple[str, ...]

    def __len__(self) -> int: ...


def run(record: Record, world: Any = None) -> npt.NDArray[Any]:
    """Draw all that a record holds, one plot below the other, and return the axes.

    That is the posterior, the drawn mode and the surprise if they were probed, observations and
    actions that are numbers or names, and with `world` the regret. Observations are called rewards
    if they have a field `reward` or `world` knows its mean rewards.

    >>> from bayescontrol import BernoulliBandit, interact
    >>> bandit = BernoulliBandit(["red", "blue"])
    >>> world = bandit.environment([0.2, 0.7])
    >>> record = interact(bandit.agent(), world, 500, seed=0)
    >>> [ax.get_ylabel() for ax in run(record, world)]
    ['mean reward', 'regret', 'share']
    """
    plots: dict[str, Callable[..., Any]] = {
        "posterior": posterior, "drawn_mode": drawn_mode, "log_score": surprise,
    }  # fmt: skip
    chosen = [plot for name, plot in plots.items() if _fits(record.probes.get(name), name)]
    o, a = record.observations, record.actions
    if performance.knows_means(world) or "reward" in (o.dtype.names or ()):
        chosen.append(reward)
    elif o.ndim == 1 and o.dtype.kind in "bif":
        chosen.append(partial(_draw_signal, o, "Observation", averaged=_is_discrete(a)))
    if world is not None:
        chosen.append(lambda record, ax: regret(record, world, ax))
    if _is_discrete(a):
        chosen.append(action_shares)
    elif a.ndim == 1 and a.dtype.kind == "f":
        chosen.append(partial(_draw_signal, a, "Action", averaged=False))
    if not chosen or not len(record):
        raise MissingCapability(f"nothing can be drawn of {record!r}: add probes to interact")
    axes = figures.new_axes(len(chosen))
    for plot, ax in zip(chosen, axes, strict=True):
        plot(record, ax=ax).set_xlabel("" if ax is not axes[-1] else "step t")
    return axes


def posterior(record: Record, ax: "Axes | None" = None) -> "Axes":
    """Draw P(m | âo_≤t) of each mode over time; needs the probe "posterior".

    With many modes, those that were once most probable are drawn, and the sum of the others.

    >>> from bayescontrol import interact
    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> modes = prize_or_frog(0.75)
    >>> record = interact(modes.agent(), modes.environment(0), 20, seed=0, probes=["posterior"])
    >>> posterior(record).get_legend_handles_labels()[1]
    ['prize left', 'prize right']
    """
    values = _probe(record, "posterior")
    curves = dict(zip(_mode_names(record, values.shape[1]), values.T, strict=True))
    lines = _most_prominent(curves, "other modes")
    return _draw_lines(lines, "Posterior of the modes", "P(m | past)", ax, ylim=(-0.02, 1.02))


def drawn_mode(record: Record, ax: "Axes | None" = None) -> "Axes":
    """Draw the mode that chose each action; needs the probe "drawn_mode".

    >>> from bayescontrol import interact
    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> modes = prize_or_frog(0.75)
    >>> record = interact(modes.agent(), modes.environment(0), 20, seed=0, probes=["drawn_mode"])
    >>> [label.get_text() for label in drawn_mode(record).get_yticklabels()]
    ['prize left', 'prize right']
    """
    drawn = _probe(record, "drawn_mode")
    names = _mode_names(record, int(drawn.max(initial=0)) + 1)
    shown = np.unique(drawn)
    t = _thinned(len(drawn))
    series = Series("mode", t + 1, np.searchsorted(shown, drawn[t]), kind="points", in_legend=False)
    panel = Panel("Mode drawn", "step t", "mode", [series], ylim=(-0.6, len(shown) - 0.4))
    ax = figures.draw(panel, ax)
    if len(shown) <= 2 * _LINES:
        ax.set_yticks(range(len(shown)), [names[m] if m >= 0 else "none" for m in shown])
    return ax


def surprise(record: Record, ax: "Axes | None" = None, window: int | None = None) -> "Axes":
    """Draw the running mean of -log2 P(o_t | past); needs the probe "log_score".

    >>> from bayescontrol import interact
    >>> from bayescontrol.problems.examples import prize_or_frog
    >>> modes = prize_or_frog(0.75)
    >>> record = interact(modes.agent(), modes.environment(0), 20, seed=0, probes=["log_score"])
    >>> surprise(record).get_ylabel()
    'bits per step'
    """
    return _draw_mean("Surprise", "bits per step", _probe(record, "log_score"), window, ax)


def reward(
    record: Record,
    ax: "Axes | None" = None,
    window: int | None = None,
    reward: Callable[[Any, Any], float] | None = None,
) -> "Axes":
    """Draw the running mean of the rewards, by default over 5 % of the steps.

    `reward(a, o)` computes the reward of a step if the observation is not the reward.

    >>> from bayescontrol import Record
    >>> reward(Record(["red", "blue"], [0, 1])).get_ylabel()
    'mean reward'
    """
    return _draw_mean("Reward", "mean reward", performance.rewards(record, reward), window, ax)


def regret(record: Record, world: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw the cumulative regret of a run in a world with known mean rewards.

    >>> from bayescontrol import BernoulliBandit, Record
    >>> world = BernoulliBandit(["red", "blue"]).environment([0.25, 0.75])
    >>> regret(Record(["red", "blue"], [0, 1]), world).get_ylabel()
    'regret'
    """
    lines = {"regret": performance.regret(record, world)}
    return _draw_lines(lines, "Cumulative regret", "regret", ax)


def action_shares(record: Record, ax: "Axes | None" = None, window: int | None = None) -> "Axes":
    """Draw how often each action was taken, as a share of the last `window` steps.

    >>> from bayescontrol import Record
    >>> action_shares(Record(["red", "blue"], [0, 1])).get_legend_handles_labels()[1]
    ['blue', 'red']
    """
    if not _is_discrete(record.actions):
        raise MissingCapability(
            f"the actions are {record.actions.dtype} of shape {record.actions.shape}: shares can "
            "be drawn for discrete actions only"
        )
    w = _window(len(record), window)
    curves = {str(a): _running_mean(record.actions == a, w) for a in np.unique(record.actions)}
    lines = _most_prominent(curves, "other actions")
    notes = [f"of the last {w} steps"] if w < len(record) else []
    return _draw_lines(lines, "Actions", "share", ax, notes=notes, ylim=(-0.02, 1.02))


def _probe(record: Record, name: str) -> npt.NDArray[Any]:
    if name not in getattr(record, "probes", ()):
        raise MissingCapability(
            f"{record!r} has no column {name!r}: record = interact(..., probes=[{name!r}])"
        )
    values = record.probes[name]
    if not _fits(values, name):
        raise MissingCapability(
            f"column {name!r} is {values.dtype} of shape {values.shape}: this plot is for beliefs "
            "over finitely many modes"
        )
    return values


def _fits(values: npt.NDArray[Any] | None, name: str) -> bool:
    """Return whether a column has the shape and type that its plot needs."""
    kinds = {"posterior": (2, "f"), "drawn_mode": (1, "i"), "log_score": (1, "f")}
    return values is not None and (values.ndim, values.dtype.kind) == kinds[name]


def _mode_names(record: Record, count: int) -> Sequence[str]:
    return record.mode_names if len(record.mode_names) >= count else [f"m{m}" for m in range(count)]


def _is_discrete(actions: npt.NDArray[Any]) -> bool:
    return actions.ndim == 1 and actions.dtype.kind in "biuU"


def _draw_signal(
    values: npt.NDArray[Any], title: str, record: Record, ax: "Axes", *, averaged: bool
) -> "Axes":
    """Draw the values of every step, or their running mean."""
    if averaged:
        return _draw_mean(title, f"mean {title.lower()}", values, None, ax)
    return _draw_lines({title: values}, title, title.lower(), ax)


def _thinned(steps: int) -> IntArray:
    """Return at most `_POINTS` of the indices 0 .. steps - 1, with the first and the last."""
    return np.unique(np.linspace(0, steps - 1, min(steps, _POINTS)).astype(np.int64))


def _window(steps: int, window: int | None) -> int:
    if window is None:
        return max(1, round(_WINDOW * steps))
    if window != int(window) or window < 1:
        raise ValueError(f"window={window!r}: expected an integer of at least 1")
    return int(window)


def _running_mean(values: npt.NDArray[Any], window: int) -> FloatArray:
    """Return the mean of the finite values among the last `window`, else NaN."""
    is_finite = np.isfinite(values)
    totals = np.cumsum([np.where(is_finite, values, 0.0), is_finite], axis=1)
    totals[:, window:] -= totals[:, :-window].copy()
    sums, counts = totals
    means: FloatArray = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return means


def line_style(k: int) -> dict[str, Any]:
    """Return the colour and the dash of line k; lines of similar colour differ in their dash."""
    dash = _DASHES[(k + k // len(_DASHES)) % len(_DASHES)]
    return {"colour": PALETTE[k % len(PALETTE)], "dash": dash}


def _most_prominent(curves: dict[str, FloatArray], rest: str) -> dict[str, FloatArray]:
    """Return the curves with the greatest maxima, in their order, and the sum of the others."""
    if len(curves) <= _LINES:
        return curves
    first = sorted(curves, key=lambda name: -curves[name].max(initial=0))[: _LINES - 1]
    shown = {name: curves[name] for name in curves if name in first}
    return {**shown, rest: np.sum([y for name, y in curves.items() if name not in first], axis=0)}


def _draw_lines(
    curves: dict[str, FloatArray], title: str, ylabel: str, ax: "Axes | None", **panel: Any
) -> "Axes":
    """Draw curves over the steps, with a legend if there are several."""
    series = []
    for k, (name, y) in enumerate(curves.items()):
        t = _thinned(len(y))
        series.append(Series(name, t + 1, y[t], in_legend=len(curves) > 1, **line_style(k)))
    return figures.draw(Panel(title, "step t", ylabel, series, **panel), ax)


def _draw_mean(
    title: str, ylabel: str, values: FloatArray, window: int | None, ax: "Axes | None"
) -> "Axes":
    """Draw the running mean of values, and their mean over the whole run."""
    w = _window(len(values), window)
    lines = {f"last {w} steps": _running_mean(values, w)}
    finite = values[np.isfinite(values)]
    mean = float(np.mean(finite)) if finite.size else 0.0
    guides = [Guide(f"whole run: {mean:.4g}", mean)] if finite.size else []
    note = f"mean of the last {w} steps"
    if finite.size < values.size:
        note += f", without {values.size - finite.size} values that are not finite"
    return _draw_lines(lines, title, ylabel, ax, notes=[note], guides=guides)
