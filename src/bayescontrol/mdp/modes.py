"""A class of MDPs as a class of modes: each hypothesis with its own best policy.

    P(o | m, x, a) = P_m(r, y | x, a)        o numbers the pairs (r, y) that occur in some MDP
    P(a | m, x) uniform on arg max_a Q_m(x, a),   Q_m from the Bellman equations of average reward
    T(x, a, o) = y

The general rule then applies as it stands, in the compiled loop of `TabularModes`. A hypothesis
is a full table of states × actions × pairs (r, y): for classes of a few hundred states.

Grid-worlds that differ in where the goal is, each mode with the best policy for its own.

    mode g     an open grid, the goal in cell g: reaching it pays, then any cell, uniformly
    P(a | g, x) uniform on the moves of largest Q_g(x, a)

The moves are those of `mdp.maze`. Two hypotheses g and h agree on every step except
those that reach g or h, and those that start there. Under its own policy g is reached from
everywhere, so every other mode is refuted in the end.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import BadEvidence, InvalidTable
from bayescontrol.mdp.maze import Maze
from bayescontrol.mdp.planning import Plan, policy_iteration
from bayescontrol.mdp.table import MDP, Step
from bayescontrol.problems.description import ModelKind
from bayescontrol.problems.tabular import Labels, TabularModes


class MDPModes(TabularModes):
    """`TabularModes` out of solved MDPs; situations, actions and observations are numbers.

    >>> from bayescontrol.mdp import chain_mdp
    >>> modes = mdp_modes([chain_mdp(3), chain_mdp(3, pays=1)], prior=[0.9, 0.1])
    >>> modes.steps
    [Step(reward=0.0, state=0), Step(reward=0.0, state=1), Step(reward=0.0, state=2), \
Step(reward=1.0, state=0)]
    >>> modes.number(Step(1.0, 0)), modes.rewards
    (3, array([0., 0., 0., 1.]))
    """

    format_name: ClassVar[str] = "MDPModes"
    model_kind: ClassVar[ModelKind] = TabularModes.model_kind  # logs store the tables only

    def __init__(
        self,
        plans: Sequence[Plan],
        prior: npt.ArrayLike | None = None,
        *,
        start: Hashable | None = None,
        ties: Literal["uniform", "lowest"] = "uniform",
        names: Sequence[str] | None = None,
    ) -> None:
        mdps = [plan.mdp for plan in plans]
        #: The solutions of the problems.
        self.plans = tuple(plans)
        steps, hypothesis = _hypotheses(mdps)
        #: What each observation stands for.
        self.steps = [Step(float(r), mdps[0].states[int(y)]) for r, y in steps]
        super().__init__(
            _policies(plans, ties),
            hypothesis,
            np.broadcast_to(steps[:, 1].astype(np.int64), hypothesis.shape[1:]),
            start=0 if start is None else mdps[0].states.place(start),
            names=names,
            prior=prior,
            labels=Labels(
                tuple(map(str, mdps[0].states)),
                tuple(map(str, mdps[0].actions)),
                tuple(f"reward {step.reward:g}, then {step.state}" for step in self.steps),
            ),
        )
        #: The reward of each observation: a record's are `rewards[record.observations]`.
        self.rewards = steps[:, 0].copy()
        self._numbers = {step: o for o, step in enumerate(self.steps)}

    def number(self, step: Step) -> int:
        """The observation that stands for this reward and next state."""
        try:
            return self._numbers[step]
        except KeyError:
            raise BadEvidence(f"{step} can happen in none of the {len(self)} problems") from None

    def __repr__(self) -> str:
        return "MDP" + super().__repr__().removeprefix("Tabular")


def mdp_modes(
    mdps: Sequence[MDP],
    prior: npt.ArrayLike | None = None,
    *,
    start: Hashable | None = None,
    ties: Literal["uniform", "lowest"] = "uniform",
    names: Sequence[str] | None = None,
) -> MDPModes:
    """The modes of a class of MDPs over the same states and actions.

    Where several actions are best a mode takes any of them with equal probability, or the
    `lowest`. An MDP that is not weakly communicating has no best average: `NotCommunicating`.

    >>> from bayescontrol.mdp import chain_mdp
    >>> modes = mdp_modes([chain_mdp(2), chain_mdp(2, pays=1)])
    >>> modes
    MDPModes(2 modes, 2 situations, 2 actions, 3 observations)
    >>> modes.agent().action_probabilities()
    {0: 0.5, 1: 0.5}
    """
    if not mdps:
        raise InvalidTable("mdp_modes needs at least one MDP, got none")
    first = mdps[0]
    for m, mdp in enumerate(mdps):
        same = mdp.states == first.states and mdp.actions == first.actions
        if not same or (mdp.allowed != first.allowed).any():
            raise InvalidTable(f"MDP {m} has other states or actions than MDP 0: they must agree")
    plans = [policy_iteration(mdp) for mdp in mdps]
    return MDPModes(plans, prior, start=start, ties=ties, names=names)


def _policies(plans: Sequence[Plan], ties: str) -> FloatArray:
    """P(a | m, x): what is best, shared or the first of it."""
    best = np.array([plan.optimal_actions() for plan in plans], np.float64)
    if ties == "uniform":
        return np.asarray(best / best.sum(-1, keepdims=True))
    if ties == "lowest":
        return np.asarray(np.eye(best.shape[-1])[best.argmax(-1)], np.float64)
    raise InvalidTable(f"ties={ties!r}: write 'uniform' or 'lowest'")


def _hypotheses(mdps: Sequence[MDP]) -> tuple[FloatArray, FloatArray]:
    """The distinct (r, y) of all problems, and P_m(r, y | x, a) over them."""
    entries = [np.column_stack([mdp.rewards, mdp.successor]) for mdp in mdps]
    steps, o = np.unique(np.concatenate(entries), axis=0, return_inverse=True)
    numbers = np.split(o.ravel(), np.cumsum([len(e) for e in entries])[:-1])
    X, A = mdps[0].allowed.shape
    hypothesis = np.zeros((len(mdps), X * A, len(steps)))
    for m, mdp in enumerate(mdps):
        pair = np.repeat(np.arange(X * A), mdp.size)
        hypothesis[m, pair, numbers[m]] = mdp.probability
        hypothesis[m, mdp.size == 0, 0] = 1.0  # never taken, and the same for all modes
    return steps, hypothesis.reshape(len(mdps), X, A, len(steps))


def goal_worlds(
    rows: int = 5, columns: int = 5, goals: int | None = None, p: float = 0.9
) -> MDPModes:
    """Open grids that differ in where the goal is: each mode takes the best way to its own.

    One mode for each of the `goal_cells`. The start is the middle of the grid, `p` the
    probability that a move goes where it is meant to.

    >>> modes = goal_worlds(5, 5, goals=4)
    >>> modes
    MDPModes(4 modes, 25 situations, 4 actions, 29 observations)
    >>> modes.names
    ('goal (0, 0)', 'goal (0, 4)', 'goal (4, 0)', 'goal (4, 4)')
    >>> modes.labels.situations[modes.start], modes.labels.actions
    ('(2, 2)', ('up', 'down', 'left', 'right'))
    """
    cells = goal_cells(rows, columns, goals)
    mdps = [
        Maze(
            "\n".join(
                "".join("G" if (i, j) == goal else "." for j in range(columns)) for i in range(rows)
            ),
            p=p,
        ).mdp(named=True)
        for goal in cells
    ]
    return mdp_modes(
        mdps, start=(rows // 2, columns // 2), names=[f"goal {goal}" for goal in cells]
    )


def goal_cells(rows: int, columns: int, goals: int | None = None) -> list[tuple[int, int]]:
    """That many cells far from each other, row by row; all of them by default.

    The corners come first, then whichever cell is farthest, in moves, from those chosen so far.

    >>> goal_cells(5, 5, 5)
    [(0, 0), (0, 4), (2, 2), (4, 0), (4, 4)]
    """
    if rows < 1 or columns < 1 or rows * columns < 2:
        raise InvalidTable(f"rows={rows}, columns={columns}: a grid has at least two cells")
    count = rows * columns if goals is None else goals
    if not 1 <= count <= rows * columns:
        raise InvalidTable(
            f"goals={goals}: from 1 to {rows * columns}, the cells of a {rows} × {columns} grid"
        )
    cells = [(i, j) for i in range(rows) for j in range(columns)]
    if count == len(cells):
        return cells
    corners = dict.fromkeys((i, j) for i in (0, rows - 1) for j in (0, columns - 1))
    chosen = list(corners)[:count]
    while len(chosen) < count:
        chosen.append(max(cells, key=lambda c: min(_moves(c, other) for other in chosen)))
    return sorted(chosen)


def _moves(cell: tuple[int, int], other: tuple[int, int]) -> int:
    return abs(cell[0] - other[0]) + abs(cell[1] - other[1])
