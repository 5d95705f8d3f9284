"""An unknown world with hidden state: the class of all context trees up to a depth.

The trees of all fields predict o_t from the latest symbols of the history. The class contains every
world whose next percept depends on the last few cycles, and its posterior is exact. The prior
favours small trees: a node with m branches is a leaf with probability 1 - 2^-(m-1).
"""

from collections.abc import Hashable, Sequence
from typing import Any

from bayescontrol._arrays import as_integer
from bayescontrol.errors import InvalidTable
from bayescontrol.exploration.agent import Exploration, ExploringRule, Falling, Remedy
from bayescontrol.schedules import Every, Schedule
from bayescontrol.trees.alphabet import Alphabet, Percepts
from bayescontrol.trees.belief import ContextTreeBelief

#: The defaults of an agent.
THREE_STEPS, EXPLORATION = Every(3), Falling(500)


class ContextTrees:
    """Worlds whose percepts depend on a part of the history that context trees can learn.

    `actions` are names or their number. `percepts` maps each field of an observation to its
    symbols, given by names or by their number; the last field is "reward", with the possible
    rewards. An observation is a tuple of the reward and the other fields in their order.

    Each field has a tree, which predicts it from the latest `depth` symbols: the earlier fields of
    the same percept, the action, the previous percept with its reward first, the action before it,
    and so on. Before the first step all symbols are the first of their field.

    The belief has at most `max_nodes` nodes. When the memory is full, the trees stop growing, and
    the belief stays exact for trees of this shape. If drawn trees have more than `max_states`
    states, they are cut to the longest contexts with which they fit; the leaves there are
    drawn from the counts of their contexts. The time to plan grows with the cube of the states.

    Give a field only symbols that can occur: each one makes trees that branch on it less likely.

    >>> problem = ContextTrees(["listen", "left", "right"],
    ...     {"sound": ["none", "left", "right"], "reward": [-100, -1, 10]}, depth=9)
    >>> problem
    ContextTrees(3 actions, sound: 3, reward: 3, depth 9)
    >>> agent = problem.agent()
    >>> agent.observe("listen", (-1, "left"))
    >>> round(agent.belief.log_evidence, 6)  # 2 ln 1/3
    -2.197225
    """

    def __init__(
        self,
        actions: int | Sequence[Hashable],
        percepts: Percepts,
        *,
        depth: int = 12,
        max_nodes: int = 1_000_000,
        max_states: int = 500,
    ) -> None:
        self.alphabet = Alphabet(actions, percepts)
        self.depth = as_integer("depth", depth, 1, InvalidTable, end=1001)
        least = len(self.alphabet.informative)
        self.max_nodes = as_integer("max_nodes", max_nodes, least, InvalidTable, end=2**31)
        self.max_states = as_integer("max_states", max_states, 1, InvalidTable, end=2_001)

    def settings(self) -> dict[str, Any]:
        """Return all constructor arguments as plain values."""
        return self.belief().settings()

    def belief(self) -> ContextTreeBelief:
        """Return the prior belief, with an empty history."""
        return ContextTreeBelief(self.alphabet, self.depth, self.max_nodes, self.max_states)

    def agent(
        self, *, schedule: Schedule = THREE_STEPS, exploration: Exploration | None = EXPLORATION,
        remedy: Remedy | None = None,
    ) -> ExploringRule:  # fmt: skip
        """Return the control rule over trees, with random actions that become ever less frequent.

        A draw takes much longer than a step, because it plans; by default each mode acts for
        three steps. `exploration=None` is the pure rule, which may confirm itself: worlds that look
        simple while the agent does little are then never explored. `remedy=Remedy()` also follows
        models that would act otherwise. The defaults were chosen on other worlds than those in the
        experiments.
        """
        return ExploringRule(
            self.belief(), self.alphabet.actions, schedule=schedule, exploration=exploration,
            remedy=remedy,
        )  # fmt: skip

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {len(ks)}" for name, ks in self.alphabet.fields.items())
        return f"ContextTrees({len(self.alphabet.actions)} actions, {fields}, depth {self.depth})"
