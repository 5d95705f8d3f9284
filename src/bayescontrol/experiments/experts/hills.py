"""MountainCar: ten hills, five gravities with the gear forward or in reverse."""

from functools import lru_cache, partial
from typing import Final

import numpy as np

from bayescontrol.baselines.experts import FixedExperts, vote
from bayescontrol.experiments.experts.settings import (
    RIGHT,
    RULE,
    VOTE,
    Makers,
    Settings,
    control_rule,
    streams,
    truth,
)
from bayescontrol.experiments.experts.trials import episode
from bayescontrol.experts import (
    MOUNTAIN_CAR,
    TEN_HILLS,
    Gaussian,
    SimulatorMode,
    mountain_car_modes,
)
from bayescontrol.lab import Columns
from bayescontrol.seeding import stream

#: What runs on MountainCar, in the order of the columns.
HILL_AGENTS: Final = (RULE, RIGHT, VOTE)
#: A hill is given up after so many steps.
HILL_STEPS: Final = 400
#: Disturbance of position and velocity a step.
_NOISE: Final = (1e-4, 1e-4)


@lru_cache(maxsize=1)
def _modes() -> list[SimulatorMode]:
    return mountain_car_modes(Gaussian(_NOISE, floor=1e-5))


def hills(settings: Settings, run: int) -> Columns:
    """Steps to the goal, ∞ where it was not reached.

    >>> hills(Settings(), 0)["goal"].shape
    (3,)
    """
    modes = _modes()
    policies = [mode.policy for mode in modes]
    true = truth(settings, run, "hill", len(TEN_HILLS))
    make: Makers = {
        RULE: partial(control_rule, settings, modes),
        RIGHT: lambda x: FixedExperts([policies[true]], x),
        VOTE: lambda x: FixedExperts(policies, x, vote),
    }
    steps = []
    for name in HILL_AGENTS:
        plant = MOUNTAIN_CAR.plant(
            stream(settings.seed, run, "start of hill"),
            process=_NOISE,
            **TEN_HILLS[true].attributes(),
        )
        both = streams(settings, run, name, "hill")
        found = episode(make[name](plant.start), plant, HILL_STEPS, both)
        steps.append(found.steps if found.terminated else np.inf)
    return {"hill": np.array(true), "goal": np.array(steps, np.float64)}
