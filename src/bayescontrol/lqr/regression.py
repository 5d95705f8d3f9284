"""Bayesian regression of the next state on state and input, and its prior.

    [A B]ᵀ | W ~ MN(M₀ᵀ, Λ₀⁻¹, W)         W ~ IW(Ψ₀, ν₀),   E[W] = Ψ₀ / (ν₀ - n - 1)

Row i of [A B] has covariance W_ii Λ₀⁻¹: the precision is in units of the noise, like a number of
observations. If the noise is known, Ψ₀ and ν₀ have no effect. The statistics are one triangle:

    F = [[R, Z], [0, S]]      FᵀF = F₀ᵀF₀ + Σ_t (x_t, u_t, y_t)(x_t, u_t, y_t)ᵀ

    mean [A B] = (R⁻¹Z)ᵀ      precision Λ = RᵀR      scatter Ψ = SᵀS      ν = ν₀ + t

Evidence is additive in FᵀF, so regressions merge: add both and subtract the prior once.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol._support.saved import (
    Array,
    Copied,
    Number,
    Saved,
    damaged,
    declare,
    require_triangular,
)
from bayescontrol.errors import IncompatibleState, InvalidPrior, InvalidSystem
from bayescontrol.lqr.matrices import as_definite, as_matrix


@dataclass(frozen=True, eq=False)
class SystemPrior:
    """M₀, Λ₀, Ψ₀ and ν₀; the defaults are 0, the identity, the identity and n + 2.

    A number is a multiple of the identity; as a mean it fills the matrix n × (n + m).

    >>> SystemPrior(precision=4.0).factor(2, 1).diagonal().tolist()
    [2.0, 2.0, 2.0, 1.0, 1.0]
    >>> SystemPrior().freedom(2)
    4.0
    """

    mean: ArrayLike = 0.0
    precision: ArrayLike = 1.0
    scatter: ArrayLike = 1.0
    dof: float | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "precision", "scatter"):
            value = getattr(self, name)
            try:
                finite = bool(np.isfinite(np.asarray(value, np.float64)).all())
            except (TypeError, ValueError):
                finite = False
            positive = name == "mean" or np.ndim(value) > 0 or (finite and value > 0.0)
            if not (finite and positive):
                raise InvalidPrior(
                    f"SystemPrior({name}={value!r}): it must be finite"
                    + ", and a single number must be positive" * (name != "mean")
                )
        if self.dof is not None and not 0.0 <= self.dof < np.inf:
            raise InvalidPrior(f"SystemPrior(dof={self.dof!r}): it must be finite and above n - 1")

    def factor(self, n: int, m: int) -> FloatArray:
        """Return F₀ = [[R₀, R₀M₀ᵀ], [0, S₀]], the initial value of F."""
        d = n + m
        try:
            mean = as_matrix(_filled(self.mean, np.ones((n, d))), (n, d), "the prior mean")
            Lambda = as_definite(_filled(self.precision, np.eye(d)), d, "the prior precision")
            Psi = as_definite(_filled(self.scatter, np.eye(n)), n, "the prior scatter")
        except InvalidSystem as error:
            raise InvalidPrior(str(error)) from None
        R, S = np.empty((d, d)), np.empty((n, n))
        kernels.regression.cholesky(Lambda, R)
        kernels.regression.cholesky(Psi, S)
        F = np.zeros((d + n, d + n))
        F[:d, :d], F[:d, d:], F[d:, d:] = R, R @ mean.T, S
        return F

    def freedom(self, n: int) -> float:
        """Return ν₀, which must be above n - 1."""
        dof = float(n + 2 if self.dof is None else self.dof)
        if not n - 1 < dof < np.inf:
            raise InvalidPrior(
                f"dof={self.dof}: for {n} states it must be finite and above {n - 1}"
            )
        return dof


def _filled(value: ArrayLike, unit: FloatArray) -> ArrayLike:
    """Return a number times the matrix `unit`, and a matrix as it is."""
    return value * unit if np.ndim(value) == 0 else value  # type: ignore[operator]


class SystemRegression(Saved):
    """The sufficient statistics of ([A B], W) for n states and m inputs.

    >>> one = SystemRegression(1, 1, SystemPrior())
    >>> one.learn(np.array([1.0]), np.array([2.0]), np.array([3.0]))
    >>> one.mean().round(12), one.precision().round(12).tolist(), one.nu
    (array([[0.5, 1. ]]), [[2.0, 2.0], [2.0, 5.0]], 4.0)
    """

    saved_fields = declare(
        Array("factor", "F"),
        Array("prior_factor", "_prior", shared=True),
        Number("freedom", "_nu0"),
        Number("count", least=0),
        *map(Copied, ("row", "v", "zero")),
    )

    def __init__(self, n: int, m: int, prior: SystemPrior) -> None:
        #: n and m, the dimensions of state and input.
        self.states, self.inputs = n, m
        self._prior = prior.factor(n, m)
        self._nu0 = prior.freedom(n)
        self.F = self._prior.copy()
        #: Number of observations.
        self.count = 0
        self.row, self.v, self.zero = np.empty(2 * n + m), np.empty(2 * n + m), np.zeros(2 * n + m)

    @property
    def nu(self) -> float:
        """ν = ν₀ + t, the degrees of freedom of the noise."""
        return self._nu0 + self.count

    @property
    def R(self) -> FloatArray:  # noqa: N802 - the field's symbol
        """The factor R of the precision, as a view of F."""
        return self.F[: self.states + self.inputs, : self.states + self.inputs]

    def learn(self, x: FloatArray, u: FloatArray, y: FloatArray) -> None:
        """Add one observation; the vectors must have been validated."""
        kernels.lqr.learn(self.F, x, u, y, self.row, self.v, self.zero)
        self.count += 1

    def mean(self) -> FloatArray:
        """Return E[A B], the posterior mean, n × (n + m)."""
        A, B = np.empty((self.states, self.states)), np.empty((self.states, self.inputs))
        kernels.lqr.mean_system(self.F, A, B)
        return np.hstack([A, B])

    def precision(self) -> FloatArray:
        """Return Λ; row i of [A B] has covariance W_ii Λ⁻¹."""
        return np.asarray(self.R.T @ self.R)

    def scatter(self) -> FloatArray:
        """Return Ψ of the noise's inverse Wishart distribution."""
        S = self.F[self.states + self.inputs :, self.states + self.inputs :]
        return np.asarray(S.T @ S)

    def merge(self, other: "SystemRegression") -> None:
        """Add the evidence of `other`, FᵀF + F'ᵀF' - F₀ᵀF₀; the prior counts once."""
        size, other_size = (self.states, self.inputs), (other.states, other.inputs)
        if size != other_size:
            raise IncompatibleState(
                f"cannot merge beliefs with {size} and {other_size} states and inputs"
            )
        if self._nu0 != other._nu0 or not np.array_equal(self._prior, other._prior):
            raise IncompatibleState(
                f"cannot merge beliefs with different priors: dof = {self._nu0:g} and "
                f"{other._nu0:g}, F₀ = {self._prior.tolist()} and {other._prior.tolist()}"
            )
        gram = self.F.T @ self.F + other.F.T @ other.F - self._prior.T @ self._prior
        F = np.empty_like(self.F)
        if not kernels.regression.cholesky(gram, F):
            raise IncompatibleState(
                "the beliefs cannot be merged: the evidence of small states is lost in rounding "
                "beside large ones; observe the steps one by one instead"
            )
        self.F, self.count = F, self.count + other.count

    def _check_state(self, new: SimpleNamespace) -> None:
        require_triangular("factor", new.F)
        require_triangular("prior_factor", new._prior)
        if new._nu0 <= self.states - 1:
            raise damaged(f"'freedom' is {new._nu0}, not above {self.states - 1}")
