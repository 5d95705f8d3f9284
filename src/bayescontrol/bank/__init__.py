"""Banks of plant models with tuned controllers, as operation modes."""

from bayescontrol.bank.bank import Bank as Bank
from bayescontrol.bank.bank import BankAgent as BankAgent
from bayescontrol.bank.bank import Supervisor as Supervisor
from bayescontrol.bank.bumpless import Bumpless as Bumpless
from bayescontrol.bank.check import BankCheck as BankCheck
from bayescontrol.bank.check import check_bank as check_bank
from bayescontrol.bank.extended_mode import ExtendedMode as ExtendedMode
from bayescontrol.bank.fit import FittedPlant as FittedPlant
from bayescontrol.bank.fit import Whiteness as Whiteness
from bayescontrol.bank.fit import fit_plant as fit_plant
from bayescontrol.bank.fit import whiteness as whiteness
from bayescontrol.bank.plant_mode import FilterBank as FilterBank
from bayescontrol.bank.plant_mode import PlantMode as PlantMode
from bayescontrol.bank.plant_mode import PlantWorld as PlantWorld
from bayescontrol.bank.state_space import PI as PI
from bayescontrol.bank.state_space import Loop as Loop

# Type checkers read the imports, which re-export every name.
__all__ = sorted(name for name, value in list(globals().items()) if callable(value))
