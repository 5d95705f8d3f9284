"""Misspecified: an alarm for worlds that no mode describes, its errors, its power, its use.

    E_t = q(o_≤t | â_≤t) / max_m P(o_≤t | m, â_≤t)        raised at E_t ≥ 1/δ

Inside the class the alarm is raised, ever, with probability at most δ. Outside it is raised
surely, the sooner the farther the world is from the nearest mode. What resting from then on is
worth is another matter: the alarm says that the modes are wrong, not that they do harm.
"""

from typing import Final

from bayescontrol.experiments.misspecified.figures import draw
from bayescontrol.experiments.misspecified.replica import Settings, run
from bayescontrol.experiments.misspecified.score import score
from bayescontrol.lab import Experiment

__all__ = ["Settings", "experiment"]

experiment: Final = Experiment(
    name="misspecified",
    summary="an alarm for worlds that no mode describes: false alarms, power, and a fallback",
    settings=Settings,
    quick=Settings(),
    full=Settings(runs=5000),
    run=run,
    score=score,
    figures=draw,
)
