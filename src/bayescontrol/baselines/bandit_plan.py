"""Bayes-optimal play of Bernoulli arms with Beta priors, exactly, for a finite horizon.

    V_n(k) = max_j p_j (1 + V_{n-1}(k + reward of j)) + (1 - p_j) V_{n-1}(k + failure of j)
    V_0 = 0,   p_j = (α_j + r_j) / (α_j + β_j + r_j + f_j),   k = (r_1, f_1, …, r_N, f_N)

The posterior is a function of the counts k, and a plan of n pulls reaches

    C(n + 2N - 1, 2N)

of them, 8 bytes each: two arms and 100 pulls are 4.4 million, 35 MB; three and 40, 8 million.
The same counts give the exact expected total of any agent that is a function of them.
"""

from collections.abc import Callable
from math import comb
from operator import index
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray, IntArray
from bayescontrol.bandits.bernoulli import Bernoulli
from bayescontrol.baselines.bayes_optimal import PlanTooLarge
from bayescontrol.errors import (
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
    UnknownArm,
)
from bayescontrol.priors import TOLERANCE
from bayescontrol.seeding import Stream

#: 160 MB of values.
_LIMIT = 20_000_000


class BanditPlan:
    """V_n and Q_n for every count that n pulls can reach. One plan may serve many agents.

    `prior` is one (α, β) for all arms or one for each. More than `limit` counts are refused.

    >>> plan = BanditPlan(2, horizon=2)
    >>> round(plan.value(), 8)
    1.08333333
    >>> plan.action_values([[1, 0], [0, 0]])  # one pull is left, and arm 0 has paid
    array([0.66666667, 0.5       ])
    """

    def __init__(
        self, arms: int, horizon: int, prior: npt.ArrayLike = (1.0, 1.0), *, limit: int = _LIMIT
    ) -> None:
        self.arms, self.horizon, self.limit = arms, horizon, limit
        self.prior = _checked(arms, horizon, prior)
        self.counts = comb(horizon + 2 * arms - 1, 2 * arms)
        if self.counts > limit:
            raise PlanTooLarge(
                f"BanditPlan({arms} arms, horizon={horizon}) reaches {self.counts} counts, more "
                f"than {limit}: shorten the horizon, or raise limit= (8 bytes each)"
            )
        d = 2 * arms
        self._C = _pascal(horizon, d)
        k, place, Q = np.empty(d, np.int64), np.empty(d, np.int64), np.empty(arms)
        #: V of all counts of t pulls, for t = 0 … horizon; the last has none to come.
        self._V = [np.empty(comb(t + d - 1, d - 1)) for t in range(horizon)] + [np.empty(0)]
        for t in range(horizon - 1, -1, -1):
            kernels.bandit_plan.backward(
                self.prior, t, self._V[t + 1], self._C, k, place, Q, self._V[t]
            )

    def action_values(self, counts: npt.ArrayLike | None = None) -> FloatArray:
        """Q_n(k, j) for all j; `counts` has a row (rewards, failures) for each arm, n is the rest.

        Nothing pulled yet by default.
        """
        k = self._checked_counts(counts)
        Q, place = np.empty(self.arms), np.empty(k.size, np.int64)
        after = self._V[int(k.sum()) + 1]
        kernels.bandit_plan.action_values(self.prior, k, after, self._C, place, Q)
        return Q

    def value(self, counts: npt.ArrayLike | None = None) -> float:
        """V_n(k): the expected total of the pulls that are left."""
        return float(self.action_values(counts).max())

    def action(self, counts: npt.ArrayLike | None = None, remaining: int | None = None) -> int:
        """arg max_j Q_n(k, j), the first of equals, with n = `remaining` pulls to go.

        Where n is not what the counts leave of the horizon, it is planned for anew.

        >>> BanditPlan(2, horizon=5).action([[0, 1], [0, 0]]), BanditPlan(2, horizon=5).action()
        (1, 0)
        """
        k = self._checked_counts(counts)
        if remaining is None or remaining == self.horizon - int(k.sum()):
            return kernels.bandit_plan.first(self.action_values(counts))
        return self.after(k.reshape(-1, 2), remaining).action()

    def after(self, counts: npt.ArrayLike, horizon: int | None = None) -> "BanditPlan":
        """The plan from these counts on, of the same horizon or another."""
        n = self.horizon if horizon is None else horizon
        return BanditPlan(self.arms, n, self.prior + np.asarray(counts), limit=self.limit)

    def _checked_counts(self, counts: npt.ArrayLike | None) -> IntArray:
        given = np.zeros((self.arms, 2)) if counts is None else np.asarray(counts, np.float64)
        k = np.where(np.abs(given) <= self.horizon, given, -1.0).astype(np.int64)
        if k.shape != (self.arms, 2) or (k < 0).any() or (k != given).any():
            raise InvalidPrior(
                f"counts={given.tolist()}: give {self.arms} rows of whole numbers up to "
                f"{self.horizon}, (rewards, failures)"
            )
        if k.sum() >= self.horizon:
            raise InvalidPrior(
                f"counts={given.tolist()} are {k.sum()} pulls, and the plan is for "
                f"{self.horizon}: go on with plan.after(counts)"
            )
        return k.ravel()

    def __repr__(self) -> str:
        return f"BanditPlan({self.arms} arms, horizon={self.horizon}: {self.counts} counts)"


class BayesOptimalBandit:
    """a_t = arg max_j Q_n(k, j): the agent that follows the plan, with n pulls to go.

    Time is the number of observations: feedback that is late has not happened yet. When the
    horizon is used up, the agent plans as many pulls again from what it believes. The first arm
    wins a tie, and no random number is drawn.

    >>> from bayescontrol import Stream
    >>> agent = BayesOptimalBandit(BanditPlan(2, horizon=10))
    >>> a = agent.act(Stream(0))
    >>> agent.observe(a, 0)
    >>> a, agent.act(Stream(0)), agent.left
    (0, 1, 9)
    """

    format_name: ClassVar[str] = "BayesOptimalBandit"

    def __init__(self, plan: BanditPlan) -> None:
        #: The plan in use, and the counts since its beginning.
        self.plan = plan
        self._counts: IntArray = np.zeros((plan.arms, 2), np.int64)

    @property
    def left(self) -> int:
        """n: the pulls to go in this plan; 0 when the next action begins another."""
        return self.plan.horizon - int(self._counts.sum())

    @property
    def posterior(self) -> FloatArray:
        """(α_j, β_j), a row for each arm."""
        return np.asarray(self.plan.prior + self._counts)

    def action_values(self) -> FloatArray:
        """Q_n(k, j) for all j."""
        self._renew()
        return self.plan.action_values(self._counts)

    def value(self) -> float:
        """V_n(k): the expected total of the pulls to go."""
        return float(self.action_values().max())

    def action_probabilities(self) -> dict[int, float]:
        """All on the best arm."""
        return {self._best(): 1.0}

    def act(self, rng: Stream) -> int:
        """The best arm; nothing is random."""
        return self._best()

    def observe(self, a: int, o: float) -> None:
        """r_a or f_a grows by one. On an error nothing has changed."""
        try:
            j = index(a)
        except TypeError:
            j = -1
        if not 0 <= j < self.plan.arms:
            raise UnknownArm(f"no arm {a!r}: the plan has arms 0 to {self.plan.arms - 1}")
        r = Bernoulli().reward(o)
        self._renew()
        self._counts[j, 0 if r else 1] += 1

    def copy(self) -> "BayesOptimalBandit":
        """Another agent in the same place, with the same plan."""
        other = BayesOptimalBandit(self.plan)
        other._counts = self._counts.copy()
        return other

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit."""
        return {"prior": self.plan.prior.copy(), "counts": self._counts.copy()}

    def load(self, arrays: Arrays) -> None:
        """Continue where `save` was called, planning anew where the plan in use is another."""
        try:
            prior, counts = arrays["prior"], arrays["counts"]
        except KeyError as error:
            raise IncompatibleState(f"no array {error} among {sorted(arrays)}") from None
        fits = prior.shape == counts.shape == self._counts.shape and counts.dtype == np.int64
        if not fits or (counts < 0).any() or counts.sum() > self.plan.horizon:
            raise IncompatibleState(
                f"prior {prior.shape} and counts {counts.tolist()} are not those of {self!r}"
            )
        if not np.array_equal(prior, self.plan.prior):
            try:
                plan = BanditPlan(self.plan.arms, self.plan.horizon, prior, limit=self.plan.limit)
            except InvalidPrior as error:
                raise IncompatibleState(f"the saved prior is none: {error}") from None
            self.plan = plan
        self._counts = counts.copy()

    def _renew(self) -> None:
        if self.left == 0:
            self.plan, self._counts = self.plan.after(self._counts), np.zeros_like(self._counts)

    def _best(self) -> int:
        self._renew()
        return self.plan.action(self._counts)

    def __repr__(self) -> str:
        return f"BayesOptimalBandit({self.plan!r}, {self.left} pulls to go)"


def expected_total(
    policy_probabilities: Callable[[FloatArray], npt.ArrayLike],
    arms: int,
    horizon: int,
    prior: npt.ArrayLike = (1.0, 1.0),
    *,
    limit: int = _LIMIT,
) -> float:
    """E[Σ_t r_t], exactly, of an agent whose P(a | past) is a function of the posterior.

    `policy_probabilities` gets posteriors, shape (states, arms, 2), and gives P(a), shape
    (states, arms).

    >>> from bayescontrol.bandits.best_arm import beta_best
    >>> rule = expected_total(lambda ab: beta_best(ab[..., 0], ab[..., 1]), arms=2, horizon=5)
    >>> round(rule, 8)
    2.71637963
    """
    rows = _checked(arms, horizon, prior)
    d = 2 * arms
    if comb(horizon + d - 1, d) > limit:
        raise PlanTooLarge(
            f"{arms} arms and {horizon} pulls are more than {limit} counts: shorten the horizon, "
            "or raise limit="
        )
    C, place = _pascal(horizon, d), np.empty(d, np.int64)
    total, v = 0.0, np.ones(1)
    for t in range(horizon):
        counts = np.empty((v.size, d), np.int64)
        kernels.bandit_plan.write_counts(t, counts)
        P = np.ascontiguousarray(
            policy_probabilities(rows + counts.reshape(-1, arms, 2)), np.float64
        )
        if P.shape != (v.size, arms) or not (
            (P >= 0.0).all() and (abs(P.sum(1) - 1.0) <= TOLERANCE).all()
        ):
            raise InvalidTable(
                f"after {t} pulls the policy gives an array of shape {P.shape}, or numbers that "
                f"are no probabilities: give P(a), shape {(v.size, arms)}, for each posterior"
            )
        after = np.zeros(comb(t + d, d - 1))
        total += kernels.bandit_plan.forward(rows, counts, v, P, C, place, after)
        v = after
    return total


def _checked(arms: int, horizon: int, prior: npt.ArrayLike) -> FloatArray:
    if arms < 1:
        raise InvalidPrior(f"arms={arms}: a bandit has at least one arm")
    if horizon < 1:
        raise ValueError(f"horizon={horizon}: plan at least one pull ahead")
    return Bernoulli().prior(prior, arms)


def _pascal(horizon: int, d: int) -> IntArray:
    """C(n, i) for n < horizon + d and i < d."""
    table = [[comb(n, i) for i in range(d)] for n in range(horizon + d)]
    return np.array(table, np.int64)
