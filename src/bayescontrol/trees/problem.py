"""An unknown world with hidden state: the class of all context trees up to a depth.

The trees of all fields predict o_t from the latest symbols of the history. The class contains every
world whose next percept depends on the last few cycles, and its posterior is exact. The prior
favours small trees: a node with m branches is a leaf with probability 1 - 2^-(m-1).
"""

from collections.abc import Hashable, Mapping, Sequence
from math import prod
from types import EllipsisType
from typing import Any, ClassVar

from bayescontrol._arrays import as_integer
from bayescontrol._support.description import ModelKind, SettingDoc, SizeLimit
from bayescontrol._support.temperature import with_temperature
from bayescontrol.errors import InvalidTable
from bayescontrol.exploration.agent import (
    Exploration,
    ExploringRule,
    Falling,
    Remedy,
    require_choices,
    restored_choice,
    stored_choice,
)
from bayescontrol.schedules import Every, Schedule
from bayescontrol.trees.alphabet import Alphabet, Percepts
from bayescontrol.trees.belief import ContextTreeBelief

#: The defaults of an agent.
THREE_STEPS, EXPLORATION, REMEDY = Every(3), Falling(500), Remedy()


def _size_of_table(sizes: Mapping[str, int]) -> int:
    """Return the number of pairs of an action and a percept."""
    fields = [size for setting, size in sizes.items() if setting.startswith("percepts.")]
    return max(sizes["actions"], 1) * prod(max(size, 1) for size in fields)


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

    `exploration` and `remedy` are those of its agents, see `ExploringRule`. A draw of trees leaves
    out what the agent never tries: without them it may confirm itself, since a world looks simple
    while the agent does little. The defaults were chosen on other worlds than those in the
    experiments, see `benchmarks/exploration.py`.

    >>> problem = ContextTrees(["listen", "left", "right"],
    ...     {"sound": ["none", "left", "right"], "reward": [-100, -1, 10]}, depth=9)
    >>> problem
    ContextTrees(3 actions, sound: 3, reward: 3, depth 9)
    >>> agent = problem.agent()
    >>> agent.observe("listen", (-1, "left"))
    >>> round(agent.belief.log_evidence, 6)  # 2 ln 1/3
    -2.197225
    """

    model_kind: ClassVar[ModelKind] = ModelKind(
        "context-trees",
        "An unknown world with hidden state: context trees that predict each field of the next "
        "percept from the latest symbols; random actions that become ever less frequent.",
        {
            "actions": SettingDoc("list of names, or their number", "The actions.", largest=256),
            "percepts": SettingDoc(
                '{"dict": [[field, symbols], …]}',
                "The symbols of each field, or their number; the last field is called reward, with "
                "the possible rewards.",
                largest=20,
            ),
            "depth": SettingDoc("whole number", "The longest context. Default: 12.", largest=200),
            "max_nodes": SettingDoc(
                "whole number", "The most nodes in memory. Default: 1,000,000.", largest=1_000_000
            ),
            "max_states": SettingDoc(
                "whole number", "The most states of drawn trees. Default: 500.", largest=500
            ),
            "exploration": SettingDoc(
                '["Falling", steps, power] or null',
                "The probability of a random action at step t = 0, 1, … is "
                'min(1, (steps / (t + 1))^power). Default: ["Falling", 500, 4].',
            ),
            "remedy": SettingDoc(
                '["Remedy", share, steps, chance] or null',
                "With at most this share of the steps, act at random where actions are untested, "
                'with probability chance; steps has no effect. Default: ["Remedy", 0.05, 20, 0.1].',
            ),
        },
        example={
            "actions": ["listen", "left", "right"],
            "percepts": {"dict": [
                ["sound", ["none", "left", "right"]], ["reward", [-100, -1, 10]],
            ]},
            "depth": 6,
        },
        observation=[-1, "left"],
        feedback="the reward and the other fields",
        limits=(SizeLimit("the number of actions times that of percepts", _size_of_table, 10_000),),
    )  # fmt: skip

    def __init__(
        self,
        actions: int | Sequence[Hashable],
        percepts: Percepts,
        *,
        depth: int = 12,
        max_nodes: int = 1_000_000,
        max_states: int = 500,
        exploration: Exploration | Sequence[Any] | None = EXPLORATION,
        remedy: Remedy | Sequence[Any] | None = REMEDY,
    ) -> None:
        self.alphabet = Alphabet(actions, percepts)
        self.depth = as_integer("depth", depth, 1, InvalidTable, end=1001)
        least = len(self.alphabet.informative)
        self.max_nodes = as_integer("max_nodes", max_nodes, least, InvalidTable, end=2**31)
        self.max_states = as_integer("max_states", max_states, 1, InvalidTable, end=2_001)
        self.exploration: Exploration | None = restored_choice(exploration, "exploration")
        self.remedy: Remedy | None = restored_choice(remedy, "remedy")
        require_choices(self.exploration, self.remedy)

    def settings(self) -> dict[str, Any]:
        """Return all constructor arguments as plain values."""
        chosen: dict[str, Any] = {"exploration": self.exploration, "remedy": self.remedy}
        return self.belief().settings() | {n: stored_choice(v, n) for n, v in chosen.items()}

    def belief(self) -> ContextTreeBelief:
        """Return the prior belief, with an empty history."""
        return ContextTreeBelief(self.alphabet, self.depth, self.max_nodes, self.max_states)

    def agent(
        self, *, schedule: Schedule = THREE_STEPS, temperature: float = 1.0,
        exploration: Exploration | EllipsisType | None = ...,
        remedy: Remedy | EllipsisType | None = ...,
    ) -> ExploringRule:  # fmt: skip
        """Return the control rule over trees, with the exploration and the remedy of the problem.

        A draw takes much longer than a step, because it plans; by default each mode acts for
        three steps. `exploration` and `remedy` replace those of the problem: with None for both
        it is the pure rule. The draws have no other `temperature` than 1.
        """
        return ExploringRule(
            with_temperature(self.belief(), temperature), self.alphabet.actions, schedule=schedule,
            exploration=self.exploration if exploration is ... else exploration,
            remedy=self.remedy if remedy is ... else remedy,
        )  # fmt: skip

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}: {len(ks)}" for name, ks in self.alphabet.fields.items())
        return f"ContextTrees({len(self.alphabet.actions)} actions, {fields}, depth {self.depth})"
