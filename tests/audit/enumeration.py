"""All histories of a small world, with exact predictions, by plain products of its tables."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.audit import Event, Transcript, World, did, saw


class Node(NamedTuple):
    """A history, and what follows from it.

    `chance` is its probability: m* from the prior, actions from the actor, and observations from
    m*. `rule` and `naive` are the predictions of the next symbol, `v` and `w` the posteriors.
    """

    history: Transcript
    chance: float
    rule: FloatArray
    naive: FloatArray
    v: FloatArray
    w: FloatArray
    x: int
    a: int | None


Actor = Callable[[Node], FloatArray]


def coin(node: Node) -> FloatArray:
    """The actor of forced histories."""
    return np.full(node.rule.size, 1.0 / node.rule.size)


def by_rule(node: Node) -> FloatArray:
    """The control rule as an actor or a predictor."""
    return node.rule


def by_naive(node: Node) -> FloatArray:
    """The naive mixture as an actor or a predictor."""
    return node.naive


def posteriors(world: World, events: Sequence[Event]) -> tuple[FloatArray, FloatArray, int]:
    """Return P(m) Π P(o) and P(m) Π P(a) P(o), unnormalised, and x; `shown` counts in both."""
    modes = world.modes
    v, w, x, a = modes.prior.copy(), modes.prior.copy(), modes.start, 0
    for kind, symbol in events:
        if kind == "saw":
            o = world.observations.index(symbol)
            for m in range(len(modes)):
                v[m] *= modes.hypothesis[m, x, a, o]
                w[m] *= modes.hypothesis[m, x, a, o]
            x = int(modes.successor[x, a, o])
        else:
            a = world.actions.index(symbol)
            for m in range(len(modes)):
                v[m] *= modes.policy[m, x, a] if kind == "shown" else 1.0
                w[m] *= modes.policy[m, x, a]
    return v, w, x


def nodes(world: World, steps: int, actor: Actor = coin) -> Iterator[Node]:
    """Yield every possible history with fewer than 2 · `steps` events, shorter ones first."""
    modes = world.modes
    frontier: list[tuple[tuple[Event, ...], float]] = [((), 1.0)]
    for length in range(2 * steps):
        grown: list[tuple[tuple[Event, ...], float]] = []
        for events, chosen in frontier:
            v, w, x = posteriors(world, events)
            a = world.actions.index(events[-1].symbol) if length % 2 else None
            table = modes.policy[:, x] if a is None else modes.hypothesis[:, x, a]
            node = Node(
                Transcript(events, world.name), chosen * v.sum(), v @ table / v.sum(),
                w @ table / w.sum(), v / v.sum(), w / w.sum(), x, a,
            )  # fmt: skip
            yield node
            if a is None:
                p = actor(node)
                grown += [((*events, did(s)), chosen * p[i]) for i, s in enumerate(world.actions)]
            else:
                grown += [
                    ((*events, saw(s)), chosen)
                    for s, q in zip(world.observations, node.rule, strict=True)
                    if q > 0.0
                ]
        frontier = grown


def index(world: World, steps: int, predictor: Actor, actor: Actor = coin) -> float:
    """Return the population index of a predictor over the histories of an actor."""
    ed = dd = 0.0
    for node in nodes(world, steps, actor):
        d = node.naive - node.rule
        ed += node.chance * float((predictor(node) - node.rule) @ d)
        dd += node.chance * float(d @ d)
    return ed / dd


def value(world: World, steps: int, actor: Actor) -> float:
    """Return the expected total reward of an actor."""
    total = 0.0
    for node in nodes(world, steps, actor):
        if node.a is None and world.reward is not None:
            outcomes = np.einsum("m,mao->ao", node.v, world.modes.hypothesis[:, node.x])
            total += node.chance * float(actor(node) @ (outcomes * world.reward).sum(1))
    return total


def answers(world: World, p: FloatArray, a: int | None) -> dict[str, float]:
    """Return probabilities by symbol."""
    symbols = world.actions if a is None else world.observations
    return dict(zip(symbols, p.tolist(), strict=True))
