"""The Markov chain that a policy makes of an MDP.

P_π(x, y) = Σ_a π(a | x) P(y | x, a)        r_π(x) = Σ_a π(a | x) r(x, a)

Which states can be reached from which, and what that means for the average reward.

    communicating          from every state some policy reaches every other
    weakly communicating   so within one closed set of states; all others are left for good,
                           sooner or later, whatever is done. Then ρ* does not depend on x
    recurrent class of π   a closed set of states that π visits again and again
    unichain π             one recurrent class: then ρ_π does not depend on x

The first two are exact and fast, by strongly connected components of the graph of all actions.
That *every* policy is unichain is not checked: it is NP-hard to decide (Tsitsiklis 2007), and
it implies weakly communicating, which is all that the planners need.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.errors import InvalidTable, NotCommunicating, UnknownAction
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


def closed_sets(matrix: object) -> list[IntArray]:
    """The strongly connected components of a graph that no edge leaves, by their first states.

    >>> closed_sets(np.array([[0, 1, 1], [0, 1, 0], [0, 0, 1]], bool))
    [array([1]), array([2])]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

    edges = coo_array(matrix)  # of a dense matrix SciPy would make a masked one, which takes longer
    count, component = connected_components(edges.tocsr(), directed=True, connection="strong")
    is_open = np.zeros(count, bool)
    leaving = component[edges.row] != component[edges.col]
    is_open[component[edges.row[leaving]]] = True
    order = np.argsort(component, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(component, minlength=count))[:-1])
    found = [members[c].astype(np.int64) for c in np.flatnonzero(~is_open)]
    return sorted(found, key=lambda states: int(states[0]))


def closed_classes(mdp: MDP) -> list[IntArray]:
    """The sets of states that communicate and cannot be left by any policy, as numbers.

    >>> mdp = MDP([[[1, 0, 0]], [[0, 1, 0]], [[0.5, 0.5, 0]]], [[0], [1], [0]])
    >>> closed_classes(mdp)
    [array([0]), array([1])]
    """
    return closed_sets(graph(mdp))


def recurrent_classes(mdp: MDP, policy: npt.ArrayLike) -> list[IntArray]:
    """The recurrent classes of P_π, as numbers of states.

    >>> from bayescontrol.mdp import chain_mdp
    >>> recurrent_classes(chain_mdp(3), [1, 1, 1])  # B: always back to the start
    [array([0])]
    """
    return closed_sets(induced(mdp, policy)[0])


def is_unichain(mdp: MDP, policy: npt.ArrayLike) -> bool:
    """Has *this* policy a single recurrent class?

    >>> mdp = MDP([[[1, 0], [0, 1]], [[0, 1], [1, 0]]], [[0, 0], [1, 0]])
    >>> is_unichain(mdp, [1, 0]), is_unichain(mdp, [0, 0])  # action 0 stays
    (True, False)
    """
    return len(recurrent_classes(mdp, policy)) == 1


def is_communicating(mdp: MDP) -> bool:
    """Can every state be reached from every other, by some policy?

    >>> is_communicating(MDP([[[0, 1]], [[0, 1]]], [[0], [0]]))  # state 0 never again
    False
    """
    return len(closed_classes(mdp)[0]) == len(mdp.states)


def is_weakly_communicating(mdp: MDP) -> bool:
    """Is one closed set communicating, and every other state transient under every policy?

    >>> is_weakly_communicating(MDP([[[0, 1]], [[0, 1]]], [[0], [0]]))
    True
    """
    classes = closed_classes(mdp)
    return len(classes) == 1 and not _shelter(mdp, classes[0]).size


def _shelter(mdp: MDP, closed: IntArray) -> IntArray:
    """The states outside `closed` among which some policy can stay for ever.

    The largest Z with: each x in Z has an action whose successors are all in Z.
    """
    inside = np.ones(len(mdp.states), bool)
    inside[closed] = False
    pairs = np.flatnonzero(mdp.size)
    stays = np.zeros(mdp.size.size, bool)
    while True:
        stays[pairs] = np.logical_and.reduceat(inside[mdp.successor], mdp.first[pairs])
        kept = inside & stays.reshape(mdp.allowed.shape).any(1)
        if (kept == inside).all():
            return np.flatnonzero(inside).astype(np.int64)
        inside = kept


def require_communicating(mdp: MDP) -> None:
    """Raise `NotCommunicating`, naming states and what cannot be reached from them.

    >>> require_communicating(MDP([[[0, 1]], [[0, 1]]], [[0], [0]], states=["birth", "life"]))
    Traceback (most recent call last):
    bayescontrol.errors.NotCommunicating: not communicating: from state 'life' no policy reaches \
state 'birth'; drop those states, or give some action a way there
    """
    classes = closed_classes(mdp)
    if len(classes[0]) == len(mdp.states):
        return
    beyond = np.setdiff1d(np.arange(len(mdp.states)), classes[0])
    raise NotCommunicating(
        f"not communicating: from {_some(mdp, classes[0])} no policy reaches "
        f"{_some(mdp, beyond)}; drop those states, or give some action a way there"
    )


def require_weakly_communicating(mdp: MDP) -> None:
    """Raise `NotCommunicating` unless ρ* is the same from every state by structure alone.

    >>> require_weakly_communicating(MDP([[[1, 0]], [[0, 1]]], [[0], [1]]))
    Traceback (most recent call last):
    bayescontrol.errors.NotCommunicating: the best average reward depends on the start: no policy \
leads from state 0 to state 1, nor back; plan for each of the 2 closed sets of states by itself
    """
    classes = closed_classes(mdp)
    if len(classes) > 1:
        raise NotCommunicating(
            "the best average reward depends on the start: no policy leads from "
            f"{_some(mdp, classes[0])} to {_some(mdp, classes[1])}, nor back; "
            f"plan for each of the {len(classes)} closed sets of states by itself"
        )
    shelter = _shelter(mdp, classes[0])
    if shelter.size:
        raise NotCommunicating(
            "the best average reward may depend on the start: a policy can stay for ever in "
            f"{_some(mdp, shelter)}, but none comes back there from {_some(mdp, classes[0])}; "
            "drop those states, or give some action a way there"
        )


def _some(mdp: MDP, states: Sequence[int] | IntArray) -> str:
    names = [repr(mdp.states[int(x)]) for x in states[:3]]
    more = f" and {len(states) - 3} more" if len(states) > 3 else ""
    return f"state{'s' * (len(states) > 1)} {', '.join(names)}{more}"
