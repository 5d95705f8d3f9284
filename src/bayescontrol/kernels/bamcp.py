"""Bayes-adaptive Monte-Carlo planning: a search tree over histories (Guez, Silver & Dayan 2012).

    simulation   P(· | x,a) ~ Dirichlet(w(x,a,·)), once for each pair it comes to; from the root on
    in the tree  a = arg max_a Q(h,a) + c √(ln N(h) / N(h,a)),  untried actions first
    at a leaf    actions at random, up to the depth; the leaf joins the tree
    backup       R ← r + γ R,   N(h,a) += 1,   Q(h,a) += (R - Q(h,a)) / N(h,a)

An outcome o stands for a reward and a next state. The model is drawn at the root alone: that the
values are those of planning with beliefs, though no belief is updated in the tree, is lemma 1.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray, IntArray, UIntArray
from bayescontrol.kernels._jit import jit, leaf
from bayescontrol.kernels.elementary import log
from bayescontrol.kernels.mdp import draw_row
from bayescontrol.kernels.random import below, categorical


class Outcomes(NamedTuple):
    """What may happen: w(x,a,o), the reward and the next state of o, and what x offers.

    >>> Outcomes(np.ones((1, 2, 2)), np.array([0.0, 1.0]), np.zeros(2, np.int64),
    ...          np.ones((1, 2), np.bool_)).weight.shape
    (1, 2, 2)
    """

    weight: FloatArray
    reward: FloatArray
    successor: IntArray
    offered: npt.NDArray[np.bool_]


class Search(NamedTuple):
    """How to search: simulations, their depth, the discount γ and the exploration c.

    >>> Search(100, 2, 1.0, 1.0).depth
    2
    """

    simulations: int
    depth: int
    gamma: float
    c: float


@leaf
def _any_action(offered: npt.NDArray[np.bool_], rng: UIntArray) -> int:
    count = 0
    for a in range(offered.size):
        count += offered[a]
    left = below(rng, count)
    for a in range(offered.size):
        if offered[a]:
            if left == 0:
                return a
            left -= 1
    return -1


@leaf
def _promising(
    offered: npt.NDArray[np.bool_], tries: FloatArray, value: FloatArray, visits: float, c: float
) -> int:
    """arg max_a Q(h,a) + c √(ln N(h) / N(h,a)), the first of several, untried actions first."""
    best, top = -1, -math.inf
    spread = log(visits)
    for a in range(offered.size):
        if offered[a]:
            if tries[a] == 0.0:
                return a
            q = value[a] + c * math.sqrt(spread / tries[a])
            if q > top or best < 0:
                best, top = a, q
    return best


@leaf
def _happens(
    o: Outcomes,
    x: int,
    a: int,
    P: FloatArray,
    drawn: IntArray,
    simulation: int,
    nothing: FloatArray,
    scratch: FloatArray,
    rng: UIntArray,
) -> int:
    """An outcome of (x,a) in the model of this simulation, whose row is drawn when first needed."""
    if drawn[x, a] != simulation:
        draw_row(o.weight[x, a], nothing, P[x, a], scratch, rng)
        drawn[x, a] = simulation
    return categorical(rng, P[x, a])


@jit
def search(
    o: Outcomes, x: int, how: Search, value: FloatArray, tries: FloatArray, rng: UIntArray
) -> int:
    """Q(h,a) and N(h,a) of the history of now, h, in state x, into `value` and `tries`; nodes made.

    >>> from bayescontrol.seeding import Stream
    >>> lever = Outcomes(np.array([[[1.0, 1.0], [1.0, 3.0]]]), np.array([0.0, 1.0]),
    ...                  np.zeros(2, np.int64), np.ones((1, 2), np.bool_))
    >>> value, tries = np.empty(2), np.empty(2)
    >>> search(lever, 0, Search(20_000, 1, 1.0, 1.0), value, tries, Stream(0).state)
    1
    >>> value.round(1), float(tries.sum())  # one pull: 1/2 and 3/4
    (array([0.5, 0.8]), 20000.0)
    """
    X, A, outcomes = o.weight.shape
    child = np.full((how.simulations + 1, A, outcomes), -1, np.int64)
    visits = np.zeros(how.simulations + 1)
    N = np.zeros((how.simulations + 1, A))
    Q = np.zeros((how.simulations + 1, A))
    P = np.empty((X, A, outcomes))
    drawn = np.full((X, A), -1, np.int64)
    nothing, scratch = np.zeros(outcomes), np.empty(outcomes)
    path, taken, paid = (
        np.empty(how.depth, np.int64), np.empty(how.depth, np.int64), np.empty(how.depth)
    )  # fmt: skip
    nodes = 1
    for simulation in range(how.simulations):
        here, node, length, in_tree = x, 0, 0, True
        ahead, discount = 0.0, 1.0
        for d in range(how.depth):
            leaf_now = in_tree and visits[node] == 0.0
            if in_tree and not leaf_now:
                a = _promising(o.offered[here], N[node], Q[node], visits[node], how.c)
            else:
                a = _any_action(o.offered[here], rng)
            i = _happens(o, here, a, P, drawn, simulation, nothing, scratch, rng)
            here = o.successor[i]
            if in_tree:
                path[length], taken[length], paid[length] = node, a, o.reward[i]
                length += 1
                if leaf_now:
                    in_tree = False
                elif d + 1 < how.depth:
                    if child[node, a, i] < 0:
                        child[node, a, i] = nodes
                        nodes += 1
                    node = child[node, a, i]
            else:
                ahead += discount * o.reward[i]
                discount *= how.gamma
        for k in range(length - 1, -1, -1):
            node, a = path[k], taken[k]
            ahead = paid[k] + how.gamma * ahead
            visits[node] += 1.0
            N[node, a] += 1.0
            Q[node, a] += (ahead - Q[node, a]) / N[node, a]
    value[:] = Q[0]
    tries[:] = N[0]
    return nodes
