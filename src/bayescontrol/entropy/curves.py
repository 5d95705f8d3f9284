"""Bits against the horizon, and the two sums that everything here is made of.

    H(p) = -Σ p log2 p          KL(p ‖ q) = Σ p log2 (p / q)

0 log 0 = 0, and KL is infinite where q gives 0 to what p allows. A curve is cumulative: its
entry t - 1 is the sum over the steps 1 … t.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.priors import as_prior


@dataclass(frozen=True)
class Bits:
    """Bits up to t = 1 … T, those for actions and those for observations: both cumulative.

    >>> Bits(np.array([0.5, 1.0]), np.array([0.25, 0.25])).total
    array([0.75, 1.25])
    """

    actions: FloatArray
    observations: FloatArray

    @property
    def total(self) -> FloatArray:
        """Both parts together."""
        return self.actions + self.observations


@dataclass(frozen=True)
class Estimate:
    """A mean over samples and its standard error, for each horizon.

    >>> Estimate.of(np.array([[1.0], [3.0]]))
    Estimate(mean=array([2.]), error=array([1.]))
    """

    mean: FloatArray
    error: FloatArray

    @classmethod
    def of(cls, samples: FloatArray) -> "Estimate":
        """Mean and s/√n over the first axis; where a sample is infinite, so are both."""
        mean, error = np.full((2, samples.shape[1]), np.inf)
        finite = np.isfinite(samples).all(axis=0)
        kept = samples[:, finite]
        mean[finite] = kept.mean(axis=0)
        if len(samples) > 1:
            error[finite] = kept.std(axis=0, ddof=1) / math.sqrt(len(samples))
        return cls(mean, error)


@dataclass(frozen=True)
class SampledBits:
    """What `Bits` holds, estimated: each part with its standard error.

    >>> one = Estimate(np.array([1.0]), np.array([0.1]))
    >>> SampledBits(one, one, one).total.error
    array([0.1])
    """

    actions: Estimate
    observations: Estimate
    total: Estimate


def kl(p: Mapping[Hashable, float], q: Mapping[Any, float]) -> float:
    """KL(p ‖ q) = Σ p log2 (p / q), in bits.

    >>> kl({"H": 1.0}, {"H": 0.25, "T": 0.75}), kl({"H": 0.5, "T": 0.5}, {"H": 1.0})
    (2.0, inf)
    """
    bits = 0.0
    for k, p_k in p.items():
        if p_k > 0.0:
            q_k = q.get(k, 0.0)
            if not q_k > 0.0:
                return math.inf
            bits += p_k * math.log2(p_k / q_k)
    return bits


def entropy_of(prior: npt.ArrayLike) -> float:
    """H(prior) = -Σ_m P(m) log2 P(m), in bits.

    >>> entropy_of([0.5, 0.25, 0.25])
    1.5
    """
    p = as_prior(prior, np.size(prior))
    p = p[p > 0.0]
    return float(-(p * np.log2(p)).sum()) + 0.0
