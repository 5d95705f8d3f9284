"""One replica: a pole, a rod and a hill drawn from their sets, an episode of each for every agent.

Every episode has a plant and an agent of its own. Velocities are disturbed at every step, so that
hypotheses near the truth take a while to be refuted.
"""

from bayescontrol.experiments.experts.hills import hills
from bayescontrol.experiments.experts.poles import poles
from bayescontrol.experiments.experts.rods import rods
from bayescontrol.experiments.experts.settings import Settings
from bayescontrol.lab import Columns


def run(settings: Settings, run: int) -> Columns:
    """What happened on all plants.

    >>> sorted(run(Settings(steps=20, change=10, rod_steps=5), 0))[:4]
    ['after', 'bump', 'changed', 'experts']
    """
    return {**poles(settings, run), **rods(settings, run), **hills(settings, run)}
