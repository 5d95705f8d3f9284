"""Asking I/O systems for their conditionals, and being told probabilities.

    Σ_a Pr(a | ao_<t) = 1        Σ_o Pr(o | ao_<t a_t) = 1

A system has no conditionals after a symbol to which it gave probability 0: it is `GONE`
there, and says nothing, which is to say that it gives probability 0 to everything.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.errors import (
    BayesControlError,
    ImpossibleObservation,
    InvalidTable,
    MissingCapability,
)
from bayescontrol.mode_queries import checked_probabilities
from bayescontrol.priors import TOLERANCE, as_prior
from bayescontrol.protocols import ActionProbabilities, IOSystem, Stateful

Law = Mapping[Any, float]
IO_SYSTEM: Final = ("start", "advance", "action_probabilities", "observation_probabilities")

#: The state of a system that has ruled out the history.
GONE: Final = object()


def ask(who: str, law: Callable[..., Law], s: Any, *a: Any) -> Law:
    """Pr(· | s) or Pr(· | s, a), checked; {} if the system is gone.

    >>> ask("mode 0", lambda s: {"go": 0.5}, "home")
    Traceback (most recent call last):
    bayescontrol.errors.InvalidTable: the policy of mode 0 in situation 'home' is {'go': 0.5}: ...
    """
    if s is GONE:
        return {}
    return checked_probabilities(law(s, *a), "hypothesis" if a else "policy", who, s, *a)


def expect(who: str, system: IOSystem[Any, Any, Any], s: Any, a: Any, q_a: float) -> Law:
    """Pr(o | s, a); {} if the system gave a no probability, q_a = 0, and cannot condition on it.

    >>> from bayescontrol import DiscreteMode
    >>> from bayescontrol.systems import Situated
    >>> coin = Situated(DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 0.5, "T": 0.5}))
    >>> expect("the agent", coin, None, "toss", 1.0)
    {'H': 0.5, 'T': 0.5}
    """
    try:
        return ask(who, system.observation_probabilities, s, a)
    except ImpossibleObservation:
        if q_a > 0.0:
            raise
        return {}


def check_actions(who: str, law: Law, actions: Sequence[Any] | None) -> None:
    """Are all actions that may be taken among `actions`? None stands for any.

    >>> check_actions("mode 1", {"left": 0.5, "right": 0.5}, ["left"])
    Traceback (most recent call last):
    bayescontrol.errors.InvalidTable: mode 1 may take 'right', which is not among actions=['left']
    """
    if actions is not None:
        for a, p in law.items():
            if p > 0.0 and a not in actions:
                raise InvalidTable(f"{who} may take {a!r}, which is not among actions={actions!r}")


def require_system(who: str, system: Any, methods: Sequence[str] = IO_SYSTEM) -> None:
    """Has it the methods of an I/O system?

    >>> require_system("the agent", 3)
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: the agent (3) lacks start, advance, action_prob...
    """
    missing = [method for method in methods if not hasattr(system, method)]
    if missing:
        raise MissingCapability(
            f"{who} ({system!r}) lacks {', '.join(missing)}: it must be an I/O system; "
            "AgentSystem makes one of an agent, Situated one of a mode"
        )


class TooManyHistories(BayesControlError, ValueError):
    """The interaction tree would be too large to enumerate.

    >>> issubclass(TooManyHistories, BayesControlError) and issubclass(TooManyHistories, ValueError)
    True
    """


@dataclass(frozen=True)
class Stage:
    """All edges of one stage: edge e puts `symbols[e]` after the history `parent[e]`.

    `p[m, e]` is its probability under mode m. Histories are numbered as the edges of the
    stage before; the empty one is 0.

    >>> Stage(True, ("left", "right"), np.array([0, 0]), np.array([[0.5, 0.5]])).symbols
    ('left', 'right')
    """

    is_action: bool
    symbols: tuple[Any, ...]
    parent: IntArray
    p: FloatArray


class InteractionTree:
    """Every history up to a horizon that some mode allows once actions are interventions.

    `modes` are I/O systems P_m. `actions` are those that may be intervened on; by default,
    at each history, those that a mode may take there which the observations have not ruled out.

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
        prior: npt.ArrayLike,
        horizon: int,
        *,
        actions: Sequence[Any] | None = None,
        limit: float = 1_000_000,
    ) -> None:
        if horizon < 1:
            raise ValueError(f"horizon={horizon}: there must be at least one step")
        self.prior = as_prior(prior, len(modes))
        self.horizon = horizon
        self._modes = modes
        self.actions = None if actions is None else tuple(dict.fromkeys(actions))
        #: (a_t, o_t) for t = 1 … T.
        self.steps: list[tuple[Stage, Stage]] = []
        for m, mode in enumerate(modes):
            require_system(f"mode {m}", mode)
        # A mode without prior weight says nothing, as one that has been ruled out.
        start = [
            mode.start() if p > 0.0 else GONE for mode, p in zip(modes, self.prior, strict=True)
        ]
        nodes = [start]
        for _ in range(horizon):
            nodes = self._grow(nodes, limit)

    def _grow(self, nodes: list[list[Any]], limit: float) -> list[list[Any]]:
        """One more step of the stream; what is given and returned are the modes' states."""
        named = [(f"mode {m}", mode) for m, mode in enumerate(self._modes)]
        laws = []
        for states in nodes:
            laws.append([
                ask(who, mode.action_probabilities, s)
                for (who, mode), s in zip(named, states, strict=True)
            ])  # fmt: skip
            for (who, _), law in zip(named, laws[-1], strict=True):
                check_actions(who, law, self.actions)
        act = _stage(True, laws, self.actions)
        laws = [
            [
                ask(who, mode.observation_probabilities, s, a)
                for (who, mode), s in zip(named, nodes[h], strict=True)
            ]
            for h, a in zip(act.parent, act.symbols, strict=True)
        ]
        obs = _stage(False, laws, None)
        self.steps.append((act, obs))
        left = self.horizon - len(self.steps)
        _guard(self.horizon, left, len(nodes), len(obs.symbols), limit)
        if left == 0:
            return []
        return [
            [
                mode.advance(s, a, o) if possible else GONE
                for mode, s, possible in zip(self._modes, nodes[h], allowed, strict=True)
            ]
            for h, a, o, allowed in paths(act, obs, (obs.p > 0.0).T)
        ]

    def tabulate(self, system: IOSystem[Any, Any, Any]) -> tuple[FloatArray, ...]:
        """q[e] = Pr(symbol of e | h(e)), one array for each of the stages a_1, o_1, a_2, …

        Where Pr has ruled out the history, q is 0.
        """
        require_system("the agent", system)
        q: list[FloatArray] = []
        nodes = [system.start()]
        for act, obs in self.steps:
            laws = [ask("the agent", system.action_probabilities, s) for s in nodes]
            q_a = values(act, laws)
            laws = [
                expect("the agent", system, nodes[h], a, q_e)
                for h, a, q_e in zip(act.parent, act.symbols, q_a, strict=True)
            ]
            q_o = values(obs, laws)
            q += [q_a, q_o]
            if len(q) < 2 * self.horizon:
                nodes = [
                    system.advance(nodes[h], a, o) if q_e > 0.0 else GONE
                    for h, a, o, q_e in paths(act, obs, q_o)
                ]
        return tuple(q)

    def walk(
        self, weights: Sequence[FloatArray] | None = None
    ) -> Iterator[tuple[Stage, FloatArray]]:
        """Every stage with W[m, e]; `weights` are those of interventions, None for evidence."""
        W = self.prior[:, None]
        for t, (act, obs) in enumerate(self.steps):
            W = W[:, act.parent]
            yield act, W
            W = (W * (act.p if weights is None else weights[t]))[:, obs.parent]
            yield obs, W
            W = W * obs.p

    def __repr__(self) -> str:
        histories = len(self.steps[-1][1].symbols)
        return (
            f"InteractionTree({len(self.prior)} modes, horizon {self.horizon}, "
            f"{histories:,} histories)"
        )


def paths(act: Stage, obs: Stage, column: npt.NDArray[Any]) -> Iterator[tuple[int, Any, Any, Any]]:
    """(h, a, o) of every edge of a stage o_t, with its entry of a column.

    >>> act = Stage(True, ("l", "r"), np.array([0, 0]), np.array([[0.5, 0.5]]))
    >>> obs = Stage(False, ("H", "T"), np.array([0, 1]), np.array([[1.0, 1.0]]))
    >>> [path[:3] for path in paths(act, obs, np.zeros(2))]
    [(0, 'l', 'H'), (0, 'r', 'T')]
    """
    for e, o, entry in zip(obs.parent, obs.symbols, column, strict=True):
        yield int(act.parent[e]), act.symbols[e], o, entry


def values(stage: Stage, laws: Sequence[Law]) -> FloatArray:
    """law(symbol of e | h(e)) for every edge, given the law at each history.

    >>> stage = Stage(True, ("l", "r"), np.array([0, 0]), np.array([[0.5, 0.5]]))
    >>> values(stage, [{"r": 1.0}])
    array([0., 1.])
    """
    edges = zip(stage.parent, stage.symbols, strict=True)
    return np.array([laws[h].get(k, 0.0) for h, k in edges], np.float64)


def _guard(horizon: int, left: int, before: int, now: int, limit: float) -> None:
    """Would the tree be too large if it went on to grow as in its last step?"""
    digits = math.log10(now) + left * math.log10(now / before)
    if digits > math.log10(max(limit, 1.0)):
        shown = f"{10**digits:,.0f}" if digits < 12 else f"10^{digits:.0f}"
        raise TooManyHistories(
            f"horizon {horizon} has about {shown} histories, more than limit={limit:,}: "
            "shorten the horizon, raise the limit, or use sampled_relative_entropy or "
            "sampled_intervened_relative_entropy"
        )


def _stage(is_action: bool, laws: list[list[Law]], symbols: Sequence[Any] | None) -> Stage:
    """The edges out of every history; `laws` are those of all modes at each."""
    parent: list[int] = []
    names: list[Any] = []
    p: list[list[float]] = []
    for h, answers in enumerate(laws):
        possible = (k for law in answers for k, p_k in law.items() if p_k > 0.0)
        for k in dict.fromkeys(possible) if symbols is None else symbols:
            parent.append(h)
            names.append(k)
            p.append([law.get(k, 0.0) for law in answers])
    return Stage(
        is_action, tuple(names), np.array(parent, np.int64), np.array(p, np.float64).T.copy()
    )


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
