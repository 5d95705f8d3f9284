"""Agents for the grid-world, written by hand without this library.

    λ = λ0 + p n        μ = (λ0 μ0 + p Σ r) / λ        λ0 = μ0 = p = 1, prior B
    ρ      ~ N( Σ λ (μ - Q(x,a) + M(y)) / Σ λ, 1 / Σ λ )
    Q(x,a) ~ N( Σ_y λ (μ - ρ + M(y)) / S(x,a), 1 / S(x,a) )        S(x,a) = Σ_y λ(x,a,y)

NumPy draws all of Q at once, from the M of the previous sweep. Updating state by state with the
newest M, as our kernel does, would need a hundred more calls. Neither recentres Q.

R-learning plays a world with Gymnasium's interface: `step` returns five values. `ToyText` draws
like Gymnasium's tabular worlds; its base class draws as fast as Python can.
"""

from bisect import bisect
from typing import Any

import numpy as np

from bayescontrol.mdp import MDP

__all__ = [
    "DenseSweep",
    "GymnasiumStyle",
    "PlainSweep",
    "ToyText",
    "play_gibbs",
    "play_r_learning",
]


class GymnasiumStyle:
    """An MDP with `reset` and `step`; it draws from precomputed cumulative sums."""

    def __init__(self, mdp: MDP) -> None:
        self.shape = len(mdp.states), len(mdp.actions)
        pairs = [[mdp.outcomes(x, a) for a in mdp.actions] for x in mdp.states]
        self.outcomes = [[[(o.state, o.reward) for o in row] for row in rows] for rows in pairs]
        sums = [[np.cumsum(list(row.values())) for row in rows] for rows in pairs]
        self.sums = [[(c[:-1] / c[-1]).tolist() for c in rows] for rows in sums]
        self.np_random = np.random.default_rng(0)
        self.x = 0

    def reset(self, *, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        """Return to state 0."""
        if seed is not None:
            self.np_random = np.random.default_rng(seed)
        self.x = 0
        return self.x, {}

    def step(self, a: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """The next state and the reward; there is no end."""
        drawn = bisect(self.sums[self.x][a], self.np_random.random())
        self.x, r = self.outcomes[self.x][a][drawn]
        return self.x, r, False, False, {}


class ToyText(GymnasiumStyle):
    """A world that cumulates the probabilities at every step, in NumPy."""

    def __init__(self, mdp: MDP) -> None:
        super().__init__(mdp)
        self.P = [
            [[(p, o.state, o.reward) for o, p in mdp.outcomes(x, a).items()] for a in mdp.actions]
            for x in mdp.states
        ]

    def step(self, a: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """The next state and the reward; there is no end."""
        transitions = self.P[self.x][a]
        sums = np.cumsum(np.asarray([t[0] for t in transitions]))
        p, self.x, r = transitions[np.argmax(sums > self.np_random.random())]
        return self.x, r, False, False, {"prob": p}


class PlainSweep:
    """The equations, line by line, over a list of transitions; states are added when visited."""

    def __init__(self, shape: tuple[int, int], seed: int = 0) -> None:
        states, self.A = shape
        most = states * self.A * states
        self.pair, self.y = np.zeros(most, np.intp), np.zeros(most, np.intp)
        self.n, self.r = np.zeros(most), np.zeros(most)
        self.size, self.place = 0, {}  # type: int, dict[tuple[int, int], int]
        self.number: dict[int, int] = {}
        self.Q, self.M = np.zeros(0), np.zeros(0)
        self.rng = np.random.default_rng(seed)
        self.enter(0)

    def enter(self, x: int) -> None:
        """Each action of a new state has a prior transition onto that state."""
        level = self.M.max(initial=0.0)
        self.M = np.append(self.M, level)
        self.Q = np.append(self.Q, np.full(self.A, level))
        here, self.number[x] = len(self.number), len(self.number)
        new = slice(self.size, self.size + self.A)
        self.pair[new], self.y[new] = here * self.A + np.arange(self.A), here
        self.size += self.A

    def act(self, x: int) -> int:
        """A sweep, and the best action under it."""
        k, rng = self.size, self.rng
        pair, y = self.pair[:k], self.y[:k]
        lam = 1.0 + self.n[:k]
        mu = (1.0 + self.r[:k]) / lam
        pull = lam * (mu + self.M[y])
        total = lam.sum()
        rho = (pull.sum() - lam @ self.Q[pair]) / total + rng.standard_normal() / total**0.5
        S = np.bincount(pair, lam)
        noise = rng.standard_normal(S.size) / np.sqrt(S)
        self.Q = np.bincount(pair, pull) / S - rho + noise
        table = self.Q.reshape(-1, self.A)
        self.M = table.max(axis=1)
        return int(table[self.number[x]].argmax())

    def observe(self, x: int, a: int, r: float, y: int) -> None:
        """n(x,a,y) += 1; the first transition of a pair takes the place of the prior's."""
        if y not in self.number:
            self.enter(y)
        i, to = self.number[x] * self.A + a, self.number[y]
        t = self.place.get((i, to), -1)
        if t < 0:
            prior = np.flatnonzero((self.pair[: self.size] == i) & (self.n[: self.size] == 0))
            t = int(prior[0]) if prior.size else self.size
            self.size += not prior.size
            self.pair[t], self.y[t] = i, to
            self.place[i, to] = t
        self.n[t] += 1.0
        self.r[t] += r


class DenseSweep:
    """The fastest NumPy version we know: two products with a table of λ.

        z = [Q, M, -ρ, 1]        ρ = [-S, Σ λ(·,·,y), 0, Σ λ μ] · z / Σ λ + noise
        Q = [λ, S, Σ λ μ] [M, -ρ, 1] / S + noise

    Pair i = a X + x, so that the maximum over actions runs along whole rows. States that are not
    yet visited have weight 0. The table has X² A entries: use it for few states only.
    """

    def __init__(self, shape: tuple[int, int], seed: int = 0) -> None:
        X, A = self.X, self.A = shape
        pairs = self.pairs = X * A
        self.weights, self.sums = np.zeros((pairs, X + 2)), np.zeros(pairs + X + 2)
        self.z = np.zeros(pairs + X + 2)
        self.z[-1] = 1.0
        self.Q, self.behind, self.M = self.z[:pairs], self.z[pairs:], self.z[pairs : pairs + X]
        self.table = self.Q.reshape(A, X)
        self.inverse, self.spread = np.zeros(pairs), np.zeros(pairs)
        self.noise, self.total = np.zeros(pairs), 0.0
        self.known, self.found = [False] * pairs, [False] * X
        self.rng = np.random.default_rng(seed)
        self.enter(0)

    def enter(self, x: int) -> None:
        """Each action of a new state has a prior transition onto that state."""
        self.found[x] = True
        self.M[x] = self.M.max()
        for i in range(x, self.pairs, self.X):
            self.Q[i] = self.M[x]
            self.add(i, x, 1.0, 1.0)

    def add(self, i: int, y: int, weight: float, pull: float) -> None:
        """Add `weight` to λ and `pull` to λ μ of a transition of pair i."""
        row = self.weights[i]
        row[y] += weight
        S = row[-2] = row.item(-2) + weight
        row[-1] += pull
        self.sums[i], self.inverse[i], self.spread[i] = -S, 1.0 / S, S**-0.5
        self.sums[self.pairs + y] += weight
        self.sums[-1] += pull
        self.total += weight

    def act(self, x: int) -> int:
        """A sweep, and the best action under it."""
        Q, noise, total = self.Q, self.noise, self.total
        deviation = self.rng.standard_normal() * total**-0.5
        self.behind[-2] = -(self.sums.dot(self.z) / total + deviation)
        self.rng.standard_normal(out=noise)
        noise *= self.spread
        self.weights.dot(self.behind, out=Q)
        np.multiply(Q, self.inverse, out=Q)
        np.add(Q, noise, out=Q)
        np.maximum.reduce(self.table, axis=0, out=self.M)
        return int(self.table[:, x].argmax())

    def observe(self, x: int, a: int, r: float, y: int) -> None:
        """n(x,a,y) += 1; the first transition of a pair takes the place of the prior's."""
        if not self.found[y]:
            self.enter(y)
        i = a * self.X + x
        if self.weights.item(i, y) and self.known[i]:
            self.add(i, y, 1.0, r)
        elif self.known[i]:
            self.add(i, y, 2.0, 1.0 + r)
        else:
            self.known[i] = True
            self.add(i, y, 2.0, 1.0 + r)
            self.add(i, x, -1.0, -1.0)


def play_gibbs(agent: PlainSweep | DenseSweep, world: GymnasiumStyle, steps: int) -> float:
    """Continue for `steps` steps; return the mean reward."""
    x, total = world.x, 0.0
    for _ in range(steps):
        a = agent.act(x)
        y, r, _, _, _ = world.step(a)
        agent.observe(x, a, r, y)
        x = y
        total += r
    return total / steps


def play_r_learning(world: GymnasiumStyle, steps: int, C: float = 30.0) -> float:
    """Run R-learning from scratch with α = 0.5 and β = 0.001; return the mean reward."""
    Q, bonus = np.zeros(world.shape), np.full(world.shape, np.inf)
    F, rho, total = np.zeros(world.shape), 0.0, 0.0
    x, _ = world.reset()
    for _ in range(steps):
        a = int((Q[x] + bonus[x]).argmax())
        y, r, terminated, truncated, _ = world.step(a)
        target, q = r + Q[y].max(), Q[x, a]
        Q[x, a] = 0.5 * q + 0.5 * (target - rho)
        rho = 0.999 * rho + 0.001 * (target - q)
        F[x, a] += 1.0
        bonus[x, a] = C / F[x, a]
        total += r
        x = y
        if terminated or truncated:
            x, _ = world.reset()
    return total / steps
