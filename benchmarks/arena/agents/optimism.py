"""Optimistic bandit agents beyond UCB1 and KL-UCB.

    UCB-tuned    x̄ + √(ln t / n · min(¼, V)),  V = q/n - x̄² + √(2 ln t / n)  Auer et al. (2002)
    MOSS         x̄ + √(max(0, ln T/(N n)) / n)                            Audibert & Bubeck (2009)
    Bayes-UCB    x with P(θ_j > x) = 1/((t+1) (ln T)^c), θ_j ~ Beta       Kaufmann et al. (2012)

n, s, q, x̄ and t: see `bayescontrol.baselines.bandits`. An arm without a reward has the index ∞,
except in Bayes-UCB. Rewards are in [0, 1]. The papers leave the order of the first pulls open or
begin with the first arm; here it is random.
"""

import math
from collections.abc import Hashable, Sequence
from operator import index as whole_number
from typing import Any, ClassVar

import numpy as np
from benchmarks.arena.agents.beta_quantiles import beta_quantile

from bayescontrol._arrays import FloatArray, IntArray, UIntArray, require_between
from bayescontrol.baselines import CountingAgent
from bayescontrol.baselines.bandits import counting_loop
from bayescontrol.errors import InvalidPrior
from bayescontrol.kernels._jit import leaf
from bayescontrol.kernels.arms import respond
from bayescontrol.kernels.elementary import exp, log
from bayescontrol.kernels.policies import BINARY, accepts, arg_max, learn
from bayescontrol.seeding import Stream

#: The policies, numbered after those of `bayescontrol.kernels.policies`.
UCB_TUNED, MOSS_POLICY, BAYES_UCB = 6, 7, 8


@leaf
def ucb_tuned(t: float, n: FloatArray, s: FloatArray, q: FloatArray, out: FloatArray) -> None:
    """x̄ + √(ln t / n · min(¼, V)), V = q/n - x̄² + √(2 ln t / n).

    >>> import numpy as np
    >>> out = np.empty(1)
    >>> ucb_tuned(1.0, np.array([1.0]), np.array([0.5]), np.array([0.25]), out)
    >>> out
    array([0.5])
    """
    log_t = log(t)
    for j in range(n.size):
        if n[j] > 0.0:
            mean = s[j] / n[j]
            # Rounding can make the variance of equal rewards negative.
            V = max(q[j] / n[j] - mean * mean, 0.0) + math.sqrt(2.0 * log_t / n[j])
            out[j] = mean + math.sqrt(log_t / n[j] * min(0.25, V))
        else:
            out[j] = math.inf


@leaf
def moss(horizon: float, n: FloatArray, s: FloatArray, out: FloatArray) -> None:
    """x̄ + √(max(0, ln T/(K n)) / n).

    >>> import numpy as np
    >>> out = np.empty(2)
    >>> moss(8.0, np.array([4.0, 0.0]), np.array([3.0, 0.0]), out)
    >>> out
    array([0.75,  inf])
    """
    for j in range(n.size):
        if n[j] > 0.0:
            level = max(log(horizon / (n.size * n[j])), 0.0)
            out[j] = s[j] / n[j] + math.sqrt(level / n[j])
        else:
            out[j] = math.inf


@leaf
def bayes_ucb(
    t: float, parameters: FloatArray, n: FloatArray, s: FloatArray, out: FloatArray
) -> None:
    """x with P(X > x) = 1/(t' (ln T)^c), X ~ Beta(α + s, β + n - s), t' = t + 1.

    `parameters` are c, T, α and β.

    >>> import numpy as np
    >>> out = np.empty(1)
    >>> bayes_ucb(3.0, np.array([0.0, 100.0, 1.0, 1.0]), np.array([1.0]), np.array([0.0]), out)
    >>> out.round(12)  # (1-x)² = 1/4
    array([0.5])
    """
    c, horizon, alpha, beta = parameters[0], parameters[1], parameters[2], parameters[3]
    tail = 1.0 / (t + 1.0)
    if c != 0.0:
        tail *= exp(-c * log(log(horizon)))
    for j in range(n.size):
        out[j] = beta_quantile(alpha + s[j], beta + (n[j] - s[j]), tail)


@leaf
def index(kind: int, parameters: FloatArray, t: float, counts: FloatArray, out: FloatArray) -> None:
    """Write the index of every arm to `out`."""
    n, s, q = counts[0], counts[1], counts[2]
    if kind == UCB_TUNED:
        ucb_tuned(t, n, s, q, out)
    elif kind == MOSS_POLICY:
        moss(parameters[0], n, s, out)
    else:
        bayes_ucb(t, parameters, n, s, out)


@leaf
def choose(
    kind: int, parameters: FloatArray, counts: FloatArray, scratch: FloatArray, state: UIntArray
) -> int:
    """The arm that the policy pulls next."""
    t = 0.0
    for j in range(counts.shape[1]):
        t += counts[0, j]
    index(kind, parameters, t, counts, scratch[0])
    return arg_max(scratch[0], state)


@leaf
def interact(
    kind: int,
    parameters: FloatArray,
    support: int,
    counts: FloatArray,
    scratch: FloatArray,
    family: int,
    constants: FloatArray,
    truth: FloatArray,
    agent: UIntArray,
    world: UIntArray,
    actions: IntArray,
    rewards: FloatArray,
) -> int:
    """Choose, pull, learn; return the steps done, fewer than requested at an invalid reward."""
    for t in range(actions.size):
        a = choose(kind, parameters, counts, scratch, agent)
        r = respond(family, constants, truth[a], world)
        actions[t], rewards[t] = a, r
        if not accepts(support, r):
            return t
        learn(a, r, counts)
    return int(actions.size)


class _OptimisticAgent(CountingAgent):
    """A `CountingAgent` with the kernels of this module."""

    def _choose(self, rng: Stream) -> int:
        return choose(self.kind, self._parameters, self._counts, self._scratch, rng.state)

    def indices(self) -> dict[Any, float]:
        """The index of every arm."""
        out = np.empty(len(self.arms))
        index(self.kind, self._parameters, float(self.count), self._counts, out)
        return dict(zip(self.arms, out.tolist(), strict=True))

    def interact(
        self, environment: Any, p: Stream, q: Stream, actions: IntArray, rewards: FloatArray
    ) -> int:
        """Run the compiled loop with an `ArmsEnvironment`; return the number of steps done."""
        return interact(
            self.kind, self._parameters, self.support, self._counts, self._scratch,
            environment.family.kind, environment.family.constants, environment.truth,
            p.state, q.state, actions, rewards,
        )  # fmt: skip


class UCBTuned(_OptimisticAgent):
    """arg max_j x̄_j + √(ln t / n_j · min(¼, V_j)), V from the sample variance.

    No regret bound is proven for it.

    >>> agent = UCBTuned(2)
    >>> for arm, reward in ((0, 1), (1, 0), (0, 0)):
    ...     agent.observe(arm, reward)
    >>> {a: round(i, 4) for a, i in agent.indices().items()}
    {0: 0.8706, 1: 0.5241}
    """

    format_name: ClassVar[str] = "UCBTuned"

    kind: ClassVar[int] = UCB_TUNED
    fused_loop = staticmethod(counting_loop)

    def __init__(self, arms: int | Sequence[Hashable]) -> None:
        super().__init__(arms)


class MOSS(_OptimisticAgent):
    """arg max_j x̄_j + √(max(0, ln T/(N n_j)) / n_j), for T = `horizon` pulls in all.

    After T pulls it continues with the same formula.

    >>> agent = MOSS(2, horizon=1000)
    >>> agent.observe(0, 1)
    >>> {a: round(i, 4) for a, i in agent.indices().items()}
    {0: 3.4929, 1: inf}
    """

    format_name: ClassVar[str] = "MOSS"

    kind: ClassVar[int] = MOSS_POLICY
    fused_loop = staticmethod(counting_loop)

    def __init__(self, arms: int | Sequence[Hashable], *, horizon: int) -> None:
        horizon = horizon_of(horizon)
        super().__init__(arms, [horizon], horizon=horizon)


class BayesUCB(_OptimisticAgent):
    """arg max_j of the posterior quantile of level 1 - 1/((t+1) (ln T)^c). Rewards are 0 or 1.

    `prior` is the (α, β) of every arm. The proof needs c = 5; the authors recommend 0, which needs
    no `horizon` T. Before the first reward all quantiles are 0, and any arm is pulled.

    >>> agent = BayesUCB(2)
    >>> agent.observe(0, 1)
    >>> {a: round(i, 4) for a, i in agent.indices().items()}  # medians: √½ and ½
    {0: 0.7071, 1: 0.5}
    """

    format_name: ClassVar[str] = "BayesUCB"

    kind: ClassVar[int] = BAYES_UCB
    support: ClassVar[int] = BINARY
    fused_loop = staticmethod(counting_loop)

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        *,
        c: float = 0.0,
        horizon: int | None = None,
        prior: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        c, (alpha, beta) = require_between("c", c, 0.0, 1e6), beta_prior(prior)
        if c and horizon is None:
            raise ValueError(
                f"c={c:g} needs a horizon: the quantile has the level 1 - 1/(t (ln T)^c)"
            )
        T = math.inf if horizon is None else horizon_of(horizon, 3)
        super().__init__(arms, [c, T, alpha, beta], c=c, horizon=horizon, prior=(alpha, beta))


# -- validation of parameters ----------------------------------------------------------------


def horizon_of(value: Any, least: int = 1) -> int:
    """Return a number of pulls if it is an integer of at least `least`."""
    try:
        horizon = whole_number(value)
    except TypeError:
        horizon = -1
    if horizon < least or isinstance(value, bool):
        raise ValueError(f"horizon={value!r} must be a whole number of at least {least}")
    return horizon


def beta_prior(prior: Any, least: float = 0.0) -> tuple[float, float]:
    """Return (α, β), the Beta prior of every arm, if both are positive and at least `least`."""
    try:
        alpha, beta = (float(x) for x in prior)
    except (TypeError, ValueError):
        raise InvalidPrior(f"prior={prior!r}: give (α, β), one pair for all arms") from None
    if not (least <= min(alpha, beta) and min(alpha, beta) > 0.0 and max(alpha, beta) < 1e12):
        raise InvalidPrior(
            f"prior={prior!r}: α and β must be {f'at least {least:g}' if least else 'positive'} "
            "and below 1e12"
        )
    return alpha, beta
