"""Enumerate the interaction tree of a class of modes, and weight its interventions.

I/O systems Pr answer with conditional probabilities of the next symbol, an action or an
observation:

    Σ_a Pr(a | ao_<t) = 1        Σ_o Pr(o | ao_<t a_t) = 1

After a symbol of probability 0 a system has no conditionals: its state is `RULED_OUT`, and it gives
probability 0 to every symbol.

The tree holds all histories up to the horizon T. Its stages are a_1, o_1, a_2, …, o_T. An edge e of
a stage appends a symbol to a history h(e). For M modes and a stage of E edges,

    p, shape (M, E)    p[m, e] = P_m(symbol of e | h(e))         the expert of mode m
    q, shape (E,)      q[e]    = Pr(symbol of e | h(e))          the agent that is judged
    W, shape (M, E)    W[m, e] = P(m) P_m(h(e))                            actions are evidence, or
                                 P(m) Π_τ P_m(o_τ | ·) Π_τ weight(â_τ | ·)  interventions

D and C are both Σ_{m,e} W p log2 (p / q), summed over the stages, and differ only in W. The
weighting of interventions, weight(â_t | ao_<t), is one of

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

from bayescontrol import errors
from bayescontrol._arrays import ArrayLike, FloatArray, IntArray, as_integer
from bayescontrol._mode_queries import has
from bayescontrol._support.priors import TOLERANCE, as_prior, checked_probabilities
from bayescontrol.protocols import ActionProbabilities, IOSystem, Stateful

Probabilities = Mapping[Any, float]
System: TypeAlias = IOSystem[Any, Any, Any]
#: An array for each step, or for each stage.
Tables: TypeAlias = Sequence[FloatArray]
IO_SYSTEM: Final = ("start", "advance", "action_probabilities", "observation_probabilities")

#: The state of a system that gives probability 0 to the history.
RULED_OUT: Final = object()


def conditional(label: str, system: Any, s: Any, *a: Any) -> Probabilities:
    """Return Pr(a | s) of every a or, given an action a, Pr(o | s, a) of every o, validated.

    Return {} if the system has ruled out the history. `label` names the system in errors.
    """
    if s is RULED_OUT:
        return {}
    method = system.observation_probabilities if a else system.action_probabilities
    return checked_probabilities(method(s, *a), "hypothesis" if a else "policy", label, s, *a)


def conditional_observation(name: str, system: System, s: Any, a: Any, q_a: float) -> Probabilities:
    """Return Pr(o | s, a) of every o; q_a = Pr(a | s).

    Return {} if q_a = 0 and the system cannot condition on a.
    """
    try:
        return conditional(name, system, s, a)
    except errors.ImpossibleObservation:
        if q_a > 0.0:
            raise
        return {}


def require_system(label: str, system: object, methods: Sequence[str] = IO_SYSTEM) -> None:
    """Raise `MissingCapability` unless the object has the methods of an I/O system."""
    missing = [method for method in methods if not hasattr(system, method)]
    if missing:
        raise errors.MissingCapability(
            f"{label} ({system!r}) lacks {', '.join(missing)}: expected an I/O system; wrap an "
            "agent in AgentSystem, a mode in Situated"
        )


class TooManyHistories(errors.BayesControlError, ValueError):
    """The interaction tree would be too large to enumerate."""


@dataclass(frozen=True)
class Stage:
    """All E edges of one stage: edge e appends `symbols[e]` to the history number `parent[e]`.

    `parent` has shape (E,), `p` shape (M, E): the probability of the symbol under each mode.
    Histories are numbered like the edges of the previous stage; the empty history is 0.

    >>> Stage(("left", "right"), np.array([0, 0]), np.array([[0.5, 0.5]])).symbols
    ('left', 'right')
    """

    symbols: tuple[Any, ...]
    parent: IntArray
    p: FloatArray


class InteractionTree:
    """Every history up to a horizon that some mode allows if actions are interventions.

    `modes` are M I/O systems P_m, `prior` their M probabilities. `actions` are the possible
    interventions; by default, at each history, the actions of the modes that the observations have
    not ruled out. A tree that would have more than `limit` histories raises `TooManyHistories`.

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
        modes: Sequence[System],
        prior: ArrayLike,
        horizon: int,
        *,
        actions: Sequence[Any] | None = None,
        limit: float = 1_000_000,
    ) -> None:
        self.horizon = as_integer("horizon", horizon, 1)
        self.prior = as_prior(prior, len(modes))
        self.actions = None if actions is None else tuple(dict.fromkeys(actions))
        for m, mode in enumerate(modes):
            require_system(f"mode {m}", mode)
        self._modes = list(modes)
        #: The stages (a_t, o_t) for t = 1 … T.
        self.steps: list[tuple[Stage, Stage]] = []
        pairs = zip(modes, self.prior, strict=True)
        nodes = [[mode.start() if p > 0.0 else RULED_OUT for mode, p in pairs]]
        for _ in range(horizon):
            nodes = self._grow(nodes, limit)

    def _grow(self, nodes: list[list[Any]], limit: float) -> list[list[Any]]:
        """Append one step to the tree.

        nodes[h][m] is the state of mode m at history h, `RULED_OUT` if the mode is impossible
        there. Return the nodes after the step, or an empty list after the last one.
        """
        act = _stage([self._conditionals(states) for states in nodes], self.actions)
        taken = zip(act.parent, act.symbols, strict=True)
        obs = _stage([self._conditionals(nodes[h], a) for h, a in taken], None)
        self.steps.append((act, obs))
        steps_left = self.horizon - len(self.steps)
        _check_size(self.horizon, steps_left, len(nodes), len(obs.symbols), limit)
        if steps_left == 0:
            return []
        by_mode = [
            _next_states(mode, [states[m] for states in nodes], act, obs, obs.p[m])
            for m, mode in enumerate(self._modes)
        ]
        return [list(states) for states in zip(*by_mode, strict=True)]

    def _conditionals(self, states: list[Any], *a: Any) -> list[Probabilities]:
        """Return P_m(o | ·, a) of all modes or, without an action, P_m(a | ·)."""
        pairs = enumerate(zip(self._modes, states, strict=True))
        answers = [conditional(f"mode {m}", mode, s, *a) for m, (mode, s) in pairs]
        if self.actions is not None and not a:
            for m, policy in enumerate(answers):
                if missing := [b for b, p in policy.items() if p > 0.0 and b not in self.actions]:
                    raise errors.InvalidTable(
                        f"mode {m} may take {missing[0]!r}, which is not in actions={self.actions}"
                    )
        return answers

    def tabulate(self, system: System) -> tuple[FloatArray, ...]:
        """Return q[e] = Pr(symbol of e | h(e)), an array (E,) for each stage a_1, o_1, a_2, …

        Where Pr has ruled out the history, q is 0.
        """
        require_system("the agent", system)
        q: list[FloatArray] = []
        nodes = [system.start()]
        for act, obs in self.steps:
            q_a = edge_probabilities(act, [conditional("the agent", system, s) for s in nodes])
            predictions = [
                conditional_observation("the agent", system, nodes[h], a, p)
                for h, a, p in zip(act.parent, act.symbols, q_a, strict=True)
            ]
            q += [q_a, edge_probabilities(obs, predictions)]
            if len(q) < 2 * self.horizon:
                nodes = _next_states(system, nodes, act, obs, q[-1])
        return tuple(q)

    def walk(self, weights: Tables | None = None) -> Iterator[tuple[Stage, FloatArray]]:
        """Yield every stage with its W, shape (M, E).

        `weights` are those of interventions, as from `weigh`; without them actions are evidence.
        """
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


def _next_states(system: Any, nodes: list[Any], act: Stage, obs: Stage, p: FloatArray) -> list[Any]:
    """Return the state of a system after every edge e of a stage o_t; `RULED_OUT` if p[e] is 0.

    nodes[h] is its state at history h, before the step.
    """
    return [
        system.advance(nodes[act.parent[e]], act.symbols[e], o) if p_o > 0.0 else RULED_OUT
        for e, o, p_o in zip(obs.parent, obs.symbols, p, strict=True)
    ]


def edge_probabilities(stage: Stage, at_history: Sequence[Probabilities]) -> FloatArray:
    """Return Pr(symbol of e | h(e)), shape (E,); at_history[h] is {symbol: Pr(symbol | h)}."""
    edges = zip(stage.parent, stage.symbols, strict=True)
    return np.array([at_history[h].get(symbol, 0.0) for h, symbol in edges], np.float64)


def _check_size(horizon: int, steps_left: int, previous: int, current: int, limit: float) -> None:
    """Raise if the tree, growing at the rate of its last step, would exceed the limit.

    The last step led from `previous` to `current` histories.
    """
    # log10 of the expected number of histories at the horizon.
    digits = math.log10(current) + steps_left * math.log10(current / previous)
    if digits > math.log10(max(limit, 1.0)):
        shown = f"{10**digits:,.0f}" if digits < 12 else f"10^{digits:.0f}"
        raise TooManyHistories(
            f"horizon {horizon} has about {shown} histories, more than limit={limit:,}: "
            "shorten the horizon, raise the limit, or average learning_cost over simulated records"
        )


def _stage(at_history: list[list[Probabilities]], symbols: Sequence[Any] | None) -> Stage:
    """Return the edges out of every history h, where at_history[h][m] is {symbol: P_m(symbol | h)}.

    Each history gets an edge for every one of `symbols`; if None, for every possible symbol.
    """
    edges = [
        (h, symbol)
        for h, of_modes in enumerate(at_history)
        for symbol in (_possible_symbols(of_modes) if symbols is None else symbols)
    ]
    p = [[of_mode.get(symbol, 0.0) for of_mode in at_history[h]] for h, symbol in edges]
    parent = np.array([h for h, _ in edges], np.int64)
    return Stage(tuple(symbol for _, symbol in edges), parent, np.array(p, np.float64).T.copy())


def _possible_symbols(distributions: Sequence[Probabilities]) -> tuple[Any, ...]:
    """Return the symbols to which one of the distributions gives a positive probability."""
    return tuple(dict.fromkeys(k for each in distributions for k, p in each.items() if p > 0.0))


#: The named weightings.
Named: TypeAlias = Literal["uniform", "closed-loop", "printed"]
#: A name, an I/O system, or a policy that is queried in situation None.
Weighting: TypeAlias = Named | System | ActionProbabilities[Any, Any]


def weigh(tree: InteractionTree, weighting: Weighting) -> tuple[FloatArray, ...]:
    """Return weight(â_t | ao_<t) of every edge of the stages a_t, an array (E,) for each t.

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
    if weighting not in get_args(Named):
        raise ValueError(
            f"unknown weighting {weighting!r}: use {', '.join(get_args(Named))}, or an I/O system"
        )
    if weighting == "closed-loop":
        return tuple(_closed_loop_weights(tree))
    if tree.actions is None:
        raise ValueError(f"weighting {weighting!r} needs the list of all actions: pass actions=...")
    if weighting == "uniform":
        return tuple(1.0 / np.bincount(act.parent)[act.parent] for act, _ in tree.steps)
    return tuple(np.ones(len(act.symbols)) for act, _ in tree.steps)


def _closed_loop_weights(tree: InteractionTree) -> Iterator[FloatArray]:
    """Yield Σ_m P(a | m, ao_<t) v_m(ao_<t) of every edge of a_t, for each t."""
    v = tree.prior[:, None]
    for act, obs in tree.steps:
        v = v[:, act.parent]
        yield (v * act.p).sum(axis=0) / v.sum(axis=0)
        v = v[:, obs.parent] * obs.p


def _system_weights(tree: InteractionTree, weighting: Any) -> Iterator[FloatArray]:
    """Yield the probability of every edge of a_t under an I/O system or policy, for each t."""
    require_system("the weighting", weighting, ["action_probabilities"])
    system = weighting
    if not has(weighting, Stateful):  # a policy without state is queried in situation None
        system = SimpleNamespace(
            start=lambda: None,
            advance=lambda _s, _a, _o: None,
            action_probabilities=weighting.action_probabilities,
        )
    nodes = [system.start()]
    for act, obs in tree.steps:
        policies = [conditional("the weighting", system, s) for s in nodes]
        weights = edge_probabilities(act, policies)
        total = np.bincount(act.parent, weights, len(nodes))
        for h, policy in enumerate(policies):
            if policy and abs(total[h] - 1.0) > TOLERANCE:
                interventions = [act.symbols[e] for e in np.flatnonzero(act.parent == h)]
                raise errors.InvalidTable(
                    f"the weighting has probabilities {dict(policy)!r}, but the only interventions "
                    f"here are {interventions!r}: list every action in actions=..."
                )
        yield weights
        if act is not tree.steps[-1][0]:
            nodes = _next_states(system, nodes, act, obs, weights[obs.parent])
