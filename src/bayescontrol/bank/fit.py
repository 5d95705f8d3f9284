"""Fit a plant model to a log of inputs and outputs, and test a model on a log.

    ARX   y_{k+1} = Σ_i A_i y_{k-i} + Σ_i B_i u_{k-i} + c + e,  e ~ N(0, S),   i = 0 … order - 1

Least squares is the mean of the posterior with a flat prior. The posterior is the prior of a bank:

    [A B]ᵀ | S ~ MN(least squares, (ZᵀZ)⁻¹, S),   S ~ IW(scatter of the residuals, dof)

`FittedPlant.modes` draws plants from it. The state of a fitted plant holds the last outputs and
inputs, so the filter soon knows it exactly; it starts with the mean and the spread of the log.
Sensor noise in the log makes the coefficients too small, as in every regression on noisy values; a
higher order makes up for a part of it. `fit_plant` warns if it finds that, with the test of Durbin
and Wu: the part of the past outputs that inputs do not explain must not help to predict beyond the
fit. It is what remains after a regression on past inputs and on the outputs of the fitted model.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bayescontrol._arrays import ArrayLike, BoolArray, FloatArray, as_integer, as_numbers
from bayescontrol.bank.bank import Bank
from bayescontrol.bank.plant_mode import PlantMode
from bayescontrol.bank.state_space import Loop
from bayescontrol.errors import BadEvidence, InvalidSystem, MissingCapability
from bayescontrol.lqr.regression import SystemPrior
from bayescontrol.protocols import MISSING, SituatedState
from bayescontrol.record import Record
from bayescontrol.seeding import SeedLike, as_stream

#: Variance of the sensor of a fitted plant, relative to that of the noise: it is almost exact.
_EXACT = 1e-9
#: A fit with a smaller p-value of the test for bias causes a warning. In a pilot with other seeds,
#: 7 of 300 sound fits were below 1e-3, because the test is only asymptotic.
UNRELIABLE = 1e-4
#: A constant term of the log that is further from 0 than this many standard deviations is real.
FIVE_SIGMA = 5.0
#: Past inputs beyond the order of the model, for that test.
_MORE_INPUTS = 4


class FittedPlant(NamedTuple):
    """An ARX model: least squares, and the uncertainty of its coefficients.

    >>> rng = np.random.default_rng(0)
    >>> u, y = rng.normal(size=200), [0.0]
    >>> for k in range(1, 200):
    ...     y.append(0.8 * y[-1] + 0.5 * u[k] + 0.1 * rng.normal())
    >>> fitted = fit_plant((u, y))
    >>> [mode.name for mode in fitted.modes(lambda plant: lambda loop: 0.0, count=2)]
    ['fitted 0', 'fitted 1']
    """

    #: (outputs, order · (outputs + inputs)): A_0, A_1, …, B_0, B_1, …
    coefficients: FloatArray
    #: The means of the regressors and of the outputs, which determine the constant c.
    centre: tuple[FloatArray, FloatArray]
    #: ZᵀZ of the centred regressors, and the scatter of the residuals with its degrees of freedom.
    precision: FloatArray
    scatter: FloatArray
    dof: int
    order: int
    period: float

    @property
    def noise(self) -> FloatArray:
        """The covariance of the residuals."""
        return self.scatter / self.dof

    def as_prior(self) -> SystemPrior:
        """Return the uncertainty as a prior for `LinearQuadratic`, which has no constant term.

        The model must have order one, and a constant c of at most five standard deviations.
        """
        if self.order > 1:
            raise MissingCapability(
                f"the fitted plant has order {self.order}, but a prior of LinearQuadratic needs "
                "order 1: fit with order=1"
            )
        z, mean = self.centre
        rows = self.dof + z.size + 1  # of the log, see `fit_plant`
        variance = np.diag(self.noise) * (1.0 / rows + z @ np.linalg.solve(self.precision, z))
        if ((mean - self.coefficients @ z) ** 2 > FIVE_SIGMA**2 * variance).any():
            raise MissingCapability(
                "LinearQuadratic has no constant term, but the log has one: subtract the operating "
                "point from inputs and outputs"
            )
        return SystemPrior(self.coefficients, self.precision, self.scatter, float(self.dof))

    def mode(self, controller: Any, **options: Any) -> PlantMode:
        """Return the plant of least squares with a controller; options are those of `PlantMode`.

        >>> u = np.random.default_rng(0).normal(size=200)
        >>> y = np.convolve(u, 0.5 * 0.8 ** np.arange(50))[:200]
        >>> fit_plant((u, y), dt=0.1).mode(lambda loop: 0.0, name="rig")
        PlantMode(rig)
        """
        return self._mode(self.coefficients, self.noise, controller, options)

    def modes(
        self, design: Callable[[PlantMode], Any], count: int, seed: SeedLike = 0, **options: Any
    ) -> list[PlantMode]:
        """Draw plants from the uncertainty of the fit, each with the controller of `design(plant)`.

        With equal prior probabilities they are a bank for a plant like that of the log.
        """
        stream, (p, d), drawn = as_stream(seed), self.coefficients.shape, []
        spread, whiten = (
            np.linalg.inv(np.linalg.cholesky(part)) for part in (self.precision, self.scatter)
        )
        for m in range(as_integer("count", count, 1)):
            # S⁻¹ is Wishart: a sum of `dof` squares.
            N = stream.normal(size=(self.dof, p)) @ whiten
            S = np.linalg.inv(N.T @ N)
            S = 0.5 * (S + S.T)
            error = spread.T @ stream.normal(size=(d, p)) @ np.linalg.cholesky(S).T
            name = f"{options.get('name', 'fitted')} {m}"
            plant = self._mode(self.coefficients + error.T, S, _idle, options | {"name": name})
            plant.set_controller(design(plant))
            drawn.append(plant)
        return drawn

    def _mode(
        self, coefficients: FloatArray, S: FloatArray, controller: Any, options: Any
    ) -> PlantMode:
        """Return a mode whose state is (y_k, …, y_{k-order+1}, u_{k-1}, …, u_{k-order+1})."""
        (p, d), n, (regressors, mean) = coefficients.shape, self.order, self.centre
        q = d // n - p
        now = np.arange(p * n, p * n + q)  # the columns of u_k; the others are the state
        lags = np.delete(np.arange(d), now)
        move = np.eye(d)  # the next state: new outputs, outputs so far, inputs so far
        ahead = np.vstack([coefficients, move[: p * (n - 1)], move[p * n : d - q]])
        A, B, C = ahead[:, lags], ahead[:, now], np.eye(p, d - q)
        W, drift = np.zeros((d - q, d - q)), np.zeros(d - q)
        W[:p, :p] = S
        drift[:p] = mean - coefficients @ regressors
        fixed: Any = {"dt": self.period, "process_noise": W, "drift": drift}
        if given := [name for name in fixed if name in options]:
            raise InvalidSystem(f"omit {', '.join(given)}: the log determines it")
        moments = self.precision / (self.dof + coefficients.shape[1] + 1)  # those of the log
        options = {
            "start": regressors[lags], "start_noise": moments[np.ix_(lags, lags)],
            "sensor_noise": _EXACT * S,
        } | options  # fmt: skip
        return PlantMode((A, B, C), controller, **fixed, **options)


def _idle(loop: Loop) -> FloatArray:
    """Return the input 0, as a controller."""
    return np.zeros(loop.u.size)


def fit_plant(log: Any, order: int = 1, dt: float = 1.0) -> FittedPlant:
    """Fit an ARX model of this order by least squares.

    `log` is a `Record`, or a pair (inputs, outputs): output k was measured after input k. Rows with
    a `MISSING` output are left out. A warning says if noise or order have biased the coefficients.

    >>> from bayescontrol import Stream
    >>> rng, y, log = Stream(0), 0.0, ([], [])
    >>> for _ in range(500):
    ...     u = rng.normal()
    ...     y = 0.8 * y + 0.5 * u + 0.1 * rng.normal()
    ...     _ = log[0].append(u), log[1].append(y)
    >>> fit_plant(log).coefficients.round(2).tolist()
    [[0.8, 0.5]]
    """
    u, y = _columns(log)
    n = as_integer("order", order, 1)
    p, rows = y.shape[1], max(len(u) - n, 0)
    Z = np.hstack(
        [y[n - 1 - i : n - 1 - i + rows] for i in range(n)]
        + [u[n - i : n - i + rows] for i in range(n)]
    )
    target = y[n:]
    complete = np.asarray(~np.isnan(Z).any(axis=1) & ~np.isnan(target).any(axis=1))
    Z, target = Z[complete], target[complete]
    dof = len(Z) - Z.shape[1] - 1
    if dof < p + 2 or np.linalg.matrix_rank(Z - Z.mean(axis=0)) < Z.shape[1]:
        raise BadEvidence(
            f"the log has {len(Z)} complete rows, which do not determine {Z.shape[1]} coefficients "
            f"of order {n}: use a longer log, an input that varies more, or a lower order"
        )
    centre = Z.mean(axis=0), target.mean(axis=0)
    Z, target = Z - centre[0], target - centre[1]
    coefficients = np.asarray(np.linalg.lstsq(Z, target, rcond=None)[0].T, np.float64)
    residuals = target - Z @ coefficients.T
    if (p_value := _sensor_noise(u, Z, target, complete, coefficients)) < UNRELIABLE:
        warnings.warn(
            f"the fit of order {n} is not reliable: sensor noise, or an order that is too low, has "
            f"biased it (p = {p_value:.1g}), so gains and time constants may be wrong by a large "
            "factor. Use a higher order, or a model from physics with sensor_noise",
            stacklevel=2,
        )
    return FittedPlant(
        coefficients, centre, precision=Z.T @ Z, scatter=residuals.T @ residuals, dof=dof, order=n,
        period=dt,
    )  # fmt: skip


def _sensor_noise(
    u: FloatArray, Z: FloatArray, target: FloatArray, complete: BoolArray, coefficients: FloatArray
) -> float:
    """Return the p-value of the test for bias by sensor noise; 1 if the log is too short for it.

    Z and `target` are centred, and have the `complete` rows only.
    """
    from scipy.special import fdtrc  # type: ignore[import-untyped]

    p, d, inputs = target.shape[1], Z.shape[1], u - u.mean(axis=0)
    n = d // (p + u.shape[1])
    s = np.zeros((len(u), p))  # the outputs of the fitted model
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(n, len(u)):
            past = np.concatenate([s[k - n : k][::-1], inputs[k - n + 1 : k + 1][::-1]], axis=None)
            s[k] = coefficients @ past
    steps = n + np.flatnonzero(complete)
    used = steps >= n + _MORE_INPUTS  # the steps that have all of these past inputs
    at, Z, target = steps[used], Z[used], target[used]
    X = np.hstack(
        [s[at - 1 - i] for i in range(n)] + [inputs[at - i] for i in range(n + _MORE_INPUTS)]
    )
    freedom = len(Z) - d - 2
    if freedom < X.shape[1] or not np.isfinite(X).all():
        return 1.0
    more = _residuals(X, Z[:, : p * n]) @ coefficients[:, : p * n].T  # what inputs do not explain
    e, more = _residuals(Z, target), _residuals(Z, more)
    shared, rest = (e * more).sum(0) ** 2, (e * e).sum(0) * (more * more).sum(0)
    F = freedom * shared / np.maximum(rest - shared, np.finfo(float).tiny)
    return float(min(1.0, p * fdtrc(1, freedom, F).min()))


def _residuals(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Return the residuals of the regression of Y on X and a constant."""
    X = np.column_stack([X, np.ones(len(X))])
    return np.asarray(Y - X @ np.linalg.lstsq(X, Y, rcond=None)[0])


class Whiteness(NamedTuple):
    """The test of a model on a log: are the standardised residuals white, with variance 1?

    `p_value` is that of the Ljung-Box test (Hosking's version for more than one output). A small
    one means that the residuals are correlated: the model misses some dynamics. A `variance` above
    1 means that the model has too little noise.

    >>> Whiteness._fields
    ('statistic', 'p_value', 'variance', 'autocorrelations')
    """

    statistic: float
    p_value: float
    variance: float
    #: (lags, outputs, outputs)
    autocorrelations: FloatArray


def whiteness(mode: PlantMode, log: Any, lags: int = 20) -> Whiteness:
    """Test the residuals of a model on a log, best on one that was not used to fit it.

    A pair of residuals counts for a lag only if both outputs were measured, that many steps apart.
    Lags without a pair are not tested.

    >>> from bayescontrol import Stream
    >>> world = PlantMode(([[0.8]], [[1.0]], [[1.0]]), _idle, process_noise=0.1, sensor_noise=0.1)
    >>> plant, rng = world.environment(), Stream(1)
    >>> inputs = [rng.normal() for _ in range(400)]
    >>> log = inputs, [plant.respond(u, rng) for u in inputs]
    >>> slow = PlantMode(([[0.4]], [[1.0]], [[1.0]]), _idle, process_noise=0.1, sensor_noise=0.1)
    >>> whiteness(world, log).p_value > 0.01, whiteness(slow, log).p_value < 1e-6
    (True, True)
    """
    from scipy.special import chdtrc

    if getattr(mode, "nu", 0.0) < np.inf or not hasattr(mode, "A"):
        raise MissingCapability(f"{mode!r}: whiteness needs a PlantMode with Gaussian noise")
    u, y = _columns(log)
    n, p = mode.states, mode.signals.outputs
    if u.shape[1] != mode.signals.inputs or y.shape[1] != p or mode.signals.disturbances:
        raise InvalidSystem(
            f"the log has {u.shape[1]} inputs and {y.shape[1]} outputs, which does not fit "
            f"{mode!r} with {mode.signals}"
        )
    known = np.asarray(np.isfinite(y).all(axis=1))
    T = int(known.sum())
    if 4 * as_integer("lags", lags, 1) > T:
        raise BadEvidence(f"the log has {T} outputs: {lags} lags need at least {4 * lags}")
    x, s, e = Bank([mode]).first_signals(), mode.start(), np.zeros_like(y)
    for k in range(len(y)):
        before, s = s, mode.advance(SituatedState(x, s), u[k], MISSING)  # the prediction
        if known[k]:
            P = s[1 + 2 * p + n :].reshape(n, n)  # Σ in the state, see `FilterMode.start`
            factor = np.linalg.cholesky(mode.C @ P @ mode.C.T + mode.V)
            e[k] = np.linalg.solve(factor, y[k] - s[1 : 1 + p])
            s = mode.advance(SituatedState(x, before), u[k], y[k])
    z = (e - e.sum(axis=0) / T) * known[:, None]  # 0 where an output is missing
    z = np.linalg.solve(np.linalg.cholesky(z.T @ z / T), z.T).T
    r = np.array([z[k:].T @ z[:-k] / T for k in range(1, lags + 1)])
    counts = np.array([(known[k:] & known[:-k]).sum() for k in range(1, lags + 1)])
    if not counts.any():
        raise BadEvidence(f"the log has no two outputs that are at most {lags} steps apart")
    statistic = float(T * T * ((r**2).sum(axis=(1, 2)) / np.maximum(counts, 1)).sum())
    p_value = float(chdtrc(p * p * (counts > 0).sum(), statistic))
    return Whiteness(statistic, p_value, float((e**2).sum() / (T * p)), r)


def _columns(log: Any) -> tuple[FloatArray, FloatArray]:
    """Return the inputs and outputs of a log as columns, NaN where an output is missing."""
    if isinstance(log, Record):
        log = log.actions, log.observations
    if not isinstance(log, Sequence) or len(log) != 2 or not 0 < len(log[0]) == len(log[1]):
        raise BadEvidence("the log must be a Record or a pair (inputs, outputs) of equal length")
    inputs, outputs = log
    known = [o for o in outputs if o is not MISSING]
    blank: ArrayLike = np.full(np.shape(known[0]) if known else (), np.nan)
    outputs = [blank if o is MISSING else o for o in outputs]
    u, y = (as_numbers(v, "the log", BadEvidence) for v in (inputs, outputs))
    if u.ndim > 2 or y.ndim > 2 or not np.isfinite(u).all() or np.isinf(y).any():
        raise BadEvidence("the log must have finite numbers: inputs and outputs, a row per step")
    return u.reshape(len(u), -1), y.reshape(len(y), -1)
