"""Banks of plant models with tuned controllers, as operation modes."""

from bayescontrol.bank.bank import Bank, BankAgent, Supervisor
from bayescontrol.bank.bumpless import Bumpless
from bayescontrol.bank.check import BankCheck, check_bank
from bayescontrol.bank.extended_mode import ExtendedMode
from bayescontrol.bank.fit import FittedPlant, Whiteness, fit_plant, whiteness
from bayescontrol.bank.plant_mode import FilterBank, PlantMode, PlantWorld
from bayescontrol.bank.state_space import PI, Loop

__all__ = [
    "PI",
    "Bank",
    "BankAgent",
    "BankCheck",
    "Bumpless",
    "ExtendedMode",
    "FilterBank",
    "FittedPlant",
    "Loop",
    "PlantMode",
    "PlantWorld",
    "Supervisor",
    "Whiteness",
    "check_bank",
    "fit_plant",
    "whiteness",
]
