"""One stream for each decision of a log.

    stream(seed, n, "agent"),  n = 1, 2, 3, …

The same numbers as `Stream.named` gives, made faster: most of a decision's time would go there.
Decisions come one after the other, so the streams of the next few are made with the first.
"""

from typing import Final
from zlib import crc32

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import UIntArray
from bayescontrol.seeding import Stream

_WORD: Final = 2**32
_ROLE: Final = crc32(b"agent")
#: Streams that are made at once.
_BLOCK: Final = 16


class Streams:
    """The streams of one seed.

    >>> from bayescontrol import Stream
    >>> Streams(7)[12] == Stream.named(7, 12, "agent")
    True
    """

    __slots__ = ("_block", "_words", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._words = [seed >> shift & _WORD - 1 for shift in (0, 32, 64, 96)]
        self._block: tuple[int, UIntArray] = 0, np.empty((0, 4), np.uint64)

    def __getitem__(self, n: int) -> Stream:
        """The stream of decision n, as new."""
        first, states = self._block
        if not 0 <= n - first < len(states):
            first, states = self._block = n, self._seeded(n)
        made = Stream.__new__(Stream)
        made.state = states[n - first].copy()
        return made

    def _seeded(self, n: int) -> UIntArray:
        """The states of n and of those that follow, as long as n has as many words."""
        low = n & _WORD - 1
        key = (low,) if n < _WORD else (low, n >> 32)
        states = np.empty((min(_BLOCK, _WORD - low), 4), np.uint64)
        entropy = np.array([*self._words, *key, _ROLE], np.uint64)
        kernels.random.seed_states(entropy, len(self._words), np.empty(4, np.uint64), states)
        return states
