"""The bandits with independent arms, one line for each: the list to extend by a new family.

The exports of `bayescontrol` and `bayescontrol.bandits`, the kinds of models that logs can store,
and tables of the documentation are made from it. Their order is the order of the documentation.
"""

# isort: off
from bayescontrol.bandits.discrete import BernoulliBandit as BernoulliBandit
from bayescontrol.bandits.gaussian import GaussianBandit as GaussianBandit
from bayescontrol.bandits.discrete import CategoricalBandit as CategoricalBandit
from bayescontrol.bandits.gamma import PoissonBandit as PoissonBandit
from bayescontrol.bandits.gamma import ExponentialBandit as ExponentialBandit
from bayescontrol.bandits.geometric import GeometricBandit as GeometricBandit
