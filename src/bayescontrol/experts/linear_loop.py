"""Moments of a linear control loop: costs, evidence, and the time until plants are distinguished.

    z = [x, x̂ of some filters, u, ŷ, ŷ before]      z' = z F + signals H + N(0, 1) G
    cost      E (y - r)ᵀQ (y - r) + uᵀR u
    evidence  Λ = Σ ln P(y | j) - ln P(y | i) = ½ Σ |U_i e_i|² - |U_j e_j|² + ln det S_i / det S_j

Plant j is true, e_m is the innovation of filter m, and U_m S_m U_mᵀ = 1. The mean and covariance of
z, and the mean and variance of Λ, are exact at every step from the start of the loop, except that
limits of the actuator are ignored.

Given the past, Λ is nearly Brownian motion with drift ½ in the time of a clock τ, which is twice
the evidence expected from the past. Hence P(T > k) = E G(τ_k; h + ρ) for the first time T above the
threshold h. G is the survival function of the inverse Gaussian distribution. The mean overshoot of
a random walk is ρ = 0.583 s + κ/(6 s²), where s² and κ are the variance and the third cumulant of
a step (Siegmund, 1985). The clock is random if noise moves the loop. It is taken as gamma
distributed with the exact mean. Its variance is the mean of Var τ and 4 (Var Λ - Σ s²), because
evidence that moves the loop also moves the clock. This choice is empirical.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.experts.controllers import PI, Loop
from bayescontrol.experts.plant_mode import PlantMode

#: The mean overshoot of a random walk with standard normal steps, -ζ(1/2) / √(2π).
OVERSHOOT = 0.5825971579
#: Doublings until a loop counts as unstable: 2^40 steps.
DOUBLINGS = 40
#: Moments that change by less than this share are stationary.
SETTLED = 1e-9
#: Steps between two looks at the probability that a pair is not distinguished yet.
BLOCK = 64
#: Quantiles by which the distribution of the clock is represented.
QUANTILES = (np.arange(32) + 0.5) / 32


def is_linear(mode: Any) -> bool:
    """Whether plant, filter and controller are linear; limits are not considered."""
    if not isinstance(mode, PlantMode) or mode.nu < math.inf or mode.stationary is None:
        return False
    uses_estimates = isinstance(mode.controller, PI) and not mode.controller.integrate_measured
    has_constants = any(constant.any() for constant in mode.constants)
    return (mode.gain is not None or uses_estimates) and not has_constants


class Gains(NamedTuple):
    """Gains of filters at one step: L, U with U S Uᵀ = 1, ln det S, and the next Σ."""

    L: FloatArray
    U: FloatArray
    log_det: FloatArray
    Sigma: FloatArray


class Maps(NamedTuple):
    """What follows linearly from [z, signals, noise]: the next z, innovations, y and u."""

    z: FloatArray
    e: FloatArray
    y: FloatArray
    u: FloatArray


class LinearLoop:
    """The plant of mode `true` with the controller of a mode, and the filters of modes.

    `filters` are indices of modes, first that of the controller.
    """

    def __init__(self, modes: Sequence[Any], true: int, filters: Sequence[int]) -> None:
        plant, first = modes[true], modes[filters[0]]
        g, room = plant.signals, max(modes[m].states for m in filters)
        self.sizes = (
            plant.states, room * len(filters), g.inputs, g.outputs, g.outputs,
        )  # fmt: skip
        self.plant, self.signals, self.room, self.filters = plant, g, room, list(filters)
        each = [modes[m].with_room(room).models(plant.period) for m in filters]
        self.models = kernels.kalman.FilterModels(*map(np.concatenate, zip(*each, strict=True)))
        self.factors = [kernels.regression.factor(noise) for noise in (plant.W, plant.V)]
        self.E = np.hstack([plant.B, plant.E])
        self.controller = _matrix(first, room)
        rows = [modes[m].with_room(room).start() for m in filters]
        at = 1 + 2 * g.outputs
        self.Sigma = np.array([row[at + room :].reshape(room, room) for row in rows])
        x_hat = np.concatenate([row[at : at + room] for row in rows])
        y = rows[0][1 : 1 + g.outputs]
        self.start = np.concatenate([plant.x0, x_hat, np.zeros(g.inputs), y, y])
        self.limits: tuple[Any, Any] = (-math.inf, math.inf)

    def gains(self, Sigma: FloatArray) -> Gains:
        """Return the gains of all filters from Σ after the last output."""
        A, C, V = self.models.A, self.models.C, self.models.V
        P = A @ Sigma @ _transposed(A) + self.models.W
        S = C @ P @ _transposed(C) + V
        L, U = _transposed(np.linalg.solve(S, C @ P)), np.linalg.inv(np.linalg.cholesky(S))
        reduced = np.eye(self.room) - L @ C
        log_det = np.linalg.slogdet(S)[1]
        return Gains(L, U, log_det, reduced @ P @ _transposed(reduced) + L @ V @ _transposed(L))

    def step(
        self, z: FloatArray, signals: FloatArray, noise: FloatArray, gains: Gains
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the next z, the innovations, y and u, with one row for each row of z."""
        g, f = self.signals, self.models
        x, x_hat, u, y_hat, y_before = np.split(z, np.cumsum(self.sizes)[:-1], axis=1)
        d = signals[:, 2 * g.outputs :]
        seen = [signals[:, : 2 * g.outputs], d, u, x_hat[:, : self.room], y_hat, y_before]
        u = np.clip(np.hstack(seen) @ self.controller, *self.limits)
        v, w = np.hstack([u, d]), noise[:, : len(self.plant.A)] @ self.factors[0]
        x = x @ self.plant.A.T + v @ self.E.T + w
        y = x @ self.plant.C.T + v @ self.plant.D.T + noise[:, len(w.T) :] @ self.factors[1]
        ahead = np.einsum("fab,rfb->rfa", f.A, x_hat.reshape(len(z), -1, self.room))
        ahead += np.einsum("fab,rb->rfa", f.B[:, :, :-1], v)  # the last input is constant
        before = np.einsum("fab,rfb->rfa", f.C, ahead) + np.einsum("fab,rb->rfa", f.D[..., :-1], v)
        e = y[:, None] - before
        x_hat = ahead + np.einsum("fab,rfb->rfa", gains.L, e)
        new_y = before[:, 0] + e[:, 0] @ (f.C[0] @ gains.L[0]).T
        return np.hstack([x, x_hat.reshape(len(z), -1), u, new_y, y_hat]), e, y, u

    def maps(self, gains: Gains) -> Maps:
        """Return the linear maps of a step, from its answers to unit vectors."""
        g = self.signals
        sizes = [sum(self.sizes), 2 * g.outputs + g.disturbances, sum(map(len, self.factors))]
        z, signals, noise = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
        return Maps(*self.step(z, signals, noise, gains))

    # -- the long run ---------------------------------------------------------------------------

    def long_run(self, signals: FloatArray, settles: bool) -> "LongRun | None":
        """Return the moments of the loop in the long run; None if it is unstable.

        If the signals settle, these are the moments with the last signals, otherwise the averages.
        """
        maps, n = self.maps(self.gains(self.models.Sigma)), sum(self.sizes)
        F, H, G = np.split(maps.z, [n, n + signals.shape[1]])
        p = self.signals.outputs
        constant = np.vstack([H[:p] + H[p : 2 * p], H[2 * p :]])  # the setpoint does not change
        by_noise, by_signals = _accumulate(F, G.T @ G), _accumulate(F, constant.T @ constant)
        if by_noise is None or by_signals is None or abs(np.linalg.eigvals(F)).max() > 1.0 + 1e-9:
            return None
        z, path = self.start, []
        for s in signals:
            path.append(np.concatenate([z, s]))
            z = z @ F + s @ H
        rows = np.array(path)
        if not settles:
            return LongRun(maps, by_noise, rows, rows)
        A, b = F, signals[-1] @ H
        for _ in range(DOUBLINGS):
            z, A, b = z @ A + b, A @ A, b @ A + b
        return LongRun(maps, by_noise, np.concatenate([z, signals[-1]])[None], rows)


def _matrix(mode: Any, room: int) -> FloatArray:
    """Return the controller as a matrix, from its answers to unit vectors."""
    g, zero = mode.signals, np.zeros
    sizes = [g.outputs, g.outputs, g.disturbances, g.inputs, room, g.outputs, g.outputs]
    rows = []
    for row in np.eye(sum(sizes)):
        r, r_before, d, u, x, y, y_before = np.split(row, np.cumsum(sizes)[:-1])
        loop = Loop(0, r, r_before, d, u, zero(g.outputs), x[: mode.states], y, y_before)
        rows.append(np.asarray(mode.controller(loop)))
    return np.array(rows)


def _transposed(matrices: Any) -> FloatArray:
    return np.asarray(matrices.transpose(0, 2, 1))


class LongRun(NamedTuple):
    """Maps, the covariance of z, and means of [z, signals] in the long run and from the start."""

    maps: Maps
    P: FloatArray
    means: FloatArray
    path: FloatArray

    def second_moment(self, X: FloatArray) -> FloatArray:
        """Return E v vᵀ for v = [z, signals, noise] X, on average over the long run."""
        n, m = len(self.P), self.means.shape[1]
        mean = self.means @ X[:m]
        return np.asarray(
            X[:n].T @ self.P @ X[:n] + X[m:].T @ X[m:] + mean.T @ mean / len(self.means)
        )


def _accumulate(F: FloatArray, Q: FloatArray) -> FloatArray | None:
    """Solve P = Q + FᵀPF by doubling; None if P is infinite.

    Directions that Q does not reach may have eigenvalues of 1, such as the integral of PI(kp, 0).
    """
    P = Q
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(DOUBLINGS):
            more = F.T @ P @ F
            if not np.isfinite(more).all():
                return None
            P, F = P + more, F @ F
            if abs(more).max() <= 1e-14 * abs(P).max():
                return P
    return None


# -- the time until two plants are distinguished ----------------------------------------------


def expected_time(
    loop: LinearLoop,
    true: int,
    other: int,
    signals: FloatArray,
    settled_at: float,
    threshold: float,
) -> tuple[float, float]:
    """Return E min(T, horizon) and P(T > horizon) in steps; T is when Λ reaches the threshold.

    `true` and `other` are positions in `loop.filters`. The signals are constant from step
    `settled_at` on. When the moments have become stationary, they are extrapolated, and there is no
    horizon.
    """
    rows: list[FloatArray] = []
    alive, used = [np.ones(1)], 0
    for k, row in enumerate(_moments(loop, true, other, signals), 1):
        rows.append(row)
        settled = k > settled_at + 2 * sum(loop.sizes) and _is_settled(*rows[-3:])
        if k % BLOCK == 0 or settled or k == len(signals):
            alive, used = [*alive, _survival(np.array(rows[used:]), threshold)], k
            if settled or alive[-1][-1] < 1e-6:
                break
    survival = np.concatenate(alive)
    steps = survival.sum()
    if settled:
        return steps + _sum_of_tail(row, (row - rows[-2]) * [1, 1, 1, 1, 0], threshold), 0.0
    left = float(survival[-1])
    return float(steps) - left, left if left > 1e-6 else 0.0


def _is_settled(first: FloatArray, second: FloatArray, third: FloatArray) -> bool:
    """Whether the moments grow by the same amount at every step."""
    before, now = (second - first)[:4], (third - second)[:4]
    return bool((abs(now - before) <= SETTLED * abs(now)).all())


def _moments(loop: LinearLoop, true: int, other: int, signals: FloatArray) -> Iterator[FloatArray]:
    """Yield at each step: E Λ, Var Λ, Var τ/2, the sum of s², and by how much to raise h."""
    n, m = sum(loop.sizes), sum(loop.sizes) + signals.shape[1]
    z, P, Sigma, row = loop.start, np.zeros((n, n)), loop.Sigma, np.zeros(5)
    Gamma, gamma, steady = np.zeros((2, n, n)), np.zeros((2, n)), False
    for s in signals:
        if not steady:
            gains = loop.gains(Sigma)
            steady = bool(abs(gains.Sigma - Sigma).max() <= 1e-13 * abs(Sigma).max())
            Sigma, maps, U = gains.Sigma, loop.maps(gains), gains.U
            known = maps.e[:, other] - maps.e[:, true]  # does not depend on the noise
            X = [maps.e[:, other] @ U[other].T, maps.e[:, true] @ U[true].T, known @ U[other].T]
            noisy = [np.delete(x, range(n, m), axis=0) for x in X]
            squares = [x @ x.T for x in noisy]
            forms = np.array([squares[0] - squares[1], squares[2]])
            R = U[other] @ np.linalg.inv(U[true])
            R = R @ R.T
            R1, FG = R - np.eye(len(R)), np.delete(maps.z, range(n, m), axis=0)
            log_det, Pi = gains.log_det[other] - gains.log_det[true], np.eye(len(FG))
        Pi[:n, :n] = P
        mean = [np.concatenate([z, s]) @ x[:m] for x in X]
        pull = [x @ v for x, v in zip(noisy, mean, strict=True)]
        linear = np.array([pull[0] - pull[1], pull[2]])
        spread, cross = Pi @ forms, linear @ Pi
        row = row.copy()
        drift = 0.5 * (np.trace(spread[0]) + mean[0] @ mean[0] - mean[1] @ mean[1] + log_det)
        row[0] += drift
        row[1:3] += (forms[:, :n, :n] * Gamma).sum((1, 2)) + 2.0 * (linear[:, :n] * gamma).sum(1)
        row[1:3] += 0.5 * (spread * spread.transpose(0, 2, 1)).sum((1, 2)) + (linear * cross).sum(1)
        square = np.outer(mean[2], mean[2]) + X[2][:n].T @ P @ X[2][:n]
        variance = max(0.5 * np.sum(R1 * R1) + np.sum(square * R), 1e-300)
        skew = np.trace(R1 @ R1 @ R1) + 3.0 * np.sum(square * (R @ R1))
        row[3] += variance
        # T is an integer: that is worth a quarter of a step.
        row[4] = OVERSHOOT * math.sqrt(variance) + skew / (6.0 * variance) - 0.25 * drift
        if not np.isfinite(row).all():
            return
        yield row
        spread = spread @ Pi  # Gamma and gamma: covariances of Λ and τ/2 with z zᵀ and z
        spread[:, :n, :n] += Gamma
        cross[:, :n] += gamma
        Gamma, gamma, P = FG.T @ spread @ FG, cross @ FG, FG.T @ Pi @ FG
        z = np.concatenate([z, s]) @ maps.z[:m]


def _survival(rows: FloatArray, threshold: float) -> FloatArray:
    """Return P(T > k) for rows of `_moments`."""
    from scipy.special import (  # type: ignore[import-untyped] # takes 0.5 s to load
        gammaincinv,
        log_ndtr,
        ndtr,
    )

    clock = np.maximum(2.0 * rows[:, 0], 1e-12)
    variance = 2.0 * (rows[:, 1] + rows[:, 2] - rows[:, 3])
    shape = np.maximum(clock**2 / np.maximum(variance, 1e-7 * clock**2), 0.5)
    # A negative variance means that steps of Λ balance each other. The clock is ahead then.
    ahead = np.clip(-0.5 * variance / clock, 0.0, 0.25 * clock)
    tau = gammaincinv(shape[:, None], QUANTILES) * (clock / shape)[:, None] + ahead[:, None]
    barrier = np.maximum(threshold + rows[:, 4], 0.5 * threshold)[:, None]
    root = np.sqrt(np.maximum(tau, 1e-300))
    reflected = np.exp(np.minimum(barrier + log_ndtr(-barrier / root - 0.5 * root), 0.0))
    survival = ndtr(barrier / root - 0.5 * root) - reflected
    return np.asarray(np.clip(survival, 0.0, 1.0).mean(axis=1))


def _sum_of_tail(row: FloatArray, growth: FloatArray, threshold: float) -> float:
    """Return Σ P(T > k) over all later steps, where the moments grow linearly."""
    if not growth[0] > 1e-12:
        return math.inf
    noise = 2.0 * abs(growth[1] + growth[2] - growth[3]) / growth[0]
    last = (20.0 + noise) * (threshold + 20.0) / growth[0] + 10.0
    steps = np.concatenate([[0.0], np.geomspace(1.0, last, 2000)])
    survival = _survival(row + steps[:, None] * growth, threshold)
    # The sum from 1 on is the integral, corrected at its end (Euler and Maclaurin).
    return float(((survival[1:] + survival[:-1]) * np.diff(steps)).sum() / 2 - survival[0] / 2)
