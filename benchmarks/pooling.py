"""Regret per segment of pooled Bernoulli arms beside three alternatives.

    μ_a ~ U(0.3, 0.7)      θ_{a,s} ~ Beta(c μ_a, c (1 - μ_a))      40 segments s, 8 arms a

Segments take turns. Compared are a bandit for each segment, one bandit for all segments,
`BernoulliBandit(...).pooled()`, and a bandit for each segment that knows c and μ. Every agent acts
by Thompson sampling. Run `python -m benchmarks.pooling [--runs 100]`.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from bayescontrol import BernoulliBandit, Stream
from bayescontrol._arrays import FloatArray

SEGMENTS, ARMS = 40, 8
AFTER = 200, 600


def separate(prior: FloatArray | None) -> Callable[[int], Any]:
    """Return the agent of each segment, all with the same prior."""
    agents = [BernoulliBandit(ARMS, prior=prior).agent() for _ in range(SEGMENTS)]
    return lambda s: agents[s]


def together(pooled: bool) -> Callable[[int], Any]:
    """Return one agent for all segments, which knows the segment or not."""
    bandit = BernoulliBandit(ARMS)
    agent: Any = bandit.pooled().agent(start=0) if pooled else bandit.agent()

    def in_segment(s: int) -> Any:
        if pooled:
            agent.x = s
        return agent

    return in_segment


def regrets(agent_of: Callable[[int], Any], theta: FloatArray, seed: int) -> list[float]:
    """Return the regret per segment after each number of decisions in `AFTER`."""
    p, q = Stream.named(seed, 0, "agent"), np.random.default_rng(seed)
    best, total, found = theta.max(0), 0.0, []
    for t in range(1, max(AFTER) + 1):
        u = q.random(SEGMENTS)
        for s in range(SEGMENTS):
            agent = agent_of(s)
            a = agent.act(p)
            agent.observe(a, float(u[s] < theta[a, s]))
            total += best[s] - theta[a, s]
        if t in AFTER:
            found.append(total / SEGMENTS)
    return found


def main() -> None:
    """Print the mean regret per segment with its standard error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    for c in (10.0, 50.0):
        scores: dict[str, list[list[float]]] = {}
        for run in range(runs):
            rng = np.random.default_rng([int(c), run])
            mu = rng.uniform(0.3, 0.7, ARMS)
            prior = np.column_stack([c * mu, c * (1.0 - mu)])
            theta = rng.beta(prior[:, :1], prior[:, 1:], (ARMS, SEGMENTS))
            agents = {
                "independent": separate(None),
                "one for all": together(pooled=False),
                "pooled": together(pooled=True),
                "known": separate(prior),
            }
            for name, agent_of in agents.items():
                scores.setdefault(name, []).append(regrets(agent_of, theta, run))
        for name, values in scores.items():
            mean, error = np.mean(values, 0), np.std(values, 0) / runs**0.5
            shown = "   ".join(f"{m:.1f} ± {e:.1f}" for m, e in zip(mean, error, strict=True))
            print(f"concentration {c:g}, {name:12} after {AFTER}: {shown}")


if __name__ == "__main__":
    main()
