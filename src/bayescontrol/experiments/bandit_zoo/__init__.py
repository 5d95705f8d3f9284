"""All agents for bandits, at bandits of several kinds.

    regret   R_T = Σ_t (max_j m_j - m_{a_t}),  paired run by run

Which agent is best depends on the kind of bandit and on how long it lasts. The table says
which differences are more than luck.
"""

from bayescontrol.experiments.bandit_zoo.figures import draw
from bayescontrol.experiments.bandit_zoo.replica import Settings, run
from bayescontrol.experiments.bandit_zoo.score import score
from bayescontrol.lab import Experiment

__all__ = ["experiment"]

#: The experiment `bandit-zoo`.
experiment = Experiment(
    name="bandit-zoo",
    summary="all agents for bandits, at bandits of several kinds: regret, paired run by run",
    settings=Settings,
    quick=Settings(runs=50, costly_runs=12),
    full=Settings(runs=1000, steps=3000, costly_runs=50),
    run=run,
    score=score,
    figures=draw,
)
