"""D, C and I(m; history) by enumeration of the interaction tree.

    D(Pr) = Σ_m P(m) Σ_τ (D_m^{a_τ} + D_m^{o_τ})
    D_m^{a_τ} = Σ_{ao_<τ} P_m(ao_<τ) KL(P_m(· | ao_<τ) ‖ Pr(· | ao_<τ)), and D_m^{o_τ} alike

C is the same with past actions as interventions: P(âo_<τ | m) = Π P(o | m, ·) in place of
P_m(ao_<τ), and each intervention weighted. D of the naive mixture is I(m; ao_≤t); the
observations' part of C of the rule is I(m; âo_≤t), the actions being drawn by the weighting.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.entropy.curves import Bits
from bayescontrol.entropy.tree import InteractionTree
from bayescontrol.entropy.weighting import Weighting, weigh
from bayescontrol.priors import TOLERANCE
from bayescontrol.protocols import IOSystem

Modes = Sequence[IOSystem[Any, Any, Any]]


def relative_entropy(
    agent: IOSystem[Any, Any, Any],
    modes: Modes,
    prior: npt.ArrayLike,
    horizon: int,
    *,
    limit: float = 1_000_000,
) -> Bits:
    """D(Pr) up to t = 1 … horizon, in bits: how far the agent is from the right expert.

    Expert m tosses coin m. An agent that expects a fair coin loses half of what the bent
    coin could tell, 1 - H(0.9) bits a toss.

    >>> from bayescontrol import DiscreteMode
    >>> from bayescontrol.systems import Situated
    >>> def coin(p): return Situated(DiscreteMode(lambda x: {"toss": 1.0},
    ...                                           lambda x, a: {"H": p, "T": 1 - p}))
    >>> relative_entropy(coin(0.5), [coin(0.5), coin(0.9)], [0.5, 0.5], horizon=3).total.round(4)
    array([0.2655, 0.531 , 0.7965])
    """
    tree = InteractionTree(modes, prior, horizon, limit=limit)
    return relative_entropy_on(tree, tree.tabulate(agent))


def intervened_relative_entropy(
    agent: IOSystem[Any, Any, Any],
    modes: Modes,
    prior: npt.ArrayLike,
    horizon: int,
    weighting: Weighting = "closed-loop",
    *,
    actions: Sequence[Any] | None = None,
    limit: float = 1_000_000,
) -> Bits:
    """C(Pr) up to t = 1 … horizon, in bits, past actions being interventions.

    `weighting` says how interventions are weighted (see `bayescontrol.entropy.weighting`);
    "uniform" and "printed" need to know all `actions`.

    >>> from bayescontrol import DiscreteMode
    >>> from bayescontrol.systems import Situated
    >>> def expert(box): return Situated(DiscreteMode(lambda x: {box: 1.0},
    ...                                               lambda x, a: {a == box: 1.0}))
    >>> fair = Situated(DiscreteMode(lambda x: {0: 0.5, 1: 0.5},
    ...                              lambda x, a: {True: 0.5, False: 0.5}))
    >>> experts, prior = [expert(0), expert(1)], [0.5, 0.5]
    >>> for weighting in ("closed-loop", "uniform", "printed"):
    ...     intervened_relative_entropy(fair, experts, prior, 2, weighting, actions=[0, 1]).total
    array([2., 4.])
    array([2., 4.])
    array([3., 9.])
    """
    tree = InteractionTree(modes, prior, horizon, actions=actions, limit=limit)
    return relative_entropy_on(tree, tree.tabulate(agent), weigh(tree, weighting))


def mutual_information(
    modes: Modes,
    prior: npt.ArrayLike,
    horizon: int,
    weighting: Weighting | None = None,
    *,
    actions: Sequence[Any] | None = None,
    limit: float = 1_000_000,
) -> FloatArray:
    """I(m; ao_≤t) for t = 1 … horizon, in bits: m ~ P(m), then the history from P_m.

    With a weighting, actions are interventions drawn by it, and tell nothing by themselves.

    >>> from bayescontrol import DiscreteMode
    >>> from bayescontrol.systems import Situated
    >>> def expert(box): return Situated(DiscreteMode(lambda x: {box: 0.75, 1 - box: 0.25},
    ...                                               lambda x, a: {a == box: 1.0}))
    >>> mutual_information([expert(0), expert(1)], [0.5, 0.5], horizon=2)
    array([1., 1.])
    """
    tree = InteractionTree(modes, prior, horizon, actions=actions, limit=limit)
    return information_on(tree, None if weighting is None else weigh(tree, weighting))


def relative_entropy_on(
    tree: InteractionTree,
    q: Sequence[FloatArray],
    weights: Sequence[FloatArray] | None = None,
) -> Bits:
    """Σ_{m,e} W[m, e] p[m, e] log2 (p[m, e] / q[e]): D, or with weights of interventions C.

    `q` is what `tree.tabulate` gives, `weights` what `weigh` gives. An agent that knows m,
    the oracle, has q[m, e] = p[m, e].

    >>> from bayescontrol import DiscreteMode
    >>> from bayescontrol.systems import Situated
    >>> coin = Situated(DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 0.5, "T": 0.5}))
    >>> tree = InteractionTree([coin], [1.0], horizon=1)
    >>> relative_entropy_on(tree, [np.array([1.0]), np.array([0.25, 0.75])]).total.round(6)
    array([0.207519])
    """
    bits = np.zeros((2, tree.horizon))
    for k, (stage, W) in enumerate(tree.walk(weights)):
        joint = W * stage.p
        q_e = np.broadcast_to(q[k], joint.shape)
        allowed = joint > 0.0
        with np.errstate(divide="ignore"):  # KL is infinite where q = 0
            terms = joint[allowed] * np.log2(stage.p[allowed] / q_e[allowed])
        bits[k % 2, k // 2] = terms.sum()
    return Bits(*bits.cumsum(axis=1))


def information_on(
    tree: InteractionTree, weights: Sequence[FloatArray] | None = None
) -> FloatArray:
    """I(m; h) = Σ_{m,h} P(m, h) log2 (P(m, h) / (P(m) P(h))), h of length t = 1 … T.

    >>> from bayescontrol import DiscreteMode
    >>> from bayescontrol.systems import Situated
    >>> def sure(o): return Situated(DiscreteMode(lambda x: {"look": 1.0}, lambda x, a: {o: 1.0}))
    >>> information_on(InteractionTree([sure(0), sure(1)], [0.5, 0.5], horizon=1))
    array([1.])
    """
    bits = []
    for stage, W in tree.walk(weights):
        if not stage.is_action:
            joint = W * stage.p
            if abs(joint.sum() - 1.0) > TOLERANCE * tree.horizon:
                raise ValueError(
                    f"the weights of interventions give {joint.sum():.6g} histories, not a "
                    "probability distribution over them: 'printed' is no weighting for that"
                )
            independent = tree.prior[:, None] * joint.sum(axis=0)
            allowed = joint > 0.0
            bits.append((joint[allowed] * np.log2(joint[allowed] / independent[allowed])).sum())
    return np.array(bits)
