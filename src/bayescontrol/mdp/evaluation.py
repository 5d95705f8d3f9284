"""What a policy earns: its gain, its bias, and where it spends its time.

    gain    ρ_π(x) = lim (1/t) E_π[r_1 + … + r_t]
    bias    h(x): r_π - ρ_π + P_π h = h, with Σ_x d(x) h(x) = 0 for every stationary d
    d       d P_π = d, Σ d = 1, one for each recurrent class

Exact, by linear systems: in a recurrent class (I - P) with one column replaced by ones has the
gain for an unknown in place of that state's h, and its transpose gives d; then the transient
states, (I - P_TT) h_T = r_T - ρ_T + P_TR h_R. Policies with several recurrent classes are no
exception: ρ then depends on x.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.mdp.markov import induced
from bayescontrol.mdp.structure import recurrent_classes
from bayescontrol.mdp.table import MDP


class RecurrentClass(NamedTuple):
    """States that a policy visits for ever: their numbers, d(x) for all x, and the gain there.

    >>> from bayescontrol.mdp import chain_mdp
    >>> [only] = stationary_distribution(chain_mdp(2), [0, 0])
    >>> only.states, only.probability, only.gain
    (array([0, 1]), array([0.5, 0.5]), 0.5)
    """

    states: IntArray
    probability: FloatArray
    gain: float


class Evaluation(NamedTuple):
    """ρ_π(x) and h(x) for every state, and the recurrent classes.

    >>> from bayescontrol.mdp import chain_mdp
    >>> gain_and_bias(chain_mdp(2), [0, 0]).bias
    array([-0.25,  0.25])
    """

    gain: FloatArray
    bias: FloatArray
    classes: tuple[RecurrentClass, ...]


def gain_and_bias(mdp: MDP, policy: npt.ArrayLike) -> Evaluation:
    """ρ_π and h of a policy, given as action numbers or as π(a | x).

    >>> mdp = MDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 0], [1, 0]])
    >>> gain_and_bias(mdp, [1, 0]).gain, gain_and_bias(mdp, [0, 0]).gain
    (array([1., 1.]), array([0., 1.]))
    """
    P, r = induced(mdp, policy)
    X = len(r)
    gain, bias = np.zeros(X), np.zeros(X)
    classes = []
    transient = np.ones(X, bool)
    for states in recurrent_classes(mdp, policy):
        rho, h, d = _recurrent(P[states][:, states], r[states])
        gain[states], bias[states], transient[states] = rho, h, False
        everywhere = np.zeros(X)
        everywhere[states] = d
        classes.append(RecurrentClass(states, everywhere, rho))
    t = np.flatnonzero(transient)
    if t.size:
        solve = _Solver(_identity(t.size) - P[t][:, t])
        gain[t] = solve(P[t] @ gain)  # gain and bias are 0 on t until here
        bias[t] = solve(r[t] - gain[t] + P[t] @ bias)
    return Evaluation(gain, bias, tuple(classes))


def stationary_distribution(mdp: MDP, policy: npt.ArrayLike) -> tuple[RecurrentClass, ...]:
    """d with d P_π = d, for each recurrent class of the policy.

    >>> mdp = MDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 0], [1, 0]])
    >>> [c.probability for c in stationary_distribution(mdp, [0, 0])]
    [array([1., 0.]), array([0., 1.])]
    """
    return gain_and_bias(mdp, policy).classes


def _identity(n: int) -> Any:
    from scipy.sparse import eye_array  # type: ignore[import-untyped]

    return eye_array(n, format="csr")


class _Solver:
    """Solves A z = b or Aᵀ z = b by one factorisation, each once refined."""

    def __init__(self, matrix: Any) -> None:
        from scipy.sparse.linalg import splu  # type: ignore[import-untyped]

        self.matrix = matrix.tocsc()
        self.factors = splu(self.matrix)

    def __call__(self, b: FloatArray, transposed: bool = False) -> FloatArray:
        matrix, way = (self.matrix.T, "T") if transposed else (self.matrix, "N")
        z = self.factors.solve(b, way)
        return np.asarray(z + self.factors.solve(b - matrix @ z, way), np.float64)


def _recurrent(P: Any, r: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """ρ, h and d of an irreducible chain."""
    from scipy.sparse import csr_array, hstack

    n = len(r)
    if n == 1:
        return float(r[0]), np.zeros(1), np.ones(1)
    solve = _Solver(hstack([csr_array(np.ones((n, 1))), (_identity(n) - P)[:, 1:]]))
    h = solve(r)
    rho, h[0] = float(h[0]), 0.0
    d = solve(np.eye(1, n)[0], transposed=True)
    d = np.maximum(d, 0.0)
    d /= d.sum()
    return rho, h - d @ h, d
