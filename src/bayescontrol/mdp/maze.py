"""Grid-worlds with one-way membranes, after Mahadevan (1996), as the paper uses them.

    state    a free cell          action    0 up, 1 down, 2 left, 3 right
    with probability p the intended move, or none if it is blocked; with 1 - p a move to one of
    the free adjacent cells, uniformly; if there is none, no move
    reward   1 for passing a membrane, 2.5 for reaching the goal, else 0
    goal     every action leads to a uniformly chosen cell

A cell is free if neither a wall nor the wrong side of a membrane is in between. What the paper
leaves open is a field of `Rules`, with our reading as the default.

A map has one line per row; blanks are ignored:

    .  floor        #  wall        G  goal
    n  top of a cup, and | the cells of that cup below it, in the same column

A cup is a column enclosed by one-way membranes above and on both sides. It is entered through them
and left only downward from its lowest cell. Membranes also separate adjacent cups. All layouts are
ours, because the layout of the paper's figure is not known.
"""

import inspect
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from bayescontrol._arrays import ArrayLike, require_between
from bayescontrol.errors import InvalidTable
from bayescontrol.mdp.table import MDP, MDPEnvironment


def _open(side: int) -> str:
    """Return an open square with the goal in the upper half."""
    rows = [["."] * side for _ in range(side)]
    rows[side // 4][side // 2] = "G"
    return "\n".join(" ".join(row) for row in rows)


#: The map of each named layout.
LAYOUTS: Final[dict[str, str]] = {
    "three-cups": """
. . . . . . .
. . . G . . .
. . . . . . .
. n . n . n .
. | . | . | .
. | . | . | .
. . . . . . .
""",
    "no-cups": _open(7),
    "four-cups": """
. . . . . . . . .
. n . . G . . n .
. | . . . . . | .
. | . . . . . | .
. . . . . . . . .
. n . . . . . n .
. | . . . . . | .
. | . . . . . | .
. . . . . . . . .
""",
    "four-rooms": """
. . . . . # . . . . .
. . . . . # . . . . .
. . . . . . . . . G .
. . . . . # . . . . .
. . . . . # . . . . .
# . # # # # . . . . .
. . . . . # # # . # #
. . . . . # . . . . .
. . . . . # . . . . .
. . . . . . . . . . .
. . . . . # . . . . .
""",
    "corridor": ". . . . . . . . . . . . . . . . . . . G",
    "open-14": _open(14),
    "open-20": _open(20),
}


#: (row, column), counted from the upper left corner.
Cell: TypeAlias = tuple[int, int]

#: The change of (row, column) for each action.
MOVES: dict[str, Cell] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

_ARROWS = "↑↓←→"


@dataclass(frozen=True)
class Rules:
    """The rules of a maze. The defaults are our reading of what the paper leaves open.

    >>> Rules(p=0.8).p
    0.8
    >>> Rules(p=1.2)
    Traceback (most recent call last):
    bayescontrol.errors.InvalidTable: p=1.2: it must be in [0, 1]
    """

    #: The probability of the intended move.
    p: float = 0.9
    #: Whether a slip can also lead to the intended cell.
    slip_as_intended: bool = True
    #: Whether a blocked move stays in its cell; otherwise it becomes a slip.
    blocked_stays: bool = True
    #: The reward for passing a membrane, and whether passing it by a slip is rewarded.
    membrane_reward: float = 1.0
    slips_pay: bool = True
    #: Whether a cup can be entered from below, and whether that earns the membrane reward.
    enter_from_below: bool = True
    below_pays: bool = False
    #: Whether the agent can climb to the cell above within the same cup.
    climb: bool = True
    #: The reward for reaching the goal, and the reward of every other step.
    goal_reward: float = 2.5
    step_reward: float = 0.0
    #: Whether the step that reaches the goal also resets; otherwise the next step does.
    reset_at_once: bool = False
    #: Whether the reset can lead to a goal, and whether that is rewarded.
    reset_to_goal: bool = True
    reset_pays: bool = False

    def __post_init__(self) -> None:
        require_between("p", self.p, 0, 1, error=InvalidTable)
        for name, value in asdict(self).items():
            if name.endswith("reward"):
                require_between(name, value, -np.inf, np.inf, ends="()", error=InvalidTable)


_Parameter, _RULES = inspect.Parameter, inspect.signature(Rules).parameters.values()


class Maze:
    """A grid-world: a map, given as text or by its name in `LAYOUTS`, and its `Rules`.

    States are numbered row by row; `cells[x]` is the (row, column) of state x.

    `layout` is the map, or its name. `rules` are fields of `Rules`, such as `p=0.8`.

    >>> maze = Maze("three-cups")
    >>> maze.mdp()
    MDP(49 states, 4 actions, 817 transitions)
    >>> maze.cells[10], maze.cells.index((1, 3)), maze.goals
    ((1, 3), 10, [10])
    >>> print(Maze('''. n .
    ...               G . .''', p=0.8).render(at=0))
    @ n .
    G . .
    """

    #: The (row, column) step of each action: up, down, left, right.
    moves: ClassVar[tuple[Cell, ...]] = tuple(MOVES.values())
    #: The parameters of `Rules`, by keyword, for `help()`.
    __signature__ = inspect.Signature([
        _Parameter("layout", _Parameter.POSITIONAL_OR_KEYWORD, default="three-cups"),
        *(p.replace(kind=_Parameter.KEYWORD_ONLY) for p in _RULES),
    ])  # fmt: skip

    def __init__(self, layout: str = "three-cups", **rules: Any) -> None:
        self.rules = Rules(**rules)
        text = LAYOUTS.get(layout, layout)
        self.name = layout if layout in LAYOUTS else None
        self.rows = ["".join(line.split()) for line in text.splitlines() if line.strip()]
        self._check(layout)
        #: (row, column) of every state.
        self.cells: list[Cell] = [
            (i, j) for i, row in enumerate(self.rows) for j, c in enumerate(row) if c != "#"
        ]
        self._states = {cell: x for x, cell in enumerate(self.cells)}
        #: The states that are goals.
        self.goals = [x for x, cell in enumerate(self.cells) if self[cell] == "G"]

    def _check(self, layout: str) -> None:
        """Raise `InvalidTable` if the map is not valid."""
        if not self.rows or (len(self.rows) == 1 and not set(self.rows[0]) <= set(".#Gn|")):
            raise InvalidTable(
                f"unknown layout {layout!r}: give a map or one of {', '.join(LAYOUTS)}"
            )
        if len({len(row) for row in self.rows}) != 1:
            lengths = [len(row) for row in self.rows]
            raise InvalidTable(f"the rows of the map have {lengths} cells: they must be equal")
        for i, row in enumerate(self.rows):
            for j, c in enumerate(row):
                if c not in ".#Gn|":
                    raise InvalidTable(f"row {i}, column {j}: {c!r} is not one of . # G n |")
                if c == "|" and (i == 0 or self.rows[i - 1][j] not in "n|"):
                    raise InvalidTable(f"row {i}, column {j}: | must have n or | above it")
        if not set("Gn") & set("".join(self.rows)):
            raise InvalidTable("the map has no rewards: add a goal G or a cup n")

    def __getitem__(self, cell: Cell) -> str:
        """Return the map's character at a cell."""
        return self.rows[cell[0]][cell[1]]

    def passage(self, cell: Cell, move: str) -> tuple[Cell, bool] | None:
        """Return the target of a move and whether it passes a membrane; None if it is blocked.

        >>> maze = Maze("three-cups")
        >>> maze.passage((2, 1), "down"), maze.passage((3, 1), "up")
        (((3, 1), True), None)
        """
        (di, dj), rules = MOVES[move], self.rules
        target = cell[0] + di, cell[1] + dj
        if target not in self._states:
            return None
        from_cup, to_cup = self[cell] in "n|", self[target] in "n|"
        if move == "down" and from_cup and self[target] == "|":
            return target, False
        if move == "up" and to_cup and self[cell] == "|":
            return (target, False) if rules.climb else None
        if from_cup and move != "down":
            return None
        if move == "up" and to_cup:
            return (target, rules.below_pays) if rules.enter_from_below else None
        return target, to_cup

    def membranes(self) -> list[tuple[Cell, Cell]]:
        """Return every rewarded one-way passage as (cell outside, cell inside)."""
        ways = ((cell, self.passage(cell, move)) for cell in self.cells for move in MOVES)
        return [(cell, way[0]) for cell, way in ways if way and way[1]]

    def mdp(self, *, named: bool = False) -> MDP:
        """Return the maze as an MDP.

        States and actions are integers. With `named`, a state is (row, column), and an action is
        "up", "down", "left" or "right".
        """
        transitions: list[tuple[int, int, int, float, float]] = []  # x, a, y, P, r
        reset = self._reset(self.rules.step_reward, 1.0)
        for x, cell in enumerate(self.cells):
            for a, move in enumerate(MOVES):
                outcomes = reset if x in self.goals else self._moves(cell, move)
                transitions.extend((x, a, y, p, r) for y, p, r in outcomes)
        return MDP.from_transitions(
            *zip(*transitions, strict=True),
            states=self.cells if named else len(self.cells),
            actions=list(MOVES) if named else len(MOVES),
        )

    def environment(self, start: int | None = None, *, named: bool = False) -> MDPEnvironment:
        """Return the environment; see `MDP.environment`."""
        return self.mdp(named=named).environment(start)

    def _moves(self, cell: Cell, move: str) -> list[tuple[int, float, float]]:
        """Return (y, P, r) of every outcome of a move from a cell other than the goal."""
        rules = self.rules
        intended = self.passage(cell, move)
        free = [
            way
            for direction in MOVES
            if (way := self.passage(cell, direction))
            and (rules.slip_as_intended or direction != move)
        ]
        # ((cell, whether it passes a membrane), probability, whether passing one is rewarded)
        slips = [(way, 1.0 / len(free), rules.slips_pay) for way in free]
        stays = [((cell, False), 1.0, False)]
        if intended is not None:
            intended_ways = [(intended, 1.0, True)]
        else:
            intended_ways = stays if rules.blocked_stays else slips or stays
        outcomes = []
        for share, ways in ((rules.p, intended_ways), (1.0 - rules.p, slips or stays)):
            for (to, membrane), p, pays in ways:
                outcomes += self._arrive(cell, to, share * p, membrane and pays)
        return outcomes

    def _arrive(self, cell: Cell, to: Cell, p: float, pays: bool) -> list[tuple[int, float, float]]:
        """Return (y, P, r) of a move to `to`; `pays` tells whether it earns the membrane reward.

        It has several outcomes if it reaches the goal and that resets at once.
        """
        reward = self.rules.membrane_reward if pays else self.rules.step_reward
        if to != cell and self[to] == "G":
            reward = self.rules.goal_reward
            if self.rules.reset_at_once:
                return self._reset(reward, p)
        return [(self._states[to], p, reward)]

    def _reset(self, reward: float, p: float) -> list[tuple[int, float, float]]:
        """Return (y, P, r) of a jump to a uniformly chosen cell, with total probability p."""
        rules = self.rules
        targets = [x for x, c in enumerate(self.cells) if rules.reset_to_goal or self[c] != "G"]
        if not targets:
            raise InvalidTable("reset_to_goal=False needs a cell that is not a goal")
        goal_bonus = rules.goal_reward if rules.reset_pays else 0.0
        return [(x, p / len(targets), reward + goal_bonus * (x in self.goals)) for x in targets]

    def render(self, policy: ArrayLike | None = None, *, at: int | None = None) -> str:
        """Return the map as text, with arrows for a policy and @ at state `at`."""
        rows = [list(row) for row in self.rows]
        if policy is not None:
            for (i, j), a in zip(self.cells, np.asarray(policy, np.int64), strict=True):
                if rows[i][j] != "G":
                    rows[i][j] = _ARROWS[a]
        if at is not None:
            i, j = self.cells[at]
            rows[i][j] = "@"
        return "\n".join(" ".join(row) for row in rows)

    def __repr__(self) -> str:
        rules, default = asdict(self.rules), asdict(Rules())
        changed = [f"{name}={rules[name]!r}" for name in rules if rules[name] != default[name]]
        size = f"{len(self.rows)} × {len(self.rows[0])}"
        return f"Maze({', '.join([repr(self.name or 'a map of ' + size), *changed])})"
