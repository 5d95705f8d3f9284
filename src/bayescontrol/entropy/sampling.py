"""Estimate D and C by sampling, for trees that are too large to enumerate.

    draw m ~ P(m) and a history: o_τ ~ P_m; a_τ ~ P_m for D, from the weighting for C
    at each history visited add  Σ_m w_m KL(P_m(· | history) ‖ Pr(· | history))

with w_m = P(m | history), where actions are evidence for D and interventions for C. Only the path
is random: the relative entropy of the next symbol and the average over m given the path are
exact (Rao-Blackwell), so the estimate is unbiased and has low variance.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.entropy.exact import Estimate, SampledBits, kl
from bayescontrol.entropy.tree import (
    RULED_OUT,
    Probabilities,
    Weighting,
    as_policy,
    check_actions,
    conditional,
    conditional_observation,
    require_named,
    require_system,
)
from bayescontrol.mode_queries import draw_from
from bayescontrol.priors import as_prior
from bayescontrol.protocols import IOSystem
from bayescontrol.seeding import Stream, as_stream


def sampled_relative_entropy(
    agent: IOSystem[Any, Any, Any],
    modes: Sequence[IOSystem[Any, Any, Any]],
    prior: npt.ArrayLike,
    horizon: int,
    samples: int = 1000,
    *,
    weighting: Weighting | None = None,
    actions: Sequence[Any] | None = None,
    seed: int | Stream = 0,
) -> SampledBits:
    """Estimate D(Pr), or C(Pr) with a weighting, up to t = 1 … horizon: means and standard errors.

    The weighting must be a distribution: any but "printed".

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
    sampler, rng = _Sampler(agent, modes, prior, weighting, actions), as_stream(seed)
    bits = np.zeros((2, samples, horizon))
    for i in range(samples):
        sampler.draw_path(bits[:, i], rng)
    of_actions, of_observations = bits.cumsum(axis=2)
    return SampledBits(
        *(Estimate.of(part) for part in (of_actions, of_observations, of_actions + of_observations))
    )


class _Sampler:
    """Draw histories and add up relative entropies along them."""

    def __init__(
        self,
        agent: IOSystem[Any, Any, Any],
        modes: Sequence[IOSystem[Any, Any, Any]],
        prior: npt.ArrayLike,
        weighting: Weighting | None,
        actions: Sequence[Any] | None,
    ) -> None:
        require_system("the agent", agent)
        for m, mode in enumerate(modes):
            require_system(f"mode {m}", mode)
        self.prior = as_prior(prior, len(modes))
        self.agent, self.modes = agent, modes
        self.weighting = weighting
        self.actions = None if actions is None else tuple(dict.fromkeys(actions))
        named = weighting is None or isinstance(weighting, str)
        self.policy = None if named else as_policy(weighting)

    def draw_path(self, bits: FloatArray, rng: Stream) -> None:
        """Fill bits[0, t] for a_t and bits[1, t] for o_t along one history."""
        true = rng.categorical(self.prior)
        w = self.prior.copy()
        states = [
            mode.start() if w_m > 0.0 else RULED_OUT
            for mode, w_m in zip(self.modes, w, strict=True)
        ]
        s, r = self.agent.start(), self.policy.start() if self.policy else None
        for t in range(bits.shape[1]):
            answers = [
                conditional(f"mode {m}", mode.action_probabilities, x)
                for m, (mode, x) in enumerate(zip(self.modes, states, strict=True))
            ]
            q = conditional("the agent", self.agent.action_probabilities, s)
            bits[0, t] = _mean_kl(w, answers, q)
            a = draw_from(
                answers[true] if self.weighting is None else self._weights(w, answers, r), rng
            )
            if self.weighting is None:
                w = _condition(w, answers, a)
            states = [x if w_m > 0.0 else RULED_OUT for x, w_m in zip(states, w, strict=True)]
            answers = [
                conditional(f"mode {m}", mode.observation_probabilities, x, a)
                for m, (mode, x) in enumerate(zip(self.modes, states, strict=True))
            ]
            q = conditional_observation("the agent", self.agent, s, a, q.get(a, 0.0))
            bits[1, t] = _mean_kl(w, answers, q)
            o = draw_from(answers[true], rng)
            w = _condition(w, answers, o)
            states = [
                mode.advance(x, a, o) if w_m > 0.0 else RULED_OUT
                for mode, x, w_m in zip(self.modes, states, w, strict=True)
            ]
            s = self.agent.advance(s, a, o) if q.get(o, 0.0) > 0.0 else RULED_OUT
            r = self.policy.advance(r, a, o) if self.policy else None

    def _weights(self, v: FloatArray, answers: list[Probabilities], r: Any) -> Probabilities:
        """Return weight(â | ao_<t), from which the intervention is drawn."""
        for m, policy in enumerate(answers):
            check_actions(f"mode {m}", policy, self.actions)
        possible = self.actions or tuple(
            dict.fromkeys(a for policy in answers for a, p in policy.items() if p > 0.0)
        )
        if self.weighting == "uniform":
            return dict.fromkeys(possible, 1.0 / len(possible))
        if self.policy is None:
            pairs = list(zip(v, answers, strict=True))
            return {a: sum(float(v_m) * p.get(a, 0.0) for v_m, p in pairs) for a in possible}
        weights = conditional("the weighting", self.policy.action_probabilities, r)
        check_actions("the weighting", weights, possible)
        return weights


def _mean_kl(w: FloatArray, answers: list[Probabilities], q: Probabilities) -> float:
    return sum(float(w_m) * kl(p, q) for w_m, p in zip(w, answers, strict=True) if w_m > 0.0)


def _condition(w: FloatArray, answers: list[Probabilities], symbol: Any) -> FloatArray:
    w = w * [answer.get(symbol, 0.0) for answer in answers]
    return np.asarray(w / w.sum(), np.float64)
