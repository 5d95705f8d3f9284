"""Compute D, C and I(m; history) of a class of modes in one call."""

from collections.abc import Sequence
from typing import Any

from bayescontrol._arrays import FloatArray
from bayescontrol.entropy import (
    Bits,
    InteractionTree,
    Weighting,
    bits,
    weigh,
)


def relative_entropy(agent: Any, modes: Sequence[Any], prior: Any, horizon: int) -> Bits:
    tree = InteractionTree(modes, prior, horizon)
    return bits.relative_entropy(tree, tree.tabulate(agent))


def intervened_relative_entropy(
    agent: Any,
    modes: Sequence[Any],
    prior: Any,
    horizon: int,
    weighting: Weighting = "closed-loop",
    actions: Sequence[Any] | None = None,
) -> Bits:
    tree = InteractionTree(modes, prior, horizon, actions=actions)
    return bits.relative_entropy(tree, tree.tabulate(agent), weigh(tree, weighting))


def mutual_information(
    modes: Sequence[Any],
    prior: Any,
    horizon: int,
    weighting: Weighting | None = None,
    actions: Sequence[Any] | None = None,
) -> FloatArray:
    tree = InteractionTree(modes, prior, horizon, actions=actions)
    return bits.mutual_information(tree, None if weighting is None else weigh(tree, weighting))
