"""Riccati and Lyapunov equations of small systems, by doubling.

    P = Q + AᵀP (I + G P)⁻¹ A,   G = B R⁻¹ Bᵀ          K = (R + BᵀPB)⁻¹ BᵀPA

    A ← A W⁻¹ A,   G ← G + A W⁻¹ G Aᵀ,   H ← H + AᵀH W⁻¹ A,     W = I + G H,  from H = Q

After k doublings H is the cost of 2ᵏ steps and A the transition of the closed loop over them. A
vanishes, and H converges to P, if and only if the solution stabilises (Chu, Fan, Lin & Wang,
"Structure-preserving algorithms for periodic discrete-time algebraic Riccati equations", 2004).
Doubling takes a few dozen small products and no eigenvalue routine, so it has the same bits on
every machine.
"""

import math
from typing import NamedTuple

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.kernels._jit import leaf

#: 2⁴⁰ steps: if the transition has not vanished by then, the system counts as unstable.
DOUBLINGS = 40
#: A smaller transition counts as vanished: the next doubling adds about its square to the cost.
_VANISHED = 1e-10
#: A smaller relative change counts as converged.
_CONVERGED = 1e-16
#: Costs above this count as divergence.
_LARGEST = 1e150


class Room(NamedTuple):
    """Scratch arrays of the kernels.

    >>> room(3, 2).xy.shape
    (3, 6)
    """

    a: FloatArray  #: n × n
    g: FloatArray  #: n × n
    w: FloatArray  #: n × n
    t: FloatArray  #: n × n
    xy: FloatArray  #: n × 2n
    r: FloatArray  #: m × m
    s: FloatArray  #: m × n


def room(n: int, m: int) -> Room:
    """Return scratch arrays for systems of n states and m inputs.

    >>> room(3, 2).a.shape
    (3, 3)
    """
    a, g, w, t = (np.empty((n, n)) for _ in range(4))
    return Room(a, g, w, t, np.empty((n, 2 * n)), np.empty((m, m)), np.empty((m, n)))


@leaf
def solve_linear(W: FloatArray, X: FloatArray) -> bool:
    """Replace X by W⁻¹X, by elimination with row pivots; return False if W is singular.

    W is overwritten.

    >>> W, X = np.array([[0.0, 2.0], [1.0, 0.0]]), np.array([[4.0], [3.0]])
    >>> solve_linear(W, X), X.tolist()
    (True, [[3.0], [2.0]])
    """
    n, columns = X.shape
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(W[i, k]) > abs(W[pivot, k]):
                pivot = i
        if not abs(W[pivot, k]) > 0.0:  # zero or NaN
            return False
        if pivot != k:
            for j in range(n):
                W[k, j], W[pivot, j] = W[pivot, j], W[k, j]
            for j in range(columns):
                X[k, j], X[pivot, j] = X[pivot, j], X[k, j]
        for i in range(k + 1, n):
            f = W[i, k] / W[k, k]
            for j in range(k + 1, n):
                W[i, j] -= f * W[k, j]
            for j in range(columns):
                X[i, j] -= f * X[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(columns):
            value = X[k, j]
            for i in range(k + 1, n):
                value -= W[k, i] * X[i, j]
            X[k, j] = value / W[k, k]
    return True


@leaf
def copy(X: FloatArray, Z: FloatArray) -> None:
    """Z ← X."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            Z[i, j] = X[i, j]


@leaf
def _multiply(X: FloatArray, Y: FloatArray, Z: FloatArray) -> None:
    """Z ← X Y, with the same bits on every machine."""
    Z[:] = 0.0
    for i in range(Z.shape[0]):
        for k in range(X.shape[1]):
            f = X[i, k]
            for j in range(Z.shape[1]):
                Z[i, j] += f * Y[k, j]


@leaf
def _largest(X: FloatArray) -> float:
    """Return max |X_ij|; ∞ if an entry is NaN."""
    largest = 0.0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            if not abs(X[i, j]) <= largest:  # larger, or NaN
                largest = abs(X[i, j])
                if math.isnan(largest):
                    return math.inf
    return largest


@leaf
def _add_symmetric(X: FloatArray, D: FloatArray) -> None:
    """X ← X + (D + Dᵀ)/2."""
    for i in range(X.shape[0]):
        for j in range(i, X.shape[0]):
            X[i, j] += 0.5 * (D[i, j] + D[j, i])
            X[j, i] = X[i, j]


@leaf
def riccati(
    A: FloatArray, B: FloatArray, Q: FloatArray, R: FloatArray,
    P: FloatArray, K: FloatArray, room: Room,
) -> bool:  # fmt: skip
    """Write P and K of the equation above; return False if no solution stabilises the system.

    Then P and K are undefined. Assumes Q ⪰ 0 and R ≻ 0.

    >>> P, K = np.empty((1, 1)), np.empty((1, 1))
    >>> one = np.ones((1, 1))
    >>> riccati(one, one, one, one, P, K, room(1, 1)), P.round(12).item()  # P² - P - 1 = 0
    (True, 1.61803398875)
    >>> riccati(one, 0 * one, one, one, P, K, room(1, 1))
    False
    """
    a, g, t, r, s = room.a, room.g, room.t, room.r, room.s
    # G = B R⁻¹ Bᵀ
    copy(R, r)
    copy(B.T, s)
    if not solve_linear(r, s):
        return False
    _multiply(B, s, g)
    copy(A, a)
    copy(Q, P)
    for _ in range(DOUBLINGS):
        if not _double(P, room):
            return False
        size = _largest(P)
        if not size < _LARGEST:  # diverged, or NaN
            return False
        # t is the last increment of P.
        if _largest(t) <= _CONVERGED * size and _largest(a) <= _VANISHED:
            break
    else:
        return False
    # K = (R + BᵀPB)⁻¹ BᵀPA
    _multiply(B.T, P, s)
    _multiply(s, B, r)
    for i in range(R.shape[0]):
        for j in range(R.shape[0]):
            r[i, j] += R[i, j]
    _multiply(s, A, K)
    return solve_linear(r, K)


@leaf
def _double(P: FloatArray, room: Room) -> bool:
    """Double the number of steps of A, G and H, where H is in P; return False if W is singular.

    A and G are room.a and room.g. Writes the increment of P to room.t.
    """
    a, g, w, t, xy, _, _ = room
    n = a.shape[0]
    _multiply(g, P, w)
    for i in range(n):
        w[i, i] += 1.0
        for j in range(n):
            xy[i, j], xy[i, n + j] = a[i, j], g[i, j]
    if not solve_linear(w, xy):
        return False
    # G ← G + (A W⁻¹G) Aᵀ
    _multiply(a, xy[:, n:], w)
    _multiply(w, a.T, t)
    _add_symmetric(g, t)
    # H ← H + Aᵀ (H W⁻¹A)
    _multiply(P, xy[:, :n], w)
    _multiply(a.T, w, t)
    _add_symmetric(P, t)
    # A ← A W⁻¹A
    _multiply(a, xy[:, :n], w)
    copy(w, a)
    return True


@leaf
def lyapunov(F: FloatArray, Q: FloatArray, P: FloatArray, room: Room) -> bool:
    """Write P = Q + FᵀPF = Σ_k Fᵏᵀ Q Fᵏ; return False unless |λ(F)| < 1.

    >>> P = np.empty((1, 1))
    >>> lyapunov(np.array([[0.5]]), np.eye(1), P, room(1, 1)), P.round(12).item()
    (True, 1.333333333333)
    """
    a, w, t = room.a, room.w, room.t
    copy(F, a)
    copy(Q, P)
    for _ in range(DOUBLINGS):
        _multiply(P, a, w)
        _multiply(a.T, w, t)
        _add_symmetric(P, t)
        size = _largest(P)
        if not size < _LARGEST:  # diverged, or NaN
            return False
        if _largest(t) <= _CONVERGED * size and _largest(a) <= _VANISHED:
            return True
        _multiply(a, a, w)
        copy(w, a)
    return False
