"""Tables of `bandit`: what each agent earned, and what the indices took to compute.

seconds       of one fresh computation, kernels compiled, nothing taken from the cache
error         the bound that the table certifies
cut by        max over states of (converged index - index with the look-ahead cut)
"""

import time
from functools import lru_cache
from typing import NamedTuple

from bayescontrol.arrays import FloatArray
from bayescontrol.baselines.gittins import GittinsTable
from bayescontrol.experiments.bandit.replica import AGENTS, CONVERGED, GITTINS, Settings
from bayescontrol.experiments.bandit.seen import Seen
from bayescontrol.lab import Table, mean_and_error
from bayescontrol.report.tables import with_error


class Timed(NamedTuple):
    """A table of indices, and the seconds that it took.

    >>> Timed.__annotations__.keys()
    dict_keys(['table', 'seconds'])
    """

    table: GittinsTable
    seconds: float


def timed(settings: Settings, lookahead: int | None) -> Timed:
    """All indices up to as many pulls as the paper's horizon, computed now.

    >>> timed(Settings(lookahead=20, discount=0.9), None).seconds < 60
    True
    """
    return _timed(settings.discount, settings.lookahead, lookahead)


@lru_cache(maxsize=4)
def _timed(discount: float, pulls: int, lookahead: int | None) -> Timed:
    GittinsTable(discount, 2, lookahead=lookahead, cache=False)  # compiles, if need be
    start = time.process_time()  # of this process alone, however busy the machine
    table = GittinsTable(discount, pulls, lookahead=lookahead, cache=False)
    return Timed(table, time.process_time() - start)


def lookahead_cost(settings: Settings, pulls: int | None = None) -> float:
    """The most that an index loses by its look-ahead being cut, up to so many pulls.

    >>> small = Settings(lookahead=20, discount=0.9)
    >>> lookahead_cost(small, 0) < lookahead_cost(small) < 0.1
    True
    """
    whole, cut = timed(settings, None).table, timed(settings, settings.lookahead).table
    n = whole.pulls if pulls is None else min(pulls, whole.pulls)
    states = (n + 1) * (n + 2) // 2
    return float((whole.nu - cut.nu)[:states].max())


def index_tables(settings: Settings) -> Table:
    """What the indices took to compute.

    >>> [row[:3] for row in index_tables(Settings(lookahead=20, discount=0.9)).rows]
    [('Gittins, look-ahead cut', '20 pulls', 231), ('Gittins, converged', 'without end', 231)]
    """
    rows = []
    for lookahead in (settings.lookahead, None):
        table, seconds = timed(settings, lookahead)
        rows.append(
            (
                GITTINS if lookahead else CONVERGED,
                f"{lookahead:,} pulls" if lookahead else "without end",
                table.states,
                f"{table.error:.1e}",
                f"{seconds:.2g}",
                f"{lookahead_cost(settings):.1e}" if lookahead else "",
            )
        )
    return Table(
        f"Gittins indices, discount {settings.discount:g}, up to {settings.lookahead:,} pulls",
        ("table", "look-ahead", "indices", "certified error", "seconds", "too low by up to"),
        tuple(rows),
        "seconds of one core, measured when this was scored, kernels compiled; the paper: several "
        "hours",
    )


def performance(seen: Seen) -> Table:
    """Reward, best lever and regret of every agent.

    >>> from bayescontrol.experiments.bandit.replica import run
    >>> small = Settings(runs=1, steps=20, levers=3, lookahead=20, window=5)
    >>> columns = {name: column[None] for name, column in run(small, 0).items()}
    >>> [row[0] for row in performance(Seen(small, columns)).rows][:2]
    ['control rule', 'ε-greedy, ε αᵗ']
    """
    window = seen.settings.window
    rows = []
    for agent in AGENTS:
        columns = (
            seen.early_reward(agent),
            seen.late_reward(agent),
            seen.late_best(agent),
            seen.total_regret(agent),
        )
        rows.append((agent, *(_cell(*mean_and_error(column)) for column in columns)))
    return Table(
        f"{seen.settings.levers} levers, {seen.settings.steps:,} steps",
        (
            "agent",
            f"reward, first {window}",
            f"reward, last {window}",
            f"best lever, last {window}",
            "regret",
        ),
        tuple(rows),
        f"means of {seen.settings.runs:,} runs with their standard errors; all agents met the same "
        "bandits",
    )


def _cell(mean: FloatArray, error: FloatArray) -> str:
    return with_error(float(mean), float(error))
