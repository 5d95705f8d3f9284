"""What the temperature of draws buys and risks: mean and worst runs, in worlds of the arena.

Every agent meets the same worlds (`benchmarks.peers.bandit_worlds`). The worst runs are the 5 %
with the largest regret, or with the smallest reward. Run `python -m benchmarks.temperature`.
"""

import argparse
from typing import Any, Final, NamedTuple

import numpy as np
from benchmarks.arena.bandit_contest import write_digits
from benchmarks.peers.bandit_worlds import facts, make_run, play
from benchmarks.peers.bayescontrol import Arms, WithContexts

from bayescontrol import BernoulliBandit, GaussianBandit, LinearBandit

SEED: Final = 1
TEMPERATURES: Final = 0.1, 0.25, 0.5, 1.0, 2.0


class Contest(NamedTuple):
    """A world, the class of the bandit, the decisions of a run, and the share of `--runs`."""

    world: str
    bandit: Any
    steps: int
    share: float
    temperatures: tuple[float, ...] = TEMPERATURES


CONTESTS: Final = (
    Contest("ten Bernoulli arms", BernoulliBandit, 1_000, 1.0),
    Contest("ten Bernoulli arms", BernoulliBandit, 10_000, 1.0, (0.25, 0.5, 1.0)),
    Contest("ten Gaussian arms", GaussianBandit, 1_000, 1.0),
    Contest("linear, 10 features", LinearBandit, 2_000, 0.5),
    Contest("linear, 100 features", LinearBandit, 2_000, 0.03, (0.25, 1.0)),
    Contest("digits", LinearBandit, 1_797, 0.05, (0.25, 1.0)),
)


def score(contest: Contest, temperature: float, run: int) -> float:
    """Play one run; return its regret, or its reward per step."""
    known = facts(contest.world, contest.steps)
    size = (known.arms, known.features) if known.features else (known.arms,)
    agent = contest.bandit(*size).agent(temperature=temperature)
    player = (WithContexts if known.features else Arms)(agent, 10_000 + run)
    return play(player, make_run(contest.world, SEED, run, contest.steps))


def main() -> None:
    """Print a line for each world and temperature."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--worlds", help="only worlds whose name contains this text", default="")
    options = parser.parse_args()
    write_digits()
    print("| world | steps | temperature | runs | mean | worst 5 % of runs |\n" + 6 * "|---" + "|")
    for contest in CONTESTS:
        if options.worlds not in contest.world:
            continue
        runs = max(2, round(options.runs * contest.share))
        for temperature in contest.temperatures:
            found = np.array([score(contest, temperature, run) for run in range(runs)])
            is_reward = contest.world == "digits"
            ordered = np.sort(found if is_reward else -found)
            worst = abs(ordered[: max(1, runs // 20)].mean())
            form = ".3f" if is_reward else ",.1f"
            error = found.std(ddof=1) / runs**0.5
            print(
                f"| {contest.world} | {contest.steps:,} | {temperature:g} | {runs} | "
                f"{found.mean():{form}} ± {error:{form}} | {worst:{form}} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
