"""Matrices and vectors as the kernels want them, or an error that says what is wrong.

A: n × n    B: n × m    Q ⪰ 0: n × n    R ≻ 0: m × m    W ⪰ 0: n × n
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BadEvidence, InvalidSystem
from bayescontrol.words import counted

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
        definite = kernels.linear.cholesky(matrix, np.empty_like(matrix))
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
    if kernels.linear.cholesky(W, V):
        return V
    values, vectors = np.linalg.eigh(W)
    return np.ascontiguousarray(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)
