"""Plots of one run and of an agent: each function draws on Matplotlib axes and returns a `Plot`.

    running mean    (y_{t-w+1} + … + y_t) / w, over the last w steps, or all steps if t < w
    density         f(m) ≈ Δp / ΔF⁻¹(p), from the quantiles F⁻¹(p) of a posterior

Without `ax` a new figure is made. Lines differ in colour and in dashes. Long runs are thinned to
about a thousand points.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

import numpy as np

from bayescontrol import metrics
from bayescontrol._arrays import AnyArray, FloatArray, IntArray
from bayescontrol._support.values import distinct_texts
from bayescontrol.errors import MissingCapability
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Dash, Guide, Panel, Series
from bayescontrol.plot.figures import Plot
from bayescontrol.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: At most this many points on a line, and lines in a plot.
_POINTS: Final = 1000
_LINES: Final = 7
#: The default window of a running mean, as a share of the steps.
_WINDOW: Final = 0.05
_DASHES: Final[tuple[Dash, ...]] = get_args(Dash)
_ARMS: Final = "Posterior of the arms"
#: The quantiles from which a density is drawn.
_TAILS: Final = np.concatenate([[0.002], np.linspace(0.005, 0.995, 199), [0.998]])


def run(record: Record, world: Any = None) -> Plot:
    """Draw all that a record holds, one plot below the other.

    That is the posterior, the drawn mode, the surprise and the unresolved models if they were
    probed, and observations and actions that are numbers or names. With the `world` of a bandit
    these are also the regret and, if "posterior" was probed, the mean reward that the agent expects
    of each arm. Observations are called rewards if they have a field `reward` or `world` knows its
    mean rewards.

    >>> from bayescontrol import BernoulliBandit, interact
    >>> bandit = BernoulliBandit(["red", "blue"])
    >>> world = bandit.environment([0.2, 0.7])
    >>> run(interact(bandit.agent(), world, 500, seed=0), world)
    Plot('Reward', 'Cumulative regret', 'Actions')
    """
    plots: dict[str, Callable[..., Plot]] = {
        "posterior": posterior, "state_belief": state_belief, "drawn_mode": drawn_mode,
        "log_score": surprise, "unresolved": unresolved,
    }  # fmt: skip
    probed = [plot for name, plot in plots.items() if _fits(record.probes.get(name), name)]
    chosen = [partial(plot, record) for plot in probed]
    if _has_arm_rows(record, world):
        chosen.append(partial(_draw_arm_means, record, world))
    o, names = record.observations, record.observations.dtype.names or ()
    columns = {name: o[name] for name in names if name != "reward"}
    if metrics.knows_means(world) or "reward" in names:
        chosen.append(partial(reward, record))
    elif not names:
        columns["observation"] = o
    # A world without known mean rewards, such as an MDP, has no regret; another object is an error.
    if metrics.knows_means(world) or not (world is None or hasattr(world, "respond")):
        chosen.append(partial(regret, record, world))
    for name, values in (*columns.items(), ("action", record.actions)):
        is_name = values.dtype.kind == "U" or name in ("action", "state") or bool(names)
        if is_name and _is_discrete(values):
            # All arms in their order: each has the same colour as in the plot of the posterior.
            labels = world.labels if name == "action" and metrics.knows_means(world) else None
            chosen.append(partial(_draw_shares, values, name, labels=labels))
        elif values.ndim == 1 and values.dtype.kind in "bif":
            title = name.capitalize()
            if name != "action" and _is_discrete(record.actions):
                chosen.append(partial(_draw_mean, values, title, f"mean {title.lower()}"))
            else:
                chosen.append(partial(_draw_lines, {title: values}, title, title.lower()))
    if not chosen or not len(record):
        raise MissingCapability(f"nothing can be drawn of {record!r}: add probes to interact")
    axes = figures.new_axes(len(chosen))
    for plot, ax in zip(chosen, axes, strict=True):
        plot(ax=ax)
        ax.set_xlabel("" if ax is not axes[-1] else "step t")
    return Plot(axes)


def arms(agent: object, ax: "Axes | None" = None, *, x: object = None) -> Plot:
    """Draw the posterior of the mean reward of each arm of a bandit agent.

    Up to seven arms are drawn as densities, more as medians with 95 % intervals. Arms with contexts
    are drawn in context `x`, by default the agent's current one. If the prior is learned, a note
    shows the learned scales.

    >>> from bayescontrol import BernoulliBandit
    >>> agent = BernoulliBandit(["red", "blue"]).agent()
    >>> for reward in (1, 1, 0):
    ...     agent.observe("red", reward)
    >>> arms(agent).axes[0].get_legend_handles_labels()[1]
    ['red', 'blue']
    """
    belief: Any = getattr(agent, "belief", None)
    context = getattr(agent, "x", None) if x is None else x
    is_bandit = hasattr(belief, "mean_quantiles")
    quantiles = belief.mean_quantiles(_TAILS, context) if is_bandit else {}
    if not is_bandit or np.isnan(list(quantiles.values())).any():
        raise MissingCapability(
            f"{agent!r} has no known posterior of the mean reward of each arm: pass the agent of "
            "another bandit, or use plot.posterior(record) for a belief over finitely many modes; "
            "a bandit that learns its scale has none until two rewards differ"
        )
    names = distinct_texts(quantiles)
    scales = belief.scales() if getattr(belief, "learns_scale", False) else {}
    notes = [", ".join(f"{name} {value:.3g}" for name, value in scales.items())] if scales else []
    if len(names) > _LINES:
        tails = 0.025, 0.5, 0.975
        low, y, high = np.array([np.interp(tails, _TAILS, m) for m in quantiles.values()]).T
        j = np.arange(len(names))
        series = [Series("median, 95 % interval", j, y, low, high, kind="points")]
        drawn = figures.draw(Panel(_ARMS, "arm", "mean reward", series, notes=notes), ax)
        drawn.axes[0].set_xticks(j, list(names.values()), rotation=90)
        return drawn
    series = []
    for k, (arm, m) in enumerate(quantiles.items()):
        with np.errstate(divide="ignore"):
            f = np.diff(_TAILS) / np.diff(m)
        middle = (m[1:] + m[:-1]) / 2
        # The band from 0 to f fills the area below the density.
        series.append(Series(names[arm], middle, f, 0.0 * f, f, dash=line_dash(k)))
    panel = Panel(_ARMS, "mean reward", "posterior density", series, notes=notes, ylim=(0.0, None))
    return figures.draw(panel, ax)


def posterior(record: Record, ax: "Axes | None" = None) -> Plot:
    """Draw P(m | âo_≤t) of each mode over time, from the prior on; needs the probe "posterior".

    With many modes, those that were once most probable are drawn, and the sum of the others.

    >>> from bayescontrol import interact
    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> modes = prize_or_frog(0.75)
    >>> record = interact(modes.agent(), modes.environment(0), 20, seed=0, probes=["posterior"])
    >>> posterior(record).axes[0].get_legend_handles_labels()[1]
    ['prize left', 'prize right']
    """
    values, first = _from_prior(record, _probe(record, "posterior"))
    curves = dict(zip(_mode_names(record, values.shape[1]), values.T, strict=True))
    lines = _most_prominent(curves, "other modes")
    title, ylabel = "Posterior of the modes", "P(m | past)"
    return _draw_lines(lines, title, ylabel, ax, first, ylim=(-0.02, 1.02))


def state_belief(
    record: Record, states: Sequence[Hashable] | None = None, ax: "Axes | None" = None
) -> Plot:
    """Draw P(x_t | past) of each hidden state x; needs the probe `pomdp.state_belief`.

    `states` are the names of the states, `problem.states`; by default they are numbered. With many
    states, those that were once most probable are drawn, and the sum of the others.

    >>> from bayescontrol import interact, pomdp
    >>> tiger = pomdp.tiger()
    >>> probes = {"state_belief": pomdp.state_belief}
    >>> record = interact(tiger.agent(), tiger.environment(), 20, seed=0, probes=probes)
    >>> state_belief(record, tiger.states).axes[0].get_legend_handles_labels()[1]
    ['tiger left', 'tiger right']
    """
    values = _probe(record, "state_belief", "probes={'state_belief': pomdp.state_belief}")
    names = distinct_texts(range(values.shape[1]) if states is None else states).values()
    if len(names) != values.shape[1]:
        raise ValueError(f"{len(names)} states given, the record has {values.shape[1]}")
    lines = _most_prominent(dict(zip(names, values.T, strict=True)), "other states")
    t, title = _thinned(len(values)), "Belief about the hidden state"
    series = [
        Series(name, t + 1, y[t], kind="step", dash=line_dash(k))
        for k, (name, y) in enumerate(lines.items())
    ]
    # The legend has a place of its own above the lines, in rows of three names.
    ylim = (-0.02, 1.08 + 0.09 * -(-len(lines) // 3))
    panel = Panel(title, "step t", "P(x | past)", series, ylim=ylim, legend="upper left",
                  legend_columns=3)  # fmt: skip
    return figures.draw(panel, ax)


def drawn_mode(record: Record, ax: "Axes | None" = None) -> Plot:
    """Draw the mode that chose each action; needs the probe "drawn_mode".

    >>> from bayescontrol import interact
    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> modes = prize_or_frog(0.75)
    >>> record = interact(modes.agent(), modes.environment(0), 20, seed=0, probes=["drawn_mode"])
    >>> [label.get_text() for label in drawn_mode(record).axes[0].get_yticklabels()]
    ['prize left', 'prize right']
    """
    drawn = _probe(record, "drawn_mode")
    names = _mode_names(record, int(drawn.max(initial=0)) + 1)
    shown = np.unique(drawn)
    t = _thinned(len(drawn))
    series = Series("mode", t + 1, np.searchsorted(shown, drawn[t]), kind="points", in_legend=False)
    panel = Panel("Mode drawn", "step t", "mode", [series], ylim=(-0.6, len(shown) - 0.4))
    drawn_on = figures.draw(panel, ax)
    if len(shown) <= 2 * _LINES:
        labels = [names[m] if m >= 0 else "none" for m in shown]  # -1: no mode was drawn
        drawn_on.axes[0].set_yticks(range(len(shown)), labels)
    return drawn_on


def surprise(record: Record, ax: "Axes | None" = None, window: int | None = None) -> Plot:
    """Draw the running mean of -log2 P(o_t | past); needs the probe "log_score".

    >>> from bayescontrol import interact
    >>> from bayescontrol.finite.examples import prize_or_frog
    >>> modes = prize_or_frog(0.75)
    >>> record = interact(modes.agent(), modes.environment(0), 20, seed=0, probes=["log_score"])
    >>> surprise(record).axes[0].get_ylabel()
    'bits per step'
    """
    return _draw_mean(_probe(record, "log_score"), "Surprise", "bits per step", ax, window)


def unresolved(record: Record, ax: "Axes | None" = None) -> Plot:
    """Draw the unresolved share of models, or with context trees of cycles; needs the probe.

    If that of models stays above 0, or that of cycles above one half, the agent may be confirming
    itself: see `ControlRule.unresolved`.

    >>> from bayescontrol import interact
    >>> from bayescontrol.finite.chain import chain
    >>> modes = chain(3)
    >>> record = interact(modes.agent(), modes.environment(0), 60, seed=0, probes=["unresolved"])
    >>> unresolved(record).axes[0].get_ylabel()
    'unresolved share'
    """
    y = _probe(record, "unresolved")
    t = _thinned(len(y))
    series = Series("unresolved", t + 1, y[t], kind="step", in_legend=False)
    title = "Models or cycles that are unresolved"
    panel = Panel(title, "step t", "unresolved share", [series], ylim=(-0.02, 1.02))
    return figures.draw(panel, ax)


def reward(
    record: Record,
    ax: "Axes | None" = None,
    window: int | None = None,
    reward: Callable[[Any, Any], float] | None = None,
) -> Plot:
    """Draw the running mean of the rewards, by default over 5 % of the steps.

    `reward(a, o)` computes the reward of a step if the observation is not the reward.

    >>> from bayescontrol import Record
    >>> reward(Record(["red", "blue"], [0, 1])).axes[0].get_ylabel()
    'mean reward'
    """
    return _draw_mean(metrics.rewards(record, reward), "Reward", "mean reward", ax, window)


def regret(record: Record, world: Any, ax: "Axes | None" = None) -> Plot:
    """Draw the cumulative regret of a run in a world with known mean rewards.

    >>> from bayescontrol import BernoulliBandit, Record
    >>> world = BernoulliBandit(["red", "blue"]).environment([0.25, 0.75])
    >>> regret(Record(["red", "blue"], [0, 1]), world).axes[0].get_ylabel()
    'regret'
    """
    lines = {"regret": metrics.regret(record, world)}
    return _draw_lines(lines, "Cumulative regret", "regret", ax)


def action_shares(record: Record, ax: "Axes | None" = None, window: int | None = None) -> Plot:
    """Draw how often each action was taken, as a share of the last `window` steps.

    >>> from bayescontrol import Record
    >>> action_shares(Record(["red", "blue"], [0, 1])).axes[0].get_legend_handles_labels()[1]
    ['blue', 'red']
    """
    if not _is_discrete(record.actions):
        raise MissingCapability(
            f"the actions are {record.actions.dtype} of shape {record.actions.shape}: shares can "
            "be drawn for discrete actions only"
        )
    return _draw_shares(record.actions, "action", ax, window)


def _draw_shares(
    values: AnyArray, name: str, ax: "Axes | None",
    window: int | None = None, labels: Sequence[Hashable] | None = None,
) -> Plot:  # fmt: skip
    """Draw how often each label, by default each value, occurred among the last steps."""
    w = _window(len(values), window)
    shown = np.unique(values) if labels is None else labels
    curves = {str(v): _running_mean(values == v, w) for v in shown}
    lines = _most_prominent(curves, f"other {name}s")
    notes = [f"of the last {w} steps"] if w < len(values) else []
    title = f"{name.capitalize()}s"
    return _draw_lines(lines, title, "share", ax, notes=notes, ylim=(-0.02, 1.02))


def _has_arm_rows(record: Record, world: object) -> bool:
    """Return whether the probe "posterior" holds the rows of the arms of this world."""
    rows, shape = record.probes.get("posterior"), (len(getattr(world, "labels", ())),)
    return hasattr(world, "family") and rows is not None and rows.shape[1:-1] == shape


def _draw_arm_means(record: Record, world: Any, ax: "Axes") -> Plot:
    """Draw the expected mean reward of each arm over time, and its 95 % interval if it is known."""
    rows, first = _from_prior(record, record.probes["posterior"])
    t, family, names = _thinned(len(rows)), world.family, distinct_texts(world.labels)
    best = np.argsort(-family.expected(rows[-1]))[:_LINES]
    series, notes = [], ["bands: 95 % intervals"] if hasattr(family, "interval") else []
    for k, j in enumerate(sorted(best)):
        y, name = family.expected(rows[t, j]), names[world.labels[j]]
        ends = family.interval(rows[t, j], np.array([0.025, 0.975])).T if notes else (None, None)
        series.append(Series(name, t + first, y, ends[0], ends[1], dash=line_dash(k)))
    return figures.draw(Panel(_ARMS, "step t", "mean reward", series, notes=notes), ax)


def _from_prior(record: Record, values: FloatArray) -> tuple[FloatArray, int]:
    """Return the values of the probe "posterior" from the prior on, and the step of the first."""
    if record.prior is None or record.prior.shape != values.shape[1:]:
        return values, 1
    return np.concatenate([record.prior[None], values]), 0


def _probe(record: Record, name: str, argument: str = "") -> AnyArray:
    """Return a column of the record; raise `MissingCapability` if its plot cannot use it.

    `argument` is what `interact` needs to measure it, if the name of the probe is not enough.
    """
    if name not in getattr(record, "probes", ()):
        argument = argument or f"probes=[{name!r}]"
        raise MissingCapability(
            f"{record!r} has no column {name!r}: record = interact(..., {argument})"
        )
    values = record.probes[name]
    if not _fits(values, name):
        raise MissingCapability(
            f"column {name!r} is {values.dtype} of shape {values.shape}: this plot is for beliefs "
            "over finitely many modes"
        )
    return values


def _fits(values: AnyArray | None, name: str) -> bool:
    """Return whether a column has the number of axes and the type that its plot needs."""
    kinds = {
        "posterior": (2, "f"), "drawn_mode": (1, "i"), "log_score": (1, "f"),
        "state_belief": (2, "f"), "unresolved": (1, "f"),
    }  # fmt: skip
    return values is not None and (values.ndim, values.dtype.kind) == kinds[name]


def _mode_names(record: Record, count: int) -> Sequence[str]:
    """Return the names of at least `count` modes: those of the record, or m0, m1, …"""
    return record.mode_names if len(record.mode_names) >= count else [f"m{m}" for m in range(count)]


def _is_discrete(column: AnyArray) -> bool:
    """Return whether a column holds one integer, boolean or name per step."""
    return column.ndim == 1 and column.dtype.kind in "biuU"


def _thinned(steps: int) -> IntArray:
    """Return at most `_POINTS` of the indices 0 .. steps - 1, with the first and the last."""
    return np.unique(np.linspace(0, steps - 1, min(steps, _POINTS)).astype(np.int64))


def _window(steps: int, window: int | None) -> int:
    """Return the steps of a running mean, by default a share `_WINDOW` of all."""
    if window is None:
        return max(1, round(_WINDOW * steps))
    if window != int(window) or window < 1:
        raise ValueError(f"window={window!r}: expected an integer of at least 1")
    return int(window)


def _running_mean(values: AnyArray, window: int) -> FloatArray:
    """Return the mean of the finite values among the last `window`; NaN without any."""
    is_finite = np.isfinite(values)
    # Sums and counts of the finite values so far; then without those before the window.
    totals = np.cumsum([np.where(is_finite, values, 0.0), is_finite], axis=1)
    totals[:, window:] -= totals[:, :-window].copy()
    sums, counts = totals
    means: FloatArray = np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
    return means


def line_dash(k: int) -> Dash:
    """Return the dash of line k; lines of similar colour differ in their dash."""
    # After each round of dashes the order shifts by one: line k + 4 differs from line k.
    return _DASHES[(k + k // len(_DASHES)) % len(_DASHES)]


def _most_prominent(curves: dict[str, FloatArray], rest: str) -> dict[str, FloatArray]:
    """Return the curves with the greatest maxima, in their order, and the sum of the others."""
    if len(curves) <= _LINES:
        return curves
    first = sorted(curves, key=lambda name: -curves[name].max(initial=0))[: _LINES - 1]
    shown = {name: curves[name] for name in curves if name in first}
    return {**shown, rest: np.sum([y for name, y in curves.items() if name not in first], axis=0)}


def _draw_lines(
    curves: dict[str, FloatArray], title: str, ylabel: str, ax: "Axes | None", first: int = 1,
    **panel: Any,
) -> Plot:  # fmt: skip
    """Draw curves over the steps from `first` on, with a legend if there are several."""
    series, is_shown = [], len(curves) > 1
    for k, (name, y) in enumerate(curves.items()):
        t = _thinned(len(y))
        series.append(Series(name, t + first, y[t], dash=line_dash(k), in_legend=is_shown))
    return figures.draw(Panel(title, "step t", ylabel, series, **panel), ax)


def _draw_mean(
    values: FloatArray, title: str, ylabel: str, ax: "Axes | None", window: int | None = None
) -> Plot:
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
