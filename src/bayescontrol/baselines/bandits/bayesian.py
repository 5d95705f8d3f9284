"""Agents with a Beta posterior for every arm: θ_j ~ Beta(α + successes, β + failures).

    Bayes-UCB    the quantile x with P(θ_j > x) = 1/((t+1) (ln T)^c)         Kaufmann et al. (2012)
    KG           m_j + h (E[max_i m_i after this pull] - max_i m_i)          Ryzhov et al. (2012)
    IDS          π with the least (E regret)² / I(best arm; next reward)     Russo & Van Roy (2014)

t rewards were seen; m is the posterior mean. Rewards are 0 or 1, and all arms have one prior,
uniform by default. None of them needs every arm to be pulled first.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

from bayescontrol import kernels
from bayescontrol.baselines.bandits.agent import CountingAgent, beta_prior, horizon_of, real


class BayesUCB(CountingAgent):
    """arg max_j of the quantile of level 1 - 1/((t+1) (ln T)^c).

    The proof has c = 5, the authors advise 0, which needs no `horizon` T. At first all
    quantiles are 0, and any arm is pulled.

    >>> agent = BayesUCB(2)
    >>> agent.observe(0, 1)
    >>> {a: round(i, 4) for a, i in agent.indices().items()}  # medians: √½ and ½
    {0: 0.7071, 1: 0.5}
    """

    format_name: ClassVar[str] = "BayesUCB"

    kind: ClassVar[int] = 8
    support: ClassVar[int] = 2

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        *,
        c: float = 0.0,
        horizon: int | None = None,
        prior: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        c, (alpha, beta) = real("c", c, 0.0, 1e6), beta_prior(prior)
        if c and horizon is None:
            raise ValueError(f"c={c:g} needs a horizon: the quantile is of 1 - 1/(t (ln T)^c)")
        T = math.inf if horizon is None else horizon_of(horizon, 3)
        super().__init__(arms, [c, T, alpha, beta], c=c, horizon=horizon, prior=(alpha, beta))


class KnowledgeGradient(CountingAgent):
    """arg max_j m_j + h ν_j: what a pull pays, and what its news is worth to the pulls after it.

    ν_j is what one reward of arm j adds to max_i m_i on average, h = γ + … + γ^L for the L pulls
    that remain after this one: `horizon` T in all, a `discount` γ, or both. Once the horizon is
    over, h = 0 and it is greedy.

    >>> agent = KnowledgeGradient(2, horizon=11)
    >>> agent.observe(0, 1)
    >>> {a: round(i, 4) for a, i in agent.indices().items()}  # one reward of arm 1: no better
    {0: 0.6667, 1: 0.5}
    """

    format_name: ClassVar[str] = "KnowledgeGradient"

    kind: ClassVar[int] = 9
    support: ClassVar[int] = 2

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        *,
        horizon: int | None = None,
        discount: float | None = None,
        prior: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        if horizon is None and discount is None:
            raise ValueError("what news is worth needs a horizon=, a discount= below 1, or both")
        alpha, beta = beta_prior(prior)
        T = math.inf if horizon is None else horizon_of(horizon)
        highest = 1.0 if horizon is not None else math.nextafter(1.0, 0.0)
        gamma = 1.0 if discount is None else real("discount", discount, 0.0, highest, open_low=True)
        super().__init__(
            arms, [T, gamma, alpha, beta], horizon=horizon, discount=discount, prior=(alpha, beta)
        )


class InformationDirected(CountingAgent):
    """Draws from the pair of arms and the odds with the least Δ(π)² / g(π).

    Δ is what a pull is expected to lose, g what it tells about which arm is best, in nats; both by
    quadrature to 1e-10, and ratios within 1e-9 of each other count as equal.

    >>> agent = InformationDirected(2)
    >>> agent.observe(0, 1)
    >>> {a: round(d, 10) for a, d in agent.expected_gap().items()}  # 3/4 - 2/3 and 3/4 - 1/2
    {0: 0.0833333333, 1: 0.25}
    """

    format_name: ClassVar[str] = "InformationDirected"

    kind: ClassVar[int] = 10
    support: ClassVar[int] = 2

    def __init__(
        self, arms: int | Sequence[Hashable], *, prior: tuple[float, float] = (1.0, 1.0)
    ) -> None:
        # Below this, mass lies where 1 - θ is no double.
        alpha, beta = beta_prior(prior, least=0.1)
        super().__init__(arms, [alpha, beta], prior=(alpha, beta))

    def _row(self, row: int) -> dict[Any, float]:
        n, s, _ = self._counts
        alpha, beta = self._parameters
        work = self._room()
        kernels.information_directed.information(alpha, beta, n, s, work)
        return dict(zip(self.arms, work[row].tolist(), strict=True))

    def expected_gap(self) -> dict[Any, float]:
        """Δ_i = E[θ_best - θ_i]: what one pull of arm i is expected to lose."""
        return self._row(kernels.information_directed.REGRET)

    def gain(self) -> dict[Any, float]:
        """g_i = I(which arm is best; the next reward of arm i), in nats."""
        return self._row(kernels.information_directed.GAIN)

    def indices(self) -> dict[Any, float]:
        """-Δ_i²/g_i: what each arm would be worth alone; the agent mixes two."""
        gap, gain = self.expected_gap(), self.gain()
        ratio = kernels.information_directed.ratio
        return {a: -ratio(gap[a], gain[a], gap[a], gain[a], 1.0) for a in self.arms}
