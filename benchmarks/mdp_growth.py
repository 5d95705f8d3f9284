"""Time per step of the Gibbs agent by number of observed transitions.

    ring    x ± 1              2 actions, each with 1 successor:  2 transitions a state
    grid    on a torus, the 4 actions lead to any of 4 neighbours: 16 transitions a state

Every transition has been observed once before timing starts, so none is new during a measurement.
A full sweep draws every state; `partial=8` always draws eight states and the current one.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from benchmarks.timing import Timing, take_turns

from bayescontrol import Stream, interact
from bayescontrol.mdp import MDP, GibbsMDP
from bayescontrol.plot.chart import Chart, Colour, Marker, Panel, Series

__all__ = ["SIZES", "SWEEPS", "WORLDS", "Growth", "chart", "grid", "growth", "ring"]

#: Approximate numbers of transitions.
SIZES = (50, 150, 500, 1_500, 5_000, 15_000, 50_000)
SWEEPS = {"full sweep": 0, "partial = 8": 8}
#: A call has as many steps as take about this long.
SECONDS = 0.06
ROUNDS = 5


def ring(transitions: int) -> MDP:
    """A ring with about this many transitions; state 0 pays."""
    X = transitions // 2
    x, a = (side.ravel() for side in np.indices((X, 2)))
    y = (x + 2 * a - 1) % X
    return MDP.from_transitions(x, a, y, np.ones(x.size), y == 0, states=X, actions=2)


def grid(transitions: int) -> MDP:
    """A nearly square torus with about this many transitions, at least 3 x 3; state 0 pays."""
    columns = max(3, round((transitions / 16) ** 0.5))
    rows = max(3, round(transitions / 16 / columns))
    x, a, to = (side.ravel() for side in np.indices((rows * columns, 4, 4)))
    row, column = np.divmod(x, columns)
    down, right = np.array([-1, 1, 0, 0])[to], np.array([0, 0, -1, 1])[to]
    y = (row + down) % rows * columns + (column + right) % columns
    p = np.where(a == to, 0.7, 0.1)
    return MDP.from_transitions(x, a, y, p, y == 0, states=rows * columns, actions=4)


WORLDS: dict[str, Callable[[int], MDP]] = {"ring": ring, "grid": grid}


@dataclass(frozen=True)
class Growth:
    """Seconds per step of one kind of sweep in one world, by number of transitions."""

    world: str
    sweep: str
    transitions: list[int]
    states: list[int]
    timings: list[Timing]


def _player(mdp: MDP, partial: int) -> tuple[Callable[[int], object], int]:
    """Return a function that plays n more steps, and the number of transitions, all observed."""
    agent = GibbsMDP(len(mdp.actions), start=0, partial=partial).agent()
    for x in mdp.states:
        for a in mdp.actions:
            for step in mdp.outcomes(x, a):
                agent.belief.observe(x, a, step)
    environment, streams = mdp.environment(0), (Stream(1), Stream(2))
    return lambda n: interact(agent, environment, n, streams=streams), agent.belief.count


def _steps(play: Callable[[int], object]) -> int:
    """Choose steps that take about `SECONDS`, or longer if a call has a large fixed cost."""
    play(10)
    start = time.perf_counter()
    play(10)
    fixed, n, taken = time.perf_counter() - start, 10, 0.0
    while taken < max(SECONDS, 20 * fixed) / 4:
        n *= 4
        start = time.perf_counter()
        play(n)
        taken = time.perf_counter() - start
    return n * 4


def growth(rounds: int = ROUNDS) -> list[Growth]:
    """Time both kinds of sweep in both worlds; at each size the four take turns."""
    found = {(w, s): Growth(w, s, [], [], []) for w in WORLDS for s in SWEEPS}
    for size in SIZES:
        calls: dict[str, Callable[[], object]] = {}
        steps: dict[str, int] = {}
        for (world, sweep), one in found.items():
            mdp = WORLDS[world](size)
            if one.states[-1:] == [len(mdp.states)]:  # the grid has reached its smallest size
                continue
            play, transitions = _player(mdp, SWEEPS[sweep])
            name = f"{world}, {sweep}"
            n = steps[name] = _steps(play)
            calls[name] = lambda play=play, n=n: play(n)  # type: ignore[misc]
            one.transitions.append(transitions)
            one.states.append(len(mdp.states))
        timings = take_turns(calls, calls=1, rounds=rounds)
        for name, timing in timings.items():
            world, sweep = name.split(", ")
            found[world, sweep].timings.append(timing.per(steps[name]))
    return list(found.values())


def chart(found: list[Growth]) -> Chart:
    """Plot microseconds per step against transitions, both on logarithmic axes."""
    looks: dict[str, tuple[Colour, Marker]] = {
        "ring": ("blue", "circle"),
        "grid": ("vermillion", "square"),
    }
    series = [
        Series(
            f"{one.world}, {one.sweep}",
            np.array(one.transitions),
            np.array([t.median for t in one.timings]) * 1e6,
            np.array([t.low for t in one.timings]) * 1e6,
            np.array([t.high for t in one.timings]) * 1e6,
            colour=looks[one.world][0],
            dash="dash" if SWEEPS[one.sweep] else "solid",
            marker=looks[one.world][1],
        )
        for one in found
    ]
    panel = Panel(
        "", "observed transitions", "microseconds per step", series,
        xscale="log", yscale="log", legend="upper left",
    )  # fmt: skip
    return Chart(
        "Time per step of the Gibbs agent",
        [panel],
        "The time of a full sweep grows with the data; a partial one does not. Lower is faster.",
        note=f"median of {ROUNDS} rounds, bands from the lowest to the highest",
    )
