"""The belief over context trees.

    P(T_f) = Π β^leaf (1-β)^internal  P(θ | T) = Π Dirichlet(1/E, …, 1/E)      for each field f
    P(m | âo_<t)                      exact, see `kernels.trees`
    m ~ P(m | âo_<t)                  exact independent draws of trees and leaves

The belief has the history itself. Contexts that reach back before its start read symbol 0 there.
"""

import math
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import BoolArray, FloatArray, IntArray, require_between
from bayescontrol._support.saved import Array, Copied, Fixed, Number, Part, Saved, damaged, declare
from bayescontrol.errors import BadEvidence, BadSituation, counted
from bayescontrol.protocols import PosteriorMeasure, Probabilities, Summary, Unresolved
from bayescontrol.seeding import StreamLike, state_of
from bayescontrol.trees.alphabet import Alphabet
from bayescontrol.trees.drawn import DrawnTrees, TreePlan, largest_limit, solve, trimmed
from bayescontrol.trees.history import COMPARED, History
from bayescontrol.trees.unresolved import DISTANCE, NATS, trials_needed

#: Initial capacities: nodes of the belief and of drawn trees.
FIRST_NODES, FIRST_DRAWN = 1024, 256
#: The largest count of a node.
MOST_STEPS = 2**31 - 1


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
    posterior_measure: ClassVar = PosteriorMeasure("average reward ρ, drawn last", "reward a step")

    saved_fields = declare(
        Fixed("settings", lambda belief: belief.settings()),
        Part("", "history"),
        Number("steps", least=0),
        Number("log_evidence"),
        Array("child", lambda belief: belief._used_nodes().child, shape=(None,)),
        Array("visit", lambda belief: belief._saved_visits(), shape=(None,)),
        Array("counts", lambda belief: belief._used_nodes().counts, shape=(None, None)),
        Array("odds", lambda belief: belief._used_nodes().odds, shape=(None,), finite=False),
        Number("full", lambda belief: int(belief.is_full), least=0),
        Copied("_nodes", nested=True),
        Copied("_memory"),
        Copied("_path"),
        Number("drawn/cut", "cut_draws", least=0),
        Array("drawn", lambda belief: belief._saved_trees(), shape=(None,)),
    )

    def __init__(self, alphabet: Alphabet, depth: int, max_nodes: int, max_states: int) -> None:
        self.alphabet, self.depth = alphabet, depth
        self.max_nodes, self.max_states = max_nodes, max_states
        self.layout = alphabet.layout(depth)
        self._new_nodes = kernels.trees.most_new_nodes(self.layout)
        self.history = History(self.layout.size, depth)
        #: The number of observed steps, and ln P(o_<t | â_<t).
        self.steps = 0
        self.log_evidence = 0.0
        #: How many drawn trees were cut because they had more than `max_states` states.
        self.cut_draws = 0
        self._nodes = self._new_pool(min(max_nodes, FIRST_NODES))
        #: The number of used nodes, and whether the memory is full.
        self._memory = np.array([self.layout.size.size - 1, 0])
        self._path = np.zeros(depth + 1, np.int64)
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
        )

    def _used_nodes(self) -> "kernels.trees.Nodes":
        """Return the nodes without unused capacity."""
        return trimmed(self._nodes, self.nodes)

    def _saved_visits(self) -> IntArray:
        """Return the first visits of the nodes; zeros if they are needed no more."""
        return self._used_nodes().visit * (not self.is_full)

    @property
    def nodes(self) -> int:
        """The number of nodes in memory."""
        return int(self._memory[kernels.trees.USED])

    @property
    def is_full(self) -> bool:
        """Whether the memory is full: then the trees do not grow any more."""
        return bool(self._memory[kernels.trees.FULL])

    def _reserve_nodes(self) -> None:
        """Make room for all nodes that the next cycle can add."""
        needed, size = self.nodes + self._new_nodes, self._nodes.child.size
        if needed > size < self.max_nodes and not self.is_full:
            larger = self._new_pool(min(max(2 * size, needed), self.max_nodes))
            for column, full_column in zip(larger, self._nodes, strict=True):
                column[: len(full_column)] = full_column
            self._nodes = larger

    # -- belief ------------------------------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Learn o = (reward, field, …) after the action. An error changes nothing."""
        cycle, history = self._read(x, a, o), self.history
        if self.steps == MOST_STEPS:
            raise BadEvidence(f"context trees count at most {MOST_STEPS} steps: use a new belief")
        self._reserve_nodes()
        history.write(cycle)
        self.log_evidence += kernels.trees.learn(
            self.layout, self._nodes, self._memory, history.symbols, history.end, self._path
        )
        history.end += len(cycle)
        history.forgets = self.is_full  # first visits are needed no more
        self.steps += 1

    def _read(self, x: Any, a: Any, o: Any) -> list[int]:
        """Return the symbols of a step; raise an error if it is invalid."""
        self._require_no_situation(x)
        return self.alphabet.cycle(a, o)

    def _require_no_situation(self, x: Any) -> None:
        if x is not None:
            raise BadSituation(
                f"situation {x!r}: context trees keep the history themselves, pass None"
            )

    def skip(self, x: Any, a: Any) -> None:
        """Raise `BadEvidence`: a lost observation would be missing in the following contexts."""
        raise BadEvidence(
            f"the observation after action {a!r} is missing, but it is part of the next contexts: "
            "if observations can be lost, add a symbol for that to a field"
        )

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(o | âo_<t â_t)."""
        return float(np.log(self._field_probabilities(self._read(x, a, o))).sum())

    def predictive(self, x: Any, a: Any) -> Probabilities:
        """P(o | âo_<t â_t) for every o."""
        return self.alphabet.probabilities(a, self._field_probabilities)

    def _field_probabilities(self, cycle: list[int]) -> FloatArray:
        """Return the probability of each symbol of a percept after the history and the action."""
        self.history.write(cycle)
        return np.array([self._predict(slot)[cycle[slot]] for slot in range(1, len(cycle))])

    def _predict(self, slot: int) -> FloatArray:
        """Return the probabilities of the symbols of this slot, given those that were written."""
        out, history = np.empty(self.layout.size[slot]), self.history
        kernels.trees.predict(
            self.layout, self._nodes, self._memory, history.symbols, history.end + slot, slot,
            self._path, out,
        )  # fmt: skip
        return out

    def sample(self, rng: StreamLike) -> DrawnTrees:
        """Draw trees and leaves from the posterior, and plan."""
        m = self.draw(rng)
        self._last = m.plan
        self.cut_draws += m.plan.limit < self.depth
        return m

    def draw(self, rng: StreamLike) -> DrawnTrees:
        """Draw as `sample` does, but leave no trace in the belief."""
        state, size, symbols = state_of(rng), FIRST_DRAWN, self.history.symbols
        while True:
            start, trees = state.copy(), self._new_trees(size)
            used = kernels.trees.draw_structure(
                self.layout, self._nodes, self._memory, symbols, trees, start
            )
            if used >= 0:
                break
            size *= 2
        state[:] = start
        limit = largest_limit(self.layout, trees, used, self.max_states)
        kernels.trees.draw_leaves(
            self.layout, self._nodes, symbols, trees, used, limit,
            np.empty((3, trees.p.shape[1])), state,
        )  # fmt: skip
        trees = trimmed(trees, used)
        plan = solve(self.layout, self.alphabet.rewards, trees, limit, self.max_states)
        return DrawnTrees(self.alphabet, self.history, plan)

    def unresolved(self, x: Any, *, nats: float = NATS, distance: float = DISTANCE) -> Unresolved:
        """Return the share of the latest cycles in which some other action is untested.

        See `trees.unresolved`. No modes are listed.
        """
        self._require_no_situation(x)
        require_between("nats", nats, 0.0, math.inf)
        require_between("distance", distance, 0.0, 1.0)
        cycle, history = self.layout.size.size, self.history
        count = min(COMPARED, self.steps)
        found = kernels.trees.count_untested(
            self.layout, self._nodes, self._memory, history.symbols,
            history.end - count * cycle, history.end, *trials_needed(self.steps, nats, distance),
        )  # fmt: skip
        return Unresolved(found / max(count, 1), ())

    def is_unresolved(self, x: Any, a: Any) -> bool:
        """Return whether some action other than a is untested in the present context."""
        self._require_no_situation(x)
        history = self.history
        return kernels.trees.is_untested(
            self.layout, self._nodes, self._memory, history.symbols, history.end,
            self.alphabet.actions.place(a), *trials_needed(self.steps),
        )  # fmt: skip

    def _new_trees(self, size: int) -> "kernels.trees.Drawn":
        """Return room for drawn trees with this number of nodes."""
        p = np.zeros((size, self._nodes.counts.shape[1]))
        return kernels.trees.Drawn._make([*np.zeros((5, size), np.int64), p])

    def last(self) -> DrawnTrees | None:
        """Return the trees that were drawn last, in the current context."""
        return None if self._last is None else DrawnTrees(self.alphabet, self.history, self._last)

    def posterior_summary(self) -> Summary:
        """Return ρ as drawn last and the number of steps."""
        rho = 0.0 if self._last is None else self._last.gain
        return {"rho": {"mean": rho, "count": self.steps}}

    # -- named arrays ------------------------------------------------------------------------------

    def _saved_trees(self) -> FloatArray:
        """Return the trees that were drawn last as numbers; none before the first draw."""
        if self._last is None:
            return np.empty(0)
        trees, limit = self._last.trees, float(self._last.limit)
        return np.concatenate([[limit], trees.child.astype(np.float64), trees.p.ravel()])

    def _check_state(self, new: SimpleNamespace) -> None:
        """Check the saved nodes, and plan for the trees that were drawn last."""
        self._check_nodes(new)
        new._last = None
        if new.drawn.size:
            limit, *rest = new.drawn
            width = self._nodes.counts.shape[1]
            size, surplus = divmod(len(rest), width + 1)
            trees, whole = self._new_trees(size), np.array([limit, *rest[:size]])
            is_whole = (whole == np.rint(whole)) & (whole >= 0) & (whole <= max(size, self.depth))
            if surplus or not is_whole.all():
                raise damaged("'drawn' has no valid trees")
            trees.child[:], trees.p[:] = rest[:size], np.reshape(rest[size:], (size, width))
            if not (
                kernels.trees.place_nodes(self.layout, trees.child, trees.slot, trees.level)
                and limit <= self.depth
                and (trees.p >= 0.0).all()
                and (abs(trees.p.sum(1) - 1.0) < 1e-9)[_used_leaves(trees, limit)].all()
            ):
                raise damaged("'drawn' has no valid trees")
            rewards = self.alphabet.rewards
            new._last = solve(self.layout, rewards, trees, int(limit), self.max_states)

    def _check_nodes(self, new: SimpleNamespace) -> None:
        """Raise an error unless the kernels can use the saved nodes."""
        used, n, size = len(new.child), new.counts.sum(1), self.layout.size.size
        slot, level = np.zeros((2, used), np.int64)
        cycles = min(new.steps, COMPARED) if new.full else new.steps  # in the saved history
        if not (
            new.history.end == self.depth + cycles * size
            and new.counts.shape == (used, self._nodes.counts.shape[1])
            and used <= self.max_nodes
            and len(new.visit) == len(new.odds) == used
            and (new.counts >= 0).all()
            and new.full <= 1
            and not np.isnan(new.odds).any()
            and kernels.trees.place_nodes(self.layout, new.child, slot, level)
            and new.steps <= MOST_STEPS
            and (n[: size - 1] == new.steps).all()
        ):
            raise damaged("the nodes are not those of context trees")
        visit, is_open = new.visit, (new.child == 0) & (level < self.depth)
        is_visit = (visit >= self.depth) & (visit < new.history.end)
        is_visit &= (visit - self.depth) % size == slot
        if not (new.full or (is_visit & (n == 1) | (n == 0))[is_open].all()):
            raise damaged("the nodes are not those of context trees")
        new._nodes = self._new_pool(min(self.max_nodes, max(FIRST_NODES, 2 * used)))
        for name in ("child", "visit", "counts", "odds"):
            getattr(new._nodes, name)[:used] = getattr(new, name)
        new._nodes.n[:used] = n
        new._memory = np.array([used, new.full])
        new.history.forgets = bool(new.full)

    def __repr__(self) -> str:
        actions = counted(len(self.alphabet.actions), "action")
        fields = counted(len(self.alphabet.fields), "field")
        return (
            f"ContextTreeBelief({actions}, {fields}, depth {self.depth} after {self.steps} steps: "
            f"{self.nodes} nodes)"
        )


def _used_leaves(trees: "kernels.trees.Drawn", limit: float) -> BoolArray:
    """Return which nodes are leaves with parameters; nodes below a cut have no slot."""
    leaves: BoolArray = (trees.slot > 0) & (trees.child == 0) & (trees.level - trees.slot <= limit)
    return leaves
