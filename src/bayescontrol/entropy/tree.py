"""The tree of all interactions up to a horizon, and what every mode says on it.

    stages a_1, o_1, a_2, o_2, …    an edge e of a stage is one more symbol after a history h(e)
    p[m, e] = P_m(symbol of e | h(e))
    W[m, e] = P(m) P_m(h(e))                               actions are evidence, or
              P(m) Π_τ P_m(o_τ | ·) Π_τ weight(â_τ | ·)     actions are interventions

D and C are one sum over edges, Σ W p log2 (p / q) with q = Pr(symbol of e | h(e)): they differ
in W alone. A tree is built once and judges any number of agents.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.entropy.laws import GONE, Law, ask, check_actions, expect, require_system
from bayescontrol.errors import BayesControlError
from bayescontrol.priors import as_prior
from bayescontrol.protocols import IOSystem


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
