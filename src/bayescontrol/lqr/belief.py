"""The belief over linear systems, and its operation modes: a system with its optimal gain.

    P(y | m, x, u) = N(A x + B u, W)          P(u | m, x): u = -K x

    P([A B], W | âo_<t) = matrix-normal-inverse-Wishart, or matrix-normal if W is known
    m ~ P(m | âo_<t):  draw [A B] (and W, Q, R if they are unknown), solve for K

A draw without a stabilising gain is rejected and counted. This conditions the prior on systems that
can be stabilised.

A plant that changes has a regression of the system for each possible start:

    P(A, B, W | s, past) = P(A, B, W | the steps since s)
"""

from collections.abc import Sequence
from copy import copy
from math import log, pi
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np

from bayescontrol import errors, kernels
from bayescontrol._arrays import ArrayLike, FloatArray, as_integer
from bayescontrol._support.display import summary_html
from bayescontrol._support.saved import Array, Cache, Fixed, Number, Part, Saved, damaged, declare
from bayescontrol.beliefs.change_points import ArraySegments, ChangePointBelief, Event, Segments
from bayescontrol.errors import counted
from bayescontrol.lqr.matrices import as_definite, as_vector
from bayescontrol.lqr.regression import CostBelief, KnownCosts, SystemPrior, SystemRegression
from bayescontrol.lqr.system import Costs, LinearSystem, as_costs, state_and_cost
from bayescontrol.protocols import PosteriorMeasure
from bayescontrol.seeding import StreamLike, require_stream


class LinearMode(Saved):
    """An operation mode: A, B, W = VᵀV and costs, with P and K of the Riccati equation.

    >>> from bayescontrol import Stream
    >>> system = LinearSystem([[1.0]], [[1.0]], [[1.0]], [[1.0]])
    >>> mode = LinearMode.of(system)
    >>> mode.act(np.array([2.0]), Stream(0)).round(6), mode.K.round(6)
    (array([-1.236068]), array([[0.618034]]))
    >>> round(mode.log_likelihood(np.zeros(1), np.zeros(1), np.ones(1)), 6)
    -1.418939
    """

    saved_fields = declare(*(Array(name, shared=True) for name in "ABVPKQR"))

    def __init__(self, solved: Sequence[FloatArray], costs: Costs) -> None:
        self.A, self.B, self.V, self.P, self.K = solved
        self.Q, self.R = costs

    @classmethod
    def of(cls, system: LinearSystem) -> "LinearMode":
        """Return the mode of a known system."""
        solved = system.A, system.B, kernels.regression.factor(system.W), system.P, system.K
        return cls(solved, system.costs)

    def act(self, x: FloatArray, rng: StreamLike) -> FloatArray:
        """Return u = -K x."""
        u = np.empty(len(self.K))
        kernels.lqr.control(self.K, as_vector(x, len(self.A), "the state"), u)
        return u

    def log_likelihood(self, x: FloatArray, u: FloatArray, o: Any) -> float:
        """Return ln N(y; A x + B u, W)."""
        e = np.linalg.solve(self.V.T, np.asarray(state_and_cost(o)[0]) - self.A @ x - self.B @ u)
        log_det = float(np.linalg.slogdet(self.V)[1])
        return -0.5 * (float(e @ e) + len(e) * log(2 * pi)) - log_det

    def observed_part(self, o: Any) -> Any:
        """Return the state in o: the part that the likelihood covers."""
        return state_and_cost(o)[0]

    @property
    def W(self) -> FloatArray:  # noqa: N802 - the field's symbol
        """W = VᵀV."""
        return np.asarray(self.V.T @ self.V)

    def changed(self, **parts: Any) -> Self:
        """Return a mode that differs in these parts."""
        mode = copy(self)
        vars(mode).update(parts)
        return mode

    def __repr__(self) -> str:
        return f"LinearMode(K = {np.array2string(self.K, precision=3, separator=', ')})"


class SystemBelief(SystemRegression):
    """P(A, B, W | âo_<t), with known costs or with a `CostBelief` that learns them.

    `noise` is W if it is known. At most `tries` systems are drawn for one mode.

    >>> from bayescontrol import Stream
    >>> belief = SystemBelief(Costs(np.eye(1), np.eye(1)), noise=[[1.0]])
    >>> belief.observe([1.0], [2.0], [3.0])
    >>> belief
    SystemBelief(1 state, 1 input, known noise, after 1 observation)
    >>> belief.mean().round(12)
    array([[0.5, 1. ]])
    >>> mode = belief.sample(Stream(0))
    >>> bool(abs(mode.A - mode.B @ mode.K) < 1), belief.redrawn
    (True, 0)
    """

    format_name: ClassVar[str] = "SystemBelief"

    posterior_measure: ClassVar = PosteriorMeasure("mean of A and B", "by entry")
    saved_fields = declare(
        Fixed("noise", lambda belief: belief._saved_noise()),
        Part("costs/", "costs"),
        Part("drawn/", "_last", blank=lambda belief: belief._blank_mode()),
        Number("sampler/redrawn", "redrawn", least=0),
        Array("sampler/diagonal", "_diagonal"),
        Cache("_room", lambda belief: kernels.riccati.room(belief.states, belief.inputs)),
    )

    def __init__(
        self,
        costs: Costs | CostBelief,
        *,
        noise: ArrayLike | None = None,
        prior: SystemPrior | None = None,
        tries: int = 100,
    ) -> None:
        self.costs: KnownCosts | CostBelief = (
            costs.copy() if isinstance(costs, CostBelief) else KnownCosts(as_costs(*costs))
        )
        n, m = self.costs.n, self.costs.m
        self.tries = as_integer("tries", tries, 1, errors.InvalidPrior)
        super().__init__(n, m, SystemPrior() if prior is None else prior)
        #: V with W = VᵀV if the noise is known, else None.
        self.noise_factor: FloatArray | None = None
        if noise is not None:
            self.noise_factor = kernels.regression.factor(as_definite(noise, n, "the noise"))
        self._room = kernels.riccati.room(n, m)
        self._last: LinearMode | None = None
        # diag R at the last draw, for `growth`.
        self._diagonal = self.R.diagonal().copy()
        #: Number of rejected draws: no stabilising gain, or costs that are not definite.
        self.redrawn = 0

    # -- belief -----------------------------------------------------------------------------

    def observe(self, x: ArrayLike, a: ArrayLike, o: Any) -> None:
        """Learn that input a led from state x to o, the next state or a `Measured`.

        An error changes nothing.
        """
        v, u, y, cost = self._event(x, a, o)
        self.costs.learn(v, u, cost)
        self.learn(v, u, y)

    def _event(
        self, x: ArrayLike, a: ArrayLike, o: Any
    ) -> tuple[FloatArray, FloatArray, FloatArray, float | None]:
        """Return the validated state, input, next state and cost."""
        state, cost = state_and_cost(o)
        y = as_vector(state, self.states, "the next state")
        v, u = as_vector(x, self.states, "the state"), as_vector(a, self.inputs, "the input")
        self.costs.check(v, u, cost)
        return v, u, y, cost

    def plain_event(self, x: ArrayLike, a: ArrayLike, o: Any) -> tuple[Any, Any, Any]:
        """Return a valid event in plain values, or raise an error; for known costs only."""
        if not self.costs.known:
            raise errors.MissingCapability("a changing plant needs known costs: give Q and R")
        v, u, y, _ = self._event(x, a, o)
        return v.tolist(), u.tolist(), y.tolist()

    def use_arrays(self, F: FloatArray, count: float) -> None:
        """Use this factor, an array that others may change, of `count` observations."""
        self.F, self.count = F, int(count)

    def sample(self, rng: StreamLike) -> LinearMode:
        """Draw A, B (and W, Q, R) from the posterior until the system has a stabilising gain.

        Rejected draws are counted in `redrawn`. After `tries` of them, raise `NotStabilisable`.
        """
        solved, tries_left, rng = self._blank(), self.tries, require_stream(rng)
        while tries_left > 0:
            costs, rejected_costs = self.costs.draw(rng, tries_left)
            tries_left -= rejected_costs
            if costs is None:
                break
            # Unknown costs are drawn again after each rejected system.
            draws = tries_left if self.costs.known else 1
            rejected_systems = kernels.lqr.draw_mode(  # -1 if all were rejected
                self.F, self.loop_freedom(), *costs, solved, draws, self._room, rng.state
            )
            if rejected_systems >= 0:
                return self._adopt(solved, costs, self.tries - tries_left + rejected_systems)
            tries_left -= draws
        raise errors.NotStabilisable(
            f"none of {self.tries} systems drawn from {self!r} has a stabilising gain and definite "
            "costs: use a more informative prior, or increase `tries`"
        )

    def certain(self) -> LinearMode | None:
        """Return the mode of the posterior mean.

        Return None if it has no stabilising gain, or if its costs are not definite.
        """
        solved, costs = self._blank(), self.costs.mean()
        definite = self.costs.known or all(  # `cholesky` returns whether a matrix is definite
            kernels.regression.cholesky(part, np.empty_like(part)) for part in costs
        )
        if not definite or not kernels.lqr.mean_mode(
            self.F, self.loop_freedom(), *costs, solved, self._room
        ):
            return None
        return self._adopt(solved, costs, 0)

    def loop_freedom(self) -> float:
        """Return ν, or 0 if the noise is known, as the kernels expect."""
        return self.nu if self.noise_factor is None else 0.0

    def hold(self) -> LinearMode | None:
        """Return the last mode, or None, because no new one was found; count this in `redrawn`."""
        if self._last is not None:
            self.redrawn += 1
            self._diagonal = self.R.diagonal().copy()
        return self._last

    def _blank(self) -> "kernels.lqr.LinearModeArrays":
        """Return an empty mode for the kernels; only known noise is filled in."""
        n, m = self.states, self.inputs
        V = np.empty((n, n)) if self.noise_factor is None else self.noise_factor.copy()
        A, B, P, K = (np.empty(shape) for shape in ((n, n), (n, m), (n, n), (m, n)))
        return kernels.lqr.LinearModeArrays(A, B, V, P, K)

    def _adopt(self, solved: Sequence[FloatArray], costs: Costs, rejected: int) -> LinearMode:
        """Make the solved system the last mode and return it; count the draws rejected before."""
        self.redrawn += rejected
        self._diagonal = self.R.diagonal().copy()
        self._last = LinearMode(solved, costs)
        return self._last

    # -- the posterior -----------------------------------------------------------------------

    def noise(self) -> FloatArray:
        """Return W if it is known, else E[W] = Ψ / (ν - n - 1), or Ψ / ν if that is infinite."""
        V = self.noise_factor
        if V is None:
            V = np.empty((self.states, self.states))
            kernels.lqr.mean_noise(self.F, self.nu, V)
        return np.asarray(V.T @ V)

    def covariance(self, row: int) -> FloatArray:
        """Return W_ii Λ⁻¹, the covariance of row i of [A B], with E[W] if the noise is unknown."""
        return np.asarray(float(self.noise()[row, row]) * np.linalg.inv(self.precision()))

    def posterior(self) -> FloatArray:
        """Return E[A B] stacked on Λ as one array."""
        return np.vstack([self.mean(), self.precision()])

    def posterior_summary(self) -> dict[str, dict[str, Any]]:
        """Return E[A], E[B] and the number of observations."""
        mean, n = self.mean(), self.states
        parts = {"A": mean[:, :n], "B": mean[:, n:]}
        return {k: {"mean": part.tolist(), "count": self.count} for k, part in parts.items()}

    def growth(self) -> float:
        """Return the factor by which det Λ has grown since the last draw."""
        return kernels.lqr.growth(self.F, self._diagonal)

    def log_predictive(self, x: ArrayLike, a: ArrayLike, o: Any) -> float:
        """Return ln P(o | âo_<t â_t): Student's t, or Gaussian if the noise is known."""
        v, u, y, cost = self._event(x, a, o)
        # The kernel ignores V if the noise is unknown; F stands for any array.
        V = self.F if self.noise_factor is None else self.noise_factor
        state = kernels.lqr.log_predictive(self.F, V, self.loop_freedom(), v, u, y, self.v)
        return state + self.costs.log_predictive(v, u, cost)

    def observed_part(self, o: Any) -> Any:
        """Return the part of o that is predicted: the state, and the cost if it is learned."""
        return state_and_cost(o)[0] if self.costs.known else o

    @property
    def drawn(self) -> FloatArray:
        """The last drawn gain; NaN before the first draw."""
        shape = (self.inputs, self.states)
        return np.full(shape, np.nan) if self._last is None else self._last.K.copy()

    def last(self) -> LinearMode | None:
        """Return the last drawn mode."""
        return self._last

    # -- for compiled loops --------------------------------------------------------------------

    def loop_mode(self) -> "kernels.lqr.LinearModeArrays":
        """Return a copy of the last mode for the kernels; empty arrays without one."""
        if self._last is None:
            return self._blank()
        arrays = kernels.lqr.LinearModeArrays
        return arrays(*(getattr(self._last, name).copy() for name in arrays._fields))

    def loop_scratch(self) -> "kernels.lqr.Rooms":
        """Return the scratch arrays of the loop, with diag R at the last draw."""
        return kernels.lqr.Rooms(
            self._room, self._blank(), self.row, self.v, self.zero, self._diagonal.copy(),
            np.empty(4, np.uint64),
        )  # fmt: skip

    def fast_forward(
        self, observed: int, mode: Sequence[FloatArray] | None, diagonal: FloatArray, failed: int
    ) -> None:
        """Synchronise with a compiled loop that has updated F.

        It made `observed` steps, rejected `failed` draws, and has diag R at its last draw in
        `diagonal`. `mode` is None if it has not drawn one.
        """
        self.count += observed
        self.redrawn += failed
        self._diagonal = diagonal
        if mode is not None:
            self._last = LinearMode(mode, self.costs.mean())

    # -- named arrays ----------------------------------------------------------------------------

    def _saved_noise(self) -> FloatArray:
        """Return the factor of the known noise; it is empty if the noise is unknown."""
        return np.empty((0, 0)) if self.noise_factor is None else self.noise_factor

    def _check_state(self, new: SimpleNamespace) -> None:
        super()._check_state(new)
        if not (new._diagonal > 0.0).all():
            raise damaged(f"'sampler/diagonal' is {new._diagonal}, not positive")

    def _blank_mode(self) -> LinearMode:
        """Return a mode with empty arrays, into which `load` reads."""
        return LinearMode(self._blank(), self.costs.mean())

    def merge(self, other: SystemRegression) -> None:
        """Add the evidence of `other`; the prior counts once."""
        if not isinstance(other, SystemBelief):
            raise errors.IncompatibleState(f"cannot merge {other!r}: it is not a SystemBelief")
        if other is self:
            raise errors.IncompatibleState(
                "cannot merge a belief with itself: evidence would count twice"
            )
        if not np.array_equal(self._saved_noise(), other._saved_noise()):
            raise errors.IncompatibleState(
                f"cannot merge {other!r} with noise {other.noise().tolist()}: {self!r} has noise "
                f"{self.noise().tolist()}"
            )
        costs = self.costs.copy()
        costs.merge(other.costs)
        super().merge(other)
        self.costs = costs

    _repr_html_ = summary_html

    def __repr__(self) -> str:
        noise = "unknown noise" if self.noise_factor is None else "known noise"
        costs = ", unknown costs" * (not self.costs.known)
        what = f"{counted(self.states, 'state')}, {counted(self.inputs, 'input')}, {noise}{costs}"
        return f"{type(self).__name__}({what}, after {counted(self.count, 'observation')})"


class SystemSegments(ArraySegments):
    """The factors F of the regressions and their numbers of observations, for each start."""

    def __init__(self, prior: SystemBelief, *arguments: Any) -> None:
        super().__init__(prior, *arguments, factor=prior.F, count=np.array(float(prior.count)))
        self._V, self._nu0 = prior.noise_factor, prior.nu - prior.count

    def likelihoods(self, event: Event) -> tuple[FloatArray, float]:
        """Return P(y | segment) / scale of all starts, and ln of the scale."""
        x, u, y = map(np.array, event)
        factors, belief, weights = self.arrays["factor"], self.prior, self.weights
        if self._V is None:  # the kernel ignores V; any matrix will do
            V, nu = factors[0], self._nu0 + self.arrays["count"]
        else:
            V, nu = self._V, np.zeros(self.size)
        log_scale = kernels.changes.system_likelihoods(
            factors, V, nu, self.size, x, u, y, belief.v, weights.mass, weights.p
        )
        return weights.p[: self.size], log_scale

    def update(self, event: Event) -> None:
        """Update the regressions of all starts."""
        x, u, y = map(np.array, event)
        belief = self.prior
        kernels.changes.learn_systems(
            self.arrays["factor"], self.size, x, u, y, belief.row, belief.v, belief.zero
        )
        self.arrays["count"][: self.size] += 1.0


class ChangingSystemBelief(ChangePointBelief):
    """P(h, s, A, B, W | âo_<t): a plant that may become another one at any step.

    >>> from bayescontrol.lqr import LinearQuadratic
    >>> belief = LinearQuadratic([[1.0]], [[1.0]]).changing().belief()
    >>> belief.observe([1.0], [0.0], [0.5])
    >>> belief
    ChangingSystemBelief(decision 1, segment since 0 with probability 0.9815)
    """

    format_name: ClassVar[str] = "ChangingSystemBelief"
    posterior_measure: ClassVar[PosteriorMeasure | None] = SystemBelief.posterior_measure

    def segments(self) -> type[Segments]:
        """Return the class of the regressions of all starts in arrays."""
        return SystemSegments

    def posterior_summary(self) -> dict[str, dict[str, Any]]:
        """Return E[A], E[B] and the number of decisions."""
        means = self.posterior_means()
        return {k: {"mean": v, "count": self.decision} for k, v in means.items()}
