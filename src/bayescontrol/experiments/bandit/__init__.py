"""The paper's first example: the control rule against ε-greedy and Gittins at N levers.

    control rule   m_j ~ Beta(r_j + 1, f_j + 1), pull arg max_j m_j
    ε-greedy       with probability ε αᵗ any lever, else the one with the best record
    Gittins        pull the lever with the largest index ν(r_j + 1, f_j + 1)

Biases are drawn uniformly for each run; all agents of a run meet the same.
"""

from bayescontrol.experiments.bandit.figures import draw
from bayescontrol.experiments.bandit.replica import Settings, run
from bayescontrol.experiments.bandit.score import score
from bayescontrol.lab import Experiment

__all__ = ["experiment"]

#: The experiment `bandit`.
experiment = Experiment(
    name="bandit",
    summary="control rule, ε-greedy and Gittins at ten levers: reward, best lever, regret",
    settings=Settings,
    quick=Settings(),
    full=Settings(),
    run=run,
    score=score,
    figures=draw,
)
