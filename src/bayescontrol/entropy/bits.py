"""D, C and I(m; history) in bits, by enumeration of the interaction tree or by sampling.

    D(Pr) = Σ_m P(m) Σ_τ (D_m^{a_τ} + D_m^{o_τ})
    D_m^{a_τ} = Σ_{ao_<τ} P_m(ao_<τ) KL(P_m(· | ao_<τ) ‖ Pr(· | ao_<τ)), and D_m^{o_τ} alike
    H(p) = -Σ p log2 p          KL(p ‖ q) = Σ p log2 (p / q)

C treats past actions as interventions: P(âo_<τ | m) = Π P(o | m, ·) replaces P_m(ao_<τ), and each
intervention is weighted. D of the naive mixture is I(m; ao_≤t). The observation part of C of the
rule is I(m; âo_≤t), with actions drawn from the weighting. Here 0 log 0 = 0, and KL is infinite
where q = 0 < p. Arrays of bits have shape (T,) and are cumulative: entry t - 1 is the sum over
steps 1 … t.

Sampling is for trees that are too large to enumerate:

    draw m* ~ P(m) and a history: o_τ ~ P_m*; a_τ ~ P_m* for D, from the weighting for C
    at each visited history h add  Σ_m w_m KL(P_m(· | h) ‖ Pr(· | h)),   w_m = P(m | h)

Actions in h are evidence for D and interventions for C. Only the history is random: KL and the
average over m are exact (Rao-Blackwell), so the estimate is unbiased and has low variance.

The ideal code of an interaction, and the cost of learning:

    L(ao_≤t) = -log2 Pr(ao_≤t) = -Σ_τ (log2 Pr(a_τ | ao_<τ) + log2 Pr(o_τ | ao_<τ a_τ))
    cost     = L under the agent - L under the expert of the true mode m*

On histories from P_m*, m* ~ P(m), the mean cost is D. The naive mixture contains every P_m with
weight P(m), so it never pays more than -log2 P(m*); neither does the control rule for observations.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol._mode_queries import draw_from
from bayescontrol._support.priors import TOLERANCE, as_prior
from bayescontrol.entropy.tree import (
    RULED_OUT,
    InteractionTree,
    ModeSystems,
    Probabilities,
    Weighting,
    as_policy,
    check_actions,
    conditional,
    conditional_observation,
    possible_symbols,
    require_named,
    require_system,
)
from bayescontrol.protocols import IOSystem
from bayescontrol.seeding import SeedLike, Stream, as_stream
from bayescontrol.statistics import mean_and_error


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


@dataclass(frozen=True)
class Estimate:
    """A mean over samples and its standard error, for each horizon t = 1 … T: two arrays (T,).

    >>> Estimate.of(np.array([[1.0], [3.0]]))
    Estimate(mean=array([2.]), error=array([1.]))
    """

    mean: FloatArray
    error: FloatArray

    @classmethod
    def of(cls, samples: FloatArray) -> "Estimate":
        """Return mean and standard error of n samples, shape (n, T); both are ∞ if a sample is."""
        mean, error = np.full((2, samples.shape[1]), np.inf)
        finite = np.isfinite(samples).all(axis=0)
        mean[finite], error[finite] = mean_and_error(samples[:, finite])
        return cls(mean, error)


@dataclass(frozen=True)
class SampledBits:
    """Estimates of `Bits`: each part with its standard error.

    >>> one = Estimate(np.array([1.0]), np.array([0.1]))
    >>> SampledBits(one, one, one).total.error
    array([0.1])
    """

    actions: Estimate
    observations: Estimate
    total: Estimate


def kl(p: Mapping[Hashable, float], q: Mapping[Any, float]) -> float:
    """Return KL(p ‖ q) = Σ_k p(k) log2 (p(k) / q(k)), in bits, of two mappings {k: probability}.

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


def entropy_of(prior: ArrayLike) -> float:
    """Return H(prior) = -Σ_m P(m) log2 P(m), in bits.

    >>> entropy_of([0.5, 0.25, 0.25])
    1.5
    """
    p = as_prior(prior, np.size(prior))
    p = p[p > 0.0]
    return float(-(p * np.log2(p)).sum()) + 0.0


def relative_entropy(
    tree: InteractionTree, q: Sequence[FloatArray], weights: Sequence[FloatArray] | None = None
) -> Bits:
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
        bits[k % 2, k // 2] = terms.sum()
    return Bits(*bits.cumsum(axis=1))


def mutual_information(
    tree: InteractionTree, weights: Sequence[FloatArray] | None = None
) -> FloatArray:
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
    for stage, W in tree.walk(weights):
        if not stage.is_action:
            joint = W * stage.p
            if abs(joint.sum() - 1.0) > TOLERANCE * tree.horizon:
                raise ValueError(
                    f"the weights of interventions sum to {joint.sum():.6g} over histories, not to "
                    "1: use a weighting other than 'printed'"
                )
            independent = tree.prior[:, None] * joint.sum(axis=0)
            allowed = joint > 0.0
            bits.append((joint[allowed] * np.log2(joint[allowed] / independent[allowed])).sum())
    return np.array(bits)


def sampled_relative_entropy(
    agent: IOSystem[Any, Any, Any],
    modes: Sequence[IOSystem[Any, Any, Any]],
    prior: ArrayLike,
    horizon: int,
    samples: int = 1000,
    *,
    weighting: Weighting | None = None,
    actions: Sequence[Any] | None = None,
    seed: SeedLike = 0,
) -> SampledBits:
    """Estimate D(Pr), or C(Pr) with a weighting, up to t = 1 … horizon: means and standard errors.

    `samples` is the number of histories. The weighting must be a distribution: any but "printed".
    `modes`, `prior` and `actions` are those of `InteractionTree`.

    >>> from bayescontrol import DiscreteMode
    >>> from bayescontrol.systems import Situated
    >>> def coin(p): return Situated(DiscreteMode(lambda x: {"toss": 1.0},
    ...                                           lambda x, a: {"H": p, "T": 1 - p}))
    >>> D = sampled_relative_entropy(coin(0.5), [coin(0.5), coin(0.9)], [0.5, 0.5], 30, samples=99)
    >>> bool(abs(D.total.mean[-1] - 30 * 0.2655) < 5 * D.total.error[-1])
    True
    >>> def expert(box): return Situated(DiscreteMode(lambda x: {box: 1.0},
    ...                                               lambda x, a: {a == box: 1.0}))
    >>> fair = Situated(DiscreteMode(lambda x: {0: 0.5, 1: 0.5},
    ...                              lambda x, a: {True: 0.5, False: 0.5}))
    >>> sampled_relative_entropy(fair, [expert(0), expert(1)], [0.5, 0.5], 3,
    ...                          weighting="closed-loop").total
    Estimate(mean=array([2., 4., 6.]), error=array([0., 0., 0.]))
    """
    if isinstance(weighting, str):
        require_named(weighting, actions)
        if weighting == "printed":
            raise ValueError(
                "the weighting 'printed' is not a distribution and cannot be sampled: use "
                "relative_entropy, or another weighting"
            )
    if horizon < 1 or samples < 1:
        raise ValueError(f"horizon={horizon}, samples={samples}: both must be at least 1")
    require_system("the agent", agent)
    # Actions are checked only if they are interventions.
    systems = ModeSystems(modes, prior, None if weighting is None else actions)
    is_named = weighting is None or isinstance(weighting, str)
    sampler = _Sampler(agent, systems, weighting, None if is_named else as_policy(weighting))
    rng = as_stream(seed)
    bits = np.zeros((2, samples, horizon))
    for i in range(samples):
        sampler.draw_path(bits[:, i], rng)
    actions_bits, observation_bits = bits.cumsum(axis=2)
    parts = (actions_bits, observation_bits, actions_bits + observation_bits)
    return SampledBits(*map(Estimate.of, parts))


class _Sampler(NamedTuple):
    """Draws histories and adds up relative entropies along them."""

    agent: IOSystem[Any, Any, Any]
    modes: ModeSystems
    weighting: Weighting | None
    #: The weighting as a policy, unless it is a name or None.
    policy: Any

    def draw_path(self, bits: FloatArray, rng: Stream) -> None:
        """Draw m* and a history; write the relative entropies of its steps to bits, shape (2, T).

        bits[0, t] is that of a_t, bits[1, t] that of o_t.
        """
        w, states = self.modes.prior, self.modes.start()
        m_star = rng.categorical(w)
        s, s_policy = self.agent.start(), self.policy.start() if self.policy else None
        for t in range(bits.shape[1]):
            policies = self.modes.policies(states)
            q = conditional("the agent", self.agent, s)
            bits[0, t] = _mean_kl(w, policies, q)
            if self.weighting is None:  # the action is evidence
                a = draw_from(policies[m_star], rng)
                w = _condition(w, policies, a)
            else:
                a = draw_from(self._weights(w, policies, s_policy), rng)
            states = [x if w_m > 0.0 else RULED_OUT for x, w_m in zip(states, w, strict=True)]
            predictions = self.modes.predictions(states, a)
            q = conditional_observation("the agent", self.agent, s, a, q.get(a, 0.0))
            bits[1, t] = _mean_kl(w, predictions, q)
            o = draw_from(predictions[m_star], rng)
            w = _condition(w, predictions, o)
            states = self.modes.advance(states, a, o, w > 0.0)
            s = self.agent.advance(s, a, o) if q.get(o, 0.0) > 0.0 else RULED_OUT
            s_policy = self.policy.advance(s_policy, a, o) if self.policy else None

    def _weights(
        self, w: FloatArray, policies: list[Probabilities], s_policy: object
    ) -> Probabilities:
        """Return weight(â | ao_<t) of every possible â; `s_policy` is the state of the policy."""
        possible = self.modes.actions or possible_symbols(policies)
        if self.weighting == "uniform":
            return dict.fromkeys(possible, 1.0 / len(possible))
        if self.policy is None:  # closed-loop
            pairs = list(zip(w, policies, strict=True))
            return {a: sum(float(w_m) * p.get(a, 0.0) for w_m, p in pairs) for a in possible}
        weights = conditional("the weighting", self.policy, s_policy)
        check_actions("the weighting", weights, possible)
        return weights


def _mean_kl(w: FloatArray, p: list[Probabilities], q: Probabilities) -> float:
    """Return Σ_m w_m KL(p_m ‖ q), the mean over the modes with positive weight."""
    return sum(float(w_m) * kl(p_m, q) for w_m, p_m in zip(w, p, strict=True) if w_m > 0.0)


def _condition(w: FloatArray, p: list[Probabilities], symbol: object) -> FloatArray:
    """Return the weights of the modes after this symbol: w_m ∝ w_m p_m(symbol)."""
    w = w * [p_m.get(symbol, 0.0) for p_m in p]
    return np.asarray(w / w.sum(), np.float64)


def code_length(system: IOSystem[Any, Any, Any], record: Iterable[tuple[Any, Any]]) -> Bits:
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


def learning_cost(
    agent: IOSystem[Any, Any, Any],
    expert: IOSystem[Any, Any, Any],
    record: Iterable[tuple[Any, Any]],
) -> Bits:
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
    of_agent, of_expert = code_length(agent, history), code_length(expert, history)
    with np.errstate(invalid="ignore"):  # ∞ - ∞ if both give the action probability 0
        return Bits(
            of_agent.actions - of_expert.actions, of_agent.observations - of_expert.observations
        )


def _surprise(p: float) -> float:
    """Return -log2 p, which is infinite for p = 0."""
    return -math.log2(p) + 0.0 if p > 0.0 else math.inf
