"""Bayes-optimal control: the best plan over beliefs, exactly, for a finite horizon.

    Q_n(x, v, a) = Σ_o P(o | v, x, a) (r(a, o) + V_{n-1}(T(x, a, o), v'))
    V_n(x, v)    = max_a Q_n(x, v, a),   V_0 = 0        n steps remain
    P(o | v, x, a) = Σ_m v_m P(o | m, x, a),   v'_m = v_m P(o | m, x, a) / P(o | v, x, a)

`BayesPlan` solves this for a finite class of modes: forward for the reachable (x, v), backward for
the values. Only the hypotheses of the modes matter, not their policies. Beliefs that agree to
twelve decimals are merged, which changes V_n by at most n² M max|r| 1e-12.

`BanditPlan` solves it for Bernoulli arms with Beta priors, where the counts
k = (r_1, f_1, …, r_N, f_N) determine the belief:

    V_n(k) = max_j p_j (1 + V_{n-1}(k + reward of j)) + (1 - p_j) V_{n-1}(k + failure of j)
    p_j = (α_j + r_j) / (α_j + β_j + r_j + f_j)

A plan of n pulls stores C(n + 2N - 1, 2N) doubles: two arms and 100 pulls are 4.4 million, 35 MB;
three arms and 40 pulls are 8 million. The same counts give the exact expected total reward of any
agent that is a function of the posterior (`expected_total`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import comb
from types import SimpleNamespace
from typing import Any, ClassVar, Final, Generic, Protocol, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, IntArray, as_integer
from bayescontrol._support.names import Names
from bayescontrol._support.priors import TOLERANCE, as_prior
from bayescontrol._support.saved import Array, Saved, damaged, declare
from bayescontrol.bandits.discrete import Bernoulli
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.causal.model import check_rows
from bayescontrol.errors import BayesControlError, IncompatibleState, InvalidPrior, InvalidTable
from bayescontrol.protocols import ModeArray
from bayescontrol.rule import A, O, X
from bayescontrol.seeding import StreamLike

#: P(m | ·) rounded to twelve decimals: identifies a belief in a plan.
Key: TypeAlias = tuple[float, ...]

_DECIMALS: Final = 12
#: Relative differences below which values of a plan and of a bandit plan count as equal; then the
#: first action is taken.
_TIE: Final = 1e-9
_BANDIT_TIE: Final = 1e-12
#: The default limit of counts in a bandit plan: 160 MB of values.
_LIMIT: Final = 20_000_000


class PlanTooLarge(BayesControlError, ValueError):
    """The plan would hold more beliefs, or counts, than its limit.

    >>> BanditPlan(2, horizon=1000)
    Traceback (most recent call last):
    bayescontrol.baselines.bayes_optimal.PlanTooLarge: a plan for 2 arms and 1000 pulls needs ...
    """


class FiniteClass(ModeArray[Any, X, A, O], Protocol[X, A, O]):
    """What planning needs of a class of modes; `TabularModes` and `GrowingChain` implement it."""

    @property
    def start(self) -> X: ...
    @property
    def actions(self) -> Sequence[A]: ...
    def observation_probabilities(self, x: X, a: A, /) -> Mapping[O, FloatArray]: ...
    def advance(self, x: X, a: A, o: O, /) -> X: ...


class BayesPlan(Generic[X, A, O]):
    """Q_n(x, v, a) for the reward r(a, o), computed on demand and then cached.

    Example: of two levers one pays with probability 3/4, the other with 1/4. The first pull earns
    1/2 and gives odds of 3 to 1; the second then earns 3/4 · 3/4 + 1/4 · 1/4 = 5/8.

    >>> from bayescontrol.finite.tabular import TabularModes
    >>> pays, seldom = [0.25, 0.75], [0.75, 0.25]
    >>> levers = TabularModes([[[1, 0]], [[0, 1]]], [[[pays, seldom]], [[seldom, pays]]])
    >>> plan = BayesPlan(levers, lambda a, o: o, horizon=2)
    >>> plan.value(0, [0.5, 0.5])
    1.125
    >>> plan.action_values(0, [0.75, 0.25], left=1)
    {0: 0.625, 1: 0.375}
    """

    def __init__(
        self,
        modes: FiniteClass[X, A, O],
        reward: Callable[[A, O], float],
        horizon: int,
        *,
        limit: int = 1_000_000,
    ) -> None:
        as_integer("horizon", horizon, 1)
        self.modes, self.reward, self.horizon, self.limit = modes, reward, horizon, limit
        # The belief of each key; Q_n(x, v, ·) by (n, x, v); the result of `_branch` by (x, v).
        self._v: dict[Key, FloatArray] = {}
        self._q: dict[tuple[int, X, Key], tuple[float, ...]] = {}
        self._branches: dict[tuple[X, Key], list[list[tuple[float, float, X, Key]]]] = {}

    def action_values(self, x: X, v: ArrayLike, left: int | None = None) -> dict[A, float]:
        """Q_n(x, v, a) for all a with n = `left` remaining steps, by default the horizon."""
        n = self.horizon if left is None else left
        if not 1 <= n <= self.horizon:
            raise ValueError(f"left={n}: must be from 1 to the horizon {self.horizon}")
        node = x, self._key(as_prior(v, len(self.modes)))
        if (n, *node) not in self._q:
            self._solve(n, node)
        return dict(zip(self.modes.actions, self._q[n, *node], strict=True))

    def value(self, x: X, v: ArrayLike, left: int | None = None) -> float:
        """V_n(x, v) = max_a Q_n(x, v, a)."""
        return max(self.action_values(x, v, left).values())

    def _solve(self, n: int, root: tuple[X, Key]) -> None:
        """Compute Q_n(x, v, ·) of the node (x, v) `root`, and of all nodes that it can reach."""
        layers = [{root}]
        for _ in range(n - 1):
            reached = (outcomes for node in layers[-1] for outcomes in self._branch(node))
            layers.append({(x, v) for outcomes in reached for _, _, x, v in outcomes})
        for left, layer in enumerate(reversed(layers), start=1):
            for node in layer:
                if (left, *node) not in self._q:
                    self._q[left, *node] = tuple(
                        sum(p * (r + self._value(left - 1, x, v)) for p, r, x, v in outcomes)
                        for outcomes in self._branch(node)
                    )

    def _value(self, n: int, x: X, v: Key) -> float:
        """Return V_n(x, v), which must have been computed."""
        return max(self._q[n, x, v]) if n else 0.0

    def _branch(self, node: tuple[X, Key]) -> list[list[tuple[float, float, X, Key]]]:
        """Return, for each action, (P(o | v, x, a), r, T(x, a, o), v') for every possible o."""
        if node not in self._branches:
            if len(self._branches) >= self.limit:
                raise PlanTooLarge(
                    f"planning {self.horizon} steps ahead in {self.modes!r} reaches more than "
                    f"{self.limit} beliefs: shorten the horizon, or raise limit="
                )
            self._branches[node] = [list(self._outcomes(*node, a)) for a in self.modes.actions]
        return self._branches[node]

    def _outcomes(self, x: X, v: Key, a: A) -> Iterator[tuple[float, float, X, Key]]:
        """Yield (P(o | v, x, a), r, T(x, a, o), v') for every possible o."""
        for o, likelihood in self.modes.observation_probabilities(x, a).items():
            joint = self._v[v] * likelihood
            p = float(joint.sum())
            if p > 0.0:
                yield p, self.reward(a, o), self.modes.advance(x, a, o), self._key(joint / p)

    def _key(self, v: FloatArray) -> Key:
        """Return the key of the belief v, and store the first belief with this key."""
        key = tuple(np.round(v, _DECIMALS).tolist())
        self._v.setdefault(key, v)
        return key

    def __repr__(self) -> str:
        return f"BayesPlan({self.modes!r}, horizon={self.horizon}: {len(self._branches)} beliefs)"


class BayesOptimal(Generic[X, A, O]):
    """a_t = arg max_a Q_n(x, v, a): the agent that follows a plan with n remaining steps.

    At the end of the horizon it starts again with a full horizon and its current belief. Ties go to
    the first action. Agents can share a plan.

    >>> from bayescontrol import interact
    >>> from bayescontrol.finite.chain import chain
    >>> modes = chain(4)
    >>> agent = BayesOptimal(BayesPlan(modes, lambda a, o: o, horizon=8))
    >>> agent.value(), interact(agent, modes.environment(1), 8, seed=0).actions.tolist()
    (1.5, [0, 0, 0, 0, 1, 1, 1, 1])
    """

    def __init__(self, plan: BayesPlan[X, A, O], prior: ArrayLike | None = None) -> None:
        self.plan = plan
        self.belief: FiniteBelief[Any] = FiniteBelief(plan.modes, prior)
        self.x = plan.modes.start
        self._t = 0

    @property
    def left(self) -> int:
        """n, the remaining steps of the plan."""
        return self.plan.horizon - self._t % self.plan.horizon

    def action_values(self) -> dict[A, float]:
        """Q_n(x, v, a) for all a."""
        return self.plan.action_values(self.x, self.belief.posterior(), self.left)

    def value(self) -> float:
        """V_n(x, v): the expected reward of the remaining steps."""
        return max(self.action_values().values())

    def action_probabilities(self) -> dict[A, float]:
        """Return probability 1 for the best action."""
        return {self._best_action(): 1.0}

    def predictive(self, a: A) -> dict[O, float]:
        """P(o | v, x, a)."""
        return self.belief.predictive(self.x, a)

    def act(self, rng: StreamLike) -> A:
        """Return the best action. Draws no random numbers."""
        a = self._best_action()
        self._t += 1
        return a

    def observe(self, a: A, o: O) -> None:
        """v ← v', x ← T(x, a, o)."""
        x = self.plan.modes.advance(self.x, a, o)
        self.belief.observe(self.x, a, o)
        self.x = x

    def _best_action(self) -> A:
        """Return the first of the actions whose value is the largest up to rounding."""
        q = self.action_values()
        best = max(q.values())
        return next(a for a, value in q.items() if value >= best - _TIE * max(1.0, abs(best)))

    def __repr__(self) -> str:
        return f"BayesOptimal({self.plan!r}, {self.belief!r}, situation {self.x!r}, t={self._t})"


# -- Bernoulli arms ---------------------------------------------------------------------------


class BanditPlan:
    """V_n and Q_n for all counts that n pulls of Bernoulli arms can reach. Agents can share a plan.

    `prior` is one (α, β) for all arms or one for each. Raises `PlanTooLarge` above `limit` counts.

    >>> plan = BanditPlan(2, horizon=2)
    >>> round(plan.value(), 8)
    1.08333333
    >>> plan.action_values([[1, 0], [0, 0]])  # one pull is left, and arm 0 has paid
    array([0.66666667, 0.5       ])
    """

    def __init__(
        self, arms: int, horizon: int, prior: ArrayLike = (1.0, 1.0), *, limit: int = _LIMIT
    ) -> None:
        self.arms, self.horizon, self.limit = arms, horizon, limit
        self.prior, self.counts = _checked_prior(arms, horizon, prior, limit)
        d = 2 * arms
        self._C = _pascal(horizon, d)
        # Scratch of the kernel: counts, positions and Q_n of one state.
        k, place, Q = np.empty(d, np.int64), np.empty(d, np.int64), np.empty(arms)
        #: V of all counts after t pulls, for t = 0 … horizon - 1; then an empty array.
        self._V = V = [np.empty(comb(t + d - 1, d - 1)) for t in range(horizon)] + [np.empty(0)]
        for t in range(horizon - 1, -1, -1):
            kernels.bandit_plan.backward(self.prior, t, V[t + 1], self._C, k, place, Q, V[t])

    def action_values(self, counts: ArrayLike | None = None) -> FloatArray:
        """Return Q_n(k, j) for all j, where n is the horizon minus the pulls in `counts`.

        `counts` has a row (rewards, failures) for each arm, by default zeros.
        """
        k = self._checked_counts(counts)
        Q, place = np.empty(self.arms), np.empty(k.size, np.int64)
        after = self._V[int(k.sum()) + 1]
        kernels.bandit_plan.action_values(self.prior, k, after, self._C, place, Q)
        return Q

    def value(self, counts: ArrayLike | None = None) -> float:
        """V_n(k): the expected total reward of the remaining pulls."""
        return float(self.action_values(counts).max())

    def action(self, counts: ArrayLike | None = None) -> int:
        """Return arg max_j Q_n(k, j); if several arms are equally good, the first of them.

        >>> BanditPlan(2, horizon=5).action([[0, 1], [0, 0]]), BanditPlan(2, horizon=5).action()
        (1, 0)
        """
        Q = self.action_values(counts)
        # `argmax` returns the first arm whose value is the largest up to rounding.
        return int((Q.max() - _BANDIT_TIE * max(1.0, Q.max()) <= Q).argmax())

    def after(self, counts: ArrayLike, horizon: int | None = None) -> "BanditPlan":
        """Return a new plan that starts from these counts, by default with the same horizon."""
        n = self.horizon if horizon is None else horizon
        return BanditPlan(self.arms, n, self.prior + np.asarray(counts), limit=self.limit)

    def _checked_counts(self, counts: ArrayLike | None) -> IntArray:
        """Return the counts as a flat array of integers, or raise InvalidPrior."""
        table = np.zeros((self.arms, 2)) if counts is None else np.asarray(counts, np.float64)
        # -1 marks an invalid number, also NaN.
        k = np.where(np.abs(table) <= self.horizon, table, -1.0).astype(np.int64)
        if k.shape != (self.arms, 2) or (k < 0).any() or (k != table).any():
            raise InvalidPrior(
                f"counts={table.tolist()}: give {self.arms} rows of whole numbers up to "
                f"{self.horizon}, (rewards, failures)"
            )
        if k.sum() >= self.horizon:
            raise InvalidPrior(
                f"counts={table.tolist()} are {k.sum()} pulls, but the plan is for "
                f"{self.horizon}: continue with plan.after(counts)"
            )
        return k.ravel()

    def __repr__(self) -> str:
        return f"BanditPlan({self.arms} arms, horizon={self.horizon}: {self.counts} counts)"


class BayesOptimalBandit(Saved):
    """a_t = arg max_j Q_n(k, j): the agent that follows a `BanditPlan` with n remaining pulls.

    Time is the number of observations, so late feedback counts when it arrives. At the end of the
    horizon the agent makes a plan of the same length from its posterior. Ties go to the first arm;
    no random numbers are drawn.

    >>> from bayescontrol import Stream
    >>> agent = BayesOptimalBandit(BanditPlan(2, horizon=10))
    >>> a = agent.act(Stream(0))
    >>> agent.observe(a, 0)
    >>> a, agent.act(Stream(0)), agent.left
    (0, 1, 9)
    """

    format_name: ClassVar[str] = "BayesOptimalBandit"
    saved_fields = declare(Array("prior", lambda b: b.plan.prior), Array("counts", "_counts"))

    def __init__(self, plan: BanditPlan) -> None:
        #: The current plan.
        self.plan = plan
        # The rewards and failures of each arm since the plan was made.
        self._counts: IntArray = np.zeros((plan.arms, 2), np.int64)

    @property
    def left(self) -> int:
        """n, the remaining pulls of this plan; at 0 the next action makes a new plan."""
        return self.plan.horizon - int(self._counts.sum())

    @property
    def posterior(self) -> FloatArray:
        """The posterior (α_j, β_j), one row per arm."""
        return np.asarray(self.plan.prior + self._counts)

    def action_values(self) -> FloatArray:
        """Q_n(k, j) for all j."""
        self._renew_plan_if_finished()
        return self.plan.action_values(self._counts)

    def value(self) -> float:
        """V_n(k): the expected total reward of the remaining pulls."""
        return float(self.action_values().max())

    def action_probabilities(self) -> dict[int, float]:
        """Return probability 1 for the best arm."""
        return {self._best_arm(): 1.0}

    def act(self, rng: StreamLike) -> int:
        """Return the best arm. Draws no random numbers."""
        return self._best_arm()

    def observe(self, a: int, o: float) -> None:
        """Increment r_a or f_a. On an error the agent is unchanged."""
        j = Names("arm", self.plan.arms).place(a)
        r = Bernoulli().reward(o)
        self._renew_plan_if_finished()
        self._counts[j, 0 if r else 1] += 1

    def _check_state(self, new: SimpleNamespace) -> None:
        """Make a new plan if the saved prior differs."""
        plan, counts = self.plan, new._counts
        if (counts < 0).any():
            raise damaged(f"the counts are {counts.tolist()}")
        if counts.sum() > plan.horizon:
            raise IncompatibleState(
                f"saved after {counts.sum()} pulls, this agent has a horizon of {plan.horizon}: "
                "create it with the `horizon` of the saved agent"
            )
        if not np.array_equal(new.prior, plan.prior):
            new.plan = BanditPlan(plan.arms, plan.horizon, new.prior, limit=plan.limit)

    def _renew_plan_if_finished(self) -> None:
        """Make a new plan from the posterior if no pulls of the current plan remain."""
        if self.left == 0:
            self.plan, self._counts = self.plan.after(self._counts), np.zeros_like(self._counts)

    def _best_arm(self) -> int:
        """Return the best arm; a finished plan is renewed first."""
        self._renew_plan_if_finished()
        return self.plan.action(self._counts)

    def __repr__(self) -> str:
        return f"BayesOptimalBandit({self.plan!r}, {self.left} pulls to go)"


def expected_total(
    policy_probabilities: Callable[[FloatArray], ArrayLike],
    arms: int,
    horizon: int,
    prior: ArrayLike = (1.0, 1.0),
    *,
    limit: int = _LIMIT,
) -> float:
    """Return the exact E[Σ_t r_t] of an agent whose P(a | past) is a function of the posterior.

    `policy_probabilities` maps posteriors of shape (states, arms, 2) to P(a) of shape
    (states, arms).

    >>> from bayescontrol.bandits.best_arm import beta_best
    >>> rule = expected_total(lambda ab: beta_best(ab[..., 0], ab[..., 1]), arms=2, horizon=5)
    >>> round(rule, 8)
    2.71637963
    """
    rows, _ = _checked_prior(arms, horizon, prior, limit)
    d = 2 * arms
    C, place = _pascal(horizon, d), np.empty(d, np.int64)
    total, v = 0.0, np.ones(1)  # v: the probability of all counts after t pulls
    for t in range(horizon):
        counts = np.empty((v.size, d), np.int64)
        kernels.bandit_plan.write_counts(t, counts)
        posteriors = rows + counts.reshape(-1, arms, 2)
        P = np.ascontiguousarray(policy_probabilities(posteriors), np.float64)
        if P.shape != (v.size, arms):
            raise InvalidTable(
                f"after {t} pulls the policy returns an array of shape {P.shape}: expected "
                f"{(v.size, arms)}, a row of probabilities P(a) for each posterior"
            )
        check_rows(P, f"after {t} pulls the array P(a) that the policy returns", TOLERANCE)
        after = np.zeros(comb(t + d, d - 1))
        total += kernels.bandit_plan.forward(rows, counts, v, P, C, place, after)
        v = after
    return total


def _checked_prior(arms: int, horizon: int, prior: ArrayLike, limit: int) -> tuple[FloatArray, int]:
    """Check the arguments of a plan; return the rows (α_j, β_j) and the number of counts."""
    as_integer("arms", arms, 1, InvalidPrior)
    as_integer("horizon", horizon, 1)
    rows, counts = Bernoulli().prior(prior, arms), comb(horizon + 2 * arms - 1, 2 * arms)
    if counts > limit:
        raise PlanTooLarge(
            f"a plan for {arms} arms and {horizon} pulls needs {counts} counts, more than {limit}: "
            "shorten the horizon, or raise limit= (8 bytes each)"
        )
    return rows, counts


def _pascal(horizon: int, d: int) -> IntArray:
    """Return the table of C(n, i) for n < horizon + d and i < d, Pascal's triangle."""
    return np.array([[comb(n, i) for i in range(d)] for n in range(horizon + d)], np.int64)
