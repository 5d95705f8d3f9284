"""Pendulum: nine rods, swung up and held, with and without a bumpless change of modes."""

from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from bayescontrol.arrays import FloatArray
from bayescontrol.baselines.experts import FixedExperts, mean_action
from bayescontrol.experiments.experts.settings import (
    MEAN,
    RIGHT,
    RULE,
    Makers,
    Settings,
    control_rule,
    streams,
    truth,
)
from bayescontrol.experiments.experts.trials import episode
from bayescontrol.experts import (
    NINE_RODS,
    PENDULUM,
    Bumpless,
    Gaussian,
    SimulatorMode,
    pendulum_modes,
)
from bayescontrol.lab import Columns
from bayescontrol.seeding import stream

BUMPLESS: Final = "bumpless rule"
#: What runs on Pendulum, in the order of the columns.
ROD_AGENTS: Final = (RULE, BUMPLESS, RIGHT, MEAN)


@lru_cache(maxsize=4)
def _modes(noise: float, floor: float, limit: float) -> list[SimulatorMode]:
    return pendulum_modes(Gaussian((0.0, 0.0, noise), floor), limit=limit)


def rods(settings: Settings, run: int) -> Columns:
    """cos φ at every step, and the largest jump of the torque where the mode changes.

    >>> columns = rods(Settings(rod_steps=5), 0)
    >>> columns["height"].shape, columns["bump"].shape
    ((4, 5), (4,))
    """
    modes = _modes(settings.rod_noise, settings.floor, settings.limit)
    policies = [mode.policy for mode in modes]
    true = truth(settings, run, "rod", len(NINE_RODS))
    rule = partial(control_rule, settings, modes)
    make: Makers = {
        RULE: rule,
        BUMPLESS: lambda x: Bumpless(rule(x), settings.blend),
        RIGHT: lambda x: FixedExperts([policies[true]], x),
        MEAN: lambda x: FixedExperts(policies, x, mean_action),
    }
    height, bump = [], []
    for name in ROD_AGENTS:
        plant = PENDULUM.plant(
            stream(settings.seed, run, "start of rod"),
            process=(0.0, settings.rod_noise),
            **NINE_RODS[true].attributes(),
        )
        # One stream for both rules: they draw the same modes, as long as they see the same.
        both = streams(settings, run, RULE, "rod")
        found = episode(make[name](plant.start), plant, settings.rod_steps, both, _seen)
        changes = np.diff(found.measured[:, 1]) != 0.0
        height.append(found.measured[:, 0])
        bump.append(np.abs(np.diff(found.actions))[changes].max(initial=0.0))
    return {"rod": np.array(true), "height": np.array(height), "bump": np.array(bump)}


def _seen(agent: Any, o: FloatArray) -> tuple[float, float]:
    """cos φ, and the mode in charge; without a belief there is but one."""
    return o[0], agent.belief.drawn if hasattr(agent, "belief") else 0.0
