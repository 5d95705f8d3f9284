"""Optimism: pull the arm whose mean reward could be the largest.

    UCB1         x̄ + √(2 ln t / n)                                        Auer, Cesa-Bianchi &
    UCB-tuned    x̄ + √(ln t / n · min(¼, V)),  V = q/n - x̄² + √(2 ln t / n)  Fischer (2002)
    MOSS         x̄ + √(max(0, ln T/(N n)) / n)                            Audibert & Bubeck (2009)
    KL-UCB       max{x : n KL(x̄ ‖ x) ≤ ln(t+1) + c max(0, ln ln(t+1))}    Garivier & Cappé (2011)

t rewards were seen in all, n of them of this arm. Rewards are in [0, 1]. Each arm is pulled once
before any twice: the papers leave the order open or take the first arm first; here it is random.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from bayescontrol.baselines.bandits.agent import CountingAgent, horizon_of, real


class UCB1(CountingAgent):
    """arg max_j x̄_j + √(2 ln t / n_j), the first policy of Auer et al.

    >>> agent = UCB1(2)
    >>> for arm, reward in ((0, 1), (1, 0), (0, 0)):
    ...     agent.observe(arm, reward)
    >>> {a: round(i, 4) for a, i in agent.indices().items()}
    {0: 1.5481, 1: 1.4823}
    """

    format_name: ClassVar[str] = "UCB1"

    kind: ClassVar[int] = 4

    def __init__(self, arms: int | Sequence[Hashable]) -> None:
        super().__init__(arms)


class UCBTuned(CountingAgent):
    """arg max_j x̄_j + √(ln t / n_j · min(¼, V_j)), with the variance seen. Without a proof.

    >>> agent = UCBTuned(2)
    >>> for arm, reward in ((0, 1), (1, 0), (0, 0)):
    ...     agent.observe(arm, reward)
    >>> {a: round(i, 4) for a, i in agent.indices().items()}
    {0: 0.8706, 1: 0.5241}
    """

    format_name: ClassVar[str] = "UCBTuned"

    kind: ClassVar[int] = 5

    def __init__(self, arms: int | Sequence[Hashable]) -> None:
        super().__init__(arms)


class MOSS(CountingAgent):
    """arg max_j x̄_j + √(max(0, ln T/(N n_j)) / n_j), for T pulls in all, `horizon`.

    After T pulls it goes on by the same formula.

    >>> agent = MOSS(2, horizon=1000)
    >>> agent.observe(0, 1)
    >>> {a: round(i, 4) for a, i in agent.indices().items()}
    {0: 3.4929, 1: inf}
    """

    format_name: ClassVar[str] = "MOSS"

    kind: ClassVar[int] = 6

    def __init__(self, arms: int | Sequence[Hashable], *, horizon: int) -> None:
        horizon = horizon_of(horizon)
        super().__init__(arms, [horizon], horizon=horizon)


class KLUCB(CountingAgent):
    """arg max_j of the largest x with n_j KL(x̄_j ‖ x) ≤ ln(t+1) + c ln ln(t+1), for Bernoulli KL.

    The proof has c = 3, the authors advise 0. ln ln is taken for 0 where it is negative.

    >>> agent = KLUCB(2)
    >>> for arm, reward in ((0, 1), (1, 0), (0, 0)):
    ...     agent.observe(arm, reward)
    >>> {a: round(i, 4) for a, i in agent.indices().items()}
    {0: 0.933, 1: 0.75}
    """

    format_name: ClassVar[str] = "KLUCB"

    kind: ClassVar[int] = 7

    def __init__(self, arms: int | Sequence[Hashable], *, c: float = 0.0) -> None:
        c = real("c", c, 0.0, 1e6)
        super().__init__(arms, [c], c=c)
