"""Maps of grid-worlds, by name.

    .  floor        #  wall        G  goal
    n  top of a cup, and | the cells of that cup below it, in the same column
    a line is a row, blanks do not count

A cup is a column closed by one-way membranes above and on both sides: it is entered through
them from outside, and left only downward from its lowest cell. Two cups side by side are kept
apart by their membranes. `three-cups` is ours, as are all the others: the layout of the paper's
own figure is not known.
"""

from typing import Final


def _open(side: int) -> str:
    """A square of floor, the goal in the upper half."""
    rows = [["."] * side for _ in range(side)]
    rows[side // 4][side // 2] = "G"
    return "\n".join(" ".join(row) for row in rows)


#: name -> map
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
    "no-cups": """
. . . . . . .
. . . G . . .
. . . . . . .
. . . . . . .
. . . . . . .
. . . . . . .
. . . . . . .
""",
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
