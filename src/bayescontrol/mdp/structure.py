"""Which states can be reached from which, and what that means for the average reward.

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

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import IntArray
from bayescontrol.errors import NotCommunicating
from bayescontrol.mdp.markov import graph, induced
from bayescontrol.mdp.table import MDP


def closed_sets(matrix: object) -> list[IntArray]:
    """The strongly connected components of a graph that no edge leaves, by their first states.

    >>> closed_sets(np.array([[0, 1, 1], [0, 1, 0], [0, 0, 1]], bool))
    [array([1]), array([2])]
    """
    from scipy.sparse import coo_array  # type: ignore[import-untyped]
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
