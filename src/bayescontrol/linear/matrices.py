"""Matrices and vectors as the kernels want them, or an error that says what is wrong.

A: n × n    B: n × m    Q ⪰ 0: n × n    R ≻ 0: m × m    W ⪰ 0: n × n

What a linear plant costs, exactly: Riccati for the best gain, Lyapunov for any gain.

    P   = Q + AᵀPA - AᵀPB K,    K = (R + BᵀPB)⁻¹ BᵀPA        the best gain, u = -K x
    P_K = Q + KᵀRK + (A - BK)ᵀ P_K (A - BK)                  what the gain K costs
    J(K) = tr(P_K W)                                         a step, on average

No simulation: J is ∞ where A - BK is not stable.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BadEvidence, InvalidSystem, NotStabilisable, counted

#: Matrices and states beyond this are refused: their squares would leave the numbers.
LARGEST = 1e100


def _real(value: Any) -> FloatArray:
    # NumPy would drop the imaginary part of an array with a warning.
    if np.iscomplexobj(value):
        raise TypeError("they are complex, not real")
    return np.array(value, np.float64, order="C")


def as_matrix(value: npt.ArrayLike, shape: tuple[int | None, int | None], what: str) -> FloatArray:
    """A matrix of finite numbers; None in the shape fits any size of at least one.

    >>> as_matrix([[1, 2]], (None, 2), "B")
    array([[1., 2.]])
    """
    try:
        matrix = _real(value)
    except (TypeError, ValueError) as error:
        raise InvalidSystem(f"{what} is no matrix of numbers: {error}") from None
    fits = matrix.ndim == 2 and all(
        have > 0 and want in (None, have) for have, want in zip(matrix.shape, shape, strict=True)
    )
    if not fits:
        wanted = " × ".join("any" if size is None else str(size) for size in shape)
        raise InvalidSystem(f"{what} has shape {matrix.shape}, it must be a matrix {wanted}")
    if not (np.abs(matrix) <= LARGEST).all():
        raise InvalidSystem(f"{what} holds an entry that is no number of at most {LARGEST:g}")
    return matrix


def as_definite(
    value: npt.ArrayLike, size: int | None, what: str, *, strictly: bool = True
) -> FloatArray:
    """A symmetric matrix, positive definite, or semidefinite if not `strictly`.

    >>> as_definite([[1, 0], [0, 0]], 2, "Q", strictly=False).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    matrix = as_matrix(value, (size, size), what)
    if matrix.shape[0] != matrix.shape[1]:
        raise InvalidSystem(f"{what} has shape {matrix.shape}, it must be square")
    scale = np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > 1e-12 * scale:
        raise InvalidSystem(f"{what} is not symmetric: pass ({what} + {what}.T) / 2")
    matrix = 0.5 * (matrix + matrix.T)
    least = float(np.linalg.eigvalsh(matrix)[0])
    if strictly:
        definite = kernels.regression.cholesky(matrix, np.empty_like(matrix))
        if not definite:
            raise InvalidSystem(
                f"{what} has the eigenvalue {least:.3g}: it must be positive definite"
            )
    elif least < -1e-12 * scale:
        raise InvalidSystem(
            f"{what} has the eigenvalue {least:.3g}: it must be positive semidefinite"
        )
    return matrix


def as_vector(value: Any, size: int, what: str) -> FloatArray:
    """A vector of so many numbers, as evidence: an array of doubles is taken as it is.

    >>> as_vector([1, 2], 2, "the state")
    array([1., 2.])
    """
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and value.flags.c_contiguous:
        vector = value
    else:
        try:
            vector = _real(value)
        except (TypeError, ValueError):
            numbers = counted(size, "real number")
            raise BadEvidence(f"{what} is {value!r}: it must be {numbers}") from None
    if vector.shape != (size,):
        raise BadEvidence(f"{what} has shape {vector.shape}, it must have shape ({size},)")
    if not kernels.lqr.within(vector):
        missing = np.flatnonzero(np.isnan(vector)).tolist()
        if missing:
            raise BadEvidence(
                f"{what} is {vector.tolist()}, not a number at {missing}: did a sensor drop out? "
                "Leave such a step out"
            )
        raise BadEvidence(
            f"{what} is {vector.tolist()}, beyond {LARGEST:g}: the loop has diverged; begin with a "
            "tighter prior, or with a log of another controller"
        )
    return vector


def factor(W: FloatArray) -> FloatArray:
    """V with VᵀV = W: Cholesky's, or by eigenvalues where W is singular.

    >>> factor(np.diag([4.0, 0.0])).tolist()
    [[0.0, 0.0], [2.0, 0.0]]
    """
    V = np.empty_like(W)
    if kernels.regression.cholesky(W, V):
        return V
    values, vectors = np.linalg.eigh(W)
    return np.ascontiguousarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)


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
