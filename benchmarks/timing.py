"""Time contestants in turns within one run, so that noise affects all of them equally."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

__all__ = ["Timing", "take_turns"]


@dataclass(frozen=True)
class Timing:
    """Seconds per call: the median over rounds, and the range."""

    median: float
    low: float
    high: float

    def per(self, steps: int) -> "Timing":
        """Divide the time of a call by its number of steps."""
        return Timing(self.median / steps, self.low / steps, self.high / steps)

    def __str__(self) -> str:
        unit, factor = next(
            (u, f) for u, f in (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
            if self.median * f >= 1 or u == "ns"
        )  # fmt: skip
        return (
            f"{self.median * factor:.3g} {unit} ({self.low * factor:.3g}-{self.high * factor:.3g})"
        )


def take_turns(
    contestants: Mapping[str, Callable[[], object]], calls: int, rounds: int = 9
) -> dict[str, Timing]:
    """Time each contestant `rounds` times, `calls` calls each, in turn, after one warm-up."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for call in contestants.values():
        call()
    for _ in range(rounds):
        for name, call in contestants.items():
            start = time.perf_counter()
            for _ in range(calls):
                call()
            seconds[name].append((time.perf_counter() - start) / calls)
    return {name: Timing(float(np.median(s)), min(s), max(s)) for name, s in seconds.items()}
