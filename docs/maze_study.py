"""A maze that is drawn in a text file: which agent earns more?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from bayescontrol import interact
from bayescontrol.baselines import RLearning
from bayescontrol.lab import Columns, Experiment, Score, Table
from bayescontrol.mdp import GibbsMDP, Maze, policy_iteration
from bayescontrol.plot.chart import Chart, Colour, Guide, Panel, Series
from bayescontrol.statistics import compare_pair, mean_interval

MAP = Path(__file__).with_name("my_maze.txt").read_text(encoding="utf-8")
BLOCK = 500  # steps of each average
COLOURS: dict[str, Colour] = {"control rule": "blue", "R-learning": "green"}


@dataclass(frozen=True)
class Settings:
    """The settings that the command line can change. The map is stored with the results."""

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=2, description="number of replicas")] = 10
    steps: Annotated[int, msgspec.Meta(ge=BLOCK, description="steps of a replica")] = 20_000
    layout: Annotated[str, msgspec.Meta(description="the map, as text")] = MAP


def run(settings: Settings, i: int) -> Columns:
    """Run replica i: the mean reward of every block of steps, for both agents."""
    mdp = Maze(settings.layout).mdp()
    agents = {
        "control rule": GibbsMDP(4, start=0).agent(),
        "R-learning": RLearning.on(mdp, C=30, start=0),
    }
    blocks = settings.steps // BLOCK
    earned = {}
    for name, agent in agents.items():
        world = mdp.environment(0)
        record = interact(agent, world, blocks * BLOCK, seed=settings.seed, run=i)
        earned[name] = record.observations["reward"].reshape(blocks, BLOCK).mean(axis=1)
    return earned


def score(settings: Settings, columns: Columns) -> Score:
    """Return the mean reward of each agent over the last half of the run, and a comparison."""
    best = policy_iteration(Maze(settings.layout).mdp()).gain
    late = {
        name: earned[:, earned.shape[1] // 2 :].mean(axis=1) for name, earned in columns.items()
    }
    rows = []
    for name, values in late.items():
        interval = mean_interval(values)
        share = f"{interval.mean / best:.0%}"
        rows.append((name, float(interval.mean), float(interval.low), float(interval.high), share))
    note = compare_pair(*late.values(), names=tuple(late)).sentence
    header = ("agent", "reward per step", "low", "high", f"of the best, {best:.4f}")
    return Score((), (Table("The last half of the steps", header, tuple(rows), note),))


def figures(settings: Settings, columns: Columns) -> dict[str, Chart]:
    """Plot the learning curves and the reward of the best policy."""
    t = (np.arange(settings.steps // BLOCK) + 0.5) * BLOCK
    curves = [Series.of_runs(n, t, runs, colour=COLOURS[n]) for n, runs in columns.items()]
    best = Guide("the best policy", policy_iteration(Maze(settings.layout).mdp()).gain)
    panel = Panel("", "step t", "reward per step", curves, [best], ylim=(0.0, None))
    read = "Higher is better; no policy earns more than the dotted line."
    return {"learning": Chart("My maze", [panel], read, note=f"{settings.runs} runs")}


study = Experiment(
    name="my-maze",
    summary="the control rule and R-learning in a maze from a text file",
    settings=Settings,
    quick=Settings(),
    full=Settings(runs=50, steps=200_000),
    run=run,
    score=score,
    figures=figures,
)
