"""The exact probability that each of several independent arms is the best.

    P(a = i | âo_<t) = P(m_i > m_j for all j ≠ i) = ∫ f_i(x) Π_{j≠i} F_j(x) dx

The quadrature (`kernels.quadrature`) estimates its own error, which is below 1e-12 for posteriors
of up to 1e7 observations. Arms are on the last axis; the axes before it are a batch.
"""

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.errors import InvalidPrior, QuadratureFailed


def beta_best(alpha: npt.ArrayLike, beta: npt.ArrayLike) -> FloatArray:
    """Return P(m_i is largest) for every arm i, where m_j ~ Beta(α_j, β_j); α and β positive.

    >>> beta_best([3, 2], [2, 3]).round(12), 53 / 70
    (array([0.75714286, 0.24285714]), 0.7571428571428571)
    >>> beta_best([[1, 1, 1], [9, 1, 1]], 1).round(4)
    array([[0.3333, 0.3333, 0.3333],
           [0.8182, 0.0909, 0.0909]])
    """
    return _integrate(kernels.posteriors.BETA, ("alpha", "beta"), alpha, beta)


def normal_best(mu: npt.ArrayLike, sd: npt.ArrayLike) -> FloatArray:
    """Return P(m_i is largest) for every arm i, where m_j ~ Normal(μ_j, σ_j); σ positive.

    >>> normal_best([0.0, 1.0], [1.0, 1.0]).round(12)  # Φ(-1/√2)
    array([0.23975006, 0.76024994])
    """
    return _integrate(kernels.posteriors.NORMAL, ("mu", "sd"), mu, sd)


def student_best(loc: npt.ArrayLike, scale: npt.ArrayLike, df: npt.ArrayLike) -> FloatArray:
    """Return P(m_i is largest) for every arm i, where m_j has Student's t distribution.

    Gaussian arms with unknown variance have such posteriors. `df` must be at least 1/4.

    >>> student_best([0.0, 1.0], 0.5, 1.0).round(12)  # Cauchy: ½ - arctan(1)/π
    array([0.25, 0.75])
    """
    return _integrate(kernels.posteriors.STUDENT, ("loc", "scale", "df"), loc, scale, df)


def gamma_best(shape: npt.ArrayLike, rate: npt.ArrayLike, *, largest: bool = True) -> FloatArray:
    """Return P(λ_i is largest) for every arm i, where λ_j ~ Gamma(a_j, rate b_j).

    With `largest=False` return P(λ_i is smallest).

    >>> gamma_best([1, 1], [1, 3]), gamma_best([1, 1], [1, 3], largest=False)
    (array([0.75, 0.25]), array([0.25, 0.75]))
    """
    posteriors = kernels.posteriors
    kind = posteriors.GAMMA if largest else posteriors.INVERSE_GAMMA
    return _integrate(kind, ("shape", "rate"), shape, rate)


def _integrate(kind: int, names: tuple[str, ...], *parameters: npt.ArrayLike) -> FloatArray:
    """Check and broadcast the parameters with these names, then run the quadrature."""
    try:
        tables = [np.ascontiguousarray(table, np.float64) for table in parameters]
        if any(table.shape != tables[0].shape for table in tables):
            tables = [np.ascontiguousarray(table) for table in np.broadcast_arrays(*tables)]
    except (TypeError, ValueError) as error:
        raise InvalidPrior(f"{', '.join(names)}: give one per arm, as numbers ({error})") from None
    shape = tables[0].shape
    if np.ndim(parameters[0]) == np.ndim(parameters[1]) == 0 or shape[-1] == 0:
        raise InvalidPrior(f"{names[0]}={parameters[0]!r}: give one number per arm")
    N = shape[-1]
    a, b = tables[0].reshape(-1, N), tables[1].reshape(-1, N)
    nu = tables[2].reshape(-1, N) if len(tables) > 2 else b  # b is a placeholder: nu is unused
    quadrature = kernels.quadrature
    P = np.empty(a.shape)
    scratch = np.empty((quadrature.ROWS * N + quadrature.MORE_ROWS, quadrature.NODES))
    status, row = quadrature.best_of_each(kind, a, b, nu, P, scratch)
    if status != quadrature.DONE:
        _raise_error(kind, names, [table.reshape(-1, N)[row] for table in tables], status)
    return P.reshape(shape)


def _raise_error(kind: int, names: tuple[str, ...], rows: list[FloatArray], status: int) -> None:
    """Raise InvalidPrior for the first invalid parameter in `rows`, or QuadratureFailed."""
    posteriors, quadrature = kernels.posteriors, kernels.quadrature
    if status == quadrature.INVALID:
        least = {"df": quadrature.LEAST_NU}  # other parameters: the smallest positive double
        for name, row in zip(names, rows, strict=True):
            is_location = name == names[0] and kind in (posteriors.NORMAL, posteriors.STUDENT)
            for j, value in enumerate(row.tolist()):
                if not np.isfinite(value) or (not is_location and value < least.get(name, 5e-324)):
                    expected = "finite" if is_location else "positive and finite"
                    if name in least:
                        expected = f"finite and at least {least[name]}"
                    raise InvalidPrior(f"arm {j}: {name} = {value:g} must be {expected}")
    shown = ", ".join(f"{name}={row.tolist()}" for name, row in zip(names, rows, strict=True))
    raise QuadratureFailed(
        f"the probabilities of {shown} do not converge: remove arms that cannot be the best, or "
        "use posteriors with closer scales"
    )
