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
from typing import Any

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.experts.controllers import PI, Loop
from bayescontrol.experts.plant_mode import PlantMode

#: The mean overshoot of a random walk with standard normal steps, -ζ(1/2) / √(2π).
OVERSHOOT = 0.5825971579
#: A loop is unstable if noise or signals leave more than this after 2^25 steps.
DOUBLINGS, DECAYED = 25, 1e-6
#: Moments that change by less than this share are stationary.
SETTLED = 1e-9
#: A pair is distinguished when the probability that it is not is below this.
UNLIKELY = 1e-6
#: Rates in nats per step below this are zero.
NO_RATE = 1e-9
#: Quantiles by which the distribution of the clock is represented.
QUANTILES = (np.arange(32) + 0.5) / 32


def is_linear(mode: Any) -> bool:
    """Whether plant, filter and controller are linear; limits are not considered."""
    if not isinstance(mode, PlantMode) or mode.nu < math.inf or mode.stationary is None:
        return False
    uses_estimates = isinstance(mode.controller, PI) and not mode.controller.integrate_measured
    has_constants = any(constant.any() for constant in mode.constants)
    return (mode.gain is not None or uses_estimates) and not has_constants


class LinearLoop:
    """The plant of mode `true` with the controller of a mode, and the filters of modes.

    `filters` are indices of modes, first that of the controller. They are stacked into one
    block-diagonal filter.
    """

    def __init__(self, modes: Sequence[Any], true: int, filters: Sequence[int]) -> None:
        from scipy.linalg import block_diag  # type: ignore[import-untyped] # takes 0.5 s to load

        each, plant, self.first = [modes[m] for m in filters], modes[true], modes[filters[0]]
        self.A, self.C, self.W, self.V = (
            block_diag(*(getattr(mode, name) for mode in each)) for name in "ACWV"
        )
        self.B = np.vstack([np.hstack([mode.B, mode.E]) for mode in each])
        self.D = np.vstack([mode.D for mode in each])
        stationary = [mode.stationary[2] for mode in each]
        given = [mode.start_noise for mode in each]
        Sigma = [S if start is None else start for S, start in zip(stationary, given, strict=True)]
        self.Sigma, self.stationary = block_diag(*Sigma), block_diag(*stationary)
        self.plant, self.E = plant, np.hstack([plant.B, plant.E])
        self.factors = [kernels.regression.factor(noise) for noise in (plant.W, plant.V)]
        self.controller, g = _matrix(self.first), plant.signals
        x_hat, y = np.concatenate([mode.x0 for mode in each]), self.first.C @ self.first.x0
        start = [plant.x0, x_hat, np.zeros(g.inputs), y, y]
        sizes = [*map(len, start), 2 * g.outputs, g.disturbances, plant.states, g.outputs]
        self.start, (*self.ends, self.size) = np.concatenate(start), np.cumsum(sizes)

    def gains(self, Sigma: FloatArray) -> tuple[FloatArray, ...]:
        """Return L, U, ln det S of each filter, and the next Σ, from Σ after the last output."""
        P = self.A @ Sigma @ self.A.T + self.W
        S = self.C @ P @ self.C.T + self.V
        L, root = np.linalg.solve(S, self.C @ P).T, np.linalg.cholesky(S)
        reduced = np.eye(len(P)) - L @ self.C
        log_det = 2.0 * np.log(np.diag(root)).reshape(-1, len(self.first.C)).sum(axis=1)
        Sigma = reduced @ P @ reduced.T + L @ self.V @ L.T
        return L, np.linalg.inv(root), log_det, Sigma

    def step(
        self, rows: FloatArray, L: FloatArray, U: FloatArray, limits: Any = None
    ) -> tuple[FloatArray, ...]:
        """Return the next z, y, u, and U e of each filter, for rows of [z, signals, noise].

        For the unit vectors and without limits, these are the linear maps of a step.
        """
        plant, first, n = self.plant, self.first, self.first.states
        x, x_hat, u, y_hat, y_before, r, d, w, noise = np.split(rows, self.ends, axis=1)
        u = np.hstack([r, d, u, x_hat[:, :n], y_hat, y_before]) @ self.controller
        u = u if limits is None else np.clip(u, *limits)
        v = np.hstack([u, d])
        x = x @ plant.A.T + v @ self.E.T + w @ self.factors[0]
        y = x @ plant.C.T + v @ plant.D.T + noise @ self.factors[1]
        ahead = x_hat @ self.A.T + v @ self.B.T
        e = np.tile(y, len(self.D) // len(y.T)) - ahead @ self.C.T - v @ self.D.T
        x_hat = ahead + e @ L.T
        new_y = x_hat[:, :n] @ first.C.T + v @ first.D.T
        white = (e @ U.T).reshape(len(e), -1, len(y.T))
        return np.hstack([x, x_hat, u, new_y, y_hat]), y, u, white

    def long_run(self, signals: FloatArray) -> tuple[FloatArray, ...] | None:
        """Return the mean at each step and the covariance of [y - r, u, U e], and ln det S.

        The covariance and the gains of the filters are those of the long run. Return None if the
        loop is unstable. Directions that neither noise nor signals reach may have eigenvalues of 1,
        such as the integral of PI(kp, 0).
        """
        L, U, log_det, _ = self.gains(self.stationary)
        next_z, y, u, white = self.step(np.eye(self.size), L, U)
        n, m, p = len(self.start), len(self.start) + signals.shape[1], len(self.first.C)
        F, H, G = np.split(next_z, [n, m])
        constant = np.vstack([H[:p] + H[p : 2 * p], H[2 * p :]])  # the setpoint does not change
        P, power = G.T @ G, F
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(DOUBLINGS):  # P = Σ (Fᵏ)ᵀGᵀG Fᵏ over twice as many steps
                P, power = P + power.T @ P @ power, power @ power
            rows = np.vstack([G, constant])
            if not (abs(rows @ power).max(1) <= DECAYED * abs(rows).max(1)).all():
                return None
        X, z, path = np.hstack([y, u, white.reshape(self.size, -1)]), self.start, []
        X[n : n + p, :p] -= np.eye(p)
        for s in signals:
            path.append(np.concatenate([z, s]))
            z = path[-1] @ next_z[:m]
        return np.array(path) @ X[:m], X[:n].T @ P @ X[:n] + X[m:].T @ X[m:], log_det


def _matrix(mode: Any) -> FloatArray:
    """Return the controller as a matrix, from its answers to unit vectors."""
    g, zero = mode.signals, np.zeros(mode.signals.outputs)
    sizes = [g.outputs, g.outputs, g.disturbances, g.inputs, mode.states, g.outputs, g.outputs]
    parts = zip(*np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=1), strict=True)
    loops = [Loop(0, r, r_0, d, u, zero, x, y, y_0) for r, r_0, d, u, x, y, y_0 in parts]
    return np.array([mode.controller(loop) for loop in loops])


# -- the time until two plants are distinguished ----------------------------------------------


def expected_time(
    loop: LinearLoop, signals: FloatArray, settled_at: int, threshold: float
) -> tuple[float, float]:
    """Return E min(T, horizon) and P(T > horizon) in steps; T is when Λ reaches the threshold.

    The filters of the loop are those of the controller, the true plant and the other plant. The
    signals are constant from step `settled_at` on. When the moments have become stationary, they
    are extrapolated, and there is no horizon.
    """
    steps, alive, moments, before = 0.0, 1.0, np.zeros(4), np.zeros(4)
    for k, (growth, overshoot) in enumerate(_moments(loop, signals), 1):
        moments, high = moments + growth, threshold + max(overshoot, -0.5 * threshold)
        steps, alive = steps + alive, float(_survival(moments[None], high)[0])
        is_settled = (abs(growth - before) <= SETTLED * abs(growth)).all()
        if is_settled and k > settled_at + 2 * len(loop.start):
            if not growth[0] > NO_RATE:
                return math.inf, 1.0
            return steps + alive + _sum_of_tail(moments, growth, high), 0.0
        before = growth
        if alive < UNLIKELY:
            return steps, 0.0
    return steps, alive


def _moments(loop: LinearLoop, signals: FloatArray) -> Iterator[tuple[FloatArray, float]]:
    """Yield at each step the growth of E Λ, Var Λ, Var τ/2 and Σ s², and ρ."""
    n, m = len(loop.start), len(loop.start) + signals.shape[1]
    z, P, Sigma = loop.start, np.zeros((n, n)), loop.Sigma
    Gamma, gamma, steady, p = np.zeros((2, n, n)), np.zeros((2, n)), False, len(loop.first.C)
    for s in signals:
        if not steady:
            before, (L, U, log_dets, Sigma) = Sigma, loop.gains(Sigma)
            steady = bool(abs(Sigma - before).max() <= 1e-13 * abs(before).max())
            next_z, _, _, white = loop.step(np.eye(loop.size), L, U)
            ratio = U[2 * p :, 2 * p :] @ np.linalg.inv(U[p : 2 * p, p : 2 * p])
            _, true, other = white.transpose(1, 0, 2)
            X = [other, true, other - true @ ratio.T]  # the last does not depend on the noise
            a, b, c = [np.delete(x, range(n, m), axis=0) for x in X]
            forms = np.array([a @ a.T - b @ b.T, c @ c.T])
            R, R1 = ratio @ ratio.T, ratio @ ratio.T - np.eye(len(ratio))
            FG = np.delete(next_z, range(n, m), axis=0)
            log_det, Pi = log_dets[2] - log_dets[1], np.eye(len(FG))
        Pi[:n, :n] = P
        mean = [np.concatenate([z, s]) @ x[:m] for x in X]
        linear = np.array([a @ mean[0] - b @ mean[1], c @ mean[2]])
        spread, cross = Pi @ forms, linear @ Pi
        drift = 0.5 * (np.trace(spread[0]) + mean[0] @ mean[0] - mean[1] @ mean[1] + log_det)
        more = (forms[:, :n, :n] * Gamma).sum((1, 2)) + 2.0 * (linear[:, :n] * gamma).sum(1)
        more += 0.5 * (spread * spread.transpose(0, 2, 1)).sum((1, 2)) + (linear * cross).sum(1)
        square = np.outer(mean[2], mean[2]) + X[2][:n].T @ P @ X[2][:n]
        variance = max(0.5 * np.sum(R1 * R1) + np.sum(square * R), 1e-300)
        skew = np.trace(R1 @ R1 @ R1) + 3.0 * np.sum(square * (R @ R1))
        # The continuity correction for an integer T is a quarter of a step.
        overshoot = OVERSHOOT * math.sqrt(variance) + skew / (6.0 * variance) - 0.25 * drift
        if not np.isfinite([drift, *more, overshoot]).all():
            return
        yield np.array([drift, *more, variance]), overshoot
        spread = spread @ Pi  # Gamma and gamma: covariances of Λ and τ/2 with z zᵀ and z
        spread[:, :n, :n] += Gamma
        cross[:, :n] += gamma
        Gamma, gamma, P = FG.T @ spread @ FG, cross @ FG, FG.T @ Pi @ FG
        z = np.concatenate([z, s]) @ next_z[:m]


def _survival(rows: FloatArray, barrier: float) -> FloatArray:
    """Return P(T > k) for rows of moments; the barrier is h + ρ."""
    from scipy import special  # type: ignore[import-untyped] # takes 0.5 s to load

    clock = np.maximum(2.0 * rows[:, 0], 1e-12)
    variance = 2.0 * (rows[:, 1] + rows[:, 2] - rows[:, 3])
    shape = np.maximum(clock**2 / np.maximum(variance, 1e-7 * clock**2), 0.5)
    # A negative variance means that steps of Λ balance each other. The clock is ahead then.
    ahead = np.clip(-0.5 * variance / clock, 0.0, 0.25 * clock)
    tau = special.gammaincinv(shape[:, None], QUANTILES) * (clock / shape)[:, None] + ahead[:, None]
    root = np.sqrt(np.maximum(tau, 1e-300))
    reflected = np.exp(np.minimum(barrier + special.log_ndtr(-barrier / root - 0.5 * root), 0.0))
    survival = special.ndtr(barrier / root - 0.5 * root) - reflected
    return np.asarray(np.clip(survival, 0.0, 1.0).mean(axis=1))


def _sum_of_tail(row: FloatArray, growth: FloatArray, barrier: float) -> float:
    """Return Σ P(T > k) over all later steps, where the moments grow linearly."""
    noise = 2.0 * abs(growth[1] + growth[2] - growth[3]) / growth[0]
    last = (20.0 + noise) * (barrier + 20.0) / growth[0] + 10.0
    steps = np.concatenate([[0.0], np.geomspace(1.0, last, 2000)])
    survival = _survival(row + steps[:, None] * growth, barrier)
    # The sum from 1 on is the integral, corrected at its end (Euler and Maclaurin).
    return float(((survival[1:] + survival[:-1]) * np.diff(steps)).sum() / 2 - survival[0] / 2)
