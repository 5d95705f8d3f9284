"""Random problems, and what enumeration says about them."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from bayescontrol import Stream
from bayescontrol._arrays import FloatArray
from bayescontrol.pomdp import POMDP


def rows(rng: Stream, *shape: int, zeros: bool = True) -> FloatArray:
    """Random probabilities on the last axis, some of them 0."""
    g = np.asarray(rng.gamma(0.7, size=shape)) + 1e-3
    if zeros:
        g *= np.asarray(rng.random(size=shape)) > 0.3
        g[..., 0] += 1e-3
    return np.asarray(g / g.sum(-1, keepdims=True))


def random_pomdp(seed: int, sizes: tuple[int, int, int] = (3, 2, 2), **options: Any) -> POMDP:
    """A problem whose rewards are few integers, so that a reward is often ambiguous."""
    rng, (X, A, Z) = Stream(seed), sizes
    axes = ((X, A), (X, A, X), (X, A, X, Z))[seed % 3]
    reward = np.asarray(rng.integers(3, size=axes), np.float64)
    start = rows(rng, X)
    tables = rows(rng, X, A, X), rows(rng, A, X, Z), reward
    return POMDP(X, A, Z, *tables, start=start, **options)


def of_paths(pomdp: POMDP, history: Sequence[tuple[int, Any]]) -> tuple[FloatArray, float]:
    """P(x_T, o_1 … o_T | a_1 … a_T) for every x_T, summed over all paths x_0 … x_T."""
    X, total = len(pomdp.states), np.zeros(len(pomdp.states))
    for path in product(range(X), repeat=len(history) + 1):
        p = float(pomdp.start[path[0]])
        for x, y, (a, (r, z)) in zip(path, path[1:], history, strict=False):
            paid = pomdp.rewards[(x, a, y, z)[: pomdp.rewards.ndim]]
            fits = paid == r or not pomdp.rewards_observed
            p *= float(pomdp.transition[x, a, y] * pomdp.observation[a, y, z]) * fits
        total[path[-1]] += p
    return total, float(total.sum())


def best_of_horizon(pomdp: POMDP, b: FloatArray, steps: int) -> float:
    """The best expected discounted reward of so many steps, by trying all."""
    if steps == 0:
        return 0.0
    values = []
    for a, name in enumerate(pomdp.actions):
        later = 0.0
        for signal, p in pomdp.signal_probabilities(b, name).items():
            later += p * best_of_horizon(pomdp, pomdp.condition(b, name, signal)[0], steps - 1)
        values.append(float(b @ pomdp.reward[:, a]) + (pomdp.discount or 1.0) * later)
    return max(values)
