"""A step of the rule with change points, beside the static rule: 10 Bernoulli arms that change.

    all biases drawn anew with probability 0.002 per step, 2,500 steps, default options

`python -m benchmarks.changing` prints the time per step. The limit is 3 us in the compiled loop.
"""

from functools import lru_cache, partial
from typing import Any

from benchmarks.timing import Timing, take_turns
from rich.console import Console
from rich.table import Table

from bayescontrol import Probe, interact
from bayescontrol.beliefs.changing_problem import ChangingEnvironment
from bayescontrol_paper.changing import (
    AGENTS,
    FAST,
    RULE,
    STATIC,
    Settings,
    draw_bandit,
)

__all__ = ["STATIC", "step"]

READABLE = "control rule, changing, readable"
LOOK = {"look": Probe(lambda *_: 0)}  # any probe makes `interact` take the readable loop
SETTINGS = Settings()


@lru_cache(maxsize=8)
def worlds(run: int) -> tuple[Any, Any]:
    """The problem and the world of one run."""
    return draw_bandit(SETTINGS, run, FAST)


def play(label: str, run: int, steps: int, probes: Any = None) -> None:
    """Let an agent play the first steps of a world."""
    bandit, world = worlds(run)
    agent, again = AGENTS[label](bandit, steps), ChangingEnvironment(world.worlds)
    interact(agent, again, steps, seed=run, probes=probes)


def step(rounds: int = 9) -> dict[str, Timing]:
    """Time per step of each agent, over four worlds."""
    steps = SETTINGS.fast_steps

    def play_all(label: str) -> None:
        for run in range(4):
            play(label, run, steps)

    calls: dict[str, Any] = {label: partial(play_all, label) for label in AGENTS}
    calls[READABLE] = partial(play, RULE, 0, 500, LOOK)
    timings = take_turns(calls, calls=1, rounds=rounds)
    return {
        label: timing.per(500 if label == READABLE else 4 * steps)
        for label, timing in timings.items()
    }


def main() -> None:
    """Measure and print a table."""
    timings = step()
    table = Table(caption="Median of interleaved rounds (lowest-highest).")
    for column in ("10 arms that change", "a step", "ratio"):
        table.add_column(column, justify="left" if column[0] == "1" else "right")
    for name, timing in timings.items():
        table.add_row(name, str(timing), f"{timing.median / timings[STATIC].median:.3g}")
    Console().print(table)


if __name__ == "__main__":
    main()
