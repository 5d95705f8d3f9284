"""Three identities, m* drawn from the prior, after any number of steps t.

    prior-preserved    E[posterior(m)] = prior(m)
    match-rate         P(drawn mode = m*) = E[Σ_m posterior(m)²]
    ville              P(∃τ ≤ t: posterior(m*) < δ prior(m*)) ≤ δ

Left and right side each have an exact value and a simulated one. The left is a mean over
replicas of variables in [0, 1].
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.delusion.exact import DELTAS, Exact
from bayescontrol.experiments.delusion.seen import Seen


class Exactly(NamedTuple):
    """Both sides; shape (times, components).

    >>> Exactly(left=np.ones((7, 2)), right=np.ones((7, 2))).left.shape
    (7, 2)
    """

    left: FloatArray
    right: FloatArray


class Simulated(NamedTuple):
    """Both sides and the most that the variance of a left sample can be, were they equal.

    >>> list(Simulated._fields)
    ['left', 'right', 'variance']
    """

    left: FloatArray  #: shape (runs, times, components)
    right: FloatArray  #: shape (times, components)
    variance: FloatArray  #: shape (times, components)


@dataclass(frozen=True)
class Identity:
    """What is claimed of the causal agent, how the naive one breaks it, and both sides of it.

    >>> [identity.name for identity in IDENTITIES]
    ['prior-preserved', 'match-rate', 'ville']
    """

    name: str
    holds: str
    fails: str
    exact: Callable[[FloatArray, Exact], Exactly]
    simulated: Callable[[FloatArray, Seen], Simulated]
    bound: bool = False  #: left ≤ right, not left = right

    def gap(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """By how much left is off: |left - right|, or left - right where right is a bound.

        >>> IDENTITIES[2].gap(np.array([0.1, 0.3]), np.array([0.2, 0.2])).round(12)
        array([-0.1,  0.1])
        """
        return left - right if self.bound else np.abs(left - right)


def _prior_exact(prior: FloatArray, exact: Exact) -> Exactly:
    return Exactly(exact.mean, np.broadcast_to(prior, exact.mean.shape))


def _prior_simulated(prior: FloatArray, seen: Seen) -> Simulated:
    right = np.broadcast_to(prior, seen.posterior.shape[1:])
    return Simulated(seen.posterior, right, right * (1 - right))


def _match_exact(_: FloatArray, exact: Exact) -> Exactly:
    return Exactly(exact.match[:, None], exact.squares[:, None])


def _match_simulated(_: FloatArray, seen: Seen) -> Simulated:
    # Given the history, the match is a coin with this bias: its variance is known.
    q = seen.squares[:, :, None]
    return Simulated(seen.matched[:, :, None], q.mean(0), (q * (1 - q)).mean(0))


def _ville_exact(_: FloatArray, exact: Exact) -> Exactly:
    return Exactly(exact.ville, np.broadcast_to(DELTAS, exact.ville.shape))


def _ville_simulated(_: FloatArray, seen: Seen) -> Simulated:
    fell = np.asarray(seen.lowest[:, :, None] < np.array(DELTAS), np.float64)
    delta = np.broadcast_to(DELTAS, fell.shape[1:])
    return Simulated(fell, delta, delta * (1 - delta))


IDENTITIES: Final = (
    Identity(
        "prior-preserved",
        "causal agent: E[posterior] = prior, after every step",
        "naive agent: E[posterior] leaves the prior",
        _prior_exact,
        _prior_simulated,
    ),
    Identity(
        "match-rate",
        "causal agent: P(drawn mode = m*) = E[Σ posterior²], at every draw",
        "naive agent: P(drawn mode = m*) falls short of E[Σ posterior²]",
        _match_exact,
        _match_simulated,
    ),
    Identity(
        "ville",
        "causal agent: P(posterior(m*) < δ prior(m*) at some t) ≤ δ",
        "naive agent: P(posterior(m*) < δ prior(m*) at some t) > δ",
        _ville_exact,
        _ville_simulated,
        bound=True,
    ),
)
