"""Partition tree weighting for bandits that change.

    PTW_0(o) = ρ(o)      PTW_d(o) = ½ ρ(o) + ½ PTW_{d-1}(first half) PTW_{d-1}(second half)

ρ is the probability of rewards in one segment: Beta-Bernoulli, independent for each arm. A tree of
depth d mixes over all binary partitions of 2^d steps. After t steps only the d + 1 nodes that
contain step t matter. The current segment is the node i, 0 for the root, with probability

    w_i ∝ ρ_i Π_{j<i} ½ b_j · ½ [i < d]     b_j: PTW of the first half of node j, 1 if t lies in it

Veness, White, Bowling & György, "Partition tree weighting" (2013), is about prediction.
`PartitionTree` acts as the Bayesian control rule does: it draws the current segment, then the arms
from its posterior. This is our reading of ActivePTW without forced exploration (Veness, Hutter,
György & Grau-Moya, "Partition tree weighting for non-stationary stochastic bandits", 2025), written
anew. The default prior Beta(½, ½) is the estimator of Krichevsky and Trofimov, as there.
"""

import math
from collections.abc import Hashable, Sequence
from operator import index
from typing import Any

import numpy as np

from bayescontrol._arrays import FloatArray, require_between
from bayescontrol._support.names import Names
from bayescontrol.errors import BadEvidence, InvalidPrior
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.elementary import exp, log
from bayescontrol.kernels.random import beta, uniform
from bayescontrol.seeding import StreamLike, state_of

_LN2 = 0.6931471805599453


@leaf
def log_add(a: float, b: float) -> float:
    """Return ln(eᵃ + eᵇ)."""
    high, low = max(a, b), min(a, b)
    return high + math.log1p(exp(low - high))


@leaf
def log_weights(log_rho: FloatArray, log_b: FloatArray, out: FloatArray) -> None:
    """Write ln w_i, not normalised: their sum is PTW_d of all rewards so far."""
    depth, above = log_rho.size - 1, 0.0
    for i in range(depth + 1):
        out[i] = above + log_rho[i] - (_LN2 if i < depth else 0.0)
        if i < depth:
            above += log_b[i] - _LN2


@leaf
def learn(
    counts: FloatArray, log_rho: FloatArray, log_b: FloatArray, t: int, j: int, r: float
) -> None:
    """Learn reward r of arm j at step t, counted from 0, then go to step t + 1.

    counts[i, j] are a and b of the Beta posterior of arm j in node i. The last row is the prior.
    """
    depth = log_rho.size - 1
    for i in range(depth + 1):
        a, b = counts[i, j, 0], counts[i, j, 1]
        log_rho[i] += log((a if r == 1.0 else b) / (a + b))
        counts[i, j, 0 if r == 1.0 else 1] += 1.0
    # Level i splits by bit depth - 1 - i of the step. Nodes below the lowest 0 are complete.
    level = depth - 1
    value = log_rho[depth]
    while level >= 0 and (t >> (depth - 1 - level)) & 1:
        value = log_add(log_rho[level] - _LN2, log_b[level] + value - _LN2)
        level -= 1
    if level < 0:
        return  # all 2^depth steps are over
    log_b[level] = value
    for i in range(level + 1, depth + 1):
        log_rho[i] = 0.0
        for k in range(counts.shape[1]):
            counts[i, k, 0], counts[i, k, 1] = counts[depth + 1, k, 0], counts[depth + 1, k, 1]
        if i < depth:
            log_b[i] = 0.0


@leaf
def draw(
    counts: FloatArray, log_rho: FloatArray, log_b: FloatArray, out: FloatArray, rng: Any
) -> int:
    """Draw a segment, then a bias of each arm; return the arm with the largest bias."""
    log_weights(log_rho, log_b, out)
    high, total = out[0], 0.0
    for i in range(out.size):
        high = max(high, out[i])
    for i in range(out.size):
        out[i] = exp(out[i] - high)
        total += out[i]
    u, node = uniform(rng) * total, 0
    while node < out.size - 1 and u >= out[node]:
        u -= out[node]
        node += 1
    best, arm = -1.0, 0
    for j in range(counts.shape[1]):
        m = beta(rng, counts[node, j, 0], counts[node, j, 1])
        if m > best:
            best, arm = m, j
    return arm


class PartitionTree:
    """An agent for Bernoulli arms that change at most `horizon` steps long.

    The depth of the tree is the smallest with 2^depth ≥ `horizon`. `prior` is (a, b) of the Beta
    prior of every arm.

    >>> agent = PartitionTree(["red", "blue"], horizon=128)
    >>> for t in range(96):
    ...     agent.observe("red", int(t < 64))
    >>> max(agent.starts(), key=agent.starts().get)
    64
    """

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        horizon: int,
        *,
        prior: tuple[float, float] = (0.5, 0.5),
    ) -> None:
        self.labels = Names("arm", arms)
        a, b = (require_between("prior", p, 0.0, 1e9, ends="(]") for p in prior)
        if index(horizon) < 1:
            raise InvalidPrior(f"horizon={horizon}: expected at least 1 step")
        depth = (index(horizon) - 1).bit_length()
        self.t = 0
        self._counts = np.empty((depth + 2, len(self.labels), 2))
        self._counts[...] = a, b
        self._log_rho, self._log_b = np.zeros(depth + 1), np.zeros(depth)
        self._scratch = np.empty(depth + 1)

    @property
    def depth(self) -> int:
        """The depth of the tree."""
        return len(self._log_b)

    def act(self, rng: StreamLike) -> Any:
        """Draw a segment, then the best arm of a draw from its posterior."""
        arm = draw(self._counts, self._log_rho, self._log_b, self._scratch, state_of(rng))
        return self.labels[int(arm)]

    def observe(self, a: Any, o: Any) -> None:
        """Learn a reward, 0 or 1. An error changes nothing."""
        j = self.labels.place(a)
        if o not in (0, 1):
            raise BadEvidence(f"reward {o!r} is invalid for a Bernoulli arm: expected 0 or 1")
        if self.t >= 2**self.depth:
            raise BadEvidence(f"the {2**self.depth:,} steps of the tree are over: set `horizon`")
        learn(self._counts, self._log_rho, self._log_b, self.t, j, float(o))
        self.t += 1

    def log_probability(self) -> float:
        """Return ln PTW_d of all rewards so far."""
        log_weights(self._log_rho, self._log_b, self._scratch)
        return float(np.logaddexp.reduce(self._scratch))

    def starts(self) -> dict[int, float]:
        """Return the probability that the current segment began at each step."""
        log_weights(self._log_rho, self._log_b, self._scratch)
        w, found = np.exp(self._scratch - self._scratch.max()), dict[int, float]()
        t = min(self.t, 2**self.depth - 1)
        for i, p in enumerate((w / w.sum()).tolist()):
            start = t >> (self.depth - i) << (self.depth - i)
            found[start] = found.get(start, 0.0) + p
        return found
