"""Bayesian regressions: of the next state on state and input, and of observed costs.

    [A B]ᵀ | W ~ MN(M₀ᵀ, Λ₀⁻¹, W)         W ~ IW(Ψ₀, ν₀),   E[W] = Ψ₀ / (ν₀ - n - 1)

Row i of [A B] has covariance W_ii Λ₀⁻¹: the precision is in units of the noise, like a number of
observations. If the noise is known, Ψ₀ and ν₀ have no effect. The statistics are one triangle:

    F = [[R, Z], [0, S]]      FᵀF = F₀ᵀF₀ + Σ_t (x_t, u_t, y_t)(x_t, u_t, y_t)ᵀ

    mean [A B] = (R⁻¹Z)ᵀ      precision Λ = RᵀR      scatter Ψ = SᵀS      ν = ν₀ + t

Evidence is additive in FᵀF, so regressions merge: add both and subtract the prior once.

Unknown cost matrices are inferred from observed costs:

    c = xᵀQx + uᵀRu + noise = φ(x, u)·w + noise           w: the upper triangles of Q and R
    φ: x_i², 2 x_i x_j (i < j), and the same for u         w ~ N(μ, Λ⁻¹)

A draw of the costs repeats w ~ N(μ, Λ⁻¹) until Q ≻ 0 and R ≻ 0. This samples the posterior of the
prior that is restricted to positive definite matrices.
"""

from dataclasses import dataclass
from math import log, pi
from types import SimpleNamespace

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike, FloatArray, as_numbers, require_between
from bayescontrol._support import saved
from bayescontrol._support.regressions import Regressions
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidPrior, InvalidSystem, counted
from bayescontrol.lqr.matrices import LARGEST, as_definite, as_matrix
from bayescontrol.lqr.system import Costs
from bayescontrol.seeding import StreamLike, state_of


@dataclass(frozen=True, eq=False)
class SystemPrior:
    """M₀, Λ₀, Ψ₀ and ν₀; the defaults are 0, the identity, the identity and n + 2.

    A number is a multiple of the identity; as a mean it fills the matrix n × (n + m).

    >>> SystemPrior(precision=4.0).factor(2, 1).diagonal().tolist()
    [2.0, 2.0, 2.0, 1.0, 1.0]
    >>> SystemPrior().freedom(2)
    4.0
    """

    mean: ArrayLike = 0.0
    precision: ArrayLike = 1.0
    scatter: ArrayLike = 1.0
    dof: float | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "precision", "scatter", *(["dof"] if self.dof is not None else [])):
            value = as_numbers(getattr(self, name), f"SystemPrior({name}=...)", InvalidPrior)
            if not np.isfinite(value).all():
                raise InvalidPrior(f"SystemPrior({name}={value.tolist()}): it must be finite")
            if name != "mean" and value.ndim == 0 and value <= 0.0:
                raise InvalidPrior(f"SystemPrior({name}={value}): a number must be positive")

    def factor(self, n: int, m: int) -> FloatArray:
        """Return F₀ = [[R₀, R₀M₀ᵀ], [0, S₀]], the initial value of F."""
        d = n + m
        try:
            mean = as_matrix(_filled(self.mean, np.ones((n, d))), (n, d), "the prior mean")
            Lambda = as_definite(_filled(self.precision, np.eye(d)), d, "the prior precision")
            Psi = as_definite(_filled(self.scatter, np.eye(n)), n, "the prior scatter")
        except InvalidSystem as error:
            raise InvalidPrior(str(error)) from None
        R, S = kernels.regression.factor(Lambda), kernels.regression.factor(Psi)
        F = np.zeros((d + n, d + n))
        F[:d, :d], F[:d, d:], F[d:, d:] = R, R @ mean.T, S
        return F

    def freedom(self, n: int) -> float:
        """Return ν₀, which must be above n - 1."""
        dof = float(n + 2 if self.dof is None else self.dof)
        if not n - 1 < dof < np.inf:
            raise InvalidPrior(f"dof={self.dof}: {n} states need a finite number above {n - 1}")
        return dof


def _filled(value: ArrayLike, unit: FloatArray) -> ArrayLike:
    """Return a number times the matrix `unit`, and a matrix as it is."""
    return value * unit if np.ndim(value) == 0 else value  # type: ignore[operator]


class SystemRegression(saved.Saved):
    """The sufficient statistics of ([A B], W) for n states and m inputs.

    >>> one = SystemRegression(1, 1, SystemPrior())
    >>> one.learn(np.array([1.0]), np.array([2.0]), np.array([3.0]))
    >>> one.mean().round(12), one.precision().round(12).tolist(), one.nu
    (array([[0.5, 1. ]]), [[2.0, 2.0], [2.0, 5.0]], 4.0)
    """

    saved_fields = saved.declare(
        saved.Array("factor", "F"),
        saved.Array("prior_factor", "_prior", shared=True),
        saved.Number("freedom", "_nu0"),
        saved.Number("count", least=0),
        *map(saved.Copied, ("row", "v", "zero")),
    )

    def __init__(self, n: int, m: int, prior: SystemPrior) -> None:
        #: n and m, the dimensions of state and input.
        self.states, self.inputs = n, m
        self._prior = prior.factor(n, m)
        self._nu0 = prior.freedom(n)
        self.F = self._prior.copy()
        #: Number of observations.
        self.count = 0
        # Scratch arrays of the kernels; `zero` stays 0.
        self.row, self.v, self.zero = np.empty(2 * n + m), np.empty(2 * n + m), np.zeros(2 * n + m)

    @property
    def nu(self) -> float:
        """ν = ν₀ + t, the degrees of freedom of the noise."""
        return self._nu0 + self.count

    @property
    def R(self) -> FloatArray:  # noqa: N802 - the field's symbol
        """The factor R of the precision, as a view of F."""
        return self.F[: self.states + self.inputs, : self.states + self.inputs]

    def learn(self, x: FloatArray, u: FloatArray, y: FloatArray) -> None:
        """Add one observation; the vectors must have been validated."""
        kernels.lqr.learn(self.F, x, u, y, self.row, self.v, self.zero)
        self.count += 1

    def mean(self) -> FloatArray:
        """Return E[A B], the posterior mean, n × (n + m)."""
        A, B = np.empty((self.states, self.states)), np.empty((self.states, self.inputs))
        kernels.lqr.mean_system(self.F, A, B)
        return np.hstack([A, B])

    def precision(self) -> FloatArray:
        """Return Λ; row i of [A B] has covariance W_ii Λ⁻¹."""
        return np.asarray(self.R.T @ self.R)

    def merge(self, other: "SystemRegression") -> None:
        """Add the evidence of `other`, FᵀF + F'ᵀF' - F₀ᵀF₀; the prior counts once."""
        size, other_size = (self.states, self.inputs), (other.states, other.inputs)
        if size != other_size:
            raise IncompatibleState(
                f"cannot merge beliefs with {size} and {other_size} (states, inputs): merge only "
                "beliefs about the same plant"
            )
        if self._nu0 != other._nu0 or not np.array_equal(self._prior, other._prior):
            raise IncompatibleState(
                f"cannot merge beliefs with different priors: dof = {self._nu0:g} and "
                f"{other._nu0:g}, F₀ = {self._prior.tolist()} and {other._prior.tolist()}"
            )
        gram = self.F.T @ self.F + other.F.T @ other.F - self._prior.T @ self._prior
        F = np.empty_like(self.F)
        if not kernels.regression.cholesky(gram, F):
            raise IncompatibleState(
                "the beliefs cannot be merged: the evidence of small states is lost in rounding "
                "beside large ones; observe the steps one by one instead"
            )
        self.F, self.count = F, self.count + other.count

    def _check_state(self, new: SimpleNamespace) -> None:
        saved.require_triangular("factor", new.F)
        saved.require_triangular("prior_factor", new._prior)
        if new._nu0 <= self.states - 1:
            raise saved.damaged(f"'freedom' is {new._nu0}, not above {self.states - 1}")


def _features(v: FloatArray) -> FloatArray:
    """Return v_i v_j for i ≤ j, doubled for i < j."""
    i, j = np.triu_indices(len(v))
    return np.asarray(np.where(i == j, 1.0, 2.0) * v[i] * v[j])


def _symmetric(upper: FloatArray, n: int) -> FloatArray:
    """Return the symmetric n × n matrix with this upper triangle, given row by row."""
    matrix = np.zeros((n, n))
    i, j = np.triu_indices(n)
    matrix[i, j] = matrix[j, i] = upper
    return matrix


class KnownCosts(saved.Saved):
    """Known Q and R, with the interface of a `CostBelief`."""

    saved_fields = saved.declare(
        saved.Fixed("Q", lambda costs: costs.mean().Q),
        saved.Fixed("R", lambda costs: costs.mean().R),
    )

    known = True

    def __init__(self, costs: Costs) -> None:
        self._costs = costs
        self.n, self.m = len(costs.Q), len(costs.R)

    def check(self, x: FloatArray, u: FloatArray, cost: float | None) -> object:
        """Accept any cost, also None."""

    def learn(self, x: FloatArray, u: FloatArray, cost: float | None) -> None:
        """Do nothing: the costs are known."""

    def draw(self, rng: StreamLike, tries: int) -> tuple[Costs | None, int]:
        """Return Q and R, and 0 failed draws."""
        return self._costs, 0

    def mean(self) -> Costs:
        """Return Q and R."""
        return self._costs

    def log_predictive(self, x: FloatArray, u: FloatArray, cost: float | None) -> float:
        """Return 0: a known cost carries no information."""
        return 0.0

    def merge(self, other: object) -> None:
        """Check that `other` has the same costs; nothing changes."""
        same = isinstance(other, KnownCosts) and all(map(np.array_equal, self._costs, other._costs))
        if not same:
            raise IncompatibleState(f"cannot merge: both beliefs must know the costs {self._costs}")


class CostBelief(saved.Saved):
    """P(Q, R | costs) for n states and m inputs; `noise` is the deviation of observed costs.

    The prior has the mean Q = R = `mean` I, and every entry has the same `deviation`.

    >>> belief = CostBelief(1, 1, noise=0.1)
    >>> for x, u in ((1.0, 0.0), (0.0, 1.0), (2.0, 1.0)):
    ...     belief.learn(np.array([x]), np.array([u]), 3 * x * x + 2 * u * u)
    >>> [float(matrix.round(1).item()) for matrix in belief.mean()]
    [3.0, 2.0]
    """

    saved_fields = saved.declare(
        saved.Fixed("noise"),
        saved.Array("factor", lambda belief: belief._fit.R[0]),
        saved.Array("target", lambda belief: belief._fit.z[0]),
        saved.Array("prior_factor", lambda belief: belief._fit._prior[0][0]),
        saved.Array("prior_target", lambda belief: belief._fit._prior[1][0]),
        saved.Number("count", least=0),
        saved.Copied("_fit"),
    )

    known = False

    def __init__(
        self, n: int, m: int, *, noise: float = 1.0, mean: float = 1.0, deviation: float = 1.0
    ) -> None:
        if not (n >= 1 and m >= 1):
            raise InvalidPrior(f"CostBelief({n}, {m}): it needs at least one state and one input")
        for name, value in (("noise", noise), ("mean", mean), ("deviation", deviation)):
            require_between(name, value, 1e-50, 1e50, ends="()", error=InvalidPrior)
        self.n, self.m, self.noise = n, m, float(noise)
        mu = np.concatenate([mean * np.eye(k)[np.triu_indices(k)] for k in (n, m)])
        self._fit = Regressions(np.eye(len(mu))[None] / deviation, mu[None] / deviation)
        #: Number of observed costs.
        self.count = 0

    def learn(self, x: FloatArray, u: FloatArray, cost: float | None) -> None:
        """Learn from one observed cost. An error changes nothing."""
        (phi, c), fit = self.check(x, u, cost), self._fit
        kernels.regression.absorb(fit.R[0], fit.z[0], phi, 1.0 / self.noise, c / self.noise, fit.v)
        self.count += 1

    def check(self, x: FloatArray, u: FloatArray, cost: float | None) -> tuple[FloatArray, float]:
        """Return φ(x, u) and the cost; raise `BadEvidence` if it is missing or invalid."""
        if cost is None:
            raise BadEvidence(
                "the observation has no cost, and this belief learns the costs: observe "
                "Measured(state, cost), as a plant with cost_noise returns it"
            )
        try:
            c = float(cost)
        except (TypeError, ValueError):
            raise BadEvidence(f"the cost is {cost!r}: it must be a number") from None
        phi = np.concatenate([_features(x), _features(u)])
        if not (abs(c) <= LARGEST and kernels.lqr.is_within_limits(phi)):
            raise BadEvidence(f"the cost {c!r} or a squared input is larger than {LARGEST:g}")
        return phi, c

    def draw(self, rng: StreamLike, tries: int) -> tuple[Costs | None, int]:
        """Draw Q ≻ 0 and R ≻ 0; return them (None if every try failed) and the rejected draws."""
        w = np.empty(self._fit.features)
        for failed in range(tries):
            self._fit.draw(0, state_of(rng), w)
            costs = self._costs(w)
            if all(kernels.regression.cholesky(part, np.empty_like(part)) for part in costs):
                return costs, failed
        return None, tries

    def mean(self) -> Costs:
        """Return E[Q] and E[R] of the Gaussian, which need not be positive definite."""
        return self._costs(self._fit.mean(0))

    def _costs(self, w: FloatArray) -> Costs:
        """Return Q and R from their upper triangles w."""
        split = self.n * (self.n + 1) // 2
        return Costs(_symmetric(w[:split], self.n), _symmetric(w[split:], self.m))

    def log_predictive(self, x: FloatArray, u: FloatArray, cost: float | None) -> float:
        """Return ln P(c | past, x, u), ignoring the restriction to definite matrices."""
        phi, c = self.check(x, u, cost)
        mean, variance = self._fit.score(0, phi)
        variance += self.noise**2
        return -0.5 * (log(2 * pi * variance) + (c - mean) ** 2 / variance)

    def merge(self, other: object) -> None:
        """Add the evidence of `other`; the prior counts once."""
        if not isinstance(other, CostBelief):
            raise IncompatibleState(
                f"cannot merge: this belief learns the costs ({self!r}), the other one knows them; "
                "create both with `costs`, or both with Q and R"
            )
        same_settings = (self.n, self.m, self.noise) == (other.n, other.m, other.noise)
        if not same_settings or not self._fit.same_prior(other._fit):
            raise IncompatibleState(
                f"cannot merge {other!r} of noise {other.noise:g} with {self!r} of noise "
                f"{self.noise:g}: they need equal sizes, noise and priors"
            )
        self._fit.merge(other._fit)
        self.count += other.count

    def _check_state(self, new: SimpleNamespace) -> None:
        saved.require_triangular("factor", new.factor)
        saved.require_triangular("prior_factor", new.prior_factor)
        new._fit = Regressions(new.prior_factor[None], new.prior_target[None])
        new._fit.R, new._fit.z = new.factor[None], new.target[None]

    def __repr__(self) -> str:
        what = f"{counted(self.n, 'state')}, {counted(self.m, 'input')}"
        return f"CostBelief({what}, after {counted(self.count, 'cost')})"
