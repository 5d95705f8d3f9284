"""Compare compiled loops with C programs for the same work, in CPU time.

`benchmarks/limits/run [ROUNDS]` builds the C programs and runs this module; the two programs of a
pair take turns in one process.
"""

import ctypes
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.limits.grid import GOAL, build

from bayescontrol import BernoulliBandit, Stream, interact
from bayescontrol.baselines import GittinsTable, RLearning
from bayescontrol.beliefs.weights import Weights
from bayescontrol.mdp import GibbsMDP, GibbsPrior, Maze

DOUBLE, POINTER, LONG = ctypes.c_double, ctypes.c_void_p, ctypes.c_long
U64, INT = ctypes.c_uint64, ctypes.c_int
MODES = 1_000_000


class Pair(NamedTuple):
    """Two functions that take a seed and return the number of steps done, and a time unit."""

    name: str
    c: Callable[[int], int]
    ours: Callable[[int], int]
    scale: float
    unit: str


def _pointer(array: Any) -> Any:
    return array.ctypes.data_as(POINTER)


def _levers(folder: Path) -> Pair:
    library = ctypes.CDLL(str(folder / "libscreen10.so"))
    bandit, steps = BernoulliBandit(10), 1000

    def c(seed: int, runs: int = 600) -> int:
        rewards, best = np.zeros(steps), np.zeros(steps)
        library.ts_screen2(U64(seed), LONG(runs), LONG(steps), _pointer(rewards), _pointer(best))
        return runs * steps

    def ours(seed: int, runs: int = 150) -> int:
        rng = np.random.default_rng(seed)
        for i in range(runs):
            interact(bandit.agent(), bandit.environment(rng.random(10)), steps, seed=seed, run=i)
        return runs * steps

    return Pair("10-lever decision", c, ours, 1e9, "ns")


def _maze(folder: Path) -> tuple[Pair, Pair]:
    r_learning = ctypes.CDLL(str(folder / "librl.so")).rlearn
    gibbs = ctypes.CDLL(str(folder / "librlblk.so")).bcr_blk
    r_learning.restype = gibbs.restype = DOUBLE
    maze: list[Any] = [U64, LONG, POINTER, POINTER, POINTER, POINTER, INT]
    r_learning.argtypes = [*maze, DOUBLE, DOUBLE, DOUBLE, DOUBLE, POINTER, POINTER]
    gibbs.argtypes = [*maze, DOUBLE, DOUBLE, DOUBLE, POINTER, LONG]
    arrays = build()
    tables = (*map(_pointer, arrays), GOAL)
    mdp = Maze("three-cups").mdp()

    def r_c(seed: int, steps: int = 1_000_000) -> int:
        Q, rho = np.empty(196), np.zeros(1)
        r_learning(seed, steps, *tables, 0.5, 0.001, 30.0, 1.0, _pointer(Q), _pointer(rho))
        return steps

    def r_ours(seed: int, steps: int = 1_000_000) -> int:
        interact(RLearning.on(mdp, C=30.0, start=0), mdp.environment(0), steps, seed=seed)
        return steps

    def gibbs_c(seed: int, steps: int = 40_000) -> int:
        current = np.zeros(1)
        gibbs(seed, steps, *tables, 1.0, 1.0, 1.0, _pointer(current), 0)
        return steps

    def gibbs_ours(seed: int, steps: int = 40_000) -> int:
        interact(
            GibbsMDP(4, 0, GibbsPrior(precision=1.0)).agent(), mdp.environment(0), steps, seed=seed
        )
        return steps

    return (
        Pair("R-learning step", r_c, r_ours, 1e9, "ns"),
        Pair("Gibbs step 49x4", gibbs_c, gibbs_ours, 1e6, "us"),
    )


def _belief(folder: Path) -> Pair:
    update = ctypes.CDLL(str(folder / "librl.so")).belief_lin
    update.restype, update.argtypes = LONG, [U64, LONG, LONG, POINTER, POINTER, POINTER]
    likelihood = np.random.default_rng(0).uniform(0.1, 1.0, MODES)
    w, blocks = np.empty(MODES), np.zeros(MODES // 256 + 2)
    weights, stream = Weights(np.full(MODES, 1.0 / MODES)), Stream(0)

    def c(seed: int, steps: int = 12) -> int:
        w[:] = 1.0 / MODES
        update(seed, steps, MODES, _pointer(w), _pointer(likelihood), _pointer(blocks))
        return steps

    def ours(seed: int, steps: int = 12) -> int:
        for _ in range(steps):
            weights.condition(likelihood, False)
            weights.draw(stream)
        return steps

    return Pair("update+draw M=1e6", c, ours, 1e3, "ms")


def _gittins(folder: Path) -> Pair:
    gittins = ctypes.CDLL(str(folder / "libgittins.so")).gittins2
    gittins.restype = INT
    gittins.argtypes = [DOUBLE, DOUBLE, DOUBLE, INT, INT, INT, POINTER, DOUBLE, INT, POINTER]
    lam = np.sin(np.pi * np.linspace(0, 1, 2001)[1:-1] / 2) ** 2

    def c(seed: int) -> int:
        nu = np.zeros(1301 * 1302 // 2)
        gittins(0.999, 1.0, 1.0, 1300, 3000, lam.size, _pointer(lam), 1e-13, 1, _pointer(nu))
        return 1

    def ours(seed: int) -> int:
        GittinsTable(0.999, 1300, cache=False)
        return 1

    return Pair("Gittins table .999", c, ours, 1.0, "s")


def _time(function: Callable[[int], int], seed: int) -> float:
    start = time.process_time()
    steps = function(seed)
    return (time.process_time() - start) / steps


def main(folder: Path, rounds: int) -> None:
    """Print the median times per step, and the ratio with its range."""
    for pair in (_levers(folder), *_maze(folder), _belief(folder), _gittins(folder)):
        pair.c(0)
        pair.ours(0)
        times = np.array([(_time(pair.c, k), _time(pair.ours, k)) for k in range(1, rounds + 1)])
        c, ours = np.median(times, axis=0) * pair.scale
        ratio = times[:, 1] / times[:, 0]
        print(
            f"{pair.name:20s} C {c:8.3g} {pair.unit}   ours {ours:8.3g} {pair.unit}   "
            f"ratio {np.median(ratio):.2f} ({ratio.min():.2f}-{ratio.max():.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
