"""The table of `maze`: ours, and the paper's beside it.

± is the standard deviation over runs, as in the paper's table
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from bayescontrol.experiments.maze.replica import AGENTS, CONSTANTS, RULES, learner
from bayescontrol.experiments.maze.seen import Seen
from bayescontrol.lab import Table

#: Average reward and standard deviation of ten runs, as printed; its map is not known.
PAPER: Final[Mapping[str, tuple[float, float]]] = {
    RULES[0]: (0.3582, 0.0038),
    learner(200): (0.2314, 0.0024),
    learner(30): (0.3056, 0.0063),
    learner(5): (0.2049, 0.0012),
}


def performance(seen: Seen) -> Table:
    """What each agent earned at the end, the paper's number, and when the rule passes C = 30.

    >>> from bayescontrol.experiments.maze.replica import Settings, run
    >>> small = Settings(runs=1, steps=1000)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> performance(Seen(small, columns)).header[:3]
    ('agent', 'average reward', 'the paper, its map')
    """
    rows = []
    for name in AGENTS:
        late = seen.late(name)
        paper = PAPER.get(name)
        passes = seen.crossing(name, learner(30))[0] if name in RULES else np.nan
        rows.append(
            (
                name,
                _pair(float(late.mean()), float(late.std(ddof=1)) if late.size > 1 else None),
                _pair(*paper) if paper else "",
                f"{late.mean() / seen.optimum:.1%}",
                f"{late.min() / seen.optimum:.1%}",
                f"{late.max() / seen.optimum:.1%}",
                _passes(passes),
            )
        )
    settings = seen.settings
    return Table(
        f"Average reward over the last {settings.window:,} of {settings.steps:,} steps",
        (
            "agent",
            "average reward",
            "the paper, its map",
            f"of ρ* = {seen.optimum:.5f}",
            "worst run",
            "best run",
            f"passes C = {CONSTANTS[1]}",
        ),
        tuple(rows),
        f"{settings.runs} runs on {settings.layout}; ± standard deviation over runs, as in the "
        "paper, whose map is not known; passes: from that step on its mean cumulative reward is "
        "above",
    )


def _pair(mean: float, sd: float | None) -> str:
    return f"{mean:.4f}" if sd is None else f"{mean:.4f} ± {sd:.4f}"


def _passes(step: float) -> str:
    if np.isnan(step):
        return ""
    if step == 0.0:
        return "from the start"
    return f"{step:,.0f}" if np.isfinite(step) else "not yet"
