"""The regression of the next state on state and input, as one triangle.

    F = [[R, Z], [0, S]]      FᵀF = F₀ᵀF₀ + Σ_t (x_t, u_t, y_t)(x_t, u_t, y_t)ᵀ

    mean [A B] = (R⁻¹Z)ᵀ      precision Λ = RᵀR      scatter Ψ = SᵀS      ν = ν₀ + t

Evidence adds up in FᵀF, so regressions merge: the sum of both, less the prior once.
"""

from math import lgamma, log, log1p, pi
from operator import index

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.errors import IncompatibleState
from bayescontrol.linear.prior import SystemPrior


class SystemRegression:
    """The sufficient statistics of ([A B], W) for n states and m inputs.

    >>> one = SystemRegression(1, 1, SystemPrior())
    >>> one.learn(np.array([1.0]), np.array([2.0]), np.array([3.0]))
    >>> one.mean().round(12), one.precision().round(12).tolist(), one.nu
    (array([[0.5, 1. ]]), [[2.0, 2.0], [2.0, 5.0]], 4.0)
    """

    def __init__(self, n: int, m: int, prior: SystemPrior) -> None:
        self.n, self.m = n, m
        self._prior = prior.factor(n, m)
        self._nu0 = prior.freedom(n)
        self.F = self._prior.copy()
        #: Observations.
        self.count = 0
        self.row, self.v, self.zero = np.empty(2 * n + m), np.empty(2 * n + m), np.zeros(2 * n + m)

    @property
    def nu(self) -> float:
        """ν = ν₀ + t."""
        return self._nu0 + self.count

    @property
    def R(self) -> FloatArray:  # noqa: N802 - the field's symbol
        """The factor of the precision, a view."""
        return self.F[: self.n + self.m, : self.n + self.m]

    def learn(self, x: FloatArray, u: FloatArray, y: FloatArray) -> None:
        """One row more; the vectors must be checked before."""
        kernels.lqr.learn(self.F, x, u, y, self.row, self.v, self.zero)
        self.count += 1

    def mean(self) -> FloatArray:
        """[A B]."""
        A, B = np.empty((self.n, self.n)), np.empty((self.n, self.m))
        kernels.lqr.mean_system(self.F, A, B)
        return np.hstack([A, B])

    def precision(self) -> FloatArray:
        """Λ."""
        return np.asarray(self.R.T @ self.R)

    def scatter(self) -> FloatArray:
        """Ψ."""
        S = self.F[self.n + self.m :, self.n + self.m :]
        return np.asarray(S.T @ S)

    def log_predictive(self, z: FloatArray, y: FloatArray, V: FloatArray | None) -> float:
        """ln P(y | z): Student's t of ν - n + 1 degrees, or Gaussian where W = VᵀV is known.

        >>> one = SystemRegression(1, 1, SystemPrior())
        >>> round(one.log_predictive(np.zeros(2), np.zeros(1), np.eye(1)), 6)  # ln N(0; 0, 1)
        -0.918939
        """
        v, n = np.linalg.solve(self.R.T, z), self.n
        spread, e = 1.0 + float(v @ v), y - self.mean() @ z
        scale = self.scatter() if V is None else V.T @ V
        quadratic = float(e @ np.linalg.solve(scale, e)) / spread
        log_det = float(np.linalg.slogdet(scale)[1]) + n * log(spread)
        if V is not None:
            return -0.5 * (n * log(2 * pi) + log_det + quadratic)
        end = self.nu + 1.0
        front = lgamma(end / 2) - lgamma((end - n) / 2) - 0.5 * n * log(pi)
        return front - 0.5 * (log_det + end * log1p(quadratic))

    def merge(self, other: "SystemRegression") -> None:
        """FᵀF + F'ᵀF' - F₀ᵀF₀: the evidence of both, the prior counted once."""
        if (self.n, self.m, self._nu0) != (other.n, other.m, other._nu0) or (
            self._prior.tobytes() != other._prior.tobytes()
        ):
            raise IncompatibleState("beliefs can be merged only if they share one prior")
        gram = self.F.T @ self.F + other.F.T @ other.F - self._prior.T @ self._prior
        F = np.empty_like(self.F)
        if not kernels.linear.cholesky(gram, F):
            raise IncompatibleState(
                "beside large states the evidence of small ones is lost in rounding and cannot be "
                "merged; learn the observations one by one instead"
            )
        self.F, self.count = F, self.count + other.count

    def save(self) -> Arrays:
        """Named arrays: `factor`, `prior_factor`, `freedom` and `count`.

        >>> sorted(SystemRegression(1, 1, SystemPrior()).save())
        ['count', 'factor', 'freedom', 'prior_factor']
        """
        return {
            "factor": self.F.copy(),
            "prior_factor": self._prior.copy(),
            "freedom": np.array(self._nu0),
            "count": np.array(self.count),
        }

    def loaded(self, arrays: Arrays) -> "SystemRegression":
        """What `save` gave, for as many states and inputs."""
        twin = self.copy()
        for name in ("factor", "prior_factor"):
            array = arrays.get(name)
            if array is None:
                raise IncompatibleState(f"the saved state lacks the array {name!r}")
            if array.shape != self.F.shape or array.dtype != np.float64:
                raise IncompatibleState(
                    f"the saved array {name!r} is {array.dtype}{list(array.shape)}: it belongs to "
                    f"other states and inputs than {self.n} and {self.m}"
                )
            triangular = not np.tril(array, -1).any() and array.diagonal().min() > 0.0
            if not (triangular and np.isfinite(array).all()):
                raise IncompatibleState(f"the saved array {name!r} is no triangular factor")
        try:
            count, nu0 = index(arrays["count"][()]), float(arrays["freedom"][()])
        except (KeyError, TypeError, ValueError) as error:
            raise IncompatibleState(f"the saved state is damaged: {error}") from None
        if count < 0 or not self.n - 1 < nu0 < np.inf:
            raise IncompatibleState(f"the saved state is damaged: count={count}, freedom={nu0}")
        twin.F, twin._prior = arrays["factor"].copy(), arrays["prior_factor"].copy()
        twin.count, twin._nu0 = count, nu0
        return twin

    def copy(self) -> "SystemRegression":
        """The same, free to go its own way.

        >>> one = SystemRegression(1, 1, SystemPrior())
        >>> one.copy().F is one.F
        False
        """
        twin = SystemRegression.__new__(SystemRegression)
        twin.__dict__.update(self.__dict__)
        twin.F, twin.row, twin.v, twin.zero = (
            self.F.copy(), self.row.copy(), self.v.copy(), self.zero.copy()
        )  # fmt: skip
        return twin
