"""The prior of a linear system: matrix-normal-inverse-Wishart.

    [A B]ᵀ | W ~ MN(M₀ᵀ, Λ₀⁻¹, W)         W ~ IW(Ψ₀, ν₀),   E[W] = Ψ₀ / (ν₀ - n - 1)

Row i of [A B] has covariance W_ii Λ₀⁻¹: the precision counts in units of the noise, as so many
observations would. Where the noise is known, Ψ₀ and ν₀ do not matter.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.errors import InvalidPrior, InvalidSystem
from bayescontrol.linear.checks import as_definite, as_matrix


@dataclass(frozen=True, eq=False)
class SystemPrior:
    """M₀, Λ₀, Ψ₀ and ν₀: zero, the identity, the identity and n + 2 unless given.

    A number stands for so many times the identity; a mean is a number or a matrix n × (n + m).

    >>> SystemPrior(precision=4.0).factor(2, 1).diagonal().tolist()
    [2.0, 2.0, 2.0, 1.0, 1.0]
    >>> SystemPrior().freedom(2)
    4.0
    """

    mean: npt.ArrayLike = 0.0
    precision: npt.ArrayLike = 1.0
    scatter: npt.ArrayLike = 1.0
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
                    f"SystemPrior({name}={value!r}): finite numbers"
                    + ", and above 0 if it is one number" * (name != "mean")
                )
        if self.dof is not None and not 0.0 <= self.dof < np.inf:
            raise InvalidPrior(f"SystemPrior(dof={self.dof!r}): a finite number, above n - 1")

    def factor(self, n: int, m: int) -> FloatArray:
        """F₀ = [[R₀, R₀M₀ᵀ], [0, S₀]]: what F is before any evidence."""
        d = n + m
        try:
            mean = as_matrix(_filled(self.mean, np.ones((n, d))), (n, d), "the prior mean")
            Lambda = as_definite(_filled(self.precision, np.eye(d)), d, "the prior precision")
            Psi = as_definite(_filled(self.scatter, np.eye(n)), n, "the prior scatter")
        except InvalidSystem as error:
            raise InvalidPrior(str(error)) from None
        R, S = np.empty((d, d)), np.empty((n, n))
        kernels.linear.cholesky(Lambda, R)
        kernels.linear.cholesky(Psi, S)
        F = np.zeros((d + n, d + n))
        F[:d, :d], F[:d, d:], F[d:, d:] = R, R @ mean.T, S
        return F

    def freedom(self, n: int) -> float:
        """ν₀ > n - 1."""
        dof = float(n + 2 if self.dof is None else self.dof)
        if not n - 1 < dof < np.inf:
            raise InvalidPrior(f"dof={self.dof}: for {n} states it must be above {n - 1}, finite")
        return dof


def _filled(value: npt.ArrayLike, unit: FloatArray) -> npt.ArrayLike:
    return value * unit if np.ndim(value) == 0 else value  # type: ignore[operator]
