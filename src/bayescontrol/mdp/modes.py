"""Operation modes from a set of MDPs: each hypothesis is paired with its optimal policy.

    P(o | m, x, a) = P_m(r, y | x, a)        o numbers the pairs (r, y) of all MDPs
    P(a | m, x) uniform on arg max_a Q_m(x, a),   Q_m from the average-reward Bellman equations
    T(x, a, o) = y

A hypothesis is a dense table of states × actions × pairs (r, y), for up to a few hundred states.

`goal_worlds` is an example: open grids that differ in the cell g of the goal. Two hypotheses g and
h differ only in steps that reach or leave g or h. The policy of mode g reaches g from everywhere,
so every other mode is refuted in the end.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol._support.description import ModelKind
from bayescontrol.errors import BadEvidence, InvalidTable
from bayescontrol.finite.tabular import Labels, TabularModes
from bayescontrol.mdp.maze import Maze
from bayescontrol.mdp.planning import policy_iteration
from bayescontrol.mdp.table import MDP, Step


class MDPModes(TabularModes):
    """One mode for each MDP; situations, actions and observations are integers.

    All MDPs must have the same states and actions. Among several best actions a mode chooses
    uniformly. Raises `NotCommunicating` for an MDP that is not weakly communicating.

    >>> from bayescontrol.mdp import chain_mdp
    >>> modes = MDPModes([chain_mdp(3), chain_mdp(3, pays=1)], prior=[0.9, 0.1])
    >>> modes.steps
    [Step(reward=0.0, state=0), Step(reward=0.0, state=1), Step(reward=0.0, state=2), \
Step(reward=1.0, state=0)]
    >>> modes.number(Step(1.0, 0)), modes.rewards
    (3, array([0., 0., 0., 1.]))
    >>> modes.agent().action_probabilities()
    {0: 0.9, 1: 0.1}
    """

    format_name: ClassVar[str] = "MDPModes"
    fused_loop = staticmethod(TabularModes.fused_loop)
    model_kind: ClassVar[ModelKind] = TabularModes.model_kind  # logs store the tables only

    def __init__(
        self,
        mdps: Sequence[MDP],
        prior: ArrayLike | None = None,
        *,
        start: Hashable | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        if not mdps:
            raise InvalidTable("MDPModes needs at least one MDP")
        first = mdps[0]
        for m, mdp in enumerate(mdps):
            same_names = mdp.states == first.states and mdp.actions == first.actions
            if not same_names or (mdp.allowed != first.allowed).any():
                raise InvalidTable(
                    f"MDP {m} and MDP 0 differ in their states, their actions or the actions that "
                    "are allowed: all MDPs of a class need the same"
                )
        #: The solutions of the problems.
        self.plans = tuple(policy_iteration(mdp) for mdp in mdps)
        best = np.array([plan.optimal_actions() for plan in self.plans], np.float64)
        steps, hypothesis = _hypotheses(mdps)
        #: The (reward, next state) of each observation.
        self.steps = [Step(float(r), first.states[int(y)]) for r, y in steps]
        super().__init__(
            best / best.sum(-1, keepdims=True),
            hypothesis,
            np.broadcast_to(steps[:, 1].astype(np.int64), hypothesis.shape[1:]),
            start=0 if start is None else first.states.place(start),
            names=names,
            prior=prior,
            labels=Labels(
                tuple(map(str, first.states)),
                tuple(map(str, first.actions)),
                tuple(f"reward {step.reward:g}, then {step.state}" for step in self.steps),
            ),
        )
        #: The reward of each observation: `rewards[record.observations]` are those of a record.
        self.rewards = steps[:, 0].copy()
        self._numbers = {step: o for o, step in enumerate(self.steps)}

    def number(self, step: Step) -> int:
        """Return the observation that encodes this reward and next state."""
        try:
            return self._numbers[step]
        except KeyError:
            raise BadEvidence(f"{step} is impossible in all {len(self)} MDPs") from None

    def __repr__(self) -> str:
        return "MDP" + super().__repr__().removeprefix("Tabular")


def _hypotheses(mdps: Sequence[MDP]) -> tuple[FloatArray, FloatArray]:
    """Return the distinct (r, y) of all MDPs as rows, and P_m(r, y | x, a) as [m, x, a, row]."""
    entries = [np.column_stack([mdp.rewards, mdp.successor]) for mdp in mdps]
    steps, row_of_entry = np.unique(np.concatenate(entries), axis=0, return_inverse=True)
    rows = np.split(row_of_entry.ravel(), np.cumsum([len(e) for e in entries])[:-1])
    X, A = mdps[0].allowed.shape
    hypothesis = np.zeros((len(mdps), X * A, len(steps)))
    for m, mdp in enumerate(mdps):
        pair = np.repeat(np.arange(X * A), mdp.size)
        hypothesis[m, pair, rows[m]] = mdp.probability
        hypothesis[m, mdp.size == 0, 0] = 1.0  # unavailable actions: equal in all modes
    return steps, hypothesis.reshape(len(mdps), X, A, len(steps))


def goal_worlds(
    rows: int = 5, columns: int = 5, goals: int | None = None, p: float = 0.9
) -> MDPModes:
    """Return open grids with different goals; each mode takes the best way to its goal.

    There is one mode for each of the `goal_cells`. The start is the middle of the grid, and `p`
    is the probability that a move goes in the intended direction.

    >>> modes = goal_worlds(5, 5, goals=4)
    >>> modes
    MDPModes(4 modes, 25 situations, 4 actions, 29 observations)
    >>> modes.names
    ('goal (0, 0)', 'goal (0, 4)', 'goal (4, 0)', 'goal (4, 4)')
    >>> modes.labels.situations[modes.start], modes.labels.actions
    ('(2, 2)', ('up', 'down', 'left', 'right'))
    """
    cells = goal_cells(rows, columns, goals)
    mdps = []
    for goal in cells:
        grid = np.full((rows, columns), ".")
        grid[goal] = "G"
        mdps.append(Maze("\n".join(map("".join, grid)), p=p).mdp(named=True))
    return MDPModes(mdps, start=(rows // 2, columns // 2), names=[f"goal {goal}" for goal in cells])


def goal_cells(rows: int, columns: int, goals: int | None = None) -> list[tuple[int, int]]:
    """Return `goals` cells that are far apart, by default all cells, sorted row by row.

    The corners are chosen first, then repeatedly the cell that is farthest from those chosen.
    """
    if rows < 1 or columns < 1 or rows * columns < 2:
        raise InvalidTable(f"rows={rows}, columns={columns}: a grid needs at least two cells")
    count = rows * columns if goals is None else goals
    if not 1 <= count <= rows * columns:
        raise InvalidTable(f"goals={goals}: a {rows}×{columns} grid has from 1 to {rows * columns}")
    cells = [(i, j) for i in range(rows) for j in range(columns)]
    if count == len(cells):
        return cells
    corners = dict.fromkeys((i, j) for i in (0, rows - 1) for j in (0, columns - 1))
    chosen = list(corners)[:count]

    def moves_to_chosen(cell: tuple[int, int]) -> int:
        """Return the number of moves from a cell to the nearest chosen one."""
        return min(abs(cell[0] - i) + abs(cell[1] - j) for i, j in chosen)

    while len(chosen) < count:
        chosen.append(max(cells, key=moves_to_chosen))
    return sorted(chosen)
