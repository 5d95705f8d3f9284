"""Choose exploration, remedy and diagnosis of agents over context trees, on worlds of their own.

    python -m benchmarks.exploration [--runs 8] [--agents pure steep+] [--json FILE]

Agents with a + have the remedy. The worlds are not those of the experiment `universal`. For each
world and agent it prints the reward per cycle in the last tenth of the run, in how many runs the
agent is stuck, and the unresolved share at the end. A run is stuck if it gains less than half of
the best known reward of the world, both above the reward of doing nothing. Then it prints, for
several settings of `agent.unresolved()`, how often a threshold of the share warns in stuck and in
healthy runs.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from rich.progress import track

from bayescontrol import interact
from bayescontrol.exploration import Falling
from bayescontrol.pomdp import POMDP
from bayescontrol.trees import ContextTrees
from bayescontrol.trees.unresolved import DISTANCE, NATS
from bayescontrol_paper._hidden_worlds import MOVES, fields, maze

__all__ = ["WORLDS", "study"]


class TuningWorld(NamedTuple):
    """A world, the cycles of a run, and the depth of the trees.

    `idle` is the reward of doing nothing, `best` about that of the best agents.
    """

    make: Callable[[], POMDP]
    cycles: int
    depth: int
    idle: float
    best: float


def doors(accuracy: float, gold: float, trap: float, listen: float, n: int) -> POMDP:
    """Return n doors with a trap behind one, whose place can be heard; opening moves the trap."""
    T = np.full((n, 1 + n, n), 1.0 / n)
    T[:, 0] = np.eye(n)
    signal = np.zeros((1 + n, n, 1 + n))
    signal[0, :, 1:] = (1.0 - accuracy) / (n - 1)
    signal[0, range(n), range(1, 1 + n)] = accuracy
    signal[1:, :, 0] = 1.0
    r = np.full((n, 1 + n), gold)
    r[:, 0] = listen
    r[range(n), range(1, 1 + n)] = trap
    return POMDP(n, 1 + n, 1 + n, T, signal, r)


def carry(n: int) -> POMDP:
    """Return a corridor of n cells: load at one end, unload at the other end for a reward of 1."""
    T, r, signal = np.zeros((2 * n, 2, 2 * n)), np.zeros((2 * n, 2)), np.zeros((2, 2 * n, 3))
    for cell in range(n):
        for loaded in range(2):
            for a, step in enumerate((-1, 1)):
                to = min(max(cell + step, 0), n - 1)
                r[2 * cell + loaded, a] = to == n - 1 and loaded
                T[2 * cell + loaded, a, 2 * to + (to == 0 or (loaded and to < n - 1))] = 1.0
        signal[:, 2 * cell : 2 * cell + 2, 0 if cell == 0 else 2 if cell == n - 1 else 1] = 1.0
    return POMDP(2 * n, 2, 3, T, signal, r)


def pennies() -> POMDP:
    """Return an opponent who usually repeats a penny that was not matched; matching it pays 1."""
    T, signal, r = np.zeros((4, 2, 4)), np.zeros((2, 4, 2)), np.zeros((4, 2, 4))
    for penny in range(2):
        for won in range(2):
            for a in range(2):
                for shown in range(2):
                    p = 0.5 if not won else 0.85 if shown == penny else 0.15
                    T[2 * penny + won, a, 2 * shown + (shown != a)] = p
        signal[:, 2 * penny : 2 * penny + 2, penny] = 1.0
    r[:, :, ::2], r[:, :, 1::2] = 1.0, -1.0
    return POMDP(4, 2, 2, T, signal, r)


LINE = {name: MOVES[name] for name in ("left", "right")}
PLAIN, COSTLY = (0.0, 0.0, 1.0), (-1.0, -5.0, 8.0)
WORLDS = {
    "two doors": TuningWorld(lambda: doors(0.75, 5.0, -20.0, -0.5, 2), 20_000, 12, -0.5, 0.1),
    "three doors": TuningWorld(lambda: doors(0.8, 6.0, -30.0, -1.0, 3), 20_000, 12, -1.0, 0.7),
    "carry": TuningWorld(lambda: carry(6), 5_000, 12, 0.0, 0.1),
    "pennies": TuningWorld(pennies, 5_000, 9, 0.0, 0.25),
    "corridor": TuningWorld(lambda: maze("..!...", LINE, PLAIN, False), 5_000, 15, 0.0, 0.3),
    "3x3 grid": TuningWorld(
        lambda: maze("... ... ..!", MOVES, PLAIN, False), 10_000, 18, 0.0, 0.35
    ),
    "T maze": TuningWorld(
        lambda: maze("..... ##.## ##!##", MOVES, COSTLY, True), 2_500, 12, -1.0, 1.75
    ),
    "rooms": TuningWorld(
        lambda: maze("...#. .#... ...#!", MOVES, (-1.0, -5.0, 20.0), True), 5_000, 12, -1.0, 3.8
    ),
}

AGENTS: dict[str, dict[str, Any]] = {
    "pure": {"exploration": None, "remedy": None},
    "schedule": {"exploration": Falling(500, power=3), "remedy": None},
    "slow": {"exploration": Falling(500, power=2), "remedy": None},
    "steep": {"exploration": Falling(500, power=4), "remedy": None},
    "remedy": {"exploration": None},
    "schedule+": {"exploration": Falling(500, power=3)},
    "steep+": {},
}
#: Settings of the diagnosis, `nats` and `distance`, and thresholds of its share.
SETTINGS = [(nats, distance) for nats in (3e-4, 1e-3, 3e-3) for distance in (0.05, 0.1, 0.2, 0.3)]
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)


def play(name: str, agent: str, seed: int) -> dict[str, Any]:
    """Return the final reward of a run, and the unresolved shares at its end."""
    world = WORLDS[name]
    pomdp = world.make()
    problem = ContextTrees(list(pomdp.actions), fields(pomdp), depth=world.depth)
    player = problem.agent(**AGENTS[agent])
    record = interact(player, pomdp.environment(), world.cycles, seed=seed)
    shares = [player.unresolved(nats=nats, distance=d).share for nats, d in SETTINGS]
    reward = float(record.observations["reward"][-world.cycles // 10 :].mean())
    return {"world": name, "agent": agent, "reward": reward, "shares": shares,
            "tests": player.followed}  # fmt: skip


def is_stuck(run: dict[str, Any]) -> bool:
    """Return whether a run gains less than half of the best known reward, above idling."""
    world = WORLDS[run["world"]]
    return bool(run["reward"] - world.idle < 0.5 * (world.best - world.idle))


def study(agents: list[str], runs: int, seed: int) -> list[dict[str, Any]]:
    """Return all runs, on two processes."""
    cases = [(w, a, s) for w in WORLDS for a in agents for s in range(seed, seed + runs)]
    played = Parallel(n_jobs=2, return_as="generator")(delayed(play)(*case) for case in cases)
    runs_with_time_left = track(played, "runs", len(cases))
    return [{**run, "stuck": is_stuck(run)} for run in runs_with_time_left]


def report(runs: list[dict[str, Any]]) -> None:
    """Print the tables."""
    default = SETTINGS.index((NATS, DISTANCE))
    print(f"{'world':12} {'agent':14} reward in the last tenth   lowest  stuck  unresolved  tests")
    for world, agent in dict.fromkeys((run["world"], run["agent"]) for run in runs):
        these = [run for run in runs if (run["world"], run["agent"]) == (world, agent)]
        x = np.array([run["reward"] for run in these])
        error = x.std(ddof=1) / len(x) ** 0.5 if len(x) > 1 else np.nan
        shares = np.mean([run["shares"][default] for run in these])
        print(
            f"{world:12} {agent:14} {x.mean():10.3f} ± {error:.3f}   {x.min():12.3f} "
            f"{sum(run['stuck'] for run in these):4d}/{len(these)} {shares:10.2f} "
            f"{np.mean([run['tests'] for run in these]):6.0f}"
        )
    stuck = np.array([run["stuck"] for run in runs])
    shares = np.array([run["shares"] for run in runs])
    if stuck.all() or not stuck.any():
        print("\nno threshold can be judged: all runs are stuck, or none is")
        return
    print(f"\nwarnings in {stuck.sum()} stuck and {(~stuck).sum()} healthy runs, by threshold")
    print("nats    distance  " + "".join(f"{t:^14g}" for t in THRESHOLDS))
    for i, (nats, distance) in enumerate(SETTINGS):
        rates = [(shares[:, i] >= t) for t in THRESHOLDS]
        cells = "".join(f"{w[stuck].mean():6.0%} {w[~stuck].mean():5.0%}  " for w in rates)
        print(f"{nats:<7g} {distance:<9g} {cells}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare exploration, remedy and diagnosis.")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS))
    parser.add_argument("--json", type=Path, help="store all runs in this file")
    arguments = parser.parse_args()
    played = study(arguments.agents, arguments.runs, arguments.seed)
    if arguments.json:
        arguments.json.write_text(json.dumps(played))
    report(played)
