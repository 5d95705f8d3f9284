"""The rate of evidence along simulated walks, for comparison with exact rates."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bayescontrol.convergence.sampled import Rate, mean_rate
from bayescontrol.convergence.walks import Walk


def sampled_rate(
    true: Any,
    other: Any,
    *,
    world: Callable[[Any], Any],
    policy: Any = None,
    situation: Any = None,
    advance: Callable[[Any, Any, Any], Any] | None = None,
    wander: Sequence[Any] = (),
    wander_steps: int = 100,
    burn: int = 0,
    steps: int = 1000,
    runs: int = 30,
    seed: int = 0,
) -> Rate:
    """Estimate (1/n) Σ_t G_t of `other` from `true` in the world of `true`, over n = `steps` steps.

    `policy` acts (by default the true mode) after `burn` steps that are not counted. The modes in
    `wander` take turns first, for a random number of steps up to `wander_steps`.
    """
    modes = [true, other, true if policy is None else policy, *wander]
    acting = 0 if policy is None else 2
    nats = np.empty(runs)
    for run in range(runs):
        walk = Walk(modes, world, situation, advance, seed=seed, run=run)
        if wander:
            for _ in walk.turns(range(3, len(modes)), walk.chance.integers(wander_steps + 1)):
                pass
        for _ in range(burn):
            walk.step(acting)
        nats[run] = sum(walk.step(acting).nats for _ in range(steps))
    return mean_rate(nats, steps)
