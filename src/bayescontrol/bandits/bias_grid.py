"""Bandits whose biases lie on a grid: a finite class in which every question has an exact answer.

    mode m = (θ_1, …, θ_K),  θ_k in a few levels        P(1 | m, a) = θ_a
    P(a | m) uniform on arg max_k θ_k

Pulling the best arm of m* says nothing of the others: a mode that agrees with m* on that arm,
and thinks better of another, is in the core of m* and acts differently. Its own policy refutes
it: such a class settles all the same.
"""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from bayescontrol.errors import InvalidTable
from bayescontrol.problems.tabular import Labels, TabularModes

#: The largest class, in modes.
LIMIT = 10_000


def bias_grid(arms: int = 2, levels: Sequence[float] = (0.2, 0.5, 0.8)) -> TabularModes:
    """Bandits with every combination of biases in `levels`: each mode pulls its best arm.

    Where several arms are best it pulls any of them. The last arm varies fastest; the name of a
    mode lists its biases.

    >>> modes = bias_grid()
    >>> modes
    TabularModes(9 modes, 1 situation, 2 actions, 2 observations)
    >>> modes.name(2), modes[2].likelihood(0, a=1, o=1), modes[2].action_probabilities(0)
    ('(.2, .8)', 0.8, {1: 1.0})
    >>> modes[4].action_probabilities(0)  # (.5, .5)
    {0: 0.5, 1: 0.5}
    """
    if arms < 1:
        raise InvalidTable(f"bias_grid(arms={arms}): there is at least one arm")
    values = [float(level) for level in levels]
    if not values or len(set(values)) < len(values):
        raise InvalidTable(f"bias_grid(levels={levels}): give at least one level, each once")
    for level in values:
        if math.isnan(level) or not 0.0 <= level <= 1.0:
            raise InvalidTable(f"bias_grid(levels={levels}): {level} is not a probability")
    if len(values) ** arms > LIMIT:
        raise InvalidTable(
            f"bias_grid with {len(values)} levels for each of {arms} arms has "
            f"{len(values)}^{arms} modes, the limit is {LIMIT}: take fewer of them"
        )
    theta = np.array(list(product(values, repeat=arms)))
    best = theta == theta.max(1, keepdims=True)
    return TabularModes(
        (best / best.sum(1, keepdims=True))[:, None],
        np.stack([1.0 - theta, theta], -1)[:, None],
        names=[f"({', '.join(map(_short, biases))})" for biases in theta.tolist()],
        labels=Labels(("always",), tuple(f"arm {k}" for k in range(arms)), ("0", "1")),
    )


def _short(bias: float) -> str:
    """.2 for 0.2; 0 and 1 as they are."""
    return f"{bias:g}".removeprefix("0") or "0"
