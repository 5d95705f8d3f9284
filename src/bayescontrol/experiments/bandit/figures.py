"""The figures of `bandit`: reward and best lever, regret, and the space of biases.

    reward, best lever   means over runs and blocks of steps, with two standard errors
    regret               E R_t on an axis of ln t, beside what no agent can beat for ever

For a fixed bandit that is Lai and Robbins's line, c ln t with c = Σ_j Δ_j / KL(m_j ‖ m*). For
uniform biases the mean of c is infinite, since two levers may be as close as one likes; what
remains is Lai's line (1987) ½ Σ_j E[m*_j (1 - m*_j)] ln² t = ½ (N - 1)/(N + 1) ln² t, where
m*_j is the best of the other levers. Both are asymptotic: they tell the slope to come.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.bandits.bounds import lai_robbins
from bayescontrol.experiments.bandit import partition
from bayescontrol.experiments.bandit.replica import (
    CONVERGED,
    EPSILON,
    GITTINS,
    RULE,
    Settings,
    evenly_spaced,
)
from bayescontrol.experiments.bandit.seen import Seen
from bayescontrol.experiments.bandit.tables import lookahead_cost
from bayescontrol.lab import Columns
from bayescontrol.lab.chart import Chart, Panel
from bayescontrol.lab.marks import Colour, Dash, Guide, Series

_LOOKS: Final[Mapping[str, tuple[Colour, Dash]]] = {
    RULE: ("blue", "solid"),
    EPSILON: ("vermillion", "dash"),
    CONVERGED: ("purple", "solid"),
    GITTINS: ("green", "dot"),
}
#: Curves are averaged over blocks of so many steps, at most.
_BLOCK: Final = 10


def lai(levers: int) -> float:
    """½ (N - 1)/(N + 1): the least regret under uniform biases grows as this times ln² t.

    >>> round(lai(10) * float(np.log(1000)) ** 2, 2)
    19.52
    """
    return 0.5 * (levers - 1) / (levers + 1)


def draw(settings: Settings, columns: Columns) -> Mapping[str, Chart]:
    """All figures.

    >>> from bayescontrol.experiments.bandit.replica import run
    >>> small = Settings(runs=1, steps=20, levers=3, lookahead=20, window=5)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> sorted(draw(small, columns))
    ['best-lever-regions', 'performance', 'regret']
    """
    seen = Seen(settings, columns)
    return {
        "performance": Chart(
            f"{settings.levers} levers with uniform biases",
            [_rewards(seen), _best_levers(seen)],
            "The higher the better. All agents meet the same bandits. Gittins' strategy learns "
            "fastest, and the control rule comes level with it; ε-greedy stops looking while it "
            "still errs, and stays there. That the look-ahead of the indices is cut makes no "
            "difference that could be seen.",
            columns=2,
            note=_note(settings),
        ),
        "regret": Chart(
            "What not knowing the levers has cost",
            [_drawn_regret(seen), _even_regret(seen)],
            "The lower the better. Time is logarithmic: regret that grows as ln t is a straight "
            "line, and no agent that learns in every world can have a smaller slope for ever than "
            "Lai and Robbins's. The bounds are asymptotic: they are about slopes, so an agent may "
            "lie below them for long.",
            columns=2,
            note=f"{settings.runs:,} runs; bands: ± 2 standard errors",
        ),
        "best-lever-regions": partition.chart(),
    }


def _note(settings: Settings) -> str:
    return (
        f"{settings.runs:,} runs; means over blocks of {_block(settings)} steps; "
        "bands: ± 2 standard errors.\n"
        f"Gittins: discount {settings.discount:g}; look-ahead cut at {settings.lookahead:,} pulls "
        f"as printed, which makes indices up to {lookahead_cost(settings):.1g} too low, or not"
    )


def _rewards(seen: Seen) -> Panel:
    n = seen.settings.levers
    return Panel(
        "Average reward",
        "step t",
        "reward per step",
        [_curve(seen, name, seen.reward(name), legend=False) for name in _LOOKS],
        [Guide(f"oracle, {n}/{n + 1}", n / (n + 1))],
        legend="below",
    )


def _best_levers(seen: Seen) -> Panel:
    return Panel(
        "Best lever",
        "step t",
        "share of runs that pull the best lever",
        [_curve(seen, name, seen.best(name)) for name in _LOOKS],
        ylim=(0.0, 1.0),
        legend="below",
    )


def _block(settings: Settings) -> int:
    return max(1, min(_BLOCK, settings.steps // 50))


def _curve(seen: Seen, agent: str, values: FloatArray, *, legend: bool = True) -> Series:
    width = _block(seen.settings)
    whole = values.shape[1] // width * width
    blocks = values[:, :whole].reshape(len(values), -1, width).mean(axis=2)
    t = np.arange(blocks.shape[1]) * width + (width + 1) / 2
    colour, dash = _LOOKS[agent]
    return Series.of_runs(agent, t, blocks, colour=colour, dash=dash, in_legend=legend)


def _drawn_regret(seen: Seen) -> Panel:
    t, n = _times(seen.settings), seen.settings.levers
    bound = Series(f"Lai: {n - 1}/{2 * n + 2} ln² t", t, lai(n) * np.log(t) ** 2, colour="ink")
    return Panel(
        "Uniform biases",
        "step t",
        "regret Rₜ",
        [*_regrets(seen, t, even=False), bound],
        xscale="log",
        notes=["Lai's bound is for the mean over all bandits"],
        legend="below",
    )


def _even_regret(seen: Seen) -> Panel:
    t = _times(seen.settings)
    c = lai_robbins(evenly_spaced(seen.columns["bias"][0]))
    bound = Series(f"Lai and Robbins: {c:.2f} ln t", t, c * np.log(t), colour="ink")
    n = seen.settings.levers
    return Panel(
        f"Biases 1/{n + 1}, 2/{n + 1}, … {n}/{n + 1}",
        "step t",
        "regret Rₜ",
        [*_regrets(seen, t, even=True), bound],
        xscale="log",
        notes=["Lai and Robbins's bound is for each bandit by itself"],
        legend="below",
    )


def _times(settings: Settings) -> FloatArray:
    """Steps at even distances of their logarithms."""
    return np.unique(np.geomspace(1, settings.steps, 60).round())


def _regrets(seen: Seen, t: FloatArray, *, even: bool) -> list[Series]:
    at = t.astype(int) - 1
    series = []
    for name, (colour, dash) in _LOOKS.items():
        runs = seen.regret(name, even=even)[:, at]
        series.append(Series.of_runs(name, t, runs, colour=colour, dash=dash, in_legend=not even))
    return series
