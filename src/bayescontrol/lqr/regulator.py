"""Adaptive regulation in the units of the plant: find the scale, then draw systems and regulate.

    u = u_r - K (x - r) - K_q q + σ n,  limited to [low, high]        q ← q + (x - r)

    cost of a step for the gain: (x - r)ᵀQ(x - r) + (u - u_r)ᵀR(u - u_r) + Σ_i w_i q_i²

While the scale is unknown, K is the backup gain or 0, and the excitation σ grows from small values:

    σ_i² = g² c / (m R_ii),   c the average of (x - r)ᵀQ(x - r) so far,   g = 0.001, 0.00125, … 1

So the largest excitation costs as much as the states. The scale is known when the data show the
effect of every input. Then systems are drawn. The gain of a drawn system is used if its average
cost in the mean system is at most twice the optimum; otherwise the backup gain is used, or without
one the gain of the mean system, or the last gain. Every rule is the same in any units of states,
inputs and costs: the prior `LEARNED` has no effect beside the data.

Products are sums in a fixed order, so that actions have the same bits on every machine.
"""

from typing import Any, ClassVar, Final

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, UIntArray
from bayescontrol._support.saved import Array, Copied, Fixed, Number, declare
from bayescontrol.errors import InvalidSystem
from bayescontrol.lqr.agent import LinearAgent
from bayescontrol.lqr.belief import LinearMode, SystemBelief
from bayescontrol.lqr.matrices import as_limits, as_matrix, as_start, as_vector, average_cost
from bayescontrol.lqr.regression import SystemPrior
from bayescontrol.lqr.system import Costs
from bayescontrol.seeding import StreamLike, state_of

#: A prior that has no effect beside data in any units.
LEARNED: Final = SystemPrior(precision=1e-120, scatter=1e-120)


def is_learned(prior: SystemPrior) -> bool:
    """Return whether this is `LEARNED`, or a copy of it, judged by its tiny precision."""
    return np.ndim(prior.precision) == 0 and prior.precision == LEARNED.precision


#: The first value of g, its growth per step, and the largest value.
_FIRST, _GROWTH, _FULL = 1e-3, 1.25, 1.0
#: The scale is known if each input has this signal (see `input_signal`), from 2 (2n + m)
#: observations on, and at the latest after 50 observations for each state and input, 100 with a
#: backup gain. With a backup gain the limit is
#: higher: in its closed loop, inputs follow the states, so the data separate A from B slowly.
_SIGNAL, _LONGEST, _LONGEST_WITH_BACKUP = 1000.0, 50, 100
#: The largest cost of a drawn gain in the mean system, in units of the optimal cost there.
_WORST = 2.0
#: Where the gain of a mode is from: the search for the scale, a drawn system, or a replacement.
_SEARCH, _DRAWN, _REPLACED = (np.array([source]) for source in range(3))


class RegulatorMode(LinearMode):
    """A drawn system with the input that regulates it, or with the backup gain.

    `solved` are A, B, V, P and K, where P and K include the integrals as the last rows and columns.
    `offset` is u_r, `sd` is σ, and `source` tells where the gain is from.

    >>> from bayescontrol import Stream
    >>> belief = RegulatorBelief(Costs(np.eye(1), np.eye(1)), backup=[[0.5]], setpoint=[3.0])
    >>> belief.sample(Stream(0)).act([4.0], Stream(0))
    array([-0.5])
    """

    saved_fields = declare(
        *(Array(name, shared=True) for name in ("offset", "sd", "source")),
        *map(Copied, "QR"),  # the costs are known
    )

    def __init__(self, belief: "RegulatorBelief", solved: Any, offset: Any, source: Any) -> None:
        super().__init__(solved, belief.costs.mean())
        self.belief, self.offset, self.source = belief, offset, source
        self.sd = np.zeros(belief.inputs)

    def act(self, x: FloatArray, rng: StreamLike) -> FloatArray:
        """Return the limited input."""
        belief, u = self.belief, self.offset.copy()
        error = as_vector(x, len(self.A), "the state") - belief.setpoint
        for column, e in zip(self.K.T, np.concatenate([error, belief.q]), strict=True):
            u -= column * e
        for i in np.flatnonzero(self.sd):
            u[i] += self.sd[i] * kernels.random.normal(state_of(rng))
        return np.asarray(np.clip(u, *belief.limits))


class RegulatorBelief(SystemBelief):
    """P(A, B, W | âo_<t), whose modes regulate in plant units; `LinearQuadratic` has the settings.

    >>> belief = RegulatorBelief(Costs(np.eye(1), np.eye(1)), limits=(-1, 1))
    >>> belief
    RegulatorBelief(1 state, 1 input, unknown noise, after 0 observations)
    >>> belief.scale_known, belief.refused
    (False, 0)
    """

    format_name: ClassVar[str] = "RegulatorBelief"
    saved_fields = declare(
        Fixed("regulation/setpoint", "setpoint"),
        Fixed("regulation/limits", lambda belief: np.array(belief.limits)),
        Fixed("regulation/integral", "_weights"),
        Fixed("regulation/backup", lambda belief: belief._backup[:, : belief.states]),
        Array("memory", shared=True),
        Array("integrals", "q", shared=True),
        Number("sampler/refused", "refused", least=0),
    )

    def __init__(
        self,
        costs: Costs,
        *,
        noise: ArrayLike | None = None,
        prior: SystemPrior = LEARNED,
        tries: int = 100,
        backup: ArrayLike | None = None,
        limits: Any = None,
        setpoint: ArrayLike | None = None,
        integral: ArrayLike | None = None,
    ) -> None:
        super().__init__(costs, noise=noise, prior=prior, tries=tries)
        n, m, (Q, _) = self.states, self.inputs, self.costs.mean()
        self._weights = weights = as_start(integral, n, "integral")
        if not (weights >= 0.0).all():
            raise InvalidSystem(f"integral={weights.tolist()}: expected {n} weights, each ≥ 0")
        self._integrated = np.flatnonzero(weights)
        #: Q with the weights of the integrals, and the backup gain, 0 by default.
        self._Q = np.diag(np.concatenate([np.zeros(n), weights[self._integrated]]))
        self._Q[:n, :n] = Q
        self._backup, self._has_backup = np.zeros((m, len(self._Q))), backup is not None
        if backup is not None:
            self._backup[:, :n] = as_matrix(backup, (m, n), "backup")
        self.limits, self.setpoint = as_limits(limits, m), as_start(setpoint, n, "setpoint")
        #: The cost of the states until the scale was known, g, and the number of observations when
        #: the scale became known: 0 before, -1 if the prior is given.
        self.memory = np.array([0.0, 0.0, 0.0 if is_learned(prior) else -1.0])
        #: How often a drawn gain was replaced, because it costs too much in the mean system.
        self.refused = 0
        #: The integrals of the errors.
        self.q = np.zeros(len(self._integrated))

    @property
    def scale_known(self) -> bool:
        """Whether the scale has been found, so that systems are drawn."""
        return bool(self.memory[2])

    @property
    def search_steps(self) -> int:
        """The number of observations until the scale was known; 0 before, or if it was given."""
        return max(0, int(self.memory[2]))

    def observe(self, x: ArrayLike, a: ArrayLike, o: Any) -> None:
        """Learn that the applied input a led from state x to o. An error changes nothing.

        An integral rests while an input is at a limit, and until the scale is known.
        """
        v, u, y, _ = self._event(x, a, o)
        self.learn(v, u, y)
        error, (low, high) = v - self.setpoint, self.limits
        if not self.scale_known:
            self._search(error)
        elif ((low < u) & (u < high)).all():
            self.q = self.q + error[self._integrated]

    def _search(self, error: FloatArray) -> None:
        """Update `memory` (cost, g, known) after an observation before the scale is known.

        g is 0 in the first n + m steps, in which K alone acts.
        """
        (cost, g, known), n, m, t = self.memory, self.states, self.inputs, self.count
        for i in range(n):
            for j in range(n):
                cost += error[i] * self._Q[i, j] * error[j]
        if t >= n + m:
            g = min(_FULL, _GROWTH * g) if t > n + m else _FIRST
        longest = (_LONGEST_WITH_BACKUP if self._has_backup else _LONGEST) * (n + m)
        if t >= 2 * (2 * n + m) and (t >= longest or self.input_signal() >= _SIGNAL):
            known = t
        self.memory = np.array([cost, g, known])

    def input_signal(self) -> float:
        """Return the least bᵀW⁻¹b / λ of an input: its squared effect b in units of its own error.

        b is the input's column of the mean B, with covariance Wλ. With F = [[R, Z], [0, S]] and the
        rows R_u, Z_u of the inputs: Bᵀ = R_u⁻¹ Z_u, W = SᵀS / (count - d), and λ is the diagonal of
        R_u⁻¹ R_u⁻ᵀ. Without any effect the signal is about n.
        """
        n, d = self.states, self.states + self.inputs
        R_u, Z_u, S = self.F[n:d, n:d], self.F[n:d, d:], self.F[d:, d:]
        with np.errstate(all="ignore"):  # NaN if it overflows, which is below every limit
            inverse = np.linalg.inv(R_u)
            whitened = np.linalg.solve(S.T, (inverse @ Z_u).T)  # S⁻ᵀ B, a column for each input
            effects = (self.count - d) * (whitened**2).sum(0)
            return float((effects / (inverse**2).sum(1)).min())

    def sample(self, rng: StreamLike) -> RegulatorMode:
        """Draw a system and its gain, or return the backup gain. It never raises."""
        last: Any = self._last or self._blank_mode()
        if self.scale_known:
            mode = self._draw(state_of(rng)) or self._replacement(last)
        else:
            gain, u_r = self._backup.copy(), np.zeros(self.inputs)
            mode = last.changed(K=gain, offset=u_r, sd=self._excitation(), source=_SEARCH)
        self._diagonal, self._last = self.R.diagonal().copy(), mode
        return mode

    def _excitation(self) -> FloatArray:
        """Return σ of the search; while the states have cost 0, g times half the input's limits."""
        cost, g, _ = self.memory
        if cost > 0.0:
            R = self.costs.mean().R.diagonal()
            return np.asarray(g * np.sqrt(cost / (self.count * self.inputs * R)))
        span = self.limits[1] - self.limits[0]  # no state has cost anything yet
        return np.asarray(g * np.where(span < np.inf, 0.5 * span, 1.0))

    def _draw(self, rng_state: UIntArray) -> RegulatorMode | None:
        """Draw a system with a gain.

        Return None if the gain costs too much in the mean system, or if no try has a gain.
        """
        for _ in range(self.tries):
            A, B, V, *_ = self._blank()
            if self.noise_factor is None:
                kernels.lqr.draw_noise(self.F, self.nu, V, rng_state)
            kernels.lqr.draw_system(self.F, V, A, B, rng_state)
            drawn = self._solve(A, B, V)
            if drawn is not None:
                return drawn if self._accepts(drawn) else None
            self.redrawn += 1
        return None

    def _accepts(self, drawn: RegulatorMode) -> bool:
        """Return whether J(K) of the drawn gain is at most twice the optimum in the mean system."""
        mean, W = self.certain(), np.zeros_like(self._Q)
        if mean is None:
            return False
        W[: self.states, : self.states] = mean.W
        a, b = self._augmented(mean.A, mean.B)
        cost = average_cost(a, b, Q=self._Q, R=self.costs.mean().R, W=W, K=drawn.K)
        return cost <= _WORST * float(np.sum(mean.P * W))

    def _replacement(self, last: RegulatorMode) -> RegulatorMode:
        """Return the mode that is used instead of a drawn one."""
        self.refused += 1
        mode = last.changed(K=self._backup.copy()) if self._has_backup else self.certain() or last
        return mode.changed(sd=np.zeros(self.inputs), source=_REPLACED)

    def is_retired(self, mode: Any) -> bool:
        """Return True if no drawn gain is in use, so that a draw is tried at every step."""
        return bool(mode.source != _DRAWN)

    def certain(self) -> RegulatorMode | None:
        """Return the mode of the posterior mean, or None if it has no stabilising gain."""
        A, B, V, *_ = self._blank()
        kernels.lqr.mean_system(self.F, A, B)
        if self.noise_factor is None:
            kernels.lqr.mean_noise(self.F, self.nu, V)
        return self._solve(A, B, V)

    def _augmented(self, A: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the system with the integrals as further states, [[A, 0], [C, I]] and [B, 0]."""
        n, size = len(A), len(self._Q)
        a, b = np.eye(size), np.zeros((size, self.inputs))
        a[:n, :n], b[:n] = A, B
        a[range(n, size), self._integrated] = 1.0
        return a, b

    def _solve(self, A: FloatArray, B: FloatArray, V: FloatArray) -> RegulatorMode | None:
        """Return the mode of a system, or None if no gain stabilises it.

        u_r minimises the distance of A r + B u_r from r, weighted with P; 0 if it is not unique.
        """
        n, m, size, R = self.states, self.inputs, len(self._Q), self.costs.mean().R
        P, K = np.empty((size, size)), np.empty((m, size))
        room = kernels.riccati.room(size, m)
        if not kernels.riccati.riccati(*self._augmented(A, B), self._Q, R, P, K, room):
            return None
        r, weighted = self.setpoint[:, None], _product(B.T, P[:n, :n])
        u_r = _product(weighted, r - _product(A, r))
        if not kernels.riccati.solve_linear(_product(weighted, B), u_r):
            u_r = np.zeros((m, 1))
        return RegulatorMode(self, (A, B, V, P, K), u_r[:, 0], _DRAWN)

    def _blank_mode(self) -> RegulatorMode:
        """Return a mode of zeros, with the noise if it is known."""
        n, m, size = self.states, self.inputs, len(self._Q)
        V = np.eye(n) if self.noise_factor is None else self.noise_factor.copy()
        A, B, P, K = map(np.zeros, ((n, n), (n, m), (size, size), (m, size)))
        return RegulatorMode(self, (A, B, V, P, K), np.zeros(m), _SEARCH)

    def _after_copy(self) -> None:
        if self._last is not None:
            self._last = self._last.changed(belief=self)


class RegulatorAgent(LinearAgent):
    """The control rule in plant units; see `LinearQuadratic` for its settings.

    >>> from bayescontrol import interact
    >>> from bayescontrol.lqr import LinearQuadratic, LinearSystem
    >>> system = LinearSystem([[0.9]], [[1e-3]], [[1e6]], [[1.0]], W=[[1e-8]])
    >>> problem = LinearQuadratic(system.Q, system.R)
    >>> agent = problem.agent()
    >>> record = interact(agent, problem.environment(system), 2000, seed=0)
    >>> round(system.cost(agent.gain) / system.best_cost, 1)
    1.0
    """

    format_name: ClassVar[str] = "RegulatorAgent"


def _product(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Return X Y, summed in the order of the indices: the same bits on every machine."""
    return np.asarray((X[:, :, None] * Y).sum(axis=1))
