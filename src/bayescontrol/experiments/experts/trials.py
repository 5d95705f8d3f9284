"""One episode: an agent and a plant, until the plant ends it or time is up.

    identified(t)   P(m* | âo_≤s) ≥ .99 for all s from t to the end

The core knows no episodes: each has a new plant and a new agent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.experts import Plant
from bayescontrol.interaction import play
from bayescontrol.seeding import Stream


@dataclass(frozen=True, eq=False)
class Episode:
    """What happened: how long it lasted, inputs, and what was measured, NaN after the end.

    >>> Episode(2, True, np.zeros(2), np.array([[0.1], [0.2], [np.nan]])).steps
    2
    """

    steps: int
    terminated: bool
    actions: npt.NDArray[Any]
    measured: FloatArray  #: [t, measurement]


def episode(
    agent: Any,
    plant: Plant,
    limit: int,
    streams: tuple[Stream, Stream],
    measure: Callable[[Any, FloatArray], Sequence[float]] | None = None,
    change_at: int = 0,
    change: Callable[[Plant], None] | None = None,
) -> Episode:
    """Play for `limit` steps, or until the plant has ended.

    `measure(agent, o)` is taken after each step; `change(plant)` is called after step
    `change_at`.

    >>> from bayescontrol.baselines.experts import FixedExperts
    >>> from bayescontrol.experts import CARTPOLE
    >>> plant = CARTPOLE.plant()
    >>> always = FixedExperts([lambda x: 1], plant.start)
    >>> found = episode(always, plant, 500, (Stream(0), Stream(1)))
    >>> found.terminated, found.steps < 20
    (True, True)
    """
    actions: list[Any] = []
    measured: list[Sequence[float]] = []
    for t, (a, o) in enumerate(play(agent, plant, streams=streams)):
        actions.append(a)
        measured.append(measure(agent, o) if measure else ())
        if plant.terminated or t + 1 >= limit:
            break
        if change and t + 1 == change_at:
            change(plant)
    rows = np.full((limit, len(measured[0])), np.nan)
    rows[: len(measured)] = measured
    return Episode(plant.steps, plant.terminated, np.array(actions), rows)


def identified(posterior: FloatArray, steps: int, level: float = 0.99) -> float:
    """The first t such that P(m* | âo_≤s) ≥ level for s = t … steps; ∞ if there is none.

    >>> identified(np.array([0.5, 0.995, 0.9, 0.992, 0.999]), 5)
    4.0
    """
    below = np.flatnonzero(posterior[:steps] < level)
    first = int(below[-1]) + 2 if below.size else 1
    return float(first) if first <= steps else np.inf
