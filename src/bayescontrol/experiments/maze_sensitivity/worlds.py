"""Two of Gymnasium's toy worlds, made to go on for ever: an episode's end leads to the start.

    frozen lake     4 × 4, slippery: the move meant or one of the two across it, 1/3 each; the
                    edge holds; reaching the goal pays 1; from the goal and from a hole the next
                    step, whatever is done, leads to the start and pays nothing
    cliff walk      4 × 12: every step costs 1; into the cliff costs 100 and leads to the start;
                    from the goal the next step leads to the start and costs nothing

Maps, actions and rewards are as published; `docs/experiments.md` names the optima.
"""

from functools import lru_cache
from typing import Final

from bayescontrol.mdp import MDP

_LAKE: Final = ("SFFF", "FHFH", "FFFH", "HFFG")
#: (row, column) added by each action: left, down, right, up.
_LAKE_MOVES: Final = ((0, -1), (1, 0), (0, 1), (-1, 0))
_CLIFF: Final = ("............", "............", "............", "SCCCCCCCCCCG")
#: up, right, down, left.
_CLIFF_MOVES: Final = ((-1, 0), (0, 1), (1, 0), (0, -1))


def _towards(rows: tuple[str, ...], i: int, j: int, move: tuple[int, int]) -> tuple[int, int]:
    """Where a move leads; the edge of the map holds."""
    k, m = i + move[0], j + move[1]
    return min(max(k, 0), len(rows) - 1), min(max(m, 0), len(rows[0]) - 1)


@lru_cache(maxsize=1)
def frozen_lake() -> MDP:
    """The slippery lake, states row by row.

    >>> from bayescontrol.mdp import policy_iteration
    >>> round(policy_iteration(frozen_lake()).gain, 8)
    0.01755506
    """
    table = []
    for x in range(16):
        i, j = divmod(x, 4)
        for a in range(4):
            if _LAKE[i][j] in "HG":
                table.append((x, a, 0, 1.0, 0.0))
                continue
            for way in (a - 1, a, a + 1):
                k, m = _towards(_LAKE, i, j, _LAKE_MOVES[way % 4])
                table.append((x, a, 4 * k + m, 1 / 3, float(_LAKE[k][m] == "G")))
    return MDP.from_transitions(*zip(*table, strict=True), states=16, actions=4)


@lru_cache(maxsize=1)
def cliff_walk() -> MDP:
    """The walk along the cliff, states row by row but for the cliff, which nobody is ever in.

    >>> from bayescontrol.mdp import policy_iteration
    >>> round(policy_iteration(cliff_walk()).gain * 14, 8)  # thirteen steps, and back
    -13.0
    """
    cells = [(i, j) for i, row in enumerate(_CLIFF) for j, c in enumerate(row) if c != "C"]
    place = {cell: x for x, cell in enumerate(cells)}
    start = place[3, 0]
    table = []
    for x, (i, j) in enumerate(cells):
        for a, move in enumerate(_CLIFF_MOVES):
            to = _towards(_CLIFF, i, j, move)
            if _CLIFF[i][j] == "G":
                table.append((x, a, start, 1.0, 0.0))
            elif _CLIFF[to[0]][to[1]] == "C":
                table.append((x, a, start, 1.0, -100.0))
            else:
                table.append((x, a, place[to], 1.0, -1.0))
    return MDP.from_transitions(*zip(*table, strict=True), states=len(cells), actions=4)
