"""The rule against Bayes-optimal control on the paper's k-step chains.

    every step      E T = 2^k - 1        a mode drawn anew at each step seldom stays the course
    Bayes-optimal       T = k            plans k equal actions, and looks
    Every(k)            T = k            so does the rule, once a mode is held long enough

T is the step at which the posterior becomes degenerate. In the growing chain, k_t = ⌈10 √t⌉,
the rule never gets there, nor do modes held for a fixed time; modes held ever longer do.
"""

from bayescontrol.experiments.chain.figures import draw
from bayescontrol.experiments.chain.replica import Settings, run
from bayescontrol.experiments.chain.score import score
from bayescontrol.lab import Experiment

__all__ = ["experiment"]

#: The experiment `chain`.
experiment = Experiment(
    name="chain",
    summary="time to identify a k-step chain: control rule, Bayes-optimal, held modes",
    settings=Settings,
    quick=Settings(runs=800),
    full=Settings(runs=4000, steps=200_000),
    run=run,
    score=score,
    figures=draw,
)
