"""Time one update and one draw over M modes, compared with hand-written NumPy."""

from collections.abc import Callable

import numpy as np
from benchmarks.timing import Timing, take_turns

from bayescontrol.beliefs.weights import Weights
from bayescontrol.seeding import Stream

__all__ = ["update_and_draw"]


def by_hand(ll: np.ndarray, rng: np.random.Generator) -> Callable[[], object]:
    """Hand-written NumPy: add logarithms, exponentiate, cumulate and search."""
    lw = np.zeros_like(ll)

    def step() -> object:
        nonlocal lw
        lw += ll
        w = np.exp(lw - lw.max())
        c = np.cumsum(w)
        return np.searchsorted(c, rng.random() * c[-1])

    return step


def ours(evidence: np.ndarray, log: bool) -> Callable[[], object]:
    """`Weights.condition` and `Weights.draw`, including their checks."""
    weights, rng = Weights(np.full(evidence.size, 1.0 / evidence.size)), Stream(0)

    def step() -> object:
        weights.condition(evidence, log)
        return weights.draw(rng)

    return step


def update_and_draw(modes: int) -> dict[str, Timing]:
    """Time NumPy by hand, and our weights with likelihoods and with their logarithms."""
    likelihood = np.random.default_rng(0).uniform(0.1, 1.0, modes)
    ll = np.log(likelihood)
    return take_turns(
        {
            "NumPy by hand": by_hand(ll, np.random.default_rng(0)),
            "bayescontrol": ours(likelihood, log=False),
            "bayescontrol, from logarithms": ours(ll, log=True),
        },
        calls=max(3, min(5000, 3_000_000 // modes)),
    )
