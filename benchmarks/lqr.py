"""Adaptive control of 4 states and 2 inputs, compared with hand-written NumPy and SciPy.

    by hand    Gram matrices, NumPy draws, SciPy's solve_discrete_are at each step
    ours       one triangular factor, compiled draws and Riccati, at each step or (lazy) when
               det Λ has doubled

`python -m benchmarks.lqr` prints the time per step and the cost of the final gains.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from benchmarks.timing import Timing, take_turns
from rich.console import Console
from rich.table import Table
from scipy.linalg import solve_discrete_are  # type: ignore[import-untyped]

from bayescontrol import Probe, interact
from bayescontrol.lqr import (
    DeterminantDoubling,
    LinearPlant,
    LinearQuadratic,
    LinearSystem,
    SystemPrior,
    random_stable,
)
from bayescontrol.schedules import every_step

__all__ = ["BY_HAND", "final_costs", "step"]

BY_HAND = "NumPy and SciPy, at each step"
LAZY = "bayescontrol, lazy"
LOOK = {"look": Probe(lambda *_: 0)}  # any probe makes `interact` take the readable loop


def play_by_hand(system: LinearSystem, steps: int, seed: int) -> Any:
    """Run a hand-written control rule with unknown noise; return the last gain."""
    A, B, Q, R = system.A, system.B, system.Q, system.R
    n, d = len(A), len(A) + B.shape[1]
    rng, noise = np.random.default_rng(seed), np.linalg.cholesky(system.W)
    ZZ, ZY, YY, nu = np.eye(d), np.zeros((d, n)), np.eye(n), n + 2.0
    x, K = np.zeros(n), np.zeros((d - n, n))
    for _ in range(steps):
        M = np.linalg.solve(ZZ, ZY)
        S = np.linalg.inv(np.linalg.cholesky(YY - M.T @ ZY))
        T = np.tril(rng.standard_normal((n, n)), -1)
        T[np.diag_indices(n)] = np.sqrt(rng.chisquare(nu - np.arange(n)))
        W = np.linalg.inv((S.T @ T) @ (S.T @ T).T)
        left = np.linalg.inv(np.linalg.cholesky(ZZ)).T
        Theta = M + left @ rng.standard_normal((d, n)) @ np.linalg.cholesky(W).T
        a, b = Theta[:n].T, Theta[n:].T
        P = solve_discrete_are(a, b, Q, R)
        K = np.linalg.solve(R + b.T @ P @ b, b.T @ P @ a)
        u = -K @ x
        y = A @ x + B @ u + noise @ rng.standard_normal(n)
        z = np.concatenate([x, u])
        ZZ += np.outer(z, z)
        ZY += np.outer(z, y)
        YY += np.outer(y, y)
        nu += 1.0
        x = y
    return K


def play_ours(system: LinearSystem, steps: int, seed: int, schedule: Any, probes: Any) -> Any:
    """Run our agent on our plant; return the last gain."""
    agent = LinearQuadratic.on(system, prior=SystemPrior()).agent(schedule=schedule)
    interact(agent, LinearPlant(system), steps, seed=seed, probes=probes)
    return agent.gain


@lru_cache(maxsize=1)
def players() -> dict[str, tuple[Callable[[int, int], Any], int]]:
    """The players, and the number of steps per call."""
    system, lazy = random_stable(), DeterminantDoubling()
    return {
        BY_HAND: (lambda n, seed: play_by_hand(system, n, seed), 100),
        "bayescontrol, at each step": (
            lambda n, seed: play_ours(system, n, seed, every_step, None), 2_000),
        "bayescontrol, lazy, readable": (
            lambda n, seed: play_ours(system, n, seed, lazy, LOOK), 1_000),
        LAZY: (lambda n, seed: play_ours(system, n, seed, lazy, None), 10_000),
    }  # fmt: skip


def step(rounds: int = 9) -> dict[str, Timing]:
    """Time per step of each player, at the start of a run."""
    calls = {name: lambda play=play, n=n: play(n, 0) for name, (play, n) in players().items()}
    timings = take_turns(calls, calls=1, rounds=rounds)
    return {name: timing.per(players()[name][1]) for name, timing in timings.items()}


def final_costs(steps: int = 1_000, runs: int = 15) -> dict[str, list[float]]:
    """J(K)/J* - 1 of the last gain: by hand with a draw at each step, and with lazy draws."""
    system = random_stable()
    return {
        name: [system.cost(players()[name][0](steps, run)) / system.best_cost - 1.0
               for run in range(runs)]
        for name in (BY_HAND, LAZY)
    }  # fmt: skip


def main() -> None:
    """Measure; print the timings and the costs."""
    console = Console()
    with console.status("measuring: a step"):
        timings = step()
    table = Table(caption="Median of interleaved rounds (lowest-highest).")
    for column in ("4 states, 2 inputs", "a step", "ratio"):
        table.add_column(column, justify="left" if column[0] == "4" else "right")
    for name, timing in timings.items():
        table.add_row(name, str(timing), f"{timing.median / timings[BY_HAND].median:.3g}")
    console.print(table)
    with console.status("measuring: the cost of the gains"):
        found = final_costs()
    for name, excess in found.items():
        low, middle, high = np.quantile(excess, [0.25, 0.5, 0.75])
        console.print(
            f"{name}: after 1,000 steps the gain costs {100 * middle:.2f} % "
            f"({100 * low:.2f}-{100 * high:.2f}) above the best, {len(excess)} runs"
        )


if __name__ == "__main__":
    main()
