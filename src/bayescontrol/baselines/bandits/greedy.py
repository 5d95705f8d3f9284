"""Agents that take the mean of the rewards seen for what an arm pays, ½ before the first.

    ε-greedy    with probability ε α^t any arm, uniformly; else arg max_j x̄_j
    softmax     arm j with probability ∝ e^(x̄_j / τ_t),  τ_t = τ α^t

t = 1 for the first decision and grows with every reward. With α = 1 nothing decays. Sutton &
Barto (1998) have both; the control rule's paper prints α^-t, which grows, and means α^t.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np

from bayescontrol import kernels
from bayescontrol.baselines.bandits.agent import CountingAgent, real


class EpsilonGreedy(CountingAgent):
    """With probability ε α^t any arm, else the arm with the best mean. Rewards in [0, 1].

    >>> from bayescontrol.seeding import Stream
    >>> agent = EpsilonGreedy(2, epsilon=0.1, decay=0.99)
    >>> agent.observe(0, 0.4)
    >>> agent
    EpsilonGreedy(2 arms, epsilon=0.1, decay=0.99 after 1 rewards: 0 0.4 (1))
    >>> agent.indices()  # arm 1 is untried
    {0: 0.4, 1: 0.5}
    """

    format_name: ClassVar[str] = "EpsilonGreedy"

    kind: ClassVar[int] = 2

    def __init__(
        self, arms: int | Sequence[Hashable], *, epsilon: float = 0.1, decay: float = 1.0
    ) -> None:
        epsilon = real("epsilon", epsilon, 0.0, 1.0)
        decay = real("decay", decay, 0.0, 1.0, open_low=True)
        super().__init__(arms, [epsilon, decay], epsilon=epsilon, decay=decay)


class Softmax(CountingAgent):
    """Arm j with probability ∝ e^(x̄_j / τ α^t). Rewards in [0, 1].

    >>> agent = Softmax(2, temperature=0.5)
    >>> agent.observe(0, 1.0)
    >>> {a: round(p, 4) for a, p in agent.action_probabilities().items()}  # 1/(1 + e^-1)
    {0: 0.7311, 1: 0.2689}
    """

    format_name: ClassVar[str] = "Softmax"

    kind: ClassVar[int] = 3

    def __init__(
        self, arms: int | Sequence[Hashable], *, temperature: float = 0.1, decay: float = 1.0
    ) -> None:
        temperature = real("temperature", temperature, 0.0, 1e300, open_low=True)
        decay = real("decay", decay, 0.0, 1.0, open_low=True)
        super().__init__(arms, [temperature, decay], temperature=temperature, decay=decay)

    def action_probabilities(self) -> dict[Any, float]:
        """P(a) ∝ e^(x̄_a / τ α^t)."""
        temperature, decay = self._parameters
        out = np.array(list(self.indices().values()))
        kernels.policies.weights(out, kernels.policies.fading(temperature, decay, self.count), out)
        return dict(zip(self.arms, (out / out.sum()).tolist(), strict=True))
