"""A linear control loop with the filters of all modes: long-run moments, and many runs at once.

    z = [x, x̂ of all filters, u, ŷ, ŷ before]      z' = z F + signals H + N(0, 1) G
    Covariance of z in the long run: P = Σ (Fᵏ)ᵀ GᵀG Fᵏ

The last signal is 1, for constants: operating points, drifts, and those of the controller.

ŷ is the output that the filter of the controller expects. e_m is the innovation of filter m, and
U_m S_m U_mᵀ = 1, so that ln P(y | m) = -½ (|U_m e_m|² + ln det S_m), without the constant.
"""

import math
from collections.abc import Iterator

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import FloatArray
from bayescontrol.bank.bank import Bank
from bayescontrol.bank.plant_mode import PlantMode
from bayescontrol.bank.state_space import PI, Loop

#: Outputs beyond this count as divergence.
DIVERGED = 1e12
#: A loop is unstable if noise or signals leave more than this after 2^25 steps.
DOUBLINGS, DECAYED = 25, 1e-6
#: Filters are stationary if their covariance changes by less than this share.
STATIONARY = 1e-13


def is_linear(mode: object) -> bool:
    """Whether plant, filter and controller are affine; limits are not considered."""
    if not isinstance(mode, PlantMode) or mode.nu < math.inf or mode.stationary is None:
        return False
    uses_estimates = isinstance(mode.controller, PI) and not mode.controller.integrate_measured
    return mode.gain is not None or uses_estimates


class LinearLoop:
    """The controller of mode c on the plant of mode j; one block-diagonal filter for all modes."""

    def __init__(self, bank: Bank, c: int, j: int) -> None:
        from scipy.linalg import block_diag  # type: ignore[import-untyped] # takes 0.5 s to load

        modes, g = bank.modes, bank.signals
        self.plant, self.mode = modes[j], modes[c]
        self.controller = _controller_matrix(self.mode)
        self.factors = [kernels.regression.factor(noise) for noise in (self.plant.W, self.plant.V)]
        self.A, self.C, self.W, self.V = (
            block_diag(*(getattr(mode, name) for mode in modes)) for name in "ACWV"
        )
        self.B = np.vstack([np.hstack([mode.B, mode.E]) for mode in modes])
        self.D = np.vstack([mode.D for mode in modes])
        constants = zip(*(mode.constants for mode in modes), strict=True)
        self.k, self.c = (np.concatenate(parts)[None] for parts in constants)
        #: Σ of all filters in the long run, and at the start.
        self.stationary = block_diag(*(mode.stationary[2] for mode in modes))
        starts = (m.stationary[2] if m.start_noise is None else m.start_noise for m in modes)
        self.Sigma = block_diag(*starts)
        before = sum(mode.states for mode in modes[:c])
        self.x_hat = slice(before, before + self.mode.states)
        x_hat = np.concatenate([mode.x0 for mode in modes])
        y = self.mode.start()[1 : 1 + g.outputs]
        start = [self.plant.x0, x_hat, bank.first_signals()[g.u], y, y]
        noises, signals = self.plant.states + g.outputs, 2 * g.outputs + g.disturbances + 1
        sizes = [*map(len, start), 2 * g.outputs, g.disturbances, 1, self.plant.states, g.outputs]
        #: The first z, and where each part of [z, signals, noise] ends, see `step`.
        self.start, self.ends = np.concatenate(start), np.cumsum(sizes)
        self.u = slice(self.ends[1], self.ends[2])
        #: Where z, the signals and the noise end in the rows of `step`: (n, m, end) below.
        self.rows = np.cumsum([len(self.start), signals, noises])

    def gains(self, Sigma: FloatArray) -> tuple[FloatArray, ...]:
        """Return L, U, ln det S of each filter, and the next Σ, from Σ after the last output."""
        P = self.A @ Sigma @ self.A.T + self.W
        S = self.C @ P @ self.C.T + self.V
        L, root = np.linalg.solve(S, self.C @ P).T, np.linalg.cholesky(S)
        reduced = np.eye(len(P)) - L @ self.C
        log_det = 2.0 * np.log(np.diag(root)).reshape(-1, len(self.plant.C)).sum(axis=1)
        Sigma = reduced @ P @ reduced.T + L @ self.V @ L.T
        return L, np.linalg.inv(root), log_det, Sigma

    def step(self, L: FloatArray, U: FloatArray) -> FloatArray:
        """Return the linear map of a step, from [z, signals, noise, excess] to [z', y, U e].

        The excess is what limits of the actuator add to the input.
        """
        plant, mode, size = self.plant, self.mode, self.rows[-1] + self.mode.signals.inputs
        x, x_hat, u, y_hat, y_before, r, d, one, w, noise, excess = np.split(
            np.eye(size), self.ends, axis=1
        )
        (k, c), c_hat = plant.constants, one @ mode.constants[1][None]
        signals = [r, d, u, x_hat[:, self.x_hat], y_hat, y_before, one]
        u = np.hstack(signals) @ self.controller + excess
        v = np.hstack([u, d])
        x = x @ plant.A.T + v @ np.hstack([plant.B, plant.E]).T + one @ k[None]
        x += w @ self.factors[0]
        y = x @ plant.C.T + v @ plant.D.T + one @ c[None] + noise @ self.factors[1]
        ahead = x_hat @ self.A.T + v @ self.B.T + one @ self.k
        y_ahead = ahead @ self.C.T + v @ self.D.T + one @ self.c
        e = np.tile(y, len(self.D) // len(y.T)) - y_ahead
        x_hat = ahead + e @ L.T
        new_y = x_hat[:, self.x_hat] @ mode.C.T + v @ mode.D.T + c_hat
        return np.hstack([x, x_hat, u, new_y, y_hat, y, e @ U.T])

    def long_run(self, signals: FloatArray) -> tuple[FloatArray, ...] | None:
        """Return the mean at each step and the covariance of [y - r, u, U e], and ln det S.

        The covariance and the gains of the filters are those of the long run. Return None if the
        loop is unstable. Directions that neither noise nor signals reach may have eigenvalues of 1,
        such as the integral of PI(kp, 0).
        """
        L, U, log_det, _ = self.gains(self.stationary)
        (n, m, end), p, step = self.rows, len(self.plant.C), self.step(L, U)
        F, H, G = np.split(step[:end, :n], [n, m])
        constant = np.vstack([H[:p] + H[p : 2 * p], H[2 * p :]])  # the setpoint does not change
        P, power = G.T @ G, F
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(DOUBLINGS):  # P = Σ (Fᵏ)ᵀGᵀG Fᵏ over twice as many steps
                P, power = P + power.T @ P @ power, power @ power
            rows = np.vstack([G, constant])
            if not (abs(rows @ power).max(1) <= DECAYED * abs(rows).max(1)).all():
                return None
        X = np.hstack([step[:end, n : n + p], step[:end, self.u], step[:end, n + p :]])
        X[n : n + p, :p] -= np.eye(p)  # y - r
        z, path = self.start, []
        for s in signals:
            path.append(np.concatenate([z, s]))
            z = path[-1] @ step[:m, :n]
        return np.array(path) @ X[:m], X[:n].T @ P @ X[:n] + X[m:].T @ X[m:], log_det

    def simulate(
        self, signals: FloatArray, runs: int, rng: np.random.Generator, noisy_steps: float
    ) -> Iterator[tuple[FloatArray, ...]]:
        """Yield ln P(y | m), y and u of all runs at each step, with limits of the actuator.

        Runs that diverge have an infinite output, and start again. Only the first `noisy_steps`
        steps have noise.
        """
        (n, m, end), p, (low, high) = self.rows, len(self.plant.C), self.plant.limits
        z, Sigma, is_changing = np.tile(self.start, (runs, 1)), self.Sigma, True
        for k, s in enumerate(signals):
            if is_changing:
                L, U, log_det, new = self.gains(Sigma)
                is_changing = abs(new - Sigma).max() > STATIONARY * abs(new).max()
                Sigma, step = new, self.step(L, U)
            noise = rng.standard_normal((runs, end - m)) * (k < noisy_steps)
            found = z @ step[:n] + (noise @ step[m:end] + s @ step[n:m])
            excess = np.clip(found[:, self.u], low, high) - found[:, self.u]
            if excess.any():
                found += excess @ step[end:]
            z, y, white = np.split(found, [n, n + p], axis=1)
            squares = (white**2).reshape(runs, -1, p).sum(axis=2)
            u, has_diverged = z[:, self.u].copy(), (abs(y) > DIVERGED).any(axis=1)
            z[has_diverged], y[has_diverged] = 0.0, math.inf
            yield -0.5 * (squares + log_det), y, u


def _controller_matrix(mode: PlantMode) -> FloatArray:
    """Return the controller as a matrix, from its answers to 0 and to unit vectors.

    The rows are those of the setpoint, the setpoint before, the disturbance, u, x̂, ŷ and ŷ before,
    and last the constant. Linear controllers do not use the measured output.
    """
    g, p = mode.signals, mode.signals.outputs
    sizes = [p, p, g.disturbances, g.inputs, mode.states, p, p]
    rows = np.eye(sum(sizes) + 1, sum(sizes))  # the last one is 0
    parts = zip(*np.split(rows, np.cumsum(sizes)[:-1], axis=1), strict=True)
    loops = [
        Loop(k=0, setpoint=r, setpoint_before=r_before, disturbance=d, u=u, measured=np.zeros(p),
             x=x, y=y, y_before=y_before)
        for r, r_before, d, u, x, y, y_before in parts
    ]  # fmt: skip
    *answers, constant = (np.asarray(mode.controller(loop)) for loop in loops)
    return np.array([*(answer - constant for answer in answers), constant])
