"""The Markov chain that a policy makes of an MDP.

P_π(x, y) = Σ_a π(a | x) P(y | x, a)        r_π(x) = Σ_a π(a | x) r(x, a)
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import InvalidTable, UnknownAction
from bayescontrol.mdp.table import MDP

#: How far the probabilities of a state's actions may be from one in sum.
TOLERANCE = 1e-9


def as_policy(mdp: MDP, policy: npt.ArrayLike) -> FloatArray:
    """π(a | x) as [x, a], from that or from one action number for each state.

    >>> from bayescontrol.mdp import chain_mdp
    >>> as_policy(chain_mdp(2), [0, 1])
    array([[1., 0.],
           [0., 1.]])
    """
    given = np.array(policy)
    X, A = mdp.allowed.shape
    if given.shape == (X,) and given.dtype.kind in "iu":
        outside = np.flatnonzero((given < 0) | (given >= A))
        if outside.size:
            x = outside[0]
            raise UnknownAction(
                f"state {mdp.states[x]!r}: no action number {given[x]}, they are 0 … {A - 1}"
            )
        pi = np.zeros((X, A))
        pi[np.arange(X), given] = 1.0
    elif given.shape == (X, A) and given.dtype.kind in "biuf":
        pi = given.astype(np.float64)
        off = np.flatnonzero(~((pi >= 0.0).all(1) & (np.abs(pi.sum(1) - 1.0) <= TOLERANCE)))
        if off.size:
            x = off[0]
            raise InvalidTable(
                f"state {mdp.states[x]!r}: the policy is {pi[x]}, not probabilities of sum 1"
            )
        pi /= pi.sum(1, keepdims=True)
    else:
        raise InvalidTable(
            f"the policy has shape {given.shape} and type {given.dtype}: "
            f"give {X} action numbers, or probabilities of shape {(X, A)}"
        )
    absent = np.argwhere((pi > 0.0) & ~mdp.allowed)
    if absent.size:
        x, a = absent[0]
        raise UnknownAction(f"state {mdp.states[x]!r} does not offer action {mdp.actions[a]!r}")
    return pi


def induced(mdp: MDP, policy: npt.ArrayLike) -> tuple[Any, FloatArray]:
    """(P_π, r_π): a sparse matrix, zeros left out, and an array.

    >>> from bayescontrol.mdp import chain_mdp
    >>> P, r = induced(chain_mdp(2), [0, 0])
    >>> P.toarray(), r
    (array([[0., 1.],
           [1., 0.]]), array([0., 1.]))
    """
    from scipy.sparse import csr_array  # type: ignore[import-untyped]

    pi = as_policy(mdp, policy)
    X, A = mdp.allowed.shape
    pair = np.repeat(np.arange(X * A), mdp.size)
    weight = pi.ravel()[pair] * mdp.probability
    taken = weight > 0.0
    edges = pair[taken] // A, mdp.successor[taken]
    return csr_array((weight[taken], edges), shape=(X, X)), (pi * mdp.reward).sum(1)


def graph(mdp: MDP) -> Any:
    """An edge from x to y where some action may lead from x to y: a sparse matrix.

    >>> from bayescontrol.mdp import chain_mdp
    >>> graph(chain_mdp(2)).toarray() > 0
    array([[ True,  True],
           [ True, False]])
    """
    return induced(mdp, mdp.allowed / mdp.allowed.sum(1, keepdims=True))[0]
