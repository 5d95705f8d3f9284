"""Regret of changing bandits that learn their scale, beside true values and the static bandit.

    10 arms, all means drawn anew with probability 0.002 per step, 2,500 steps

`python -m benchmarks.changing_learned --runs 30` prints mean and standard error of the regret, and
microseconds per step.
"""

import argparse
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bayescontrol import BernoulliBandit, GaussianBandit, Stream, interact, metrics
from bayescontrol.lab import mean_and_error
from bayescontrol.report.tables import with_error

ARMS, RATE, STEPS = 10, 0.002, 2_500


def gaussian(spread: float, sd: float) -> dict[str, Any]:
    """The agents for Gaussian arms, the true one with prior N(0, spread²)."""
    bandit, true = GaussianBandit(ARMS), GaussianBandit(ARMS, sd=sd, prior=(0, spread))
    return {
        "learned, changing": bandit.changing().agent,
        "true values, changing": true.changing().agent,
        "learned, static": bandit.agent,
        "world": lambda seed: true.changing().draw(seed, rate=RATE, steps=STEPS),
    }


def bernoulli() -> dict[str, Any]:
    """The agents for Bernoulli arms with rates near 0.02."""
    bandit, true = BernoulliBandit(ARMS, prior="learned"), BernoulliBandit(ARMS, prior=(2, 98))
    return {
        "learned, changing": bandit.changing().agent,
        "true values, changing": true.changing().agent,
        "uniform prior, changing": BernoulliBandit(ARMS).changing().agent,
        "learned, static": bandit.agent,
        "world": lambda seed: true.changing().draw(seed, rate=RATE, steps=STEPS),
    }


WORLDS = {
    "means N(0, 50²), noise 1": gaussian(50.0, 1.0),
    "means N(0, 50²), noise 50": gaussian(50.0, 50.0),
    "rates Beta(2, 98)": bernoulli(),
}


def main() -> None:
    """Measure and print a table for each world."""
    parser = argparse.ArgumentParser(description="Changing bandits that learn their scale.")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--first-run", type=int, default=1000, help="the grid saw the runs to 99")
    options = parser.parse_args()
    runs = options.runs
    for name, agents in WORLDS.items():
        table = Table(title=f"{name}, {runs} runs", caption="Mean and standard error.")
        for column in ("agent", "regret", "us a step"):
            table.add_column(column)
        for label in [label for label in agents if label != "world"]:
            regrets, began = [], time.perf_counter()
            for run in range(options.first_run, options.first_run + runs):
                world = agents["world"](Stream.named(run, 0, "world"))
                record = interact(agents[label](), world, STEPS, seed=run)
                regrets.append(metrics.regret(record, world)[-1])
            seconds = time.perf_counter() - began
            shown = with_error(*map(float, mean_and_error(np.array(regrets))))
            table.add_row(label, shown, f"{seconds / runs / STEPS * 1e6:.0f}")
        Console().print(table)


if __name__ == "__main__":
    main()
