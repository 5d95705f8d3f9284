"""Maps of mazes: the content of a cell, and the behaviour of an agent there.

shade     the share of the steps spent in a cell
arrow     the most frequent action
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.errors import MissingCapability, UnknownState
from bayescontrol.plot import figures
from bayescontrol.plot.chart import Colour, Heat, Panel, Region, Strokes, Word, arrows
from bayescontrol.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bayescontrol.mdp import Maze

#: Full colour from this share of the steps on; the power makes small shares visible.
_HIGH: Final = 0.25
_POWER: Final = 0.5
#: The length of an arrow in a cell, and of one through a membrane, in cells.
_LONG: Final = 0.56
_SHORT: Final = 0.5


def maze(maze: "Maze", record: Record, ax: "Axes | None" = None) -> figures.Plot:
    """Draw the share of the steps that a run spent in each cell, and the most frequent action.

    The state before the first step is not in the record, so its action is not counted.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import GibbsMDP, Maze
    >>> world = Maze("three-cups")
    >>> record = interact(GibbsMDP(4, 0).agent(), world.environment(0), 2000, seed=0)
    >>> maze(world, record)
    Plot('Share of 1,999 steps and most frequent action')
    """
    if "state" not in (record.observations.dtype.names or ()):
        raise MissingCapability("the record is not of a maze: its observations have no `state`")
    states, actions = record.observations["state"][:-1], record.actions[1:]
    visits = np.zeros((len(maze.cells), len(maze.moves)))
    if states.size == 0:
        raise MissingCapability("a map needs a record of at least two steps")
    if states.dtype.kind != "i" or actions.dtype.kind != "i":
        raise MissingCapability(
            "a map needs numbered states and actions: use maze.environment() without named=True"
        )
    if states.max() >= len(maze.cells) or actions.max() >= len(maze.moves):
        raise UnknownState(f"the record has states that {maze!r} does not have: pass its maze")
    np.add.at(visits, (states, actions), 1 / len(states))
    title = f"Share of {len(states):,} steps and most frequent action"
    return figures.draw(behaviour(maze, visits, title, ()), ax)


def membranes(maze: "Maze", *, in_legend: bool = False) -> Strokes:
    """Return lines along the borders that can be crossed in one direction only."""
    x, y = [], []
    for cell, neighbour in maze.membranes():
        # Cell (k, m) is right of or below cell (i, j): their border leads from the upper left
        # corner of (k, m) to the lower right corner of (i, j).
        (i, j), (k, m) = sorted((cell, neighbour))
        x += [m, j + 1, np.nan]
        y += [-k, -i - 1, np.nan]
    ends = np.array(x), np.array(y)
    return Strokes("membrane", *ends, "vermillion", width=1.8, in_legend=in_legend)


def _map(maze: "Maze", shares: FloatArray, title: str, notes: Sequence[str], **marks: Any) -> Panel:
    """Return a panel with the cells, shaded by their shares of the steps, and the goals."""
    grid = np.full((len(maze.rows), len(maze.rows[0])), np.nan)
    grid[tuple(np.transpose(maze.cells))] = shares
    heat = Heat("share of the steps", grid, _HIGH, power=_POWER)
    goals = [Word("G", j + 0.5, -i - 0.5) for i, j in (maze.cells[x] for x in maze.goals)]
    return Panel(title, "column", "row", [], heats=[heat], words=goals, notes=notes, **marks)


def _squares(label: str, cells: Sequence[tuple[int, int]], colour: Colour) -> list[Region]:
    """Return a shaded square for each cell (row, column)."""
    corners = np.array([[0, 0], [0, 1], [1, 1], [1, 0]])
    squares = ((np.array(cell) + corners).T for cell in cells)
    return [Region(label, columns, -rows, colour, shade=0.3) for rows, columns in squares]


def setup(maze: "Maze", title: str, notes: Sequence[str]) -> Panel:
    """Return a map of the goal, the cups, and the direction of their membranes."""
    cups = [cell for cell in maze.cells if maze[cell] in "n|"]
    regions = _squares("goal: +2.5", [maze.cells[x] for x in maze.goals], "green")
    regions += _squares("cup", cups, "sky")
    # For each membrane the cells outside and inside, each (row, column).
    through = np.array(maze.membranes(), np.float64).reshape(-1, 2, 2)
    rows, columns = through.mean(axis=1).T + 0.5
    down, right = (through[:, 1] - through[:, 0]).T * _SHORT
    crossings = arrows(  # rows count downwards, and y upwards
        "direction: +1", columns, -rows, right, -down,
        colour="vermillion", width=1.3, in_legend=True,
    )  # fmt: skip
    strokes = [membranes(maze, in_legend=True), crossings] if len(through) else []
    marks: Any = {"regions": regions, "strokes": strokes, "legend": "below"}
    return _map(maze, np.zeros(len(maze.cells)), title, notes, **marks)


def behaviour(maze: "Maze", visits: FloatArray, title: str, notes: Sequence[str]) -> Panel:
    """Return a map of the share of the steps in each cell and of the most frequent action.

    visits[x, a] is the share of the steps in state x with action a.
    """
    visited = np.flatnonzero(visits.sum(axis=1) > 0)
    visited = visited[~np.isin(visited, maze.goals)]  # at the goal the action has no effect
    rows, columns = np.array([maze.cells[x] for x in visited], np.float64).reshape(-1, 2).T
    down, right = np.array(maze.moves, np.float64)[visits[visited].argmax(axis=1)].T * _LONG
    # Rows count downwards and y upwards: the centre of a cell is (column + 1/2, -row - 1/2).
    actions = arrows("most frequent action", columns + 0.5, -rows - 0.5, right, -down, width=1.1)
    return _map(maze, visits.sum(axis=1), title, notes, strokes=[membranes(maze), actions])
