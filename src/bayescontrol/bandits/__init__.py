"""Bandits: arms that pay, a belief over what they pay, and worlds to try it in.

The agents act by Thompson sampling, which is the Bayesian control rule for bandits.
"""

from typing import Final

from bayescontrol.bandits import families
from bayescontrol.bandits.arms import ArmsBelief as ArmsBelief
from bayescontrol.bandits.arms import ArmsEnvironment as ArmsEnvironment
from bayescontrol.bandits.arms import MeanRewards as MeanRewards
from bayescontrol.bandits.bandit import Bandit as Bandit
from bayescontrol.bandits.changing import ChangingArmsBelief as ChangingArmsBelief
from bayescontrol.bandits.changing import PerArmBelief as PerArmBelief
from bayescontrol.bandits.changing_learned import LearnedChangingBelief as LearnedChangingBelief
from bayescontrol.bandits.contexts.belief import LinearBelief as LinearBelief
from bayescontrol.bandits.contexts.belief import LinearWeights as LinearWeights
from bayescontrol.bandits.contexts.problems import ContextualBandit as ContextualBandit
from bayescontrol.bandits.contexts.problems import LinearBandit as LinearBandit
from bayescontrol.bandits.contexts.problems import LogisticBandit as LogisticBandit
from bayescontrol.bandits.contexts.problems import SharedLinearBandit as SharedLinearBandit
from bayescontrol.bandits.contexts.regression import GaussianNoise as GaussianNoise
from bayescontrol.bandits.contexts.regression import LinearEnvironment as LinearEnvironment
from bayescontrol.bandits.contexts.regression import Logit as Logit
from bayescontrol.bandits.contexts.regression import RewardAndContext as RewardAndContext
from bayescontrol.bandits.contexts.schema import Schema as Schema
from bayescontrol.bandits.contexts.shared import SharedLinearBelief as SharedLinearBelief
from bayescontrol.bandits.draws import ArmDrawsBelief as ArmDrawsBelief
from bayescontrol.bandits.draws import DrawsBandit as DrawsBandit
from bayescontrol.bandits.families import *  # noqa: F403 - one name for each family
from bayescontrol.bandits.joint import JointBandit as JointBandit
from bayescontrol.bandits.joint import LogitNormalBandit as LogitNormalBandit
from bayescontrol.bandits.learned import LearnedArmsBelief as LearnedArmsBelief
from bayescontrol.bandits.pooled import Pooled as Pooled
from bayescontrol.bandits.pooled import PooledBelief as PooledBelief
from bayescontrol.bandits.pooled import SegmentMeans as SegmentMeans
from bayescontrol.protocols import Totals as Totals

#: The bandits of all families, in the order of the documentation.
FAMILIES: Final[tuple[type[Bandit], ...]] = tuple(
    bandit for name, bandit in vars(families).items() if name.endswith("Bandit")
)
# Type checkers read the imports, which re-export every name.
__all__ = sorted(name for name, value in list(globals().items()) if isinstance(value, type))
