"""Drawn context trees as an operation mode: a finite MDP with its best policy.

    m = trees T_f with leaves θ_f     one tree for each field f of the percept
    hypothesis                        P(o | m, history, a) = Π_f θ_f(k_f | leaf of the context)
    policy                            π_m has the best average reward in the MDP of m's contexts

See `kernels.tree_plan` for the states of the MDP.
"""

from bisect import bisect_left
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol.errors import counted
from bayescontrol.protocols import Probabilities
from bayescontrol.seeding import StreamLike
from bayescontrol.trees.alphabet import Alphabet
from bayescontrol.trees.history import History

T = TypeVar("T")

#: ε of `kernels.average_reward.solve_average_reward`, and its limit of policy improvements.
RESTART, LIMIT = 1e-5, 200


class TreePlan(NamedTuple):
    """Drawn trees, the MDP of their contexts, and its best policy."""

    trees: "kernels.trees.Drawn"
    states: "kernels.tree_plan.States"
    #: P(s' | s,a), r(s,a), the number of the best action and the bias of each state, and the gain.
    P: FloatArray
    r: FloatArray
    policy: IntArray
    bias: FloatArray
    gain: float
    #: Symbols before the action to which the trees were cut; the depth if they were not cut.
    limit: int


class DrawnTrees:
    """An operation mode: drawn context trees with their best policy, in the belief's context.

    >>> from bayescontrol import Stream
    >>> from bayescontrol.trees import ContextTrees
    >>> belief = ContextTrees(["stay", "go"], {"reward": [0.0, 1.0]}, depth=4).belief()
    >>> for t in range(100):  # "go" pays, "stay" does not
    ...     belief.observe(None, *[("stay", (0.0,)), ("go", (1.0,))][t % 3 == 0])
    >>> m = belief.sample(Stream(1))
    >>> m.act(None, Stream(1)), round(m.gain, 1)
    ('go', 1.0)
    """

    def __init__(self, alphabet: Alphabet, history: History, plan: TreePlan) -> None:
        self.alphabet, self.plan = alphabet, plan
        self._history, self._layout = history, alphabet.layout(history.depth)

    @property
    def gain(self) -> float:
        """The average reward of the policy in the drawn model."""
        return self.plan.gain

    def __len__(self) -> int:
        """Return the number of states."""
        return len(self.plan.policy)

    @property
    def state(self) -> int:
        """The state of the current context."""
        history = self._history
        return kernels.tree_plan.find_state(self.plan.states, history.symbols, history.end)

    def act(self, x: Any, rng: StreamLike) -> Any:
        """Return the best action in the current context."""
        return self.alphabet.actions[int(self.plan.policy[self.state])]

    def action_probabilities(self, x: Any) -> Probabilities:
        """Return probability 1 for the best action."""
        return {self.alphabet.actions[int(self.plan.policy[self.state])]: 1.0}

    def log_likelihood(self, x: Any, a: Any, o: Any) -> float:
        """ln P(o | m, history, a)."""
        with np.errstate(divide="ignore"):
            return float(np.log(self._field_probabilities(self.alphabet.cycle(a, o))).sum())

    def observation_probabilities(self, x: Any, a: Any) -> Probabilities:
        """P(o | m, history, a) for every o with positive probability."""
        return self.alphabet.probabilities(a, self._field_probabilities)

    def _field_probabilities(self, cycle: list[int]) -> FloatArray:
        """Return the probability of each symbol of a percept after the history and the action."""
        history, out = self._history, np.empty(len(cycle) - 1)
        history.write(cycle)
        kernels.tree_plan.percept_probabilities(
            self._layout, self.plan.trees, history.symbols, history.end, out
        )
        return out

    def __repr__(self) -> str:
        return f"DrawnTrees({counted(len(self), 'state')}: ρ = {self.gain:.4g})"


def largest_limit(
    layout: "kernels.trees.Layout", trees: "kernels.trees.Drawn", used: int, max_states: int
) -> int:
    """Return the longest contexts to which the trees can be cut with at most `max_states`.

    Longer contexts have at least as many states. Without a context there is one state.
    """

    def is_too_long(limit: int) -> bool:
        return _states(layout, trees, used, limit, max_states)[2] < 0

    if not is_too_long(layout.depth):
        return layout.depth
    return bisect_left(range(layout.depth), True, lo=1, key=is_too_long) - 1


def solve(
    layout: "kernels.trees.Layout", rewards: FloatArray, trees: "kernels.trees.Drawn", limit: int,
    max_states: int,
) -> TreePlan:  # fmt: skip
    """Return the MDP of trees that were cut to `limit`, with its best policy."""
    states, nodes, count = _states(layout, trees, len(trees.child), limit, max_states)
    states, A = trimmed(states, nodes), int(layout.size[0])
    P, r = np.empty((count, A, count)), np.empty((count, A))
    policy, bias = np.empty(count, np.int64), np.empty(count)
    kernels.tree_plan.build_mdp(layout, trees, states, nodes, rewards, P, r)
    gain, _, _ = kernels.average_reward.solve_average_reward(P, r, RESTART, LIMIT, policy, bias)
    return TreePlan(trees, states, P, r, policy, bias, float(gain), limit)


def _states(
    layout: "kernels.trees.Layout", trees: "kernels.trees.Drawn", used: int, limit: int,
    max_states: int,
) -> tuple["kernels.tree_plan.States", int, int]:  # fmt: skip
    """Return the states of cut trees, their number of nodes and of states; -1 if too many."""
    # If there is only one action, nodes that branch on it have one child: up to twice as many.
    room = (4 if layout.size[0] == 1 else 2) * max_states + int(layout.size.max())
    states = kernels.tree_plan.States(*(np.empty(room, np.int64) for _ in range(5)))
    scratch = np.empty(used, np.int64)
    return states, *kernels.tree_plan.close(layout, trees, used, limit, states, scratch, max_states)


def trimmed(arrays: T, size: int) -> T:
    """Return a copy of a NamedTuple of arrays, with this number of rows."""
    columns: Any = arrays
    shorter: T = columns._make(column[:size].copy() for column in columns)
    return shorter
