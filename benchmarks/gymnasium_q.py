"""The MDP agent with default settings against tabular Q-learning, on Gymnasium's toy text.

    python -m benchmarks.gymnasium_q [--quick] [--prior NAME] [--seeds 10] [--first-seed 0]

The score of a run is the mean return of the episodes that end in the last quarter of its steps. If
none ends there, it is the return of the unfinished episode. Q-learning is that of Watkins (1989):
α = .1, γ = .99, ε falls linearly from .1 to 0, ties are broken at random, and a time limit is not
an end. The runs of one seed are paired.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np

from bayescontrol import interact
from bayescontrol.gym import Continuing, drive, episodic_agent
from bayescontrol.mdp import ADAPTIVE, GibbsMDP, GibbsPrior
from bayescontrol.statistics import compare_pairs

#: Name, options and number of steps.
WORLDS: dict[str, tuple[dict[str, Any], int]] = {
    "FrozenLake-v1": ({}, 40_000),
    "CliffWalking-v1": ({}, 10_000),
    "Taxi-v4": ({}, 40_000),
    "Blackjack-v1": ({}, 40_000),
}


#: The priors of docs/mdp.md.
PRIORS: dict[str, GibbsPrior] = {
    "default": GibbsPrior(),
    "precision-1": GibbsPrior(precision=1.0),
    "at-least-1": GibbsPrior(least_precision=1.0),
    "unbounded": GibbsPrior(least_precision=1e-100),
    "adaptive": ADAPTIVE,
}


class Returns(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Collects the return of each episode with the step at which it ended."""

    def __init__(self, env: "gymnasium.Env[Any, Any]") -> None:
        super().__init__(env)
        self.steps, self.total = 0, 0.0
        self.ends: list[tuple[int, float]] = []

    def step(self, action: Any) -> Any:
        """Pass the step on and add its reward."""
        result = self.env.step(action)
        self.steps += 1
        self.total += float(result[1])
        if result[2] or result[3]:
            self.ends.append((self.steps, self.total))
            self.total = 0.0
        return result

    def score(self) -> float:
        """Return the mean return of the episodes that ended in the last quarter."""
        late = [total for step, total in self.ends if step > 0.75 * self.steps]
        return float(np.mean(late)) if late else self.total


def q_learning(env: Returns, steps: int, seed: int) -> None:
    """Run tabular Q-learning for a number of steps."""
    rng, size = np.random.default_rng(seed), int(env.action_space.n)  # type: ignore[attr-defined]
    Q: dict[Any, Any] = {}
    x, _ = env.reset(seed=seed)
    for t in range(steps):
        q = Q.setdefault(x, np.zeros(size))
        explores = rng.random() < 0.1 * (1.0 - t / steps)
        a = int(rng.integers(size) if explores else rng.choice(np.flatnonzero(q == q.max())))
        y, r, terminated, truncated, _ = env.step(a)
        future = 0.0 if terminated else 0.99 * Q.setdefault(y, np.zeros(size)).max()
        q[a] += 0.1 * (float(r) + future - q[a])
        x = env.reset()[0] if terminated or truncated else y


def control_rule(env: Returns, steps: int, seed: int) -> None:
    """Run the MDP agent with default settings."""
    drive(episodic_agent(env), env, steps, seed=seed, terminated="end")


def continuing(prior: GibbsPrior, env: Returns, steps: int, seed: int) -> None:
    """Run the MDP agent with this prior; episodes end with a jump to the next start."""
    world = Continuing(env, seed=seed)
    agent = GibbsMDP(world.actions, world.x, prior).agent()
    interact(agent, world, steps, seed=seed)


AGENTS: dict[str, Callable[[Returns, int, int], None]] = {
    "control rule": control_rule,
    "Q-learning": q_learning,
}


def main() -> None:
    """Print a row for each environment."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps, 3 seeds")
    parser.add_argument(
        "--prior", choices=PRIORS, help="use GibbsMDP with this prior; default: episodic_agent"
    )
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    if options.prior:
        AGENTS["control rule"] = partial(continuing, PRIORS[options.prior])
    count = 3 if options.quick else options.seeds
    seeds = range(options.first_seed, options.first_seed + count)
    print(f"Mean return of an episode over the last quarter ± standard error, {count} seeds\n")
    print("| environment | steps | " + " | ".join(AGENTS) + " | difference | p-value | verdict |")
    print("|---|---|" + "---|" * (len(AGENTS) + 3))
    for name, (settings, full) in WORLDS.items():
        steps, scores = full // 10 if options.quick else full, {}
        for agent, run in AGENTS.items():
            envs = [Returns(gymnasium.make(name, **settings)) for _ in seeds]
            for env, seed in zip(envs, seeds, strict=True):
                run(env, steps, seed)
            scores[agent] = np.array([env.score() for env in envs])
        (test,) = compare_pairs(scores)
        columns = [f"{v.mean():.3g} ± {v.std(ddof=1) / count**0.5:.2g}" for v in scores.values()]
        row = [
            name,
            f"{steps:,}",
            *columns,
            f"{test.difference.mean:.3g}",
            f"{test.p_value:.3g}",
            test.verdict,
        ]
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
