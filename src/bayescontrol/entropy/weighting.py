"""How interventions are weighted: weight(â_t | ao_<t).

    uniform       1 / |A|, A being the `actions`
    closed-loop   Σ_m P(a | m, ao_<t) v_m(ao_<t), v_m ∝ P(m) Π_τ P(o_τ | m, ·): as the control
                  rule would act; fixed by the modes and the prior, whoever is judged
    printed       1, the paper's unweighted sum over all intervention sequences in A
    an I/O system, or a policy without state: as it would act

The minimiser of C is the control rule under each of them; the value of C is not the same.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.entropy.laws import GONE, ask, require_system
from bayescontrol.entropy.tree import InteractionTree, paths, values
from bayescontrol.errors import InvalidTable
from bayescontrol.priors import TOLERANCE
from bayescontrol.protocols import ActionProbabilities, IOSystem, Stateful

#: The weightings that have a name.
Named: TypeAlias = Literal["uniform", "closed-loop", "printed"]
#: A name, an I/O system, or a policy that is asked in situation None.
Weighting: TypeAlias = Named | IOSystem[Any, Any, Any] | ActionProbabilities[Any, Any]


def weigh(tree: InteractionTree, weighting: Weighting) -> tuple[FloatArray, ...]:
    """weight(â_t | ao_<t) of every action edge of a tree, one array for each t.

    >>> from bayescontrol import DiscreteMode
    >>> from bayescontrol.systems import Situated
    >>> mode = Situated(DiscreteMode(lambda x: {"l": 0.75, "r": 0.25}, lambda x, a: {a: 1.0}))
    >>> tree = InteractionTree([mode], [1.0], horizon=1, actions=["l", "r"])
    >>> for name in ("uniform", "closed-loop", "printed"):
    ...     weigh(tree, name)
    (array([0.5, 0.5]),)
    (array([0.75, 0.25]),)
    (array([1., 1.]),)
    """
    if not isinstance(weighting, str):
        return tuple(_as_the_system_would(tree, weighting))
    require_named(weighting, tree.actions)
    if weighting == "closed-loop":
        return tuple(_as_the_rule_would(tree))
    if weighting == "uniform":
        return tuple(1.0 / np.bincount(act.parent)[act.parent] for act, _ in tree.steps)
    return tuple(np.ones(len(act.symbols)) for act, _ in tree.steps)


def _as_the_rule_would(tree: InteractionTree) -> Iterator[FloatArray]:
    v = tree.prior[:, None]
    for act, obs in tree.steps:
        v = v[:, act.parent]
        yield (v * act.p).sum(axis=0) / v.sum(axis=0)
        v = v[:, obs.parent] * obs.p


def _as_the_system_would(tree: InteractionTree, weighting: Any) -> Iterator[FloatArray]:
    system = acting(weighting)
    nodes = [system.start()]
    for act, obs in tree.steps:
        laws = [ask("the weighting", system.action_probabilities, s) for s in nodes]
        weights = values(act, laws)
        given = np.bincount(act.parent, weights, len(nodes))
        for h, law in enumerate(laws):
            if law and abs(given[h] - 1.0) > TOLERANCE:
                known = [act.symbols[e] for e in np.flatnonzero(act.parent == h)]
                raise InvalidTable(
                    f"the weighting acts by {dict(law)!r}, but only {known!r} can be intervened "
                    "on there: name every action in actions=..."
                )
        yield weights
        if act is not tree.steps[-1][0]:
            nodes = [
                system.advance(nodes[h], a, o) if w > 0.0 else GONE
                for h, a, o, w in paths(act, obs, weights[obs.parent])
            ]


def require_named(weighting: str, actions: Sequence[Any] | None) -> None:
    """Is it the name of a weighting, and is A known where it is needed?

    >>> require_named("open-loop", actions=None)
    Traceback (most recent call last):
    ValueError: no weighting is called 'open-loop': there are uniform, closed-loop, printed, ...
    """
    if weighting not in get_args(Named):
        raise ValueError(
            f"no weighting is called {weighting!r}: there are {', '.join(get_args(Named))}, "
            "and any I/O system"
        )
    if weighting != "closed-loop" and actions is None:
        raise ValueError(
            f"the weighting {weighting!r} needs to know which actions there are: pass actions=..."
        )


def acting(weighting: Any) -> Any:
    """The weighting as something with start, advance and action_probabilities.

    >>> from bayescontrol import DiscreteMode
    >>> policy = acting(DiscreteMode(lambda x: {"go": 1.0}, lambda x, a: {}))
    >>> policy.action_probabilities(policy.start())
    {'go': 1.0}
    """
    require_system("the weighting", weighting, ["action_probabilities"])
    return weighting if isinstance(weighting, Stateful) else _Stateless(weighting)


class _Stateless:
    """A policy without state, asked in situation None."""

    def __init__(self, policy: Any) -> None:
        self.action_probabilities = policy.action_probabilities

    def start(self) -> None:
        """Nowhere."""

    def advance(self, s: None, a: Any, o: Any) -> None:
        """Still there."""
