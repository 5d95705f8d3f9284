"""Context trees by enumeration, in plain Python with exact fractions.

A tree is LEAF or a tuple of subtrees. A sample is (context, symbol), with the latest symbol of the
context first. Nothing here is taken from the library.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, TypeAlias

Context: TypeAlias = tuple[int, ...]
Sample: TypeAlias = tuple[Context, int]
#: A leaf, or a tuple of subtrees.
Tree: TypeAlias = Any
LEAF: Tree = None


def history(cycles: Sequence[Sequence[int]], depth: int) -> list[int]:
    """Return all symbols, after `depth` zeros."""
    return [0] * depth + [k for cycle in cycles for k in cycle]


def samples(cycles: Sequence[Sequence[int]], slot: int, depth: int) -> list[Sample]:
    """Return the contexts and symbols of one slot."""
    symbols, found = history(cycles, depth), []
    for t, cycle in enumerate(cycles):
        at = depth + t * len(cycle) + slot
        found.append((tuple(symbols[at - depth : at][::-1]), symbols[at]))
    return found


def branches(sizes: Sequence[int], slot: int, depth: int) -> tuple[int, ...]:
    """Return the number of branches of the tree of a slot at each level."""
    return tuple(sizes[(slot - 1 - level) % len(sizes)] for level in range(depth))


def stop(m: int) -> Fraction:
    """Return the prior probability that a node with m branches is a leaf."""
    return 1 - Fraction(1, 2 ** (m - 1))


@cache
def trees(widths: tuple[int, ...]) -> tuple[Tree, ...]:
    """Return all trees; `widths` are the numbers of branches by level."""
    if not widths:
        return (LEAF,)
    found = list(product(trees(widths[1:]), repeat=widths[0]))
    return tuple(found) if widths[0] == 1 else (LEAF, *found)


def prior(tree: Tree, widths: tuple[int, ...]) -> Fraction:
    """Return the prior probability of a tree."""
    if not widths:
        return Fraction(1)
    if tree is LEAF:
        return stop(widths[0])
    p = 1 - stop(widths[0])
    for subtree in tree:
        p *= prior(subtree, widths[1:])
    return p


def leaf_of(tree: Tree, context: Context) -> Context:
    """Return the context of the leaf that this context reaches."""
    level = 0
    while tree is not LEAF:
        tree, level = tree[context[level]], level + 1
    return context[:level]


def dirichlet(symbols: Sequence[int], E: int) -> Fraction:
    """Return the probability of a sequence under Dirichlet(1/E, …, 1/E)."""
    p, n = Fraction(1), Counter[int]()
    for i, k in enumerate(symbols):
        p *= (n[k] + Fraction(1, E)) / (i + 1)
        n[k] += 1
    return p


def likelihood(tree: Tree, data: Sequence[Sample], E: int) -> Fraction:
    """Return P(symbols | tree, contexts)."""
    by_leaf: dict[Context, list[int]] = {}
    for context, k in data:
        by_leaf.setdefault(leaf_of(tree, context), []).append(k)
    return math.prod((dirichlet(ks, E) for ks in by_leaf.values()), start=Fraction(1))


def joint(data: Sequence[Sample], widths: tuple[int, ...], E: int) -> dict[Tree, Fraction]:
    """Return P(tree, symbols | contexts) for all trees."""
    return {t: prior(t, widths) * likelihood(t, data, E) for t in trees(widths)}


def weighted(
    data: Sequence[Sample],
    widths: tuple[int, ...],
    E: int,
    opened: Collection[Context] | None = None,
    context: Context = (),
) -> Fraction:
    """Return Pw, by recursion over all contexts that occur; those not in `opened` are leaves."""
    level = len(context)
    evidence = dirichlet([k for _, k in data], E)
    if level == len(widths) or (opened is not None and context not in opened):
        return evidence
    m, product_of_children = widths[level], Fraction(1)
    for branch in range(m):
        part = [(c, k) for c, k in data if c[level] == branch]
        if part:
            product_of_children *= weighted(part, widths, E, opened, (*context, branch))
    return stop(m) * evidence + (1 - stop(m)) * product_of_children


def internal(tree: Tree, context: Context = ()) -> Iterator[Context]:
    """Yield the contexts of the internal nodes."""
    if tree is not LEAF:
        yield context
        for branch, subtree in enumerate(tree):
            yield from internal(subtree, (*context, branch))
