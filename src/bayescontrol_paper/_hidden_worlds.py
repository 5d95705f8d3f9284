"""Seven worlds with hidden state, on which universal agents were compared (JAIR 40, 2011, 95-142).

They are partially observable decision problems: the agent sees (reward, observation). The paper
describes them in words; where it leaves something open, the function says how we read it. All are
continuing: what ends an episode there puts the world into a new random state here.
"""

from collections.abc import Callable, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bayescontrol.pomdp import POMDP

if TYPE_CHECKING:
    from bayescontrol._arrays import FloatArray

#: The steps of the four moves: up, right, down, left.
MOVES: Final = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}


def maze(
    layout: str, moves: Mapping[str, tuple[int, int]], rewards: tuple[float, float, float],
    walls_seen: bool,
) -> POMDP:  # fmt: skip
    """Return a maze: `.` is a free cell, `!` the goal, anything else a wall.

    `rewards` are those of a move into a free cell, against a wall, and into the goal. Who reaches
    the goal is put into a random free cell. The observation is the pattern of walls around the
    cell if `walls_seen`, otherwise always the same.
    """
    rows = layout.split()
    cell = {(i, j): kind for i, row in enumerate(rows) for j, kind in enumerate(row)}
    free = [place for place, kind in cell.items() if kind == "."]
    kinds = {place: cell.get(place, "#") for place in product(range(-1, 9), range(-1, 9))}
    patterns = [
        tuple(kinds[i + di, j + dj] not in ".!" for di, dj in MOVES.values()) for i, j in free
    ]
    symbols = sorted(set(patterns)) if walls_seen else patterns[:1]
    X, A = len(free), len(moves)
    transition, reward = np.zeros((X, A, X)), np.zeros((X, A))
    observation = np.zeros((A, X, len(symbols)))
    for x, (i, j) in enumerate(free):
        observation[:, x, symbols.index(patterns[x]) if walls_seen else 0] = 1.0
        for a, (di, dj) in enumerate(moves.values()):
            kind = kinds[i + di, j + dj]
            if kind == "!":
                transition[x, a], reward[x, a] = 1.0 / X, rewards[2]
            elif kind == ".":
                transition[x, a, free.index((i + di, j + dj))], reward[x, a] = 1.0, rewards[0]
            else:
                transition[x, a, x], reward[x, a] = 1.0, rewards[1]
    return POMDP(X, list(moves), len(symbols), transition, observation, reward)


def maze_1d() -> POMDP:
    """Four cells in a row; the third from the left pays 1. Nothing is observed."""
    moves = {name: MOVES[name] for name in ("left", "right")}
    return maze("..!.", moves, (0.0, 0.0, 1.0), walls_seen=False)


def cheese() -> POMDP:
    """McCallum's maze: the cheese at the end of the middle one of three corridors pays 10.

    A move costs 1, and 10 against a wall. The walls around the cell are observed.
    """
    return maze("..... .#.#. .#!#.", MOVES, (-1.0, -10.0, 10.0), walls_seen=True)


def grid() -> POMDP:
    """A 4×4 grid whose corner pays 1. Nothing is observed."""
    return maze(".... .... .... ...!", MOVES, (0.0, 0.0, 1.0), walls_seen=False)


def tiger() -> POMDP:
    """Two doors: behind one a tiger (-100), behind the other gold (10); listening costs 1.

    Listening hears the tiger on the right side with probability .85. After a door was opened,
    nothing is heard, and the tiger is placed anew.
    """
    transition = np.full((2, 3, 2), 0.5)
    transition[:, 0] = np.eye(2)
    observation = np.zeros((3, 2, 3))
    observation[0, :, 1:] = [[0.85, 0.15], [0.15, 0.85]]
    observation[1:, :, 0] = 1.0
    reward = [[-1.0, -100.0, 10.0], [-1.0, 10.0, -100.0]]
    names = ["listen", "open left", "open right"]
    return POMDP(
        ["left", "right"], names, ["none", "left", "right"], transition, observation, reward
    )


def extended_tiger() -> POMDP:
    """The tiger, heard while sitting and met while standing; the gold pays 30.

    Standing up costs 1, and so does listening. What is impossible, such as opening a door while
    sitting, costs 10 and changes nothing. After a door was opened the agent sits.
    """
    states = list(product(["left", "right"], ["sits", "stands"]))
    actions, X = ["listen", "open left", "open right", "stand up"], 4
    transition, reward = np.zeros((X, 4, X)), np.full((X, 4), -10.0)
    observation = np.zeros((4, X, 3))
    observation[:, :, 0] = 1.0
    seated = [0, 2]
    for x, (side, posture) in enumerate(states):
        transition[x, :, x] = 1.0
        if posture == "sits":
            reward[x, [0, 3]] = -1.0
            transition[x, 3] = np.eye(X)[x + 1]
            observation[0, x] = [0.0, 0.85, 0.15] if side == "left" else [0.0, 0.15, 0.85]
        else:
            for a, opened in ((1, "left"), (2, "right")):
                reward[x, a] = -100.0 if opened == side else 30.0
                transition[x, a] = 0.5 * np.isin(np.arange(X), seated)
    return POMDP(states, actions, ["none", "left", "right"], transition, observation, reward)


def rock_paper_scissors() -> POMDP:
    """The opponent plays rock again if rock has just won, otherwise a random move.

    The observation is the opponent's move. A win pays 1, a loss -1.
    """
    moves = ["rock", "paper", "scissors"]
    # The state is the opponent's last move, and whether it was a rock that won.
    states = [("rock", True), ("rock", False), ("paper", False), ("scissors", False)]
    transition, reward = np.zeros((4, 3, 4)), np.zeros((4, 3, 4))
    for x, (_, repeats) in enumerate(states):
        for a, y in product(range(3), range(3)):
            next_state = (moves[y], moves[y] == "rock" and moves[a] == "scissors")
            transition[x, a, states.index(next_state)] = float(y == 0) if repeats else 1.0 / 3.0
    for a, (y, (move, _)) in product(range(3), enumerate(states)):
        reward[:, a, y] = (0.0, 1.0, -1.0)[(a - moves.index(move)) % 3]
    observation = np.tile([[move == m for m in moves] for move, _ in states], (3, 1, 1))
    return POMDP(states, moves, moves, transition, observation.astype(float), reward)


#: The probabilities that the opponent in Kuhn poker bets first with a jack and with a king, and
#: that it calls with a queen: an equilibrium strategy, in which the king bets with probability .7.
_BETS: Final = {"jack": 0.7 / 3.0, "queen": 0.0, "king": 0.7}
_CALLS: Final = {"jack": 0.0, "queen": 1.7 / 3.0, "king": 1.0}


def kuhn_poker() -> POMDP:
    """Kuhn poker with three cards, as the second player, against an equilibrium strategy.

    The observation is the own card and whether the opponent has bet. The reward of a round comes
    with the cards of the next one.
    """
    cards = ["jack", "queen", "king"]
    deals = {
        (mine, theirs, bets): (p if bets else 1.0 - p) / 6.0
        for mine, theirs, bets in product(cards, cards, (True, False))
        for p in [_BETS[theirs]]
        if mine != theirs and (p if bets else 1.0 - p) > 0.0
    }
    gains = [-2.0, -1.0, 1.0, 2.0]
    states = [(deal, gain) for deal in deals for gain in gains]
    transition = np.zeros((len(states), 2, len(states)))
    for x, ((mine, theirs, bets), _) in enumerate(states):
        sign = 1.0 if cards.index(mine) > cards.index(theirs) else -1.0
        call = _CALLS[theirs]
        outcomes = (
            {-1.0: 1.0} if bets else {sign: 1.0},  # pass
            {2.0 * sign: 1.0} if bets else {2.0 * sign: call, 1.0: 1.0 - call},  # bet
        )
        for a, (y, (deal, gain)) in product(range(2), enumerate(states)):
            transition[x, a, y] = deals[deal] * outcomes[a].get(gain, 0.0)
    reward = np.tile([gain for _, gain in states], (len(states), 2, 1))
    observed = [(mine, bets) for mine, bets in product(cards, (True, False))]
    observation = np.array([[(d[0], d[2]) == z for z in observed] for d, _ in states], float)
    return POMDP(
        states, ["pass", "bet"], [f"{c}, {'bet' if b else 'pass'}" for c, b in observed],
        transition, np.tile(observation, (2, 1, 1)), reward,
    )  # fmt: skip


class HiddenWorld(NamedTuple):
    """A world, and what was published about it: reward per cycle, cycles, seconds per decision."""

    make: Callable[[], POMDP]
    reward: float
    cycles: int
    seconds: float
    #: The depth of our trees, in context symbols.
    depth: int


WORLDS: Final[Mapping[str, HiddenWorld]] = {
    "1d-maze": HiddenWorld(maze_1d, 0.50, 5_000, 0.1, 12),
    "cheese": HiddenWorld(cheese, 1.28, 2_500, 0.5, 9),
    "tiger": HiddenWorld(tiger, 1.12, 25_000, 10.6, 12),
    "extended tiger": HiddenWorld(extended_tiger, 3.97, 50_000, 12.6, 12),
    "4x4 grid": HiddenWorld(grid, 0.24, 25_000, 0.3, 24),
    "rock-paper-scissors": HiddenWorld(rock_paper_scissors, 0.25, 10_000, 2.5, 9),
    "Kuhn poker": HiddenWorld(kuhn_poker, 0.06, 5_000_000, 0.1, 6),
}


def fields(pomdp: Any) -> dict[str, list[Any]]:
    """Return the fields of the percepts of a world: its observations and its rewards."""
    rewards: FloatArray = np.unique(pomdp.rewards)
    return {"observation": list(pomdp.observations), "reward": rewards.tolist()}
