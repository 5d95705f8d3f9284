"""Gaussian posteriors of weight vectors, which linear bandits and unknown costs learn.

    w_j | past ~ N(μ_j, Λ_j⁻¹)          Λ_j = R_jᵀ R_j,  z_j = R_j μ_j

Each regression is stored as a triangular R_j and a vector z_j.
"""

from types import SimpleNamespace

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray, UIntArray
from bayescontrol._support.saved import Array, Copied, Saved, damaged, declare, require_triangular
from bayescontrol.errors import IncompatibleState


class Regressions(Saved):
    """The posteriors of N weight vectors with d features; `R` and `z` describe the prior.

    >>> one = Regressions(np.eye(2)[None], np.zeros((1, 2)))
    >>> _ = kernels.regression.absorb(one.R[0], one.z[0], np.array([1.0, 0.0]), 1.0, 3.0, one.v)
    >>> one.mean(0).round(12), one.precision(0).round(12)
    (array([1.5, 0. ]), array([[2., 0.],
           [0., 1.]]))
    """

    saved_fields = declare(
        Array("factor", "R", shape=(None, "features", "features")),
        Array("target", "z", shape=(None, "features")),
        Array("prior_factor", lambda fit: fit._prior[0], shape=(None, "features", "features")),
        Array("prior_target", lambda fit: fit._prior[1], shape=(None, "features")),
        Copied("v"),
    )

    def __init__(self, R: FloatArray, z: FloatArray) -> None:
        self._prior = R, z
        self.R, self.z = R.copy(), z.copy()
        self.features: int = z.shape[1]
        self.v: FloatArray = np.empty(self.features)  # a buffer for the kernels

    def __len__(self) -> int:
        """The number of regressions."""
        return len(self.z)

    def append(self, other: "Regressions") -> None:
        """Append the regressions of `other`, which must not have learned anything yet."""
        R, z = other._prior
        self.R, self.z = np.vstack([self.R, R]), np.vstack([self.z, z])
        self._prior = np.vstack([self._prior[0], R]), np.vstack([self._prior[1], z])

    def score(self, j: int, x: FloatArray) -> tuple[float, float]:
        """Return the mean and the variance of x·w_j."""
        return kernels.regression.score(self.R[j], self.z[j], x, self.v)

    def mean(self, j: int) -> FloatArray:
        """Return μ_j, the posterior mean of w_j."""
        mu = np.empty(self.features)
        kernels.regression.solve_upper(self.R[j], self.z[j], mu)
        return mu

    def precision(self, j: int) -> FloatArray:
        """Return Λ_j, the posterior precision of w_j."""
        return np.asarray(self.R[j].T @ self.R[j])

    def draw(self, j: int, rng_state: UIntArray, w: FloatArray) -> None:
        """Draw w_j ~ N(μ_j, Λ_j⁻¹) and write it to w."""
        kernels.regression.draw_weights(self.R[j], self.z[j], self.v, w, rng_state)

    def same_prior(self, other: "Regressions") -> bool:
        """Whether both have the same prior."""
        pairs = zip(self._prior, other._prior, strict=True)
        return all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    def merge(self, other: "Regressions") -> None:
        """Add the evidence of `other`; the prior counts once: Λ + Λ' - Λ₀, Λμ + Λ'μ' - Λ₀μ₀."""
        R, z = np.empty_like(self.R), np.empty_like(self.z)
        parts = ((1.0, self.R, self.z), (1.0, other.R, other.z), (-1.0, *self._prior))
        for j in range(len(self)):
            Lambda = sum((sign * (S[j].T @ S[j]) for sign, S, _ in parts), np.zeros(R[j].shape))
            Lambda_mu = sum((sign * (S[j].T @ y[j]) for sign, S, y in parts), np.zeros(z[j].shape))
            if not kernels.regression.cholesky(Lambda, R[j]):
                raise IncompatibleState(
                    f"regression {j} cannot be merged: its evidence is lost in the rounding error "
                    "of the prior; learn the rewards one by one instead"
                )
            # Solve R_jᵀ z_j = Λμ for z_j, which the kernel writes to `self.v`.
            kernels.regression.score(R[j], z[j], Lambda_mu, self.v)
            z[j] = self.v
        self.R, self.z = R, z

    def _check_state(self, new: SimpleNamespace) -> None:
        require_triangular("factor", new.R)
        require_triangular("prior_factor", new.prior_factor)
        sizes = {len(v) for v in (new.R, new.z, new.prior_factor, new.prior_target)}
        if len(sizes) > 1:
            raise damaged(f"its arrays have the lengths {sorted(sizes)}: expected one for all")
        new._prior = new.prior_factor, new.prior_target
