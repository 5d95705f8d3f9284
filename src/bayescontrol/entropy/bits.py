"""D, C and I(m; history) in bits, by enumeration of the interaction tree, and code lengths.

    D(Pr) = Σ_m P(m) Σ_τ (D_m^{a_τ} + D_m^{o_τ})
    D_m^{a_τ} = Σ_{ao_<τ} P_m(ao_<τ) KL(P_m(· | ao_<τ) ‖ Pr(· | ao_<τ)), and D_m^{o_τ} alike
    H(p) = -Σ p log2 p          KL(p ‖ q) = Σ p log2 (p / q)

C treats past actions as interventions: P(âo_<τ | m) = Π P(o | m, ·) replaces P_m(ao_<τ), and each
intervention is weighted. D of the naive mixture is I(m; ao_≤t). The observation part of C of the
rule is I(m; âo_≤t), with actions drawn from the weighting. Here 0 log 0 = 0, and KL is infinite
where q = 0 < p. Arrays of bits have shape (T,) and are cumulative: entry t - 1 is the sum over
steps 1 … t.

The ideal code of an interaction, and the cost of learning:

    L(ao_≤t) = -log2 Pr(ao_≤t) = -Σ_τ (log2 Pr(a_τ | ao_<τ) + log2 Pr(o_τ | ao_<τ a_τ))
    cost     = L under the agent - L under the expert of the true mode m*

On histories from P_m*, m* ~ P(m), the mean cost is D: the average of `learning_cost` over simulated
records estimates D if the tree is too large to enumerate. The naive mixture contains every P_m with
weight P(m), so it never pays more than -log2 P(m*); neither does the control rule for observations.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol._support.priors import TOLERANCE, as_prior
from bayescontrol.entropy.tree import (
    RULED_OUT,
    InteractionTree,
    System,
    Tables,
    conditional,
    conditional_observation,
    require_system,
)


@dataclass(frozen=True)
class Bits:
    """Cumulative bits up to t = 1 … T, for actions and for observations: two arrays (T,).

    >>> Bits(np.array([0.5, 1.0]), np.array([0.25, 0.25])).total
    array([0.75, 1.25])
    """

    actions: FloatArray
    observations: FloatArray

    @property
    def total(self) -> FloatArray:
        """Return the sum of both parts."""
        return self.actions + self.observations


def entropy_of(prior: ArrayLike) -> float:
    """Return H(prior) = -Σ_m P(m) log2 P(m), in bits.

    >>> entropy_of([0.5, 0.25, 0.25])
    1.5
    """
    p = as_prior(prior, np.size(prior))
    p = p[p > 0.0]
    return float(-(p * np.log2(p)).sum()) + 0.0  # -0. becomes 0.


def relative_entropy(tree: InteractionTree, q: Tables, weights: Tables | None = None) -> Bits:
    """Return Σ_{m,e} W[m, e] p[m, e] log2 (p[m, e] / q[e]) up to t = 1 … T, in bits.

    The sum runs over modes m and edges e of the tree. It is D, or C if `weights` are given: the
    divergence of the agent from the expert of the true mode. `q` is the result of
    `tree.tabulate(agent)`, `weights` that of `weigh`. An array of `q` may also have shape (M, E):
    for an agent that knows m, the oracle, q[m, e] = p[m, e].

    Expert m expects coin m. An agent that always expects a fair coin pays 1 - H(0.9) bits per toss
    if the coin is biased, which happens half of the time.

    >>> from bayescontrol import DiscreteMode
    >>> from bayescontrol.systems import Situated
    >>> def coin(p): return Situated(DiscreteMode(lambda x: {"toss": 1.0},
    ...                                           lambda x, a: {"H": p, "T": 1 - p}))
    >>> tree = InteractionTree([coin(0.5), coin(0.9)], [0.5, 0.5], horizon=3)
    >>> relative_entropy(tree, tree.tabulate(coin(0.5))).total.round(4)
    array([0.2655, 0.531 , 0.7965])

    With past actions as interventions:

    >>> from bayescontrol.entropy import weigh
    >>> def expert(box): return Situated(DiscreteMode(lambda x: {box: 1.0},
    ...                                               lambda x, a: {a == box: 1.0}))
    >>> fair = Situated(DiscreteMode(lambda x: {0: 0.5, 1: 0.5},
    ...                              lambda x, a: {True: 0.5, False: 0.5}))
    >>> tree = InteractionTree([expert(0), expert(1)], [0.5, 0.5], horizon=2, actions=[0, 1])
    >>> for weighting in ("closed-loop", "uniform", "printed"):
    ...     relative_entropy(tree, tree.tabulate(fair), weigh(tree, weighting)).total
    array([2., 4.])
    array([2., 4.])
    array([3., 9.])
    """
    bits = np.zeros((2, tree.horizon))
    for k, (stage, W) in enumerate(tree.walk(weights)):
        joint = W * stage.p
        q_e = np.broadcast_to(q[k], joint.shape)
        allowed = joint > 0.0
        with np.errstate(divide="ignore"):  # KL is infinite where q = 0
            terms = joint[allowed] * np.log2(stage.p[allowed] / q_e[allowed])
        bits[k % 2, k // 2] = terms.sum()  # stage k is a_t for even k, o_t for odd, t = k // 2 + 1
    return Bits(*bits.cumsum(axis=1))


def mutual_information(tree: InteractionTree, weights: Tables | None = None) -> FloatArray:
    """Return I(m; h) = Σ_{m,h} P(m, h) log2 (P(m, h) / (P(m) P(h))), h of length t = 1 … T.

    In bits, for m ~ P(m) and a history h from P_m; shape (T,). With `weights`, as from `weigh`,
    actions are interventions and are no evidence by themselves.

    >>> from bayescontrol import DiscreteMode
    >>> from bayescontrol.systems import Situated
    >>> def sure(o): return Situated(DiscreteMode(lambda x: {"look": 1.0}, lambda x, a: {o: 1.0}))
    >>> mutual_information(InteractionTree([sure(0), sure(1)], [0.5, 0.5], horizon=1))
    array([1.])
    """
    bits = []
    # The stages o_1, o_2, … complete the histories of length 1, 2, …
    for stage, W in islice(tree.walk(weights), 1, None, 2):
        joint = W * stage.p
        if abs(joint.sum() - 1.0) > TOLERANCE * tree.horizon:
            raise ValueError(
                f"the weights of interventions sum to {joint.sum():.6g} over histories, not to 1: "
                "use a weighting other than 'printed'"
            )
        independent = tree.prior[:, None] * joint.sum(axis=0)
        allowed = joint > 0.0
        bits.append((joint[allowed] * np.log2(joint[allowed] / independent[allowed])).sum())
    return np.array(bits)


def code_length(system: System, record: Iterable[tuple[Any, Any]]) -> Bits:
    """Return L(ao_≤t) = -log2 Pr(ao_≤t) for every t of a record, for actions and observations.

    The record is a `Record` or any iterable of pairs (a, o). A symbol of probability 0 has an
    infinitely long code; after such an action Pr may still predict observations.

    >>> from bayescontrol import DiscreteMode, Record
    >>> from bayescontrol.systems import Situated
    >>> coin = Situated(DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": 0.5, "T": 0.5}))
    >>> code_length(coin, Record(["toss", "toss", "pass"], ["H", "T", "H"]))
    Bits(actions=array([ 0.,  0., inf]), observations=array([1., 2., 3.]))
    """
    require_system("the system", system)
    s: Any = system.start()
    bits: list[tuple[float, float]] = []
    for a, o in record:
        p_a = conditional("the system", system, s).get(a, 0.0)
        p_o = conditional_observation("the system", system, s, a, p_a).get(o, 0.0)
        s = system.advance(s, a, o) if p_o > 0.0 else RULED_OUT
        bits.append((_surprise(p_a), _surprise(p_o)))
    return Bits(*np.array(bits, np.float64).reshape(-1, 2).cumsum(axis=0).T)


def learning_cost(agent: System, expert: System, record: Iterable[tuple[Any, Any]]) -> Bits:
    """Return L(ao_≤t) under the agent minus L(ao_≤t) under the expert P_m*: the cost of learning.

    The action part is -∞ from the first action on that the expert would never take, and NaN from
    the first one on that neither would take. The observation part is not affected.

    >>> from bayescontrol import ControlRule, DiscreteMode, FiniteBelief
    >>> from bayescontrol.systems import AgentSystem, Situated
    >>> def coin(p): return DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": p, "T": 1 - p})
    >>> agent = AgentSystem(ControlRule(FiniteBelief([coin(1.0), coin(0.5)])))
    >>> learning_cost(agent, Situated(coin(1.0)), [("toss", "H")] * 3).observations.round(3)
    array([0.415, 0.678, 0.83 ])
    """
    history = list(record)
    L, L_star = code_length(agent, history), code_length(expert, history)
    with np.errstate(invalid="ignore"):  # ∞ - ∞ if both give the action probability 0
        return Bits(L.actions - L_star.actions, L.observations - L_star.observations)


def _surprise(p: float) -> float:
    """Return -log2 p, which is infinite for p = 0."""
    return -math.log2(p) + 0.0 if p > 0.0 else math.inf  # -0. becomes 0.
