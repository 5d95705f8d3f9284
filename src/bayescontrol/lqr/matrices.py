"""Validation of matrices and vectors, and the Riccati and Lyapunov equations.

    A: n × n    B: n × m    Q ⪰ 0: n × n    R ≻ 0: m × m    W ⪰ 0: n × n

    P   = Q + AᵀPA - AᵀPB K,    K = (R + BᵀPB)⁻¹ BᵀPA        the optimal gain, u = -K x
    P_K = Q + KᵀRK + (A - BK)ᵀ P_K (A - BK)                  the cost-to-go of the gain K
    J(K) = tr(P_K W)                                         its average cost per step

The costs are exact, without simulation; J is ∞ if A - BK is not stable.
"""

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, Error, FloatArray, as_numbers
from bayescontrol.errors import BadEvidence, InvalidSystem, NotStabilisable, counted

#: Larger entries of matrices and states are rejected, because their squares could overflow.
LARGEST = 1e100


def as_matrix(value: ArrayLike, shape: tuple[int | None, int | None], what: str) -> FloatArray:
    """Return the value as a finite matrix; None in `shape` allows any positive size."""
    matrix = as_numbers(value, what, InvalidSystem)
    fits = matrix.ndim == 2 and all(
        have > 0 and want in (None, have) for have, want in zip(matrix.shape, shape, strict=True)
    )
    if not fits:
        wanted = " × ".join("any" if size is None else str(size) for size in shape)
        hint = "" if matrix.ndim == 2 else ", a list of rows such as [[1.0]]"
        raise InvalidSystem(f"{what} has shape {matrix.shape}: it must be a matrix {wanted}{hint}")
    if not (np.abs(matrix) <= LARGEST).all():
        raise InvalidSystem(f"{what} has an entry that is NaN or larger than {LARGEST:g}")
    return matrix


def as_square(value: ArrayLike, what: str) -> FloatArray:
    """Return the value as a finite square matrix."""
    matrix = as_matrix(value, (None, None), what)
    return as_matrix(matrix, (len(matrix), len(matrix)), what)


def as_definite(v: ArrayLike, size: int | None, what: str, *, strictly: bool = True) -> FloatArray:
    """Return a symmetric positive definite matrix, or semidefinite if not `strictly`."""
    matrix = as_square(v, what) if size is None else as_matrix(v, (size, size), what)
    scale = np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > 1e-12 * scale:
        raise InvalidSystem(f"{what} is not symmetric: pass ({what} + {what}.T) / 2")
    matrix = 0.5 * (matrix + matrix.T)
    least = float(np.linalg.eigvalsh(matrix)[0])
    if strictly:
        definite = kernels.regression.cholesky(matrix, np.empty_like(matrix))
    else:
        definite = least >= -1e-12 * scale
    if not definite:
        kind = "definite" if strictly else "semidefinite"
        raise InvalidSystem(f"{what} has the eigenvalue {least:.3g}: it must be positive {kind}")
    return matrix


def as_vector(v: object, size: int, what: str, error: Error = BadEvidence) -> FloatArray:
    """Return the value as a vector of `size` numbers; a float64 array is not copied."""
    if isinstance(v, np.ndarray) and v.dtype == np.float64 and v.flags.c_contiguous:
        vector = v
    else:
        vector = as_numbers(v, f"{what} is {v!r}", error)
    if vector.shape != (size,):
        raise error(f"{what} has shape {vector.shape}: it must have shape ({size},)")
    if not kernels.lqr.is_within_limits(vector):
        reason = f"beyond {LARGEST:g}: the loop has diverged, or a sensor failed"
        if missing := np.flatnonzero(np.isnan(vector)).tolist():
            reason = f"with NaN at {missing}: if a sensor failed, pass bayescontrol.MISSING"
        raise error(f"{what} is {vector.tolist()}, {reason}")
    return vector


def as_start(start: ArrayLike | None, size: int, what: str = "the start") -> FloatArray:
    """Return a copy of the initial state or of another setting, 0 by default."""
    return as_vector(np.zeros(size) if start is None else start, size, what, InvalidSystem).copy()


def as_limits(limits: object, inputs: int) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper limits of each input, infinite by default."""
    pair = (-np.inf, np.inf) if limits is None else limits
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InvalidSystem(f"limits={limits!r}: expected a pair (low, high)")
    sides = [as_numbers(side, "limits", InvalidSystem) for side in pair]
    if any(side.shape not in ((), (1,), (inputs,)) for side in sides):
        numbers = counted(inputs, "number")
        raise InvalidSystem(f"limits={limits!r}: expected a number or {numbers} on each side")
    low, high = (np.array(np.broadcast_to(side, (inputs,))) for side in sides)
    if not (low < high).all():
        raise InvalidSystem(f"limits={limits!r}: low must be below high")
    return low, high


def riccati(
    A: ArrayLike, B: ArrayLike, Q: ArrayLike, R: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return P and K of the stabilising solution of the Riccati equation.

    >>> P, K = riccati([[1.0]], [[1.0]], [[1.0]], [[1.0]])
    >>> P.round(6).item(), K.round(6).item()
    (1.618034, 0.618034)
    >>> riccati([[2.0]], [[0.0]], [[1.0]], [[1.0]])
    Traceback (most recent call last):
    bayescontrol.errors.NotStabilisable: no gain stabilises A with eigenvalues of modulus 2...
    """
    a = as_square(A, "A")
    b = as_matrix(B, (len(a), None), "B")
    n, m = b.shape
    q, r = as_definite(Q, n, "Q", strictly=False), as_definite(R, m, "R")
    P, K = np.empty((n, n)), np.empty((m, n))
    if not kernels.riccati.riccati(a, b, q, r, P, K, kernels.riccati.room(n, m)):
        moduli = ", ".join(f"{abs(v):.6g}" for v in np.linalg.eigvals(a))
        raise NotStabilisable(
            f"no gain stabilises A with eigenvalues of modulus {moduli} and this B, or Q gives no "
            "cost to an unstable direction: add a column to B or a cost to Q"
        )
    return P, K


def average_cost(
    A: FloatArray, B: FloatArray, Q: FloatArray, R: FloatArray, W: FloatArray, K: ArrayLike
) -> float:
    """Return J(K) = tr(P_K W), or ∞ if A - BK is not stable.

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
