"""Experts for nonlinear plants: tuned controllers and simulators as operation modes."""

from bayescontrol.experts.bumpless import Bumpless
from bayescontrol.experts.classic_control import (
    CARTPOLE,
    CARTPOLE_HYPOTHESES,
    MOUNTAIN_CAR,
    MOUNTAIN_CAR_HYPOTHESES,
    PENDULUM,
    PENDULUM_HYPOTHESES,
    CartPole,
    MountainCar,
    Pendulum,
)
from bayescontrol.experts.mode import Noise, SimulatorMode, SimulatorNoise, limited, next_state
from bayescontrol.experts.plant import Plant, PlantModel, linearise

__all__ = [
    "CARTPOLE",
    "CARTPOLE_HYPOTHESES",
    "MOUNTAIN_CAR",
    "MOUNTAIN_CAR_HYPOTHESES",
    "PENDULUM",
    "PENDULUM_HYPOTHESES",
    "Bumpless",
    "CartPole",
    "MountainCar",
    "Noise",
    "Pendulum",
    "Plant",
    "PlantModel",
    "SimulatorMode",
    "SimulatorNoise",
    "limited",
    "linearise",
    "next_state",
]
