"""A model of an MDP as an operation mode: a hypothesis with its own best policy.

m = (P, R)
hypothesis   P(r, y | m, x, a) = P(y | x,a) N(r; R(x,a), 1/p)
policy       π_m(x) = arg max_a Q_m(x,a), the best average reward if m is true
"""

import math
from typing import Any

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray, IntArray
from bayescontrol.baselines.mdp.book import Book
from bayescontrol.seeding import Stream

#: ε of `kernels.mdp.solve_average_reward`, and how many policies it may try.
RESTART, LIMIT = 1e-6, 200


class SampledModel:
    """A mode: P(y | x,a), R, and the policy that is best if they are true.

    >>> book = Book(2, 2, None, {})
    >>> P = np.array([[[1.0, 0.0], [0.1, 0.9]], [[0.5, 0.5], [0.0, 1.0]]])
    >>> m = SampledModel(book, P, np.array([[0.0, 0.0], [0.0, 1.0]]), precision=1.0)
    >>> m
    SampledModel(2 states, 2 actions: ρ = 1)
    >>> m.act(0, Stream(0)), round(m.log_likelihood(0, 1, (0.0, 1)), 6)  # ln .9 + ln N(0; 0, 1)
    (1, -1.024299)
    """

    def __init__(self, book: Book, P: FloatArray, R: FloatArray, precision: float | None) -> None:
        self._book = book
        self.P, self.R = P, R
        #: p of the rewards; None where they are known, and tell nothing.
        self.precision = precision
        r = R.copy() if R.ndim == 2 else np.empty(R.shape[:2])
        if R.ndim == 3:
            kernels.mdp.expected_rewards(P, R, r)
        #: r(x,a), -∞ where x does not offer a.
        self.r: FloatArray = np.where(book.allowed, r, -np.inf)
        #: π(x), by number, and h(x), relative to the first state.
        self.policy: IntArray = np.empty(len(book.states), np.int64)
        self.bias: FloatArray = np.empty(len(book.states))
        #: ρ, and bounds between which the best average reward of this model lies.
        self.gain, self.lower, self.upper = kernels.mdp.solve_average_reward(
            self.P, self.r, RESTART, LIMIT, self.policy, self.bias
        )

    def act(self, x: Any, rng: Stream) -> Any:
        """π(x)."""
        return self._book.actions[int(self.policy[self._book.states.place(x)])]

    def action_probabilities(self, x: Any) -> dict[Any, float]:
        """All on π(x)."""
        return {self._book.actions[int(self.policy[self._book.states.place(x)])]: 1.0}

    def log_likelihood(self, x: Any, a: Any, o: Any) -> float:
        """ln P(y | x,a) + ln N(r; R, 1/p); the second only where rewards are not known."""
        here, column, r, there = self._book.read(x, a, o)
        p = float(self.P[here, column, there])
        if p == 0.0:
            return -math.inf
        if self.precision is None:
            return math.log(p)
        mean = float(self.R[here, column] if self.R.ndim == 2 else self.R[here, column, there])
        noise = math.log(self.precision / (2.0 * math.pi)) - self.precision * (r - mean) ** 2
        return math.log(p) + 0.5 * noise

    def __repr__(self) -> str:
        return f"SampledModel({self._book!r}: ρ = {self.gain:.4g})"
