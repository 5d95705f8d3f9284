"""Experts for nonlinear plants: tuned controllers and simulators as operation modes."""

from bayescontrol.experts.bank import Bank, BankAgent, Supervisor
from bayescontrol.experts.bank_check import BankCheck, check_bank
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
from bayescontrol.experts.controllers import PI, Loop
from bayescontrol.experts.extended_mode import ExtendedMode
from bayescontrol.experts.fit import FittedPlant, Whiteness, fit_mode, fit_plant, whiteness
from bayescontrol.experts.mode import Noise, SimulatorMode, SimulatorNoise, limited, next_state
from bayescontrol.experts.plant import Plant, PlantModel, linearise
from bayescontrol.experts.plant_mode import FilterBank, PlantMode, PlantWorld

__all__ = [
    "CARTPOLE",
    "CARTPOLE_HYPOTHESES",
    "MOUNTAIN_CAR",
    "MOUNTAIN_CAR_HYPOTHESES",
    "PENDULUM",
    "PENDULUM_HYPOTHESES",
    "PI",
    "Bank",
    "BankAgent",
    "BankCheck",
    "Bumpless",
    "CartPole",
    "ExtendedMode",
    "FilterBank",
    "FittedPlant",
    "Loop",
    "MountainCar",
    "Noise",
    "Pendulum",
    "Plant",
    "PlantMode",
    "PlantModel",
    "PlantWorld",
    "SimulatorMode",
    "SimulatorNoise",
    "Supervisor",
    "Whiteness",
    "check_bank",
    "fit_mode",
    "fit_plant",
    "limited",
    "linearise",
    "next_state",
    "whiteness",
]
