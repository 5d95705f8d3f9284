"""A bank of experts on a plant: costs on a motor, plants in SI units, and predicted times.

    fixed    a motor whose load and wiring are one of 24 and unknown, 400 steps of 10 ms
    noisy    the same with a sensor of 5 rad/s instead of 1

    cost = Σ (setpoint - speed)² + 0.1 u², relative to the controller and filter of the true plant

All agents of a run meet the same motor with the same noise. `control rule` draws a mode at each
step, `most probable` puts the most probable mode in charge, `weighted` mixes the inputs of all
modes by their probabilities, as classical multiple-model control does, and `self-tuning` is
recursive least squares with the same tuning rule. The limits are requirements, set before the
measurements.

`experiments.control.plant_units` has the three plants in SI units. Times to distinguish two plants
are predicted by `experts.check_bank` and compared with simulated runs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta

from bayescontrol import interact
from bayescontrol.arrays import FloatArray
from bayescontrol.experiments.chance import format_mean, measured, share_and_error
from bayescontrol.experiments.control.motor import (
    PLANTS,
    SelfTuning,
    WeightedAgent,
    draw_motor,
    motor_bank,
    setpoint,
)
from bayescontrol.experiments.control.plant_units import control, plants
from bayescontrol.experiments.curves import by_name
from bayescontrol.experiments.settings import Runs, Seed
from bayescontrol.experts import Bank
from bayescontrol.lab import Claim, Columns, Experiment, Score, Table
