"""The exact probability that each of several independent arms is the best.

    P(a = i | âo_<t) = P(m_i > m_j for all j ≠ i) = ∫ f_i(x) Π_{j≠i} F_j(x) dx

The quadrature (`kernels.quadrature`) estimates its own error, which is below 1e-12 for posteriors
of up to 1e7 observations. Arms are on the last axis; the axes before it are a batch. With a
`Mixture`, f_i = Σ_s p_{i,s} f_{i,s}, and the last axis holds the components of all arms.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, IntArray
from bayescontrol.errors import InvalidPrior, QuadratureFailed

_TINIEST = 5e-324  # the smallest positive double


class Mixture(NamedTuple):
    """The posterior of each arm is a mixture of components, which are listed arm by arm.

    The components of arm j are `first[j]` to `first[j + 1] - 1`; p are their probabilities.
    """

    first: IntArray
    p: FloatArray

    def arm(self, i: int) -> int:
        """Return the arm of component i."""
        return int(self.first.searchsorted(i, "right")) - 1


@lru_cache(maxsize=64)
def single_components(arms: int) -> Mixture:
    """Return the mixture in which every arm has one component."""
    return Mixture(np.arange(arms + 1), np.ones(arms))


def beta_best(alpha: ArrayLike, beta: ArrayLike, mixture: Mixture | None = None) -> FloatArray:
    """Return P(m_i is largest) for every arm i, where m_j ~ Beta(α_j, β_j); α and β positive.

    >>> beta_best([3, 2], [2, 3]).round(12), 53 / 70
    (array([0.75714286, 0.24285714]), 0.7571428571428571)
    >>> beta_best([[1, 1, 1], [9, 1, 1]], 1).round(4)
    array([[0.3333, 0.3333, 0.3333],
           [0.8182, 0.0909, 0.0909]])

    The first of two arms has the posterior ½ Beta(3, 2) + ½ Beta(1, 1):

    >>> mixture = Mixture(np.array([0, 2, 3]), np.array([0.5, 0.5, 1.0]))
    >>> beta_best([3, 1, 2], [2, 1, 3], mixture).round(12), (53 / 70 + 3 / 5) / 2
    (array([0.67857143, 0.32142857]), 0.6785714285714286)
    """
    return integrate(kernels.posteriors.BETA, mixture, alpha=alpha, beta=beta)


def normal_best(
    mu: ArrayLike,
    sd: ArrayLike,
    mixture: Mixture | None = None,
    *,
    error: float = 1e-14,
) -> FloatArray:
    """Return P(m_i is largest) for every arm i, where m_j ~ Normal(μ_j, σ_j); σ positive.

    A larger `error` of each of the tens of panels takes less time.

    >>> normal_best([0.0, 1.0], [1.0, 1.0]).round(12)  # Φ(-1/√2)
    array([0.23975006, 0.76024994])
    """
    return integrate(kernels.posteriors.NORMAL, mixture, error, mu=mu, sd=sd)


def student_best(
    loc: ArrayLike, scale: ArrayLike, df: ArrayLike, mixture: Mixture | None = None
) -> FloatArray:
    """Return P(m_i is largest) for every arm i, where m_j has Student's t distribution.

    Gaussian arms with unknown variance have such posteriors. `df` must be at least 1/4.

    >>> student_best([0.0, 1.0], 0.5, 1.0).round(12)  # Cauchy: ½ - arctan(1)/π
    array([0.25, 0.75])
    """
    return integrate(kernels.posteriors.STUDENT, mixture, loc=loc, scale=scale, df=df)


def gamma_best(
    shape: ArrayLike, rate: ArrayLike, mixture: Mixture | None = None, *, largest: bool = True
) -> FloatArray:
    """Return P(λ_i is largest) for every arm i, where λ_j ~ Gamma(a_j, rate b_j).

    With `largest=False` return P(λ_i is smallest).

    >>> gamma_best([1, 1], [1, 3]), gamma_best([1, 1], [1, 3], largest=False)
    (array([0.75, 0.25]), array([0.25, 0.75]))
    """
    posteriors = kernels.posteriors
    kind = posteriors.GAMMA if largest else posteriors.INVERSE_GAMMA
    return integrate(kind, mixture, shape=shape, rate=rate)


def integrate(
    kind: int,
    mixture: Mixture | None,
    error: float = 1e-14,
    **parameters: ArrayLike,
) -> FloatArray:
    """Check and broadcast the parameters, then run the quadrature."""
    names, given = list(parameters), list(parameters.values())
    try:
        tables = [np.ascontiguousarray(table, np.float64) for table in given]
        if any(table.shape != tables[0].shape for table in tables):
            tables = [np.ascontiguousarray(table) for table in np.broadcast_arrays(*tables)]
    except (TypeError, ValueError) as why:
        raise InvalidPrior(f"{', '.join(names)}: give one per arm, as numbers ({why})") from None
    shape = tables[0].shape
    if np.ndim(given[0]) == np.ndim(given[1]) == 0 or shape[-1] == 0:
        raise InvalidPrior(f"{names[0]}={given[0]!r}: give one number per arm")
    M = shape[-1]
    mixture = mixture or single_components(M)
    a, b = tables[0].reshape(-1, M), tables[1].reshape(-1, M)
    nu = tables[2].reshape(-1, M) if len(tables) > 2 else b  # b is a placeholder: nu is unused
    quadrature = kernels.quadrature
    P = np.empty((len(a), len(mixture.first) - 1))
    scratch = np.empty((quadrature.ROWS * M + quadrature.MORE_ROWS, quadrature.NODES))
    numbers = np.empty(quadrature.INTEGERS * M, np.int64)
    status, row = quadrature.best_of_each(kind, a, b, nu, *mixture, P, scratch, numbers, error)
    if status != quadrature.DONE:
        rows = {name: table.reshape(-1, M)[row] for name, table in zip(names, tables, strict=True)}
        _raise_error(mixture, rows, status)
    return P.reshape(*shape[:-1], P.shape[1])


def _raise_error(mixture: Mixture, rows: dict[str, FloatArray], status: int) -> None:
    """Raise InvalidPrior for the first invalid parameter in `rows`, or QuadratureFailed."""
    quadrature = kernels.quadrature
    if status == quadrature.INVALID:
        df = (quadrature.LEAST_NU, f"finite and at least {quadrature.LEAST_NU}")
        valid = {"mu": (-np.inf, "finite"), "loc": (-np.inf, "finite"), "df": df}
        for name, row in rows.items():
            least, expected = valid.get(name, (_TINIEST, "positive and finite"))
            for i, value in enumerate(row.tolist()):
                if not (np.isfinite(value) and value >= least):
                    arm = mixture.arm(i)
                    raise InvalidPrior(f"arm {arm}: {name} = {value:g} must be {expected}")
    shown = ", ".join(f"{name}={row.tolist()}" for name, row in rows.items())
    if len(mixture.p) >= len(mixture.first):
        shown = f"{len(mixture.p)} components"
    raise QuadratureFailed(
        f"the probabilities of {shown} do not converge: remove arms that cannot be the best, or "
        "use posteriors with closer scales"
    )
