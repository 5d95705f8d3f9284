"""Gittins indices of Bernoulli arms with Beta priors, each with a proven error.

GittinsTable       all indices up to so many pulls, kept on disk
gittins_index      one index, to about twelve digits; gittins_bounds for its bracket
GittinsAgent       pulls the arm of the highest
"""

from bayescontrol.baselines.gittins.agent import GittinsAgent
from bayescontrol.baselines.gittins.cache import DamagedCache
from bayescontrol.baselines.gittins.march import NotCertified
from bayescontrol.baselines.gittins.single import gittins_bounds, gittins_index
from bayescontrol.baselines.gittins.table import GittinsTable

__all__ = [
    "DamagedCache",
    "GittinsAgent",
    "GittinsTable",
    "NotCertified",
    "gittins_bounds",
    "gittins_index",
]
