"""What a linear plant costs, exactly: Riccati for the best gain, Lyapunov for any gain.

    P   = Q + AᵀPA - AᵀPB K,    K = (R + BᵀPB)⁻¹ BᵀPA        the best gain, u = -K x
    P_K = Q + KᵀRK + (A - BK)ᵀ P_K (A - BK)                  what the gain K costs
    J(K) = tr(P_K W)                                         a step, on average

No simulation: J is ∞ where A - BK is not stable.
"""

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.errors import NotStabilisable
from bayescontrol.linear.checks import as_definite, as_matrix


def riccati(
    A: npt.ArrayLike, B: npt.ArrayLike, Q: npt.ArrayLike, R: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """P and K of the stabilising solution, by doubling.

    >>> P, K = riccati([[1.0]], [[1.0]], [[1.0]], [[1.0]])
    >>> P.round(6).item(), K.round(6).item()
    (1.618034, 0.618034)
    >>> riccati([[2.0]], [[0.0]], [[1.0]], [[1.0]])
    Traceback (most recent call last):
    bayescontrol.errors.NotStabilisable: no gain stabilises A with eigenvalues of modulus 2...
    """
    a = as_matrix(A, (None, None), "A")
    n = len(a)
    as_matrix(a, (n, n), "A")
    b = as_matrix(B, (n, None), "B")
    m = b.shape[1]
    q, r = as_definite(Q, n, "Q", strictly=False), as_definite(R, m, "R")
    P, K = np.empty((n, n)), np.empty((m, n))
    if not kernels.riccati.riccati(a, b, q, r, P, K, kernels.riccati.room(n, m)):
        moduli = ", ".join(f"{abs(v):.6g}" for v in np.linalg.eigvals(a))
        raise NotStabilisable(
            f"no gain stabilises A with eigenvalues of modulus {moduli} and this B, or Q does not "
            "see what must be stabilised; give B a column for it, or Q a cost"
        )
    return P, K


def lyapunov(F: npt.ArrayLike, Q: npt.ArrayLike) -> FloatArray:
    """P = Q + FᵀPF; every entry is ∞ unless |λ(F)| < 1.

    >>> lyapunov([[0.5]], [[3.0]]).round(12).item()
    4.0
    """
    f = as_matrix(F, (None, None), "F")
    n = len(f)
    P = np.empty((n, n))
    q = as_definite(Q, n, "Q", strictly=False)
    stable = kernels.riccati.lyapunov(as_matrix(f, (n, n), "F"), q, P, kernels.riccati.room(n, 1))
    return P if stable else np.full((n, n), np.inf)


def average_cost(
    A: FloatArray, B: FloatArray, Q: FloatArray, R: FloatArray, W: FloatArray, K: npt.ArrayLike
) -> float:
    """J(K) = tr(P_K W), ∞ where A - BK is not stable.

    >>> one = np.eye(1)
    >>> average_cost(one, one, one, one, one, [[1.0]]), average_cost(one, one, one, one, one, [[0]])
    (2.0, inf)
    """
    m, n = B.shape[1], len(A)
    k = as_matrix(K, (m, n), "K")
    P = np.empty((n, n))
    F, stage = A - B @ k, Q + k.T @ R @ k
    if not kernels.riccati.lyapunov(F, 0.5 * (stage + stage.T), P, kernels.riccati.room(n, m)):
        return float("inf")
    return float(np.sum(P * W))
