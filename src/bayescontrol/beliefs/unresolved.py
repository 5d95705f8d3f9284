"""Modes of a finite class that the agent's own actions have not told apart from the belief.

    d_m = (ln P(m) - ln P(m | âo_<t)) / t        by how much m predicted worse, in nats a step
    D_m = mean over x of TV(π_m(· | x), P(· | âo_<t, x))      x: the latest situations

d_m is the mean of ln P(o | past) - ln P(o | m, past) along the executed actions. A mode is
unresolved if d_m is small and D_m is not: what it would do differently was never tried. A mode
that was refuted early stays resolved, although d_m falls with t: t d_m is at most ln 1000.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.protocols import ActionProbabilities

#: The evidence in nats from which on a mode is refuted, however long the run is.
REFUTED = math.log(1000.0)


def prediction_losses(prior: FloatArray, posterior: FloatArray, steps: int) -> FloatArray:
    """d_m of all modes; ∞ for modes that are ruled out.

    >>> prediction_losses(np.array([0.5, 0.5]), np.array([1.0, 0.0]), 2)
    array([-0.34657359,         inf])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        d = (np.log(prior) - np.log(posterior)) / max(steps, 1)
    return np.where((prior > 0.0) & (posterior > 0.0), d, np.inf)


def policy_distances(belief: Any, situations: Iterable[Any]) -> FloatArray:
    """D_m of all modes, averaged over these situations; modes with private state use it instead."""
    distances = []
    for x in situations:
        mean = belief.mix(ActionProbabilities, lambda m, x=x: m.action_probabilities(x))
        each = belief.query_each(ActionProbabilities, lambda m, x=x: m.action_probabilities(x))
        if isinstance(each, list):  # a dictionary for each mode
            actions = dict.fromkeys(a for policy in each for a in policy)
            each = {a: np.array([policy.get(a, 0.0) for policy in each]) for a in actions}
        size = len(belief)
        gaps = [abs(np.broadcast_to(p, size) - mean.get(a, 0.0)) for a, p in each.items()]
        distances.append(0.5 * np.sum(gaps, axis=0))
    return np.asarray(np.mean(distances, axis=0), np.float64)
