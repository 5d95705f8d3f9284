"""Bayes-optimal control: the best plan over beliefs, exactly, for a finite horizon.

    Q_n(x, v, a) = Σ_o P(o | v, x, a) (r(a, o) + V_{n-1}(T(x, a, o), v'))
    V_n(x, v)    = max_a Q_n(x, v, a),   V_0 = 0        n steps are left
    P(o | v, x, a) = Σ_m v_m P(o | m, x, a),   v'_m = v_m P(o | m, x, a) / P(o | v, x, a)

Forward, the (x, v) that can be reached; backward, the equation. Policies of the modes play
no part: only their hypotheses do. Histories that lead to one belief meet there, whatever the
last bits of their products: a plan tells beliefs apart by twelve decimals, and computes with
all the digits of the first that came, which moves V_n by no more than n² M max|r| 1e-12.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.beliefs.finite import FiniteBelief
from bayescontrol.errors import BayesControlError
from bayescontrol.priors import as_prior
from bayescontrol.seeding import Stream

X = TypeVar("X")
A = TypeVar("A")
O = TypeVar("O")  # noqa: E741 - the paper's symbol

#: P(m | ·) to twelve decimals, the name of a belief in a plan.
Key: TypeAlias = tuple[float, ...]

_DECIMALS: Final = 12
#: Values this close are equal, and the first action is taken.
_TIE: Final = 1e-9


class PlanTooLarge(BayesControlError, ValueError):
    """The horizon reaches more beliefs than the plan may hold.

    >>> issubclass(PlanTooLarge, ValueError)
    True
    """


class FiniteClass(Protocol[X, A, O]):
    """What planning needs of a class of modes; `TabularModes` and `GrowingChain` have it.

    >>> from bayescontrol.problems.chain import chain
    >>> modes: FiniteClass[int, int, int] = chain(3)
    """

    @property
    def start(self) -> X: ...
    @property
    def actions(self) -> Sequence[A]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, m: int, /) -> Any: ...
    def likelihoods(self, x: X, a: A, o: O, /) -> FloatArray: ...
    def observation_probabilities(self, x: X, a: A, /) -> Mapping[O, FloatArray]: ...
    def advance(self, x: X, a: A, o: O, /) -> X: ...


class Plan(Generic[X, A, O]):
    """Q_n(x, v, a) for the reward r(a, o), solved where it is asked for and then remembered.

    Two levers that pay 1 in 3 of 4 or 1 in 4, one each: the first pull earns 1/2 and tells
    which, at 3 to 1; the second then earns 3/4 · 3/4 + 1/4 · 1/4 = 5/8.

    >>> from bayescontrol.problems.tabular import TabularModes
    >>> pays, seldom = [0.25, 0.75], [0.75, 0.25]
    >>> levers = TabularModes([[[1, 0]], [[0, 1]]], [[[pays, seldom]], [[seldom, pays]]])
    >>> plan = Plan(levers, lambda a, o: o, horizon=2)
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
        if horizon < 1:
            raise ValueError(f"Plan(horizon={horizon}): plan at least one step ahead")
        self.modes, self.reward, self.horizon, self.limit = modes, reward, horizon, limit
        self._v: dict[Key, FloatArray] = {}
        self._q: dict[tuple[int, X, Key], tuple[float, ...]] = {}
        self._branches: dict[tuple[X, Key], list[list[tuple[float, float, X, Key]]]] = {}

    def action_values(self, x: X, v: npt.ArrayLike, left: int | None = None) -> dict[A, float]:
        """Q_n(x, v, a) for all a, with n = `left` steps to go, the horizon by default."""
        n = self.horizon if left is None else left
        if not 1 <= n <= self.horizon:
            raise ValueError(f"left={n}: the plan is for 1 to {self.horizon} steps")
        s = x, self._key(as_prior(v, len(self.modes)))
        if (n, *s) not in self._q:
            self._solve(n, s)
        return dict(zip(self.modes.actions, self._q[n, *s], strict=True))

    def value(self, x: X, v: npt.ArrayLike, left: int | None = None) -> float:
        """V_n(x, v) = max_a Q_n(x, v, a)."""
        return max(self.action_values(x, v, left).values())

    def _solve(self, n: int, s: tuple[X, Key]) -> None:
        layers = [{s}]
        for _ in range(n - 1):
            reached = (self._branch(s) for s in layers[-1])
            layers.append({(x, v) for of_a in reached for o in of_a for _, _, x, v in o})
        for left, layer in enumerate(reversed(layers), start=1):
            for s in layer:
                if (left, *s) not in self._q:
                    self._q[left, *s] = tuple(
                        sum(p * (r + self._best(left - 1, x, v)) for p, r, x, v in outcomes)
                        for outcomes in self._branch(s)
                    )

    def _best(self, n: int, x: X, v: Key) -> float:
        return max(self._q[n, x, v]) if n else 0.0

    def _branch(self, s: tuple[X, Key]) -> list[list[tuple[float, float, X, Key]]]:
        """For each action, (P(o | v, x, a), r, T(x, a, o), v') for every possible o."""
        if s not in self._branches:
            if len(self._branches) >= self.limit:
                raise PlanTooLarge(
                    f"planning {self.horizon} steps ahead in {self.modes!r} reaches more than "
                    f"{self.limit} beliefs: shorten the horizon, or raise limit="
                )
            self._branches[s] = [list(self._outcomes(*s, a)) for a in self.modes.actions]
        return self._branches[s]

    def _outcomes(self, x: X, v: Key, a: A) -> Iterator[tuple[float, float, X, Key]]:
        for o, likelihood in self.modes.observation_probabilities(x, a).items():
            joint = self._v[v] * likelihood
            p = float(joint.sum())
            if p > 0.0:
                yield p, self.reward(a, o), self.modes.advance(x, a, o), self._key(joint / p)

    def _key(self, v: FloatArray) -> Key:
        key = tuple(np.round(v, _DECIMALS).tolist())
        self._v.setdefault(key, v)
        return key

    def __repr__(self) -> str:
        return f"Plan({self.modes!r}, horizon={self.horizon}: {len(self._branches)} beliefs)"


class BayesOptimal(Generic[X, A, O]):
    """a_t = arg max_a Q_n(x, v, a): the agent that follows the plan, with n steps to go.

    When the horizon is used up it plans as many steps again from what it believes. The first
    action wins a tie. One plan may serve many agents.

    >>> from bayescontrol import interact
    >>> from bayescontrol.problems.chain import chain
    >>> modes = chain(4)
    >>> agent = BayesOptimal(Plan(modes, lambda a, o: o, horizon=8))
    >>> agent.value(), interact(agent, modes.environment(1), 8).actions.tolist()
    (1.5, [0, 0, 0, 0, 1, 1, 1, 1])
    """

    def __init__(self, plan: Plan[X, A, O], prior: npt.ArrayLike | None = None) -> None:
        self.plan = plan
        self.belief: FiniteBelief[Any] = FiniteBelief(plan.modes, prior)
        self.x = plan.modes.start
        self._t = 0

    @property
    def left(self) -> int:
        """n: the steps to go in this plan."""
        return self.plan.horizon - self._t % self.plan.horizon

    def action_values(self) -> dict[A, float]:
        """Q_n(x, v, a) for all a."""
        return self.plan.action_values(self.x, self.belief.posterior(), self.left)

    def value(self) -> float:
        """V_n(x, v): the expected reward of the steps to go."""
        return max(self.action_values().values())

    def action_probabilities(self) -> dict[A, float]:
        """All on the best action."""
        return {self._best(): 1.0}

    def predictive(self, a: A) -> dict[O, float]:
        """P(o | v, x, a)."""
        return self.belief.predictive(self.x, a)

    def act(self, rng: Stream) -> A:
        """The best action; nothing is random."""
        a = self._best()
        self._t += 1
        return a

    def observe(self, a: A, o: O) -> None:
        """v ← v', x ← T(x, a, o)."""
        x = self.plan.modes.advance(self.x, a, o)
        self.belief.observe(self.x, a, o)
        self.x = x

    def _best(self) -> A:
        q = self.action_values()
        best = max(q.values())
        return next(a for a, value in q.items() if value >= best - _TIE * max(1.0, abs(best)))

    def __repr__(self) -> str:
        return f"BayesOptimal({self.plan!r}, {self.belief!r}, situation {self.x!r}, t={self._t})"
