"""The belief over context trees, and the drawn trees as an operation mode.

    m = trees T_f with leaves θ_f     one tree for each field f of the percept
    hypothesis                        P(o | m, history, a) = Π_f θ_f(k_f | leaf of the context)
    policy                            π_m has the best average reward in the MDP of m's contexts
    P(T_f) = Π β^leaf (1-β)^internal  P(θ | T) = Π Dirichlet(1/E, …, 1/E)

    P(m | âo_<t)                      exact, see `kernels.trees`; π_m, see `kernels.tree_plan`

The belief has the history itself. Contexts that reach back before its start read symbol 0 there.
"""

from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray, IntArray
from bayescontrol._support.saved import Array, Copied, Fixed, Number, Saved, damaged, declare
from bayescontrol.errors import BadEvidence, BadSituation, counted
from bayescontrol.protocols import Probabilities
from bayescontrol.seeding import StreamLike, state_of
from bayescontrol.trees.alphabet import Alphabet

T = TypeVar("T")

#: ε of `kernels.average_reward.solve_average_reward`, and its limit of policy improvements.
RESTART, LIMIT = 1e-5, 200
#: Initial capacities: cycles of the history, nodes of the belief and of drawn trees.
FIRST_CYCLES, FIRST_NODES, FIRST_DRAWN = 256, 1024, 256


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
    >>> m = ContextTrees(2, {"reward": [0.0, 1.0]}, depth=3).belief().sample(Stream(1))
    >>> sum(m.observation_probabilities(None, 0).values())
    1.0
    """

    def __init__(self, belief: "ContextTreeBelief", plan: TreePlan) -> None:
        self._belief, self.plan = belief, plan

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
        belief = self._belief
        return kernels.tree_plan.find_state(self.plan.states, belief._symbols, belief._end)

    def act(self, x: Any, rng: StreamLike) -> Any:
        """Return the best action in the current context."""
        return self._belief.alphabet.actions[int(self.plan.policy[self.state])]

    def action_probabilities(self, x: Any) -> Probabilities:
        """Return probability 1 for the best action."""
        return {self._belief.alphabet.actions[int(self.plan.policy[self.state])]: 1.0}

    def log_likelihood(self, x: Any, a: Any, o: Any) -> float:
        """ln P(o | m, history, a)."""
        p = self._field_probabilities(self._belief.alphabet.cycle(a, o))
        with np.errstate(divide="ignore"):
            return float(np.log(p).sum())

    def observation_probabilities(self, x: Any, a: Any) -> Probabilities:
        """P(o | m, history, a) for every o with positive probability."""
        alphabet = self._belief.alphabet
        action, found = alphabet.actions.place(a), {}
        for symbols in alphabet.percepts():
            p = float(self._field_probabilities(np.array([action, *symbols])).prod())
            if p > 0.0:
                found[alphabet.observation(symbols)] = p
        return found

    def _field_probabilities(self, cycle: IntArray) -> FloatArray:
        """Return the probability of each symbol of a percept after the history and the action."""
        belief, out = self._belief, np.empty(cycle.size - 1)
        belief._write(cycle)
        kernels.tree_plan.percept_probabilities(
            belief.layout, self.plan.trees, belief._symbols, belief._end, out
        )
        return out

    def __repr__(self) -> str:
        return f"DrawnTrees({counted(len(self), 'state')}: ρ = {self.gain:.4g})"


class ContextTreeBelief(Saved):
    """P(m | âo_<t) over context trees with their leaves; see `ContextTrees` for the settings.

    >>> from bayescontrol.trees import ContextTrees
    >>> belief = ContextTrees(["stay", "go"], {"reward": [0.0, 1.0]}, depth=4).belief()
    >>> for t in range(20):
    ...     belief.observe(None, "go", (float(t % 2),))
    >>> belief
    ContextTreeBelief(2 actions, 1 field, depth 4 after 20 steps: 13 nodes)
    >>> {o: round(p, 3) for o, p in belief.predictive(None, "go").items()}
    {(0.0,): 0.95, (1.0,): 0.05}
    """

    format_name: ClassVar[str] = "ContextTreeBelief"
    #: The observations of earlier steps are the context of later ones.
    accepts_late_feedback: ClassVar[bool] = False

    saved_fields = declare(
        Fixed("settings", lambda belief: belief.settings()),
        Number("steps", least=0),
        Number("log_evidence"),
        Number("drawn/cut", "cut_draws", least=0),
        Array("symbols", lambda belief: belief._symbols[: belief._end], shape=(None,)),
        Array("child", lambda belief: belief._used_nodes().child, shape=(None,)),
        Array("visit", lambda belief: belief._used_nodes().visit, shape=(None,)),
        Array("counts", lambda belief: belief._used_nodes().counts, shape=(None, None)),
        Array("odds", lambda belief: belief._used_nodes().odds, shape=(None,), finite=False),
        Number("full", lambda belief: int(belief.is_full), least=0),
        Array("drawn", lambda belief: belief._saved_trees(), shape=(None,)),
        Copied("_symbols"),
        Copied("_path"),
        Copied("_nodes", nested=True),
    )

    def __init__(self, alphabet: Alphabet, depth: int, max_nodes: int, max_states: int) -> None:
        self.alphabet, self.depth = alphabet, depth
        self.max_nodes, self.max_states = max_nodes, max_states
        self.layout = kernels.trees.Layout(*alphabet.layout(depth))
        self._new_nodes = kernels.trees.most_new_nodes(self.layout)
        self._path = np.zeros(depth + 1, np.int64)
        #: The number of observed steps, and ln P(o_<t | â_<t).
        self.steps = 0
        self.log_evidence = 0.0
        #: How many drawn trees were cut because they had more than `max_states` states.
        self.cut_draws = 0
        self._nodes = self._new_pool(min(max_nodes, FIRST_NODES))
        self._nodes.memory[kernels.trees.USED] = self.layout.size.size - 1
        self._symbols = np.zeros(depth + FIRST_CYCLES * self.layout.size.size, np.uint8)
        #: The position after the last symbol of the history, which begins with `depth` zeros.
        self._end = depth
        self._last: TreePlan | None = None

    def settings(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        sizes = {name: getattr(self, name) for name in ("depth", "max_nodes", "max_states")}
        return {**self.alphabet.settings(), **sizes}

    # -- memory ------------------------------------------------------------------------------------

    def _new_pool(self, size: int) -> "kernels.trees.Nodes":
        """Return unused nodes."""
        return kernels.trees.Nodes(
            child=np.zeros(size, np.int32),
            visit=np.zeros(size, np.int64),
            n=np.zeros(size, np.int32),
            counts=np.zeros((size, int(self.layout.size[1:].max())), np.int32),
            odds=np.zeros(size),
            memory=np.zeros(2, np.int64),
        )

    def _used_nodes(self) -> "kernels.trees.Nodes":
        """Return the nodes without unused capacity."""
        return _trimmed(self._nodes, self.nodes)

    @property
    def nodes(self) -> int:
        """The number of nodes in memory."""
        return int(self._nodes.memory[kernels.trees.USED])

    @property
    def is_full(self) -> bool:
        """Whether the memory is full: then the trees do not grow any more."""
        return bool(self._nodes.memory[kernels.trees.FULL])

    def _reserve_nodes(self) -> None:
        """Make room for all nodes that the next cycle can add."""
        needed, size = self.nodes + self._new_nodes, self._nodes.child.size
        if needed > size < self.max_nodes and not self.is_full:
            larger = self._new_pool(min(max(2 * size, needed), self.max_nodes))
            for column, full_column in zip(larger, self._nodes, strict=True):
                column[: len(full_column)] = full_column
            self._nodes = larger

    def _write(self, cycle: IntArray) -> None:
        """Write a cycle after the history, for a kernel; the history does not change."""
        end = self._end + cycle.size
        if end > self._symbols.size and self.is_full:  # only the latest context is needed any more
            self._symbols[: self.depth] = self._symbols[self._end - self.depth : self._end]
            self._end, end = self.depth, self.depth + cycle.size
        elif end > self._symbols.size:
            self._symbols = np.concatenate([self._symbols, np.zeros_like(self._symbols)])
        self._symbols[end - cycle.size : end] = cycle

    # -- belief ------------------------------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Learn o = (reward, field, …) after the action. An error changes nothing."""
        cycle = self._read(x, a, o)
        self._reserve_nodes()
        self._write(cycle)
        self.log_evidence += kernels.trees.learn(
            self.layout, self._nodes, self._symbols, self._end, self._path
        )
        self._end += cycle.size
        self.steps += 1

    def _read(self, x: Any, a: Any, o: Any) -> IntArray:
        """Return the symbols of a step; raise an error if it is invalid."""
        if x is not None:
            raise BadSituation(
                f"situation {x!r}: context trees keep the history themselves, pass None"
            )
        return self.alphabet.cycle(a, o)

    def skip(self, x: Any, a: Any) -> None:
        """Raise `BadEvidence`: a lost observation would be missing in the following contexts."""
        raise BadEvidence(
            f"the observation after action {a!r} is missing, but it is part of the next contexts: "
            "if observations can be lost, add a symbol for that to a field"
        )

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(o | âo_<t â_t)."""
        cycle = self._read(x, a, o)
        self._write(cycle)
        p = [self._predict(slot)[cycle[slot]] for slot in range(1, cycle.size)]
        return float(np.log(p).sum())

    def predictive(self, x: Any, a: Any) -> Probabilities:
        """P(o | âo_<t â_t) for every o."""
        action, found = self.alphabet.actions.place(a), {}
        for symbols in self.alphabet.percepts():
            self._write(np.array([action, *symbols]))
            p = 1.0
            for i, k in enumerate(symbols):
                p *= float(self._predict(i + 1)[k])
            found[self.alphabet.observation(symbols)] = p
        return found

    def _predict(self, slot: int) -> FloatArray:
        """Return the probabilities of the symbols of this slot, given those that were written."""
        out = np.empty(self.layout.size[slot])
        kernels.trees.predict(
            self.layout, self._nodes, self._symbols, self._end + slot, slot, self._path, out
        )
        return out

    def sample(self, rng: StreamLike) -> DrawnTrees:
        """Draw trees and leaves from the posterior, and plan."""
        self._last = self.draw(rng)
        self.cut_draws += self._last.limit < self.depth
        return DrawnTrees(self, self._last)

    def draw(self, rng: StreamLike, *, prior_structure: bool = False) -> TreePlan:
        """Draw trees and leaves and plan, without holding them.

        With `prior_structure` the trees are drawn from the prior, and only the leaves from their
        posterior: models that the data of other contexts has not selected.
        """
        state, size = state_of(rng), FIRST_DRAWN
        while True:
            start, trees = state.copy(), self._new_trees(size)
            used = kernels.trees.draw_structure(
                self.layout, self._nodes, self._symbols, prior_structure, trees, start
            )
            if used >= 0:
                break
            size *= 2
        state[:] = start
        limit = self._largest_limit(trees, used)
        kernels.trees.draw_leaves(
            self.layout, self._nodes, self._symbols, trees, used, limit,
            np.empty((3, trees.p.shape[1])), state,
        )  # fmt: skip
        return self._plan(_trimmed(trees, used), limit)

    def _new_trees(self, size: int) -> "kernels.trees.Drawn":
        """Return room for drawn trees with this number of nodes."""
        p = np.zeros((size, self._nodes.counts.shape[1]))
        return kernels.trees.Drawn._make([*np.zeros((5, size), np.int64), p])

    # -- planning ----------------------------------------------------------------------------------

    def _largest_limit(self, trees: "kernels.trees.Drawn", used: int) -> int:
        """Return the longest contexts to which the trees can be cut with at most `max_states`."""
        low, high = 0, self.depth
        if self._close(trees, used, high)[2] >= 0:
            return high
        while high - low > 1:  # `low` fits, `high` does not
            middle = (low + high) // 2
            if self._close(trees, used, middle)[2] >= 0:
                low = middle
            else:
                high = middle
        return low

    def _close(
        self, trees: "kernels.trees.Drawn", used: int, limit: int
    ) -> tuple["kernels.tree_plan.States", int, int]:
        """Return the states of cut trees, their number of nodes and of states; -1 if too many."""
        room = 2 * self.max_states + int(self.layout.size.max())
        states = kernels.tree_plan.States(*(np.empty(room, np.int64) for _ in range(5)))
        nodes, count = kernels.tree_plan.close(
            self.layout, trees, used, limit, states, np.empty(used, np.int64), self.max_states
        )
        return states, nodes, count

    def _plan(self, trees: "kernels.trees.Drawn", limit: int) -> TreePlan:
        """Return the MDP of the trees with its best policy."""
        states, nodes, count = self._close(trees, len(trees.child), limit)
        states, A = _trimmed(states, nodes), int(self.layout.size[0])
        P, r = np.empty((count, A, count)), np.empty((count, A))
        policy, bias = np.empty(count, np.int64), np.empty(count)
        kernels.tree_plan.build_mdp(self.layout, trees, states, nodes, self.alphabet.rewards, P, r)
        gain, _, _ = kernels.average_reward.solve_average_reward(P, r, RESTART, LIMIT, policy, bias)
        return TreePlan(trees, states, P, r, policy, bias, float(gain), limit)

    def last(self) -> DrawnTrees | None:
        """Return the trees that were drawn last, in the current context."""
        return None if self._last is None else DrawnTrees(self, self._last)

    # -- named arrays ------------------------------------------------------------------------------

    def _saved_trees(self) -> FloatArray:
        """Return the trees that were drawn last as numbers; none before the first draw."""
        if self._last is None:
            return np.empty(0)
        trees = self._last.trees
        head = [float(self._last.limit)]
        return np.concatenate([head, trees.child.astype(np.float64), trees.p.ravel()])

    def _check_state(self, new: SimpleNamespace) -> None:
        """Check the saved nodes, and plan for the trees that were drawn last."""
        self._check_nodes(new)
        new._last = None
        if new.drawn.size:
            width = self._nodes.counts.shape[1] + 1
            size, rest = divmod(new.drawn.size - 1, width)
            if rest:
                raise damaged(f"'drawn' has {new.drawn.size} numbers")
            trees = self._new_trees(size)
            trees.child[:] = new.drawn[1 : size + 1]
            trees.p[:] = new.drawn[size + 1 :].reshape(size, width - 1)
            if not (
                kernels.trees.place_nodes(self.layout, trees.child, trees.slot, trees.level)
                and ((trees.p >= 0.0) & (trees.p <= 1.0)).all()
            ):
                raise damaged("'drawn' has no valid trees")
            new._last = self._plan(trees, int(new.drawn[0]))

    def _check_nodes(self, new: SimpleNamespace) -> None:
        """Raise an error unless the kernels can use the saved history and nodes."""
        used, end, width = len(new.child), len(new.symbols), self._nodes.counts.shape[1]
        slot = (np.arange(end) - self.depth) % self.layout.size.size
        if end < self.depth or (new.symbols >= self.layout.size[slot]).any():
            raise damaged("'symbols' are not a history of these actions and percepts")
        n = new.counts.sum(1)
        visit = new.visit[(n == 1) & (new.child == 0)]
        scratch = np.empty((2, used), np.int64)
        if not (
            new.counts.shape == (used, width)
            and len(new.visit) == len(new.odds) == used <= self.max_nodes
            and (new.counts >= 0).all()
            and (new.full or ((visit >= self.depth) & (visit < end)).all())
            and not np.isnan(new.odds).any()
            and kernels.trees.place_nodes(self.layout, new.child, *scratch)
        ):
            raise damaged("the nodes are not those of context trees")
        new._end = end
        new._symbols = np.zeros(max(self._symbols.size, 2 * end), np.uint8)
        new._symbols[:end] = new.symbols
        new._nodes = self._new_pool(min(self.max_nodes, max(FIRST_NODES, 2 * used)))
        for name in ("child", "visit", "counts", "odds"):
            getattr(new._nodes, name)[:used] = getattr(new, name)
        new._nodes.n[:used] = n
        new._nodes.memory[:] = used, new.full

    def __repr__(self) -> str:
        actions = counted(len(self.alphabet.actions), "action")
        fields = counted(len(self.alphabet.fields), "field")
        return (
            f"ContextTreeBelief({actions}, {fields}, depth {self.depth} after {self.steps} steps: "
            f"{self.nodes} nodes)"
        )


def _trimmed(arrays: T, size: int) -> T:
    """Return a copy of a tuple of arrays whose columns have this length; `memory` is unchanged."""
    columns: Any = arrays
    trimmed: T = columns._make(
        array.copy() if name == "memory" else array[:size].copy()
        for name, array in columns._asdict().items()
    )
    return trimmed
