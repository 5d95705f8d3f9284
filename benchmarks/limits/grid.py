"""Tables of the map `three-cups` for the C programs.

In C the goal pays on leaving, in the library on arrival; the time per step does not depend on it.
"""

from typing import Any

import numpy as np

CUPS = {(r, c) for c in (1, 3, 5) for r in (3, 4, 5)}
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left
GOAL = 7 * 1 + 3


def build() -> tuple[Any, Any, Any, Any]:
    """Neighbours [x, a], rewards [x, a], the number of free actions [x], and these actions."""
    neighbour = np.zeros((49, 4), np.int32)
    reward = np.zeros((49, 4))
    count = np.zeros(49, np.int32)
    actions = np.zeros((49, 4), np.int32)
    for r in range(7):
        for c in range(7):
            x, free = 7 * r + c, []
            for a, (dr, dc) in enumerate(MOVES):
                y = (r + dr, c + dc)
                inside, enters = (r, c) in CUPS, y in CUPS
                outside = not (0 <= y[0] < 7 and 0 <= y[1] < 7)
                wall = inside and not (enters and y[1] == c) and not (r == 5 and a == 2)
                if outside or wall:
                    neighbour[x, a] = x
                    continue
                neighbour[x, a] = 7 * y[0] + y[1]
                free.append(a)
                if enters and not inside and a != 0:
                    reward[x, a] = 1.0
            count[x] = len(free)
            actions[x, : len(free)] = free
    return neighbour, reward, count, actions
