"""Arms drawn jointly: finitely many hypotheses about all biases at once.

    P(o = 1 | m, a) = b[m, a]        mode m pulls arg max_a b[m, a]
    P(m | âo_≤t) ∝ P(m) Π_t b[m, a_t]^(o_t) (1 - b[m, a_t])^(1 - o_t)

A pull of one arm tells about the others, as far as the hypotheses tie them together. It is a
tabular class: exact, and with a compiled loop.
"""

from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.errors import InvalidTable
from bayescontrol.priors import as_prior
from bayescontrol.problems.tabular import TabularEnvironment, TabularMode, TabularModes
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step

__all__ = ["JointBandit"]


class JointBandit(TabularModes):
    """M joint hypotheses about N Bernoulli arms: `biases[m, a]`, with prior P(m).

    >>> bandit = JointBandit([[0.9, 0.1], [0.1, 0.9]])        # one is good, the other is not
    >>> agent = bandit.agent()
    >>> agent.observe(0, 0)                                   # arm 0 fails: so arm 1 is good
    >>> {a: round(p, 12) for a, p in agent.action_probabilities().items()}
    {0: 0.1, 1: 0.9}
    >>> bandit.expected(agent.belief.posterior()).round(6)
    array([0.18, 0.82])
    """

    def __init__(self, biases: npt.ArrayLike, prior: npt.ArrayLike | None = None) -> None:
        try:
            b = np.array(biases, np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidTable(f"biases: {error}") from None
        if b.ndim != 2 or not b.size:
            raise InvalidTable(f"biases of shape {b.shape}: give biases[hypothesis, arm]")
        bad = np.argwhere(~((b >= 0.0) & (b <= 1.0)))
        if bad.size:
            m, a = bad[0]
            raise InvalidTable(f"biases[{m}, {a}] is {b[m, a]:g}: a bias is in [0, 1]")
        #: b[m, a] = P(o = 1 | m, a).
        self.biases: FloatArray = b
        self.prior = as_prior(prior, len(b))
        policy = np.zeros(b.shape)
        policy[np.arange(len(b)), b.argmax(1)] = 1.0
        super().__init__(policy[:, None, :], np.stack([1.0 - b, b], -1)[:, None])

    def agent(
        self,
        prior: npt.ArrayLike | None = None,
        *,
        kind: type[ControlRule[Any, Any, Any, Any]] = ControlRule,
        schedule: Schedule = every_step,
    ) -> ControlRule[TabularMode, int, int, int]:
        """The control rule over this bandit, with its prior unless another is given."""
        return super().agent(self.prior if prior is None else prior, kind=kind, schedule=schedule)

    def environment(self, m: int | npt.ArrayLike) -> TabularEnvironment:
        """The world of hypothesis m, or one with biases of its own, which no mode need have.

        >>> bandit = JointBandit([[0.9, 0.1], [0.1, 0.9]])
        >>> bandit.environment(1)
        TabularEnvironment(mode 1 of JointBandit(2 hypotheses about 2 arms), situation 0)
        >>> bandit.environment([0.4, 0.6])
        TabularEnvironment(mode 0 of JointBandit(1 hypotheses about 2 arms), situation 0)
        """
        if np.ndim(m) == 0:
            return super().environment(index(m))  # type: ignore[arg-type]
        if np.shape(m) != self.biases.shape[1:]:
            raise InvalidTable(f"{np.shape(m)} biases for {self.biases.shape[1]} arms")
        return TabularEnvironment(JointBandit(np.asarray(m, np.float64)[None]), 0)

    def expected(self, v: FloatArray) -> FloatArray:
        """E[o | a] for every arm, when the hypotheses have probabilities v."""
        return np.asarray(v @ self.biases)

    def __repr__(self) -> str:
        modes, arms = self.biases.shape
        return f"JointBandit({modes} hypotheses about {arms} arms)"
