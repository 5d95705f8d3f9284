"""Simulators and trained policies as operation modes."""

from bayescontrol.simulators.classic_control import (
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
from bayescontrol.simulators.mode import Noise, SimulatorMode, SimulatorNoise, limited, next_state
from bayescontrol.simulators.plant import Plant, PlantModel, linearise

__all__ = [
    "CARTPOLE", "CARTPOLE_HYPOTHESES", "MOUNTAIN_CAR", "MOUNTAIN_CAR_HYPOTHESES", "PENDULUM",
    "PENDULUM_HYPOTHESES", "CartPole", "MountainCar", "Noise", "Pendulum", "Plant", "PlantModel",
    "SimulatorMode", "SimulatorNoise", "limited", "linearise", "next_state",
]  # fmt: skip
