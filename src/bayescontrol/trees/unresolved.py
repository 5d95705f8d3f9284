"""Drawn context trees that the agent's own actions have not told apart from the belief.

    d_m = mean over the last cycles of KL(P(o | âo, â) ‖ P(o | m, âo, â))       in nats
    D_m = share of these cycles in which m would act otherwise than modes from the posterior

The trees are drawn with a part of the evidence, from none (the prior) to all (the posterior), and
their leaves from the posterior given the trees.
"""

from typing import Any

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import IntArray
from bayescontrol.protocols import Unresolved
from bayescontrol.seeding import Stream
from bayescontrol.trees.drawn import DrawnTrees
from bayescontrol.trees.history import COMPARED

#: The cycles that are compared, and modes from the posterior whose policies they are compared with.
CYCLES, REFERENCES = COMPARED, 5
#: The models that are drawn to find one for the remedy, with this part of the evidence, and the
#: largest loss of their predictions in nats: chosen on worlds that are not in the experiment.
CANDIDATES, EVIDENCE, LOSS = 10, 0.3, 1e-2


def compare(belief: Any, m: DrawnTrees) -> tuple[float, IntArray]:
    """Return d_m and the actions that m would have taken in the last cycles."""
    cycle, history = belief.layout.size.size, belief.history
    count = min(CYCLES, (history.end - belief.depth) // cycle)
    visited = np.zeros(count, np.int64)
    d = kernels.tree_plan.compare(
        belief.layout, belief._nodes, belief._memory, m.plan.trees, m.plan.states, history.symbols,
        history.end - count * cycle, history.end, belief._path,
        np.empty(int(belief.layout.size.max())), visited,
    )  # fmt: skip
    return d, m.plan.policy[visited]


def find_unresolved(
    belief: Any, rng: Stream, draws: int, evidence: float, nats: float, distance: float
) -> Unresolved:
    """Return the share of unresolved trees among `draws`, and these, the best first."""
    references = [compare(belief, belief.draw(rng))[1] for _ in range(REFERENCES)]
    found = []
    for _ in range(draws):
        m = belief.draw(rng, evidence=evidence)
        d, actions = compare(belief, m)
        D = np.mean([actions != other for other in references]) if len(actions) else 1.0
        if d <= nats and distance <= D:
            found.append(m)
    found.sort(key=lambda m: -m.gain)
    return Unresolved(len(found) / draws, tuple(found))
