"""Gauss-Legendre nodes on [-1, 1], and what turns values at them into integrals.

    ∫_-1^1 f        = Σ_l WEIGHT[l] f(x_l)                  exact for polynomials up to 2K - 1
    ∫_{x_k}^1 f     = Σ_l TO_RIGHT[l, k] f(x_l)             exact up to K - 1
    c_n             = Σ_l COEFFICIENT[i, l] f(x_l)          f = Σ_n c_n P_n,  n = DEGREE[i]

All from (n + 1) P_{n+1} = (2n + 1) x P_n - n P_{n-1}, in forty digits and rounded once: the
same bits everywhere, which a library's eigenvalues would not be.
"""

from decimal import Decimal, localcontext

import numpy as np

from bayescontrol.arrays import FloatArray

#: Nodes in a panel.
K = 16
#: Two coefficients in the middle, two at the end: an odd or even function has one of each.
DEGREE = (K // 2 - 1, K // 2, K - 2, K - 1)

_DIGITS = 40
#: Newton's method from within 1e-2: six steps are enough for forty digits, eight are taken.
_STEPS = 8


def _legendre(x: Decimal) -> list[Decimal]:
    """P_0(x) … P_{K+1}(x)."""
    P = [Decimal(1), x]
    for n in range(1, K + 1):
        P.append(((2 * n + 1) * x * P[n] - n * P[n - 1]) / (n + 1))
    return P


def _tables() -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    with localcontext() as context:
        context.prec = _DIGITS
        nodes, weights = [], []
        for k in range(K):
            x = Decimal(-float(np.cos(np.pi * (k + 0.75) / (K + 0.5))))
            for _ in range(_STEPS):
                P = _legendre(x)
                slope = K * (P[K - 1] - x * P[K]) / (1 - x * x)
                x -= P[K] / slope
            nodes.append(x)
            weights.append(2 / ((1 - x * x) * slope * slope))
        at = [_legendre(x) for x in nodes]
        half = Decimal(1) / 2
        to_right = [
            [
                w * half * (1 - nodes[k] + sum(
                    P_l[n] * (at[k][n - 1] - at[k][n + 1]) for n in range(1, K)
                ))
                for k in range(K)
            ]
            for w, P_l in zip(weights, at, strict=True)
        ]  # fmt: skip
        coefficient = [
            [(n + half) * w * P_l[n] for w, P_l in zip(weights, at, strict=True)] for n in DEGREE
        ]
    return (
        np.array(nodes, np.float64),
        np.array(weights, np.float64),
        np.array(to_right, np.float64),
        np.array(coefficient, np.float64),
    )


NODE, WEIGHT, TO_RIGHT, COEFFICIENT = _tables()
