"""Finite experts for nonlinear plants: tuned controllers and simulators as operation modes."""

from bayescontrol.experts.bumpless import Bumpless
from bayescontrol.experts.classic_control import (
    CARTPOLE,
    MOUNTAIN_CAR,
    NINE_RODS,
    PENDULUM,
    TEN_HILLS,
    TWENTY,
    CartPole,
    MountainCar,
    Pendulum,
    cartpole_modes,
    mountain_car_modes,
    pendulum_modes,
)
from bayescontrol.experts.mode import Gaussian, Noise, SimulatorMode, limited, next_state
from bayescontrol.experts.plant import Kind, Plant, linearise

__all__ = [
    "CARTPOLE",
    "MOUNTAIN_CAR",
    "NINE_RODS",
    "PENDULUM",
    "TEN_HILLS",
    "TWENTY",
    "Bumpless",
    "CartPole",
    "Gaussian",
    "Kind",
    "MountainCar",
    "Noise",
    "Pendulum",
    "Plant",
    "SimulatorMode",
    "cartpole_modes",
    "limited",
    "linearise",
    "mountain_car_modes",
    "next_state",
    "pendulum_modes",
]
