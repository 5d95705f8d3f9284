"""One replica: three classes of two modes, the first of them true.

    as it was     both policies stay in A, where H1 and H2 agree, and act differently there
    repaired      the same hypotheses, and one policy for A
    with a look   as it was, but each policy takes a look at B now and then

Kept at every step: P(m1 | âo_≤t), and the distance of the agent's action law from that of m1,

    ½ Σ_a | P(a | âo_≤t) - P(a | m1, x_t) |
"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Final

import msgspec
import numpy as np

from bayescontrol.convergence.divergence import divergences
from bayescontrol.experiments.chains import path
from bayescontrol.experiments.chance import FEW
from bayescontrol.interaction import interact
from bayescontrol.lab import Columns
from bayescontrol.problems.diagrams import consistency_diagram, consistency_repaired
from bayescontrol.problems.tabular import TabularModes

#: With fewer runs nothing is judged.
FEWEST: Final = 20
TRUE: Final = 0
AS_IT_WAS: Final = "as it was"
REPAIRED: Final = "repaired"
LOOK: Final = "with a look"
NAMES: Final = (AS_IT_WAS, REPAIRED, LOOK)


@dataclass(frozen=True)
class Settings:
    """Size of the experiment, the prior, and how often a look is taken.

    >>> Settings().weight
    0.5
    """

    seed: Annotated[int, msgspec.Meta(ge=0, description="seed of all random numbers")] = 0
    runs: Annotated[int, msgspec.Meta(ge=FEWEST, description=FEW)] = 1000
    steps: Annotated[int, msgspec.Meta(ge=10, description="steps in a replica")] = 200
    weight: Annotated[
        float, msgspec.Meta(gt=0, lt=1, description="prior weight of m1, the true mode")
    ] = 0.5
    look: Annotated[
        float, msgspec.Meta(gt=0, lt=1, description="how often a policy takes a look at B")
    ] = 0.1


@cache
def modes(name: str, weight: float, look: float) -> TabularModes:
    """One of the three classes.

    >>> modes(LOOK, 0.5, 0.1).policy[0, 0].tolist()
    [0.9, 0.0, 0.1]
    """
    known = consistency_repaired() if name == REPAIRED else consistency_diagram()
    policy = known.policy
    if name == LOOK:
        out = np.array(known.labels.actions) == "out"
        policy = (1 - look) * policy + look * out
    return TabularModes(
        policy,
        known.hypothesis,
        known.successor,
        start=known.start,
        names=known.names,
        prior=[weight, 1 - weight],
        labels=known.labels,
    )


def run(settings: Settings, i: int) -> Columns:
    """The control rule in the world of m1, over each class.

    >>> columns = run(Settings(steps=10), 0)
    >>> columns["distance"].shape, columns["distance"][1].max()
    ((3, 11), np.float64(0.0))
    """
    weight, distance, strange = [], [], []
    for name in NAMES:
        own = modes(name, settings.weight, settings.look)
        agent, world = own.agent(), own.environment(TRUE)
        record = interact(agent, world, settings.steps, seed=settings.seed, run=i)
        v, x = divergences(record, own.agent()).posterior, path(own, record)
        policy = own.policy[:, x]
        law = np.einsum("tm,mta->ta", v, policy)
        weight.append(v[:, TRUE])
        distance.append(np.abs(law - policy[TRUE]).sum(-1) / 2)
        strange.append(policy[TRUE, np.arange(settings.steps), record.actions] == 0.0)
    return {
        "weight": np.stack(weight),
        "distance": np.stack(distance),
        "strange": np.stack(strange),
    }
