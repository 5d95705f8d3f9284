"""The linear plant that a simulator is, near a point.

    f(s, u) ≈ f(s₀, u₀) + A (s - s₀) + B (u - u₀),     A = ∂f/∂s,  B = ∂f/∂u

By central differences, so any simulator will do: ∂f/∂s_i ≈ (f(s₀ + h e_i) - f(s₀ - h e_i)) / 2h.
The regulator for (A, B) is `linear.riccati`'s.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray


def linearise(
    f: Callable[[FloatArray, FloatArray], Any],
    s0: npt.ArrayLike,
    u0: npt.ArrayLike = (0.0,),
    h: float = 1e-5,
) -> tuple[FloatArray, FloatArray]:
    """A = ∂f/∂s and B = ∂f/∂u at (s₀, u₀), to about h².

    >>> A, B = linearise(lambda s, u: [s[0] + 0.1 * s[1], s[1] + 0.1 * u[0]], [0.0, 0.0])
    >>> A.round(9).tolist(), B.round(9).tolist()
    ([[1.0, 0.1], [0.0, 1.0]], [[0.0], [0.1]])
    """
    s, u = np.array(s0, np.float64), np.array(u0, np.float64)
    A = [
        np.subtract(f(s + e, u), f(s - e, u), dtype=np.float64) / (2 * h)
        for e in h * np.eye(s.size)
    ]
    B = [
        np.subtract(f(s, u + e), f(s, u - e), dtype=np.float64) / (2 * h)
        for e in h * np.eye(u.size)
    ]
    return np.array(A).T, np.array(B).T
