"""Why we lose where we lose: the measurements behind the remarks of `bandit_contest`.

    draw     a ~ arg max_a x·w_a,  w_a ~ posterior                     Thompson sampling
    bonus    a = arg max_a x·μ_a + √(xᵀ Σ_a x)                         LinUCB with a factor of 1
    mean     a = arg max_a x·μ_a                                       no exploration

All three have the same Gaussian model w_a ~ N(0, I), written in NumPy. Run with
`python -m benchmarks.arena.bandit_ablation`, which takes some minutes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
from benchmarks.arena.bandit_contest import write_digits
from benchmarks.peers.bandit_worlds import ARMS, Player, facts, make_run, play
from benchmarks.peers.bayescontrol import gaussian_fixed, logistic
from rich.console import Console
from rich.table import Table

from bayescontrol._arrays import FloatArray

SEEDS: Final = (0, 1, 2)


class Linear:
    """Gaussian weights for each arm and rewards with Gaussian noise of standard deviation `sd`.

    `factor` standard deviations are added to the mean score, or drawn if it is None.
    """

    def __init__(
        self, features: int, seed: int, factor: float | None = None, sd: float = 1.0
    ) -> None:
        self.mean = np.zeros((ARMS, features))
        self.covariance = np.tile(np.eye(features), (ARMS, 1, 1))
        self.rng, self.factor, self.noise = np.random.default_rng(seed), factor, sd * sd

    def decide(self, x: FloatArray) -> int:
        """Choose the arm with the largest score, ties at random."""
        factor = self.rng.standard_normal(ARMS) if self.factor is None else self.factor
        scores = self.mean @ x + factor * np.sqrt((self.covariance @ x) @ x)
        return int(self.rng.choice(np.flatnonzero(scores == scores.max())))

    def learn(self, x: FloatArray, a: int, r: float) -> None:
        """Condition on the reward, exactly."""
        direction = self.covariance[a] @ x
        gain = direction / (float(direction @ x) + self.noise)
        self.mean[a] += gain * (r - float(self.mean[a] @ x))
        self.covariance[a] -= np.outer(gain, direction)


class Narrowing:
    """Gaussian arms with draws of standard deviation n^-power after n rewards."""

    def __init__(self, seed: int, power: float) -> None:
        self.count, self.total = np.zeros(ARMS), np.zeros(ARMS)
        self.rng, self.power = np.random.default_rng(seed), power

    def decide(self, x: Any) -> int:
        """Choose the arm with the largest draw."""
        n = np.maximum(self.count, 1)
        return int((self.total / n + self.rng.standard_normal(ARMS) / n**self.power).argmax())

    def learn(self, x: Any, a: int, r: float) -> None:
        """Count the reward."""
        self.count[a] += 1
        self.total[a] += r


class Counting:
    """Record which arms a player pulls."""

    def __init__(self, player: Player) -> None:
        self.player, self.pulled = player, set[int]()

    def decide(self, x: Any) -> int:
        """Choose as the player does."""
        a = self.player.decide(x)
        self.pulled.add(a)
        return a

    def learn(self, x: Any, a: int, r: float) -> None:
        """Learn as the player does."""
        self.player.learn(x, a, r)


def means(world: str, steps: int, runs: int, make: Callable[[int], Player]) -> list[float]:
    """Return the mean score for each seed."""
    return [
        float(np.mean([play(make(100 * s + i), make_run(world, s, i, steps)) for i in range(runs)]))
        for s in SEEDS
    ]


def main() -> None:
    """Measure everything and print a table."""
    write_digits()
    console = Console()
    table = Table(title="Mean scores for three seeds")
    for column in ("world", "steps", "agent", *(f"seed {s}" for s in SEEDS), "mean"):
        table.add_column(column)

    def add(world: str, steps: int, runs: int, name: str, make: Callable[[int], Player]) -> None:
        with console.status(f"{world}: {name}"):
            values = means(world, steps, runs, make)
        shown = (f"{value:.4g}" for value in (*values, np.mean(values)))
        table.add_row(world, f"{steps:,}", name, *shown)

    for world in (
        "linear, 10 features",
        "linear, 100 features",
        "logistic, 10 features",
        "logistic, 100 features",
        "digits",
    ):
        d = facts(world, 1).features
        add(world, 500, 8, "linear, draw", partial(Linear, d))
        add(world, 500, 8, "linear, draw, sd 0.5", partial(Linear, d, sd=0.5))
        add(world, 500, 8, "linear, bonus", partial(Linear, d, factor=1.0))
        add(world, 500, 8, "linear, mean", partial(Linear, d, factor=0.0))
    for world, steps in {
        "logistic, 10 features": 1_000,
        "logistic, 100 features": 1_500,
        "digits": 1_500,
    }.items():
        known = facts(world, steps)
        add(world, steps, 6, "LogisticBandit", partial(logistic, known))
    add("ten Gaussian arms", 1_000, 30, "deviation 1/√n", lambda s: Narrowing(s, 0.5))
    add("ten Gaussian arms", 1_000, 30, "deviation 1/n", lambda s: Narrowing(s, 1.0))
    console.print(table)

    world, most = "Gaussian arms, large scale", 0
    for i in range(30):
        player = Counting(gaussian_fixed(facts(world, 1_000), i))
        play(player, make_run(world, 0, i, 1_000))
        most = max(most, len(player.pulled))
    console.print(
        f"{world}: the prior N(0, 1) pulled at most {most} of {ARMS} arms in each of 30 runs."
    )


if __name__ == "__main__":
    main()
