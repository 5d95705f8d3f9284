"""Grid-worlds that differ in where the goal is, each mode with the best policy for its own.

    mode g     an open grid, the goal in cell g: reaching it pays, then any cell, uniformly
    P(a | g, x) uniform on the moves of largest Q_g(x, a)

The moves are those of `mdp.maze`. Two hypotheses g and h agree on every step except
those that reach g or h, and those that start there. Under its own policy g is reached from
everywhere, so every other mode is refuted in the end.
"""

from bayescontrol.errors import InvalidTable
from bayescontrol.mdp.maze import Maze
from bayescontrol.mdp.modes import MDPModes, mdp_modes


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
