"""The symbols of all actions and percepts so far, which beliefs and modes read as their context."""

from types import SimpleNamespace

import numpy as np

from bayescontrol._arrays import IntArray
from bayescontrol._support.saved import Array, Copied, Saved, damaged, declare

#: Cycles for which there is room at first, and the latest ones that are never forgotten.
FIRST_CYCLES, COMPARED = 256, 200


class History(Saved):
    """`symbols` up to the position `end`: `depth` zeros, then the cycles.

    `size` holds the number of symbols of each slot of a cycle.

    >>> history = History(np.array([2, 3]), depth=2)
    >>> history.write([1, 2])
    >>> history.end += 2
    >>> history.symbols[: history.end].tolist()
    [0, 0, 1, 2]
    """

    saved_fields = declare(
        Array(
            "history", lambda history: history.symbols[history.start : history.end], shape=(None,)
        ),
        Copied("symbols"),
    )

    def __init__(self, size: IntArray, depth: int) -> None:
        self._size, self.depth = size, depth
        self.symbols = np.zeros(depth + FIRST_CYCLES * size.size, np.uint8)
        self.end = depth
        #: Whether only the latest cycles are needed.
        self.forgets = False

    @property
    def start(self) -> int:
        """The position of the first symbol that is needed: that of a context before a cycle."""
        needed = self.depth + COMPARED * self._size.size
        return max(0, self.end - needed) if self.forgets else 0

    def write(self, cycle: list[int]) -> None:
        """Write a cycle after the end, which does not move: a kernel learns or predicts it.

        If there is no room, the array grows, or if it `forgets` all but the latest cycles go.
        """
        if self.end + len(cycle) > self.symbols.size:
            if self.forgets:
                latest = self.symbols[self.start : self.end].copy()
                self.symbols[: len(latest)] = latest
                self.end = len(latest)
            else:
                self.symbols = np.concatenate([self.symbols, np.zeros_like(self.symbols)])
        self.symbols[self.end : self.end + len(cycle)] = cycle

    def _check_state(self, new: SimpleNamespace) -> None:
        """Raise an error unless the symbols are those of the slots; make room for more."""
        end = len(new.history)
        slot = (np.arange(end) - self.depth) % self._size.size
        if end < self.depth or (new.history >= self._size[slot]).any():
            raise damaged("'history' has symbols that these actions and percepts do not have")
        new.end = end
        new.symbols = np.zeros(max(self.symbols.size, 2 * end), np.uint8)
        new.symbols[:end] = new.history
