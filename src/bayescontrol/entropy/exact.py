"""Bits against the horizon, and the two sums that everything here is made of.

    H(p) = -Σ p log2 p          KL(p ‖ q) = Σ p log2 (p / q)

0 log 0 = 0, and KL is infinite where q gives 0 to what p allows. A curve is cumulative: its
entry t - 1 is the sum over the steps 1 … t.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.entropy.tree import (
    GONE,
    InteractionTree,
    Weighting,
    ask,
    expect,
    require_system,
    weigh,
)
from bayescontrol.priors import TOLERANCE, as_prior
from bayescontrol.protocols import IOSystem


@dataclass(frozen=True)
class Bits:
    """Bits up to t = 1 … T, those for actions and those for observations: both cumulative.

    >>> Bits(np.array([0.5, 1.0]), np.array([0.25, 0.25])).total
    array([0.75, 1.25])
    """

    actions: FloatArray
    observations: FloatArray

    @property
    def total(self) -> FloatArray:
        """Both parts together."""
        return self.actions + self.observations


@dataclass(frozen=True)
class Estimate:
    """A mean over samples and its standard error, for each horizon.

    >>> Estimate.of(np.array([[1.0], [3.0]]))
    Estimate(mean=array([2.]), error=array([1.]))
    """

    mean: FloatArray
    error: FloatArray

    @classmethod
    def of(cls, samples: FloatArray) -> "Estimate":
        """Mean and s/√n over the first axis; where a sample is infinite, so are both."""
        mean, error = np.full((2, samples.shape[1]), np.inf)
        finite = np.isfinite(samples).all(axis=0)
        kept = samples[:, finite]
        mean[finite] = kept.mean(axis=0)
        if len(samples) > 1:
            error[finite] = kept.std(axis=0, ddof=1) / math.sqrt(len(samples))
        return cls(mean, error)


@dataclass(frozen=True)
class SampledBits:
    """What `Bits` holds, estimated: each part with its standard error.

    >>> one = Estimate(np.array([1.0]), np.array([0.1]))
    >>> SampledBits(one, one, one).total.error
    array([0.1])
    """

    actions: Estimate
    observations: Estimate
    total: Estimate


def kl(p: Mapping[Hashable, float], q: Mapping[Any, float]) -> float:
    """KL(p ‖ q) = Σ p log2 (p / q), in bits.

    >>> kl({"H": 1.0}, {"H": 0.25, "T": 0.75}), kl({"H": 0.5, "T": 0.5}, {"H": 1.0})
    (2.0, inf)
    """
    bits = 0.0
    for k, p_k in p.items():
        if p_k > 0.0:
            q_k = q.get(k, 0.0)
            if not q_k > 0.0:
                return math.inf
            bits += p_k * math.log2(p_k / q_k)
    return bits


def entropy_of(prior: npt.ArrayLike) -> float:
    """H(prior) = -Σ_m P(m) log2 P(m), in bits.

    >>> entropy_of([0.5, 0.25, 0.25])
    1.5
    """
    p = as_prior(prior, np.size(prior))
    p = p[p > 0.0]
    return float(-(p * np.log2(p)).sum()) + 0.0


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

    `weighting` says how interventions are weighted (see `bayescontrol.entropy.tree`);
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


def code_length(system: IOSystem[Any, Any, Any], record: Iterable[tuple[Any, Any]]) -> Bits:
    """L(ao_≤t) = -log2 Pr(ao_≤t) for every t of a record, in bits, actions and observations apart.

    The record is a `Record` or any stream of pairs (a, o). A symbol that Pr rules out has an
    infinitely long code; after such an action Pr may still expect observations.

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
        p_a = ask("the system", system.action_probabilities, s).get(a, 0.0)
        p_o = expect("the system", system, s, a, p_a).get(o, 0.0)
        s = system.advance(s, a, o) if p_o > 0.0 else GONE
        bits.append((_surprise(p_a), _surprise(p_o)))
    actions, observations = np.array(bits, np.float64).reshape(-1, 2).cumsum(axis=0).T
    return Bits(actions, observations)


def learning_cost(
    agent: IOSystem[Any, Any, Any],
    expert: IOSystem[Any, Any, Any],
    record: Iterable[tuple[Any, Any]],
) -> Bits:
    """L(ao_≤t) under the agent minus L(ao_≤t) under the expert P_m*: bits that learning cost.

    The part of the actions is -∞ once the record holds one that the expert would never take,
    and NaN once neither would; that of the observations does not suffer from it.

    >>> from bayescontrol import ControlRule, DiscreteMode, FiniteBelief
    >>> from bayescontrol.systems import AgentSystem, Situated
    >>> def coin(p): return DiscreteMode(lambda x: {"toss": 1.0}, lambda x, a: {"H": p, "T": 1 - p})
    >>> agent = AgentSystem(ControlRule(FiniteBelief([coin(1.0), coin(0.5)])))
    >>> learning_cost(agent, Situated(coin(1.0)), [("toss", "H")] * 3).observations.round(3)
    array([0.415, 0.678, 0.83 ])
    """
    stream = list(record)
    ours, best = code_length(agent, stream), code_length(expert, stream)
    with np.errstate(invalid="ignore"):  # ∞ - ∞ where neither would have done it
        return Bits(ours.actions - best.actions, ours.observations - best.observations)


def _surprise(p: float) -> float:
    return -math.log2(p) + 0.0 if p > 0.0 else math.inf
