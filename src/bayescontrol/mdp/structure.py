"""The Markov chain of a policy, and which states can be reached from which.

    P_π(x, y) = Σ_a π(a | x) P(y | x, a)        r_π(x) = Σ_a π(a | x) r(x, a)

    communicating          from every state some policy reaches every other state
    weakly communicating   this holds within one closed set of states, and all other states are
                           transient under every policy; then ρ* does not depend on x
    recurrent class of π   a closed set of states that π visits again and again
    unichain π             π has one recurrent class; then ρ_π does not depend on x

The first two are decided by the strongly connected components of the graph of all actions. Whether
*every* policy is unichain is not checked: that is NP-hard (Tsitsiklis 2007), and the planners need
only weakly communicating, which it implies.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray, IntArray
from bayescontrol.errors import InvalidTable, NotCommunicating, UnknownAction
from bayescontrol.mdp.table import MDP

#: Allowed rounding error in the sum of the probabilities of a policy.
TOLERANCE = 1e-9


def as_policy(mdp: MDP, policy: ArrayLike) -> FloatArray:
    """Return π(a | x) as an array [x, a]; `policy` may also be one action index per state."""
    values = np.array(policy)
    X, A = mdp.allowed.shape
    if values.shape == (X,) and values.dtype.kind in "iu":
        outside = np.flatnonzero((values < 0) | (values >= A))
        if outside.size:
            x = outside[0]
            raise UnknownAction(
                f"state {mdp.states[x]!r}: action {values[x]} is out of range, expected 0 … {A - 1}"
            )
        pi: FloatArray = np.eye(A)[values]
    elif values.shape == (X, A) and values.dtype.kind in "biuf":
        pi = values.astype(np.float64)
        invalid = np.flatnonzero(~((pi >= 0.0).all(1) & (np.abs(pi.sum(1) - 1.0) <= TOLERANCE)))
        if invalid.size:
            x = invalid[0]
            raise InvalidTable(
                f"state {mdp.states[x]!r}: the policy {pi[x]} is not a probability distribution"
            )
        pi /= pi.sum(1, keepdims=True)
    else:
        raise InvalidTable(
            f"the policy has shape {values.shape} and type {values.dtype}: "
            f"give {X} action indices, or probabilities of shape {(X, A)}"
        )
    unavailable = np.argwhere((pi > 0.0) & ~mdp.allowed)
    if unavailable.size:
        x, a = unavailable[0]
        raise UnknownAction(
            f"the policy uses action {mdp.actions[a]!r} in state {mdp.states[x]!r}, "
            "where it is not available"
        )
    return pi


def induced(mdp: MDP, policy: ArrayLike) -> tuple[Any, FloatArray]:
    """Return the Markov chain of a policy: P_π as a sparse matrix, and r_π."""
    from scipy.sparse import csr_array  # type: ignore[import-untyped]

    pi = as_policy(mdp, policy)
    X, A = mdp.allowed.shape
    pair = np.repeat(np.arange(X * A), mdp.size)
    weight = pi.ravel()[pair] * mdp.probability
    taken = weight > 0.0
    edges = pair[taken] // A, mdp.successor[taken]
    return csr_array((weight[taken], edges), shape=(X, X)), (pi * mdp.reward).sum(1)


def strong_components(matrix: object) -> tuple[IntArray, IntArray, IntArray]:
    """Return the edges x → y of a graph, and the number of each state's strong component."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

    edges = coo_array(matrix)  # faster than letting SciPy convert a dense matrix to a masked one
    _, component = connected_components(edges.tocsr(), directed=True, connection="strong")
    return edges.row, edges.col, component


def closed_sets(matrix: object) -> list[IntArray]:
    """Return the strongly connected components that no edge leaves, sorted by first state."""
    x, y, component = strong_components(matrix)
    sizes = np.bincount(component)
    is_open = np.isin(np.arange(sizes.size), component[x[component[x] != component[y]]])
    members = np.split(np.argsort(component, kind="stable"), np.cumsum(sizes)[:-1])
    found = [members[c].astype(np.int64) for c in np.flatnonzero(~is_open)]
    return sorted(found, key=lambda states: int(states[0]))


def closed_classes(mdp: MDP) -> list[IntArray]:
    """Return the communicating sets of states that no policy leaves."""
    return recurrent_classes(mdp, mdp.allowed / mdp.allowed.sum(1, keepdims=True))


def recurrent_classes(mdp: MDP, policy: ArrayLike) -> list[IntArray]:
    """Return the recurrent classes of P_π as arrays of state indices."""
    return closed_sets(induced(mdp, policy)[0])


def _states_avoiding(mdp: MDP, closed: IntArray) -> IntArray:
    """Return the states from which some policy can stay outside `closed` for ever.

    This is the largest set Z in which each state has an action whose successors are all in Z.
    """
    in_Z = ~np.isin(np.arange(len(mdp.states)), closed)
    pairs = np.flatnonzero(mdp.size)
    stays = np.zeros(mdp.allowed.size, bool)
    while True:
        # stays[x A + a]: all successors of (x, a) are in Z.
        stays[pairs] = np.logical_and.reduceat(in_Z[mdp.successor], mdp.first[pairs])
        remaining = in_Z & stays.reshape(mdp.allowed.shape).any(1)
        if (remaining == in_Z).all():
            return np.flatnonzero(in_Z).astype(np.int64)
        in_Z = remaining


def require_communicating(mdp: MDP) -> None:
    """Raise `NotCommunicating` unless every state can be reached from every other.

    >>> require_communicating(MDP([[[0, 1]], [[0, 1]]], [[0], [0]], states=["egg", "hen"]))
    Traceback (most recent call last):
    bayescontrol.errors.NotCommunicating: the MDP is not communicating: no policy leads from state \
'hen' to state 'egg'; remove those states, or add an action that leads there
    """
    classes = closed_classes(mdp)
    if len(classes[0]) == len(mdp.states):
        return
    unreachable = np.setdiff1d(np.arange(len(mdp.states)), classes[0])
    raise NotCommunicating(
        f"the MDP is not communicating: no policy leads from {_named(mdp, classes[0])} to "
        f"{_named(mdp, unreachable)}; remove those states, or add an action that leads there"
    )


def require_weakly_communicating(mdp: MDP) -> None:
    """Raise `NotCommunicating` unless the MDP is weakly communicating: ρ*(x) is then constant."""
    classes = closed_classes(mdp)
    if len(classes) > 1:
        raise NotCommunicating(
            "the best average reward depends on the start: no policy leads from "
            f"{_named(mdp, classes[0])} to {_named(mdp, classes[1])}, nor back; "
            f"plan for each of the {len(classes)} closed sets of states separately"
        )
    avoiding = _states_avoiding(mdp, classes[0])
    if avoiding.size:
        raise NotCommunicating(
            "the best average reward may depend on the start: a policy can stay for ever in "
            f"{_named(mdp, avoiding)}, but no policy leads back there from "
            f"{_named(mdp, classes[0])}; remove those states, or add an action that leads there"
        )


def _named(mdp: MDP, states: Sequence[int] | IntArray) -> str:
    """Name the first three of these states for an error message."""
    names = [repr(mdp.states[int(x)]) for x in states[:3]]
    more = f" and {len(states) - 3} more" if len(states) > 3 else ""
    return f"state{'s' * (len(states) > 1)} {', '.join(names)}{more}"
