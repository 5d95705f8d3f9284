"""Enumerate the interaction tree of a class of modes, and weight its interventions.

    Σ_a Pr(a | ao_<t) = 1        Σ_o Pr(o | ao_<t a_t) = 1

I/O systems answer with conditional probabilities. After a symbol of probability 0 a system has no
conditionals: its state is `RULED_OUT`, and it gives probability 0 to every symbol.

An edge e of the tree appends a symbol to a history h(e). D and C are the same sum over edges,
Σ W p log2 (p / q) with q = Pr(symbol of e | h(e)), and differ only in W:

    p[m, e] = P_m(symbol of e | h(e))
    W[m, e] = P(m) P_m(h(e))                               actions are evidence, or
              P(m) Π_τ P_m(o_τ | ·) Π_τ weight(â_τ | ·)     actions are interventions

The weighting of interventions, weight(â_t | ao_<t), is one of

    uniform       1 / |A|, A being the `actions`
    closed-loop   Σ_m P(a | m, ao_<t) v_m(ao_<t), v_m ∝ P(m) Π_τ P(o_τ | m, ·): the actions of the
                  control rule, which depend on the modes and the prior, not on the agent judged
    printed       1, the paper's unweighted sum over all intervention sequences in A
    an I/O system, or a policy without state: its action probabilities

The control rule minimises C under each weighting; the value of C differs. A tree is built once and
can judge any number of agents.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from bayescontrol._arrays import AnyArray, ArrayLike, FloatArray, IntArray, as_integer
from bayescontrol._mode_queries import has
from bayescontrol._support.priors import TOLERANCE, as_prior, checked_probabilities
from bayescontrol.errors import (
    BayesControlError,
    ImpossibleObservation,
    InvalidTable,
    MissingCapability,
)
from bayescontrol.protocols import ActionProbabilities, IOSystem, Stateful

Probabilities = Mapping[Any, float]
IO_SYSTEM: Final = ("start", "advance", "action_probabilities", "observation_probabilities")

#: The state of a system that has ruled out the history.
RULED_OUT: Final = object()


def conditional(label: str, system: Any, s: Any, *a: Any) -> Probabilities:
    """Return Pr(· | s) or Pr(· | s, a), validated; {} if the system has ruled out the history."""
    if s is RULED_OUT:
        return {}
    method = system.observation_probabilities if a else system.action_probabilities
    return checked_probabilities(method(s, *a), "hypothesis" if a else "policy", label, s, *a)


def conditional_observation(
    label: str, system: IOSystem[Any, Any, Any], s: Any, a: Any, q_a: float
) -> Probabilities:
    """Return Pr(o | s, a); {} if Pr cannot condition on a, which has probability q_a = 0."""
    try:
        return conditional(label, system, s, a)
    except ImpossibleObservation:
        if q_a > 0.0:
            raise
        return {}


def check_actions(label: str, policy: Probabilities, actions: Sequence[Any] | None) -> None:
    """Check that `actions` contains every action that may be taken; None allows any."""
    if actions is not None:
        for a, p in policy.items():
            if p > 0.0 and a not in actions:
                raise InvalidTable(f"{label} may take {a!r}, which is not in actions={actions!r}")


def require_system(label: str, system: object, methods: Sequence[str] = IO_SYSTEM) -> None:
    """Check that the object has the methods of an I/O system."""
    missing = [method for method in methods if not hasattr(system, method)]
    if missing:
        raise MissingCapability(
            f"{label} ({system!r}) lacks {', '.join(missing)}: expected an I/O system; wrap an "
            "agent in AgentSystem, a mode in Situated"
        )


class ModeSystems:
    """The modes as I/O systems P_m, their prior, and the possible interventions.

    The states of the modes are a list; a mode with prior 0 is treated as ruled out.
    """

    def __init__(
        self,
        modes: Sequence[IOSystem[Any, Any, Any]],
        prior: ArrayLike,
        actions: Sequence[Any] | None,
    ) -> None:
        self.prior = as_prior(prior, len(modes))
        self.actions = None if actions is None else tuple(dict.fromkeys(actions))
        self._named = {f"mode {m}": mode for m, mode in enumerate(modes)}
        for label, mode in self._named.items():
            require_system(label, mode)

    def start(self) -> list[Any]:
        """Return the states before the first step."""
        pairs = zip(self._named.values(), self.prior, strict=True)
        return [mode.start() if p > 0.0 else RULED_OUT for mode, p in pairs]

    def policies(self, states: list[Any]) -> list[Probabilities]:
        """Return P_m(a | ·) of all modes, after checking the actions."""
        answers = self.predictions(states)
        for label, policy in zip(self._named, answers, strict=True):
            check_actions(label, policy, self.actions)
        return answers

    def predictions(self, states: list[Any], *a: Any) -> list[Probabilities]:
        """Return P_m(o | ·, a) of all modes; without an action, P_m(a | ·)."""
        named = zip(self._named.items(), states, strict=True)
        return [conditional(label, mode, s, *a) for (label, mode), s in named]

    def advance(self, states: list[Any], a: Any, o: Any, possible: AnyArray) -> list[Any]:
        """Return the states after a and o; modes that are no longer possible are ruled out."""
        rows = zip(self._named.values(), states, possible, strict=True)
        return [mode.advance(s, a, o) if ok else RULED_OUT for mode, s, ok in rows]


class TooManyHistories(BayesControlError, ValueError):
    """The interaction tree would be too large to enumerate."""


@dataclass(frozen=True)
class Stage:
    """All edges of one stage: edge e appends `symbols[e]` to the history `parent[e]`.

    `p[m, e]` is its probability under mode m. Histories are numbered like the edges of the previous
    stage; the empty history is 0.

    >>> Stage(True, ("left", "right"), np.array([0, 0]), np.array([[0.5, 0.5]])).symbols
    ('left', 'right')
    """

    is_action: bool
    symbols: tuple[Any, ...]
    parent: IntArray
    p: FloatArray


class InteractionTree:
    """Every history up to a horizon that some mode allows if actions are interventions.

    `modes` are I/O systems P_m. `actions` are the possible interventions; by default, at each
    history, the actions of the modes that the observations have not ruled out.

    >>> from bayescontrol import DiscreteMode
    >>> from bayescontrol.systems import Situated
    >>> def coin(p): return Situated(DiscreteMode(lambda x: {"toss": 1.0},
    ...                                           lambda x, a: {"H": p, "T": 1 - p}))
    >>> tree = InteractionTree([coin(0.5), coin(0.9)], prior=[0.5, 0.5], horizon=3)
    >>> tree
    InteractionTree(2 modes, horizon 3, 8 histories)
    >>> tree.tabulate(coin(0.25))[1]
    array([0.25, 0.75])
    """

    def __init__(
        self,
        modes: Sequence[IOSystem[Any, Any, Any]],
        prior: ArrayLike,
        horizon: int,
        *,
        actions: Sequence[Any] | None = None,
        limit: float = 1_000_000,
    ) -> None:
        as_integer("horizon", horizon, 1)
        self._modes = ModeSystems(modes, prior, actions)
        self.prior, self.actions, self.horizon = self._modes.prior, self._modes.actions, horizon
        #: (a_t, o_t) for t = 1 … T.
        self.steps: list[tuple[Stage, Stage]] = []
        nodes = [self._modes.start()]
        for _ in range(horizon):
            nodes = self._grow(nodes, limit)

    def _grow(self, nodes: list[list[Any]], limit: float) -> list[list[Any]]:
        """Append one step; takes and returns the states of the modes at each history."""
        act = _stage(True, [self._modes.policies(states) for states in nodes], self.actions)
        taken = zip(act.parent, act.symbols, strict=True)
        obs = _stage(False, [self._modes.predictions(nodes[h], a) for h, a in taken], None)
        self.steps.append((act, obs))
        steps_left = self.horizon - len(self.steps)
        _check_size(self.horizon, steps_left, len(nodes), len(obs.symbols), limit)
        if steps_left == 0:
            return []
        return [
            self._modes.advance(nodes[h], a, o, possible)
            for h, a, o, possible in paths(act, obs, (obs.p > 0.0).T)
        ]

    def tabulate(self, system: IOSystem[Any, Any, Any]) -> tuple[FloatArray, ...]:
        """Return q[e] = Pr(symbol of e | h(e)), one array for each of the stages a_1, o_1, a_2, …

        Where Pr has ruled out the history, q is 0.
        """
        require_system("the agent", system)
        q: list[FloatArray] = []
        nodes = [system.start()]
        for act, obs in self.steps:
            answers = [conditional("the agent", system, s) for s in nodes]
            q_a = edge_probabilities(act, answers)
            answers = [
                conditional_observation("the agent", system, nodes[h], a, q_e)
                for h, a, q_e in zip(act.parent, act.symbols, q_a, strict=True)
            ]
            q_o = edge_probabilities(obs, answers)
            q += [q_a, q_o]
            if len(q) < 2 * self.horizon:
                nodes = _advanced(system, nodes, act, obs, q_o)
        return tuple(q)

    def walk(
        self, weights: Sequence[FloatArray] | None = None
    ) -> Iterator[tuple[Stage, FloatArray]]:
        """Yield every stage with W[m, e]; actions are evidence if `weights` is None."""
        W = self.prior[:, None]
        for t, (act, obs) in enumerate(self.steps):
            W = W[:, act.parent]
            yield act, W
            W = (W * (act.p if weights is None else weights[t]))[:, obs.parent]
            yield obs, W
            W = W * obs.p

    def __repr__(self) -> str:
        histories = f"{len(self.steps[-1][1].symbols):,} histories"
        return f"InteractionTree({len(self.prior)} modes, horizon {self.horizon}, {histories})"


def paths(act: Stage, obs: Stage, column: AnyArray) -> Iterator[tuple[int, Any, Any, Any]]:
    """Yield (h, a, o) of every edge of a stage o_t, with its entry of `column`."""
    for e, o, entry in zip(obs.parent, obs.symbols, column, strict=True):
        yield int(act.parent[e]), act.symbols[e], o, entry


def _advanced(system: Any, nodes: list[Any], act: Stage, obs: Stage, q: FloatArray) -> list[Any]:
    """Return the states of a system after every edge of a stage o_t; ruled out where q is 0."""
    edges = paths(act, obs, q)
    return [system.advance(nodes[h], a, o) if p > 0.0 else RULED_OUT for h, a, o, p in edges]


def edge_probabilities(stage: Stage, answers: Sequence[Probabilities]) -> FloatArray:
    """Return Pr(symbol of e | h(e)) for every edge, given the probabilities at each history."""
    edges = zip(stage.parent, stage.symbols, strict=True)
    return np.array([answers[h].get(k, 0.0) for h, k in edges], np.float64)


def _check_size(horizon: int, steps_left: int, previous: int, current: int, limit: float) -> None:
    """Raise if the tree would exceed the limit by growing at the rate of its last step."""
    digits = math.log10(current) + steps_left * math.log10(current / previous)
    if digits > math.log10(max(limit, 1.0)):
        shown = f"{10**digits:,.0f}" if digits < 12 else f"10^{digits:.0f}"
        raise TooManyHistories(
            f"horizon {horizon} has about {shown} histories, more than limit={limit:,}: "
            "shorten the horizon, raise the limit, or use sampled_relative_entropy"
        )


def _stage(
    is_action: bool, answers: list[list[Probabilities]], symbols: Sequence[Any] | None
) -> Stage:
    """Return the edges out of every history h; answers[h] has the distributions of all modes."""
    edges: list[tuple[int, Any]] = []
    p: list[list[float]] = []
    for h, at_h in enumerate(answers):
        possible = (k for answer in at_h for k, p_k in answer.items() if p_k > 0.0)
        for k in dict.fromkeys(possible) if symbols is None else symbols:
            edges.append((h, k))
            p.append([answer.get(k, 0.0) for answer in at_h])
    parent, names = np.array([h for h, _ in edges], np.int64), tuple(k for _, k in edges)
    return Stage(is_action, names, parent, np.array(p, np.float64).T.copy())


#: The named weightings.
Named: TypeAlias = Literal["uniform", "closed-loop", "printed"]
#: A name, an I/O system, or a policy that is queried in situation None.
Weighting: TypeAlias = Named | IOSystem[Any, Any, Any] | ActionProbabilities[Any, Any]


def weigh(tree: InteractionTree, weighting: Weighting) -> tuple[FloatArray, ...]:
    """Return weight(â_t | ao_<t) of every action edge of a tree, one array for each t.

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
        return tuple(_system_weights(tree, weighting))
    require_named(weighting, tree.actions)
    if weighting == "closed-loop":
        return tuple(_closed_loop_weights(tree))
    if weighting == "uniform":
        return tuple(1.0 / np.bincount(act.parent)[act.parent] for act, _ in tree.steps)
    return tuple(np.ones(len(act.symbols)) for act, _ in tree.steps)


def _closed_loop_weights(tree: InteractionTree) -> Iterator[FloatArray]:
    """Yield Σ_m P(a | m, ao_<t) v_m(ao_<t) of every action edge, for each t."""
    v = tree.prior[:, None]
    for act, obs in tree.steps:
        v = v[:, act.parent]
        yield (v * act.p).sum(axis=0) / v.sum(axis=0)
        v = v[:, obs.parent] * obs.p


def _system_weights(tree: InteractionTree, weighting: Any) -> Iterator[FloatArray]:
    """Yield the probability of every action edge under an I/O system or policy, for each t."""
    system = as_policy(weighting)
    nodes = [system.start()]
    for act, obs in tree.steps:
        answers = [conditional("the weighting", system, s) for s in nodes]
        weights = edge_probabilities(act, answers)
        total = np.bincount(act.parent, weights, len(nodes))
        for h, policy in enumerate(answers):
            if policy and abs(total[h] - 1.0) > TOLERANCE:
                interventions = [act.symbols[e] for e in np.flatnonzero(act.parent == h)]
                raise InvalidTable(
                    f"the weighting has probabilities {dict(policy)!r}, but the only interventions "
                    f"here are {interventions!r}: list every action in actions=..."
                )
        yield weights
        if act is not tree.steps[-1][0]:
            nodes = _advanced(system, nodes, act, obs, weights[obs.parent])


def require_named(weighting: str, actions: Sequence[Any] | None) -> None:
    """Check the name of a weighting, and that `actions` are given if it needs them."""
    if weighting not in get_args(Named):
        raise ValueError(
            f"unknown weighting {weighting!r}: use {', '.join(get_args(Named))}, or an I/O system"
        )
    if weighting != "closed-loop" and actions is None:
        raise ValueError(
            f"the weighting {weighting!r} needs the list of all actions: pass actions=..."
        )


def as_policy(weighting: Any) -> Any:
    """Return the weighting as an object with start, advance and action_probabilities."""
    require_system("the weighting", weighting, ["action_probabilities"])
    if has(weighting, Stateful):
        return weighting
    return SimpleNamespace(  # a policy without state, queried in situation None
        start=lambda: None,
        advance=lambda _s, _a, _o: None,
        action_probabilities=weighting.action_probabilities,
    )
