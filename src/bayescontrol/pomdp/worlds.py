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


#: State: the states after turning around and after going forward, P(y) after backing up, and P(z).
_SHUTTLE: Final = {
    "docked, next": (2, 3, {1: 1.0}, {0: 1.0}),
    "docked, last": (2, 3, {1: 1.0}, {1: 1.0}),
    "at last, facing it": (3, 2, {2: 0.4, 6: 0.3, 3: 0.3}, {2: 1.0}),
    "at last, back to it": (2, 7, {1: 0.7, 3: 0.3}, {4: 1.0}),
    "at next, facing it": (5, 4, {4: 0.4, 7: 0.3, 5: 0.3}, {3: 1.0}),
    "at next, back to it": (4, 6, {0: 0.7, 5: 0.3}, {4: 1.0}),
    "space, facing last": (7, 2, {5: 0.8, 6: 0.1, 4: 0.1}, {2: 0.7, 4: 0.3}),
    "space, facing next": (6, 4, {3: 0.8, 7: 0.1, 2: 0.1}, {3: 0.7, 4: 0.3}),
}


def shuttle(discount: float | None = 0.95, *, rewards_observed: bool = True) -> POMDP:
    """Return the docking problem of a shuttle; the arguments are those of `POMDP`.

    "next" is the station that was visited least recently: docking there pays 10. Flying forward
    into a station costs 3. It starts docked at the station visited last.

    >>> shuttle()
    POMDP(8 states, 3 actions, 5 observations, discount 0.95)
    """
    transition, sees, reward = np.zeros((8, 3, 8)), np.zeros((8, 5)), np.zeros((8, 3, 8))
    for x, (turned, forward, backwards, observed) in enumerate(_SHUTTLE.values()):
        transition[x, 0, turned] = transition[x, 1, forward] = 1.0
        transition[x, 2, list(backwards)] = list(backwards.values())
        sees[x, list(observed)] = list(observed.values())
    reward[2, 1, 2] = reward[4, 1, 4] = -3.0
    reward[5, 2, 0] = 10.0
    return POMDP(
        list(_SHUTTLE),
        ["turn around", "go forward", "back up"],
        ["dock, next", "dock, last", "station, last", "station, next", "nothing"],
        transition,
        np.broadcast_to(sees, (3, 8, 5)),
        reward,
        discount=discount,
        start="docked, last",
        rewards_observed=rewards_observed,
    )


#: The steps to the north, east, south and west.
_STEPS: Final = ((-1, 0), (0, 1), (1, 0), (0, -1))
#: A corridor of eleven cells with four alcoves on its south side; the last one is the goal.
_CELLS: Final = (*((0, j) for j in range(11)), *((1, j) for j in (2, 4, 6, 8)))
_GOAL: Final = (1, 8)
#: The probability of each turn, in quarters to the right: of stay, right, around and left.
_TURNS: Final = {
    0: (1.0,), 2: (0.1, 0.7, 0.1, 0.1), 3: (0.1, 0.15, 0.6, 0.15), 4: (0.1, 0.1, 0.1, 0.7),
}  # fmt: skip


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
    transition, sees = np.zeros((60, 5, 60)), np.zeros((60, 21))
    for (cell, heading), x in number.items():
        if cell == _GOAL:
            transition[x] = others / others.sum() if endless else np.eye(60)[x]
            sees[x, 20] = 1.0
            continue
        neighbours = [_neighbour(cell, heading + turn) for turn in range(4)]
        is_open = [neighbour in _CELLS for neighbour in neighbours]
        for turn, p in enumerate((0.8, 0.05, 0.05, 0.05)):
            there = (heading + turn) % 4
            for facing in (heading, there) if turn == 2 else (there, there):
                if is_open[turn]:
                    transition[x, 1, number[neighbours[turn], facing]] += p / 2.0
        transition[x, 1, x] += 1.0 - transition[x, 1].sum()
        for a, turns in _TURNS.items():
            for turn, p in enumerate(turns):
                transition[x, a, number[cell, (heading + turn) % 4]] = p
        if heading == 2 and cell[0] == 0 and is_open[0]:
            sees[x, 15 + cell[1] // 2] = 1.0
        else:
            wall = [0.05 if opening else 0.9 for opening in is_open]
            sees[x, :16] = np.prod(list(product(*((1.0 - p, p) for p in wall))), axis=1)
    walls = ["".join(shown) for shown in product("-F", "-R", "-B", "-L")]
    return POMDP(
        [(*cell, "NESW"[heading]) for cell, heading in states],
        ["stay", "forward", "right", "around", "left"],
        [*walls, *(f"landmark {i}" for i in range(1, 5)), "goal"],
        transition,
        np.broadcast_to(sees, (5, 60, 21)),
        reward=others[:, None, None] * (1.0 - others) * np.ones((5, 1)),
        discount=discount,
        start=others / others.sum(),
        rewards_observed=rewards_observed,
    )


def _neighbour(cell: tuple[int, int], heading: int) -> tuple[int, int]:
    """Return the cell next to this one in direction `heading`, in quarters from north."""
    i, j = _STEPS[heading % 4]
    return cell[0] + i, cell[1] + j
