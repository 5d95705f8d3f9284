"""How many replicas go together.

    size = target / s        s: seconds a replica takes, as measured
    target = 1 s, or a hundredth of the time spent so far, up to a minute

So the cost of sending and storing a group vanishes, a kill loses a second or a hundredth of the
work, and a long job does not fill a folder with files. A group is bounded in bytes as well,
grows at most fourfold at a time, and towards the end leaves something for every worker.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Final

_SHORTEST, _SHARE, _LONGEST = 1.0, 0.01, 60.0
_BYTES: Final = 1 << 25
_GROWTH: Final = 4
_INSTANT: Final = 1e-7  # seconds; a clock may show no time at all


class Pace:
    """The size of the next group.

    >>> pace = Pace(clock=lambda: 0.0)
    >>> pace.size(left=1000, workers=2)
    1
    >>> pace.learn(runs=1, seconds=0.1, nbytes=80)
    >>> pace.size(left=1000, workers=2), pace.size(left=6, workers=2)
    (4, 2)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._start = clock, clock()
        self._seconds = 0.0
        self._nbytes = 1.0
        self._largest = 0

    def learn(self, runs: int, seconds: float, nbytes: int) -> None:
        """A group of so many runs took so long and came to so many bytes."""
        now = max(seconds / runs, _INSTANT)
        # The first replicas load and compile: a geometric mean forgets them soon.
        self._seconds = math.sqrt(self._seconds * now) if self._seconds else now
        self._nbytes = max(nbytes / runs, 1.0)
        self._largest = max(self._largest, runs)

    def size(self, left: int, workers: int) -> int:
        """The size of the next group when `left` runs are left for so many workers."""
        if not self._largest:
            return 1
        bounds = (
            self.target() / self._seconds,
            _BYTES / self._nbytes,
            _GROWTH * self._largest,
            math.ceil(left / (2 * workers)),
        )
        return max(1, int(min(bounds)))

    def target(self) -> float:
        """Seconds that a group should take by now."""
        spent = self._clock() - self._start
        return min(max(_SHORTEST, _SHARE * spent), _LONGEST)

    def is_full(self, seconds: float, nbytes: int) -> bool:
        """Whether what was run so far is a group.

        >>> Pace(clock=lambda: 0.0).is_full(seconds=1.5, nbytes=0)
        True
        """
        return seconds >= self.target() or nbytes >= _BYTES


class Todo:
    """Runs that nobody has taken yet.

    >>> todo = Todo([range(3), range(8, 20, 4)])
    >>> todo.take(2), todo.take(2), todo.take(9), todo.left, todo.total
    (range(0, 2), range(2, 3), range(8, 20, 4), 0, 6)
    """

    def __init__(self, runs: Sequence[range]) -> None:
        self._runs = list(reversed(runs))
        self.left = self.total = sum(map(len, runs))

    def take(self, count: int) -> range:
        """The next runs, at most so many; a progression each time."""
        first = self._runs.pop()
        if len(first) > count:
            self._runs.append(first[count:])
        self.left -= len(first[:count])
        return first[:count]
