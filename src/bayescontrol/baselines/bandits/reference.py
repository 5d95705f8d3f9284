"""The two ends of the scale: the agent that knows nothing, and the one that knows all.

uniform    P(a) = 1/N
oracle     a = arg max_j m_j, the true mean rewards given
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from bayescontrol.baselines.bandits.agent import CountingAgent


class UniformLevers(CountingAgent):
    """P(a) = 1/N whatever came before. Takes any rewards.

    >>> from bayescontrol.seeding import Stream
    >>> UniformLevers(3).act(Stream(0)) in (0, 1, 2)
    True
    """

    format_name: ClassVar[str] = "UniformLevers"

    kind: ClassVar[int] = 0
    support: ClassVar[int] = 0

    def __init__(self, arms: int | Sequence[Hashable]) -> None:
        super().__init__(arms)

    def indices(self) -> dict[Any, float]:
        """All alike."""
        return dict.fromkeys(self.arms, 1.0 / len(self.arms))


class Oracle(CountingAgent):
    """a = arg max_j m_j for the true mean rewards m, `biases`. Takes any rewards.

    >>> from bayescontrol.seeding import Stream
    >>> Oracle(3, biases=[0.2, 0.9, 0.5]).act(Stream(0))
    1
    """

    format_name: ClassVar[str] = "Oracle"

    kind: ClassVar[int] = 1
    support: ClassVar[int] = 0

    def __init__(self, arms: int | Sequence[Hashable], *, biases: npt.ArrayLike) -> None:
        try:
            means = np.array(biases, np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"biases={biases!r}: {error}") from None
        super().__init__(arms, means, biases=means.tolist())
        if means.shape != (len(self.arms),) or not np.isfinite(means).all():
            raise ValueError(
                f"biases={biases!r}: give one finite mean reward for each of {len(self.arms)} arms"
            )
