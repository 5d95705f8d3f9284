"""A policy diagram: states, transitions labelled a/o, and the subset that each policy selects.

    P(s' | m, s) = Σ_{ao: T(s, ao) = s'} P(a | m, s) P(o | m, s, a)        a Markov chain
    subset of P_m = {s: μ_m(s) > 0},    μ_m P = μ_m                        what it visits for ever

Applying a policy is choosing a subset of the world. The subset is exact; long runs show where
they spend their time.
"""

from typing import Final

from bayescontrol.experiments.policy_diagram.figures import draw
from bayescontrol.experiments.policy_diagram.replica import Settings, run
from bayescontrol.experiments.policy_diagram.score import score
from bayescontrol.lab import Experiment

__all__ = ["Settings", "experiment"]

experiment: Final = Experiment(
    name="policy-diagram",
    summary="states and transitions as a graph, and the subset of them that each policy selects",
    settings=Settings,
    quick=Settings(runs=400),
    full=Settings(runs=2000, steps=10_000),
    run=run,
    score=score,
    figures=draw,
)
