"""Gaussian posteriors of weight vectors, which linear bandits and unknown costs learn.

    w_j | past ~ N(μ_j, Λ_j⁻¹)          Λ_j = R_jᵀ R_j,  z_j = R_j μ_j

Each regression is stored as a triangular R_j and a vector z_j.
"""

from typing import Any

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.errors import IncompatibleState
from bayescontrol.values import require_shapes, require_triangular


class Regressions:
    """The posteriors of N weight vectors with d features; R and z are those of the prior.

    >>> one = Regressions(np.eye(2)[None], np.zeros((1, 2)))
    >>> kernels.regression.absorb(one.R[0], one.z[0], np.array([1.0, 0.0]), 1.0, 3.0, one.v)
    >>> one.mean(0).round(12), one.precision(0).round(12)
    (array([1.5, 0. ]), array([[2., 0.],
           [0., 1.]]))
    """

    def __init__(self, R: FloatArray, z: FloatArray) -> None:
        self._prior = R, z
        self.R, self.z = R.copy(), z.copy()
        self.features: int = z.shape[1]
        self.v: FloatArray = np.empty(self.features)

    def __len__(self) -> int:
        """The number of regressions."""
        return len(self.z)

    def append(self, other: "Regressions") -> None:
        """Add the regressions of `other`, which have learnt nothing yet."""
        R, z = other._prior
        self.R, self.z = np.vstack([self.R, R]), np.vstack([self.z, z])
        self._prior = np.vstack([self._prior[0], R]), np.vstack([self._prior[1], z])

    def score(self, j: int, x: FloatArray) -> tuple[float, float]:
        """Mean and variance of x·w_j."""
        return kernels.regression.score(self.R[j], self.z[j], x, self.v)

    def mean(self, j: int) -> FloatArray:
        """μ_j."""
        mu = np.empty(self.features)
        kernels.regression.solve_upper(self.R[j], self.z[j], mu)
        return mu

    def precision(self, j: int) -> FloatArray:
        """Λ_j."""
        return np.asarray(self.R[j].T @ self.R[j])

    def draw(self, j: int, state: Any, w: FloatArray) -> None:
        """Draw w_j ~ N(μ_j, Λ_j⁻¹) into w."""
        kernels.regression.draw_weights(self.R[j], self.z[j], self.v, w, state)

    def same_prior(self, other: "Regressions") -> bool:
        """Whether both have the same prior."""
        pairs = zip(self._prior, other._prior, strict=True)
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    def merge(self, other: "Regressions") -> None:
        """Λ + Λ' - Λ₀ and Λμ + Λ'μ' - Λ₀μ₀: add the evidence of `other`, the prior counts once."""
        R, z = np.empty_like(self.R), np.empty_like(self.z)
        parts = ((1.0, self.R, self.z), (1.0, other.R, other.z), (-1.0, *self._prior))
        for j in range(len(self)):
            Lambda = sum((sign * (S[j].T @ S[j]) for sign, S, _ in parts), np.zeros(R[j].shape))
            shift = sum((sign * (S[j].T @ y[j]) for sign, S, y in parts), np.zeros(z[j].shape))
            if not kernels.regression.cholesky(Lambda, R[j]):
                raise IncompatibleState(
                    f"regression {j} cannot be merged: its evidence is lost in the rounding error "
                    "of the prior; learn the rewards one by one instead"
                )
            kernels.regression.score(R[j], z[j], shift, self.v)
            z[j] = self.v
        self.R, self.z = R, z

    def save(self) -> Arrays:
        """Named arrays: `factor`, `target`, and the same of the prior."""
        arrays = zip(_NAMES, (self.R, self.z, *self._prior), strict=True)
        return {name: array.copy() for name, array in arrays}

    def loaded(self, arrays: Arrays, count: int) -> "Regressions":
        """These `count` regressions as saved; IncompatibleState if the arrays are invalid."""
        d, (factor, target, prior_factor, prior_target) = self.features, _NAMES
        require_triangular(arrays, dict.fromkeys((factor, prior_factor), (count, d, d)))
        require_shapes(arrays, dict.fromkeys((target, prior_target), (count, d)))
        twin = Regressions(arrays[prior_factor].copy(), arrays[prior_target].copy())
        twin.R, twin.z = arrays[factor].copy(), arrays[target].copy()
        return twin

    def copy(self) -> "Regressions":
        """Return an independent copy."""
        twin = Regressions(*self._prior)
        twin.R, twin.z = self.R.copy(), self.z.copy()
        return twin


_NAMES = ("factor", "target", "prior_factor", "prior_target")
