"""Three problems of the literature, as tables.

    tiger      behind one of two doors is a tiger; listening costs 1 and is right with probability
               .85 (Cassandra, Kaelbling and Littman 1994)
    shuttle    carry goods between two space stations, and dock backwards (Chrisman 1992)
    hallway    find a goal in a corridor with alcoves, with noisy moves and wall sensors (Littman,
               Cassandra and Kaelbling 1995)

All are endless: what ends an episode in the literature leads back to the start.
"""

from itertools import product
from typing import Final

import numpy as np

from bayescontrol.pomdp.model import POMDP


def tiger(
    discount: float | None = 0.95, *, accuracy: float = 0.85, rewards_observed: bool = True
) -> POMDP:
    """Return the tiger problem; `accuracy` is the probability that listening is right.

    The other arguments are those of `POMDP`.

    >>> tiger()
    POMDP(2 states, 3 actions, 2 observations, discount 0.95)
    """
    transition = np.full((2, 3, 2), 0.5)
    transition[:, 0] = np.eye(2)
    observation = np.full((3, 2, 2), 0.5)
    observation[0] = [[accuracy, 1.0 - accuracy], [1.0 - accuracy, accuracy]]
    return POMDP(
        ["tiger left", "tiger right"],
        ["listen", "open left", "open right"],
        ["growl left", "growl right"],
        transition,
        observation,
        reward=[[-1, -100, 10], [-1, 10, -100]],
        discount=discount,
        rewards_observed=rewards_observed,
    )


#: Where the shuttle is, and what it faces: the station visited last, or the one to be visited.
_SHUTTLE: Final = (
    "docked, next", "docked, last", "at last, facing it", "at last, back to it",
    "at next, facing it", "at next, back to it", "space, facing last", "space, facing next",
)  # fmt: skip


def shuttle(discount: float | None = 0.95, *, rewards_observed: bool = True) -> POMDP:
    """Return the docking problem of a shuttle; the arguments are those of `POMDP`.

    "next" is the station that was visited least recently: docking there pays 10. Flying forward
    into a station costs 3. It starts docked at the station visited last.

    >>> shuttle()
    POMDP(8 states, 3 actions, 5 observations, discount 0.95)
    """
    x = {name: i for i, name in enumerate(_SHUTTLE)}
    transition = np.zeros((8, 3, 8))
    moves = {  # turn around, go forward
        "docked, next": ("at last, facing it", "at last, back to it"),
        "docked, last": ("at last, facing it", "at last, back to it"),
        "at last, facing it": ("at last, back to it", "at last, facing it"),
        "at last, back to it": ("at last, facing it", "space, facing next"),
        "at next, facing it": ("at next, back to it", "at next, facing it"),
        "at next, back to it": ("at next, facing it", "space, facing last"),
        "space, facing last": ("space, facing next", "at last, facing it"),
        "space, facing next": ("space, facing last", "at next, facing it"),
    }
    backwards = {
        "docked, next": {"docked, last": 1.0},
        "docked, last": {"docked, last": 1.0},
        "at last, facing it": {
            "at last, facing it": 0.4, "space, facing last": 0.3, "at last, back to it": 0.3,
        },
        "at last, back to it": {"docked, last": 0.7, "at last, back to it": 0.3},
        "at next, facing it": {
            "at next, facing it": 0.4, "space, facing next": 0.3, "at next, back to it": 0.3,
        },
        "at next, back to it": {"docked, next": 0.7, "at next, back to it": 0.3},
        "space, facing last": {
            "at next, back to it": 0.8, "space, facing last": 0.1, "at next, facing it": 0.1,
        },
        "space, facing next": {
            "at last, back to it": 0.8, "space, facing next": 0.1, "at last, facing it": 0.1,
        },
    }  # fmt: skip
    for name, (turned, forward) in moves.items():
        transition[x[name], 0, x[turned]] = transition[x[name], 1, x[forward]] = 1.0
        for y, p in backwards[name].items():
            transition[x[name], 2, x[y]] = p
    sees = np.zeros((8, 5))
    sees[[0, 1, 2, 3, 4, 5], [0, 1, 2, 4, 3, 4]] = 1.0
    sees[6, [2, 4]] = sees[7, [3, 4]] = 0.7, 0.3
    reward = np.zeros((8, 3, 8))
    for name in ("at last, facing it", "at next, facing it"):
        reward[x[name], 1, x[name]] = -3.0
    reward[x["at next, back to it"], 2, x["docked, next"]] = 10.0
    return POMDP(
        _SHUTTLE,
        ["turn around", "go forward", "back up"],
        ["dock, next", "dock, last", "station, last", "station, next", "nothing"],
        transition,
        np.broadcast_to(sees, (3, 8, 5)),
        reward,
        discount=discount,
        start="docked, last",
        rewards_observed=rewards_observed,
    )


_NORTH, _EAST, _SOUTH, _WEST = range(4)
_STEPS: Final = ((-1, 0), (0, 1), (1, 0), (0, -1))
#: A corridor of eleven cells with four alcoves on its south side; the last one is the goal.
_CELLS: Final = (*((0, j) for j in range(11)), *((1, j) for j in (2, 4, 6, 8)))
_GOAL: Final = (1, 8)
#: The probability of each turn, in quarters to the right, by action.
_TURNS: Final = {"right": (0.1, 0.7, 0.1, 0.1), "around": (0.1, 0.15, 0.6, 0.15),
                 "left": (0.1, 0.1, 0.1, 0.7)}  # fmt: skip


def hallway(
    discount: float | None = 0.95, *, endless: bool = True, rewards_observed: bool = True
) -> POMDP:
    """Return the navigation problem Hallway; the other arguments are those of `POMDP`.

    A state is (row, column, heading), with headings "NESW". A move goes forward with probability
    .8, to each side and back with .05, and fails with .05 or if a wall is there. The robot then
    heads where it went, and after a move back as often as before. It sees each wall with
    probability .9, a wall that is not there with .05, and a landmark in front of each alcove if it
    heads south. Arriving at the goal pays 1. The next step leads to any other state; with
    `endless=False` the robot stays at the goal, for comparison with published rewards of an
    episode.

    >>> hallway()
    POMDP(60 states, 5 actions, 21 observations, discount 0.95)
    """
    states = [(cell, heading) for cell in _CELLS for heading in range(4)]
    number = {state: x for x, state in enumerate(states)}
    others = np.array([cell != _GOAL for cell, _ in states], np.float64)
    actions = ["stay", "forward", *_TURNS]
    transition = np.zeros((60, 5, 60))
    sees = np.zeros((60, 21))
    for (cell, heading), x in number.items():
        openings = [_neighbour(cell, heading + turn) in _CELLS for turn in range(4)]
        if cell == _GOAL:
            transition[x] = others / others.sum() if endless else np.eye(60)[x]
            sees[x, 20] = 1.0
            continue
        transition[x, 0, x] = 1.0
        for turn, p in enumerate((0.8, 0.05, 0.05, 0.05)):
            if openings[turn]:
                there, ahead = _neighbour(cell, heading + turn), (heading + turn) % 4
                for facing in (heading, ahead) if turn == 2 else (ahead, ahead):
                    transition[x, 1, number[there, facing]] += p / 2.0
        transition[x, 1, x] += 1.0 - transition[x, 1].sum()
        for a, turns in enumerate(_TURNS.values(), 2):
            for turn, p in enumerate(turns):
                transition[x, a, number[cell, (heading + turn) % 4]] = p
        if heading == _SOUTH and cell[0] == 0 and openings[0]:
            sees[x, 16 + (cell[1] - 2) // 2] = 1.0
        else:
            for z, walls in enumerate(product((0, 1), repeat=4)):
                chances = [(0.95, 0.05)[w] if is_open else (0.1, 0.9)[w]
                           for w, is_open in zip(walls, openings, strict=True)]  # fmt: skip
                sees[x, z] = np.prod(chances)
    walls = ["".join(w) for w in product("-F", "-R", "-B", "-L")]
    return POMDP(
        [(*cell, "NESW"[heading]) for cell, heading in states],
        actions,
        [*walls, *(f"landmark {i}" for i in range(1, 5)), "goal"],
        transition,
        np.broadcast_to(sees, (5, 60, 21)),
        reward=np.broadcast_to(1.0 - others, (60, 5, 60)) * others[:, None, None],
        discount=discount,
        start=others / others.sum(),
        rewards_observed=rewards_observed,
    )


def _neighbour(cell: tuple[int, int], heading: int) -> tuple[int, int]:
    """Return the cell next to this one in direction `heading`, in quarters from north."""
    i, j = _STEPS[heading % 4]
    return cell[0] + i, cell[1] + j
