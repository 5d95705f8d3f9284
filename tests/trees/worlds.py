"""Worlds with hidden state, and random histories."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from tests.trees import enumeration
from tests.trees.enumeration import Context, Sample, Tree

from bayescontrol import Stream
from bayescontrol.trees import ContextTreeBelief, ContextTrees

TIGER = ContextTrees(
    ["listen", "left", "right"],
    {"sound": ["none", "left", "right"], "reward": [-100.0, -1.0, 10.0]},
    depth=9,
)


class Tiger:
    """A tiger behind one of two doors; listening costs 1 and is right in 85 % of the cases."""

    def __init__(self) -> None:
        self.tiger: str | None = None

    def respond(self, a: str, rng: Stream) -> tuple[float, str]:
        doors = ["left", "right"]
        if self.tiger is None:
            self.tiger = rng.choice(doors)
        if a == "listen":
            is_right = rng.random() < 0.85
            return -1.0, doors[(self.tiger == "right") == is_right]
        reward = -100.0 if a == self.tiger else 10.0
        self.tiger = rng.choice(doors)
        return reward, "none"


class Corridor:
    """Four cells in a row. The second one pays 1 and leads to a random other one."""

    def __init__(self) -> None:
        self.cell = 0

    def respond(self, a: int, rng: Stream) -> tuple[float, int]:
        self.cell = min(max(self.cell + 2 * a - 1, 0), 3)
        if self.cell != 1:
            return 0.0, 0
        self.cell = rng.choice([0, 2, 3])
        return 1.0, 0


def small(depth: int, **caps: Any) -> ContextTrees:
    """Two actions, a field of two symbols, and three rewards."""
    percepts: dict[str, Any] = {"field": 2, "reward": [0.0, 1.0, 4.0]}
    return ContextTrees(2, percepts, depth=depth, **caps)


def random_cycles(problem: ContextTrees, steps: int, seed: int) -> list[list[int]]:
    """Return actions and percepts that depend on the past a little."""
    rng, sizes = np.random.default_rng(seed), problem.alphabet.layout(1).size
    cycles: list[list[int]] = [[0] * len(sizes)]
    for _ in range(steps):
        cycle = [int(rng.integers(m)) for m in sizes]
        if rng.random() < 0.6:
            cycle[-1] = (cycles[-1][0] + cycle[1]) % int(sizes[-1])
        cycles.append(cycle)
    return cycles[1:]


def by_field(
    problem: ContextTrees, cycles: list[list[int]]
) -> Iterator[tuple[int, list[Sample], tuple[int, ...], int]]:
    """Yield slot, samples, numbers of branches by level, and number of symbols of each field."""
    sizes, depth = problem.alphabet.layout(1).size.tolist(), problem.depth
    for slot in range(1, len(sizes)):
        widths = enumeration.branches(sizes, slot, depth)
        yield slot, enumeration.samples(cycles, slot, depth), widths, sizes[slot]


def tree_of(belief: ContextTreeBelief, child: Any, slot: int) -> tuple[Tree, dict[Context, int]]:
    """Return the tree of a slot with these children, and the node of each leaf."""
    size, leaves = belief.layout.size.tolist(), dict[Context, int]()
    widths = enumeration.branches(size, slot, belief.depth)

    def read(node: int, context: Context) -> Tree:
        first = int(child[node])
        if not first:
            leaves[context] = node
            return enumeration.LEAF
        return tuple(read(first + k, (*context, k)) for k in range(widths[len(context)]))

    return read(slot - 1, ()), leaves


def learned(problem: ContextTrees, cycles: list[list[int]]) -> ContextTreeBelief:
    """Return a belief after these cycles."""
    belief = problem.belief()
    for a, *percept in cycles:
        belief.observe(None, problem.alphabet.actions[a], problem.alphabet.observation(percept))
    return belief
