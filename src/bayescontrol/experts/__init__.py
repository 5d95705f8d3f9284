"""Finite experts for nonlinear plants: tuned controllers and simulators as operation modes."""

from bayescontrol.experts.bumpless import Bumpless
from bayescontrol.experts.cartpole import CARTPOLE, TWENTY, CartPole, cartpole_modes
from bayescontrol.experts.limits import limited
from bayescontrol.experts.linearise import linearise
from bayescontrol.experts.mode import Noise, SimulatorMode, next_state
from bayescontrol.experts.mountain_car import (
    MOUNTAIN_CAR,
    TEN_HILLS,
    MountainCar,
    mountain_car_modes,
)
from bayescontrol.experts.noise import Gaussian
from bayescontrol.experts.pendulum import (
    NINE_RODS,
    PENDULUM,
    Pendulum,
    pendulum_modes,
)
from bayescontrol.experts.plant import Kind, Plant

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
