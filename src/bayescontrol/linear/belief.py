"""An operation mode of a linear plant: a system, and the gain that is best for it.

P(y | m, x, u) = N(A x + B u, W)          P(u | m, x): u = -K x

The belief over linear systems: Bayesian regression, and a Riccati equation for every draw.

    P([A B], W | âo_<t) = matrix-normal-inverse-Wishart, or matrix-normal where W is known
    m ~ P(m | âo_<t):  draw [A B] (and W, and Q, R where they are unknown), solve for K

A draw without a stabilising gain is no mode: it is drawn again and counted, which is to condition
the prior on the systems that can be stabilised.
"""

from collections.abc import Mapping, Sequence
from math import log, pi
from operator import index
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.errors import IncompatibleState, InvalidPrior, NotStabilisable, counted
from bayescontrol.linear.costs import CostBelief, KnownCosts
from bayescontrol.linear.matrices import as_definite, as_vector, factor
from bayescontrol.linear.regression import SystemPrior, SystemRegression
from bayescontrol.linear.system import Costs, LinearSystem, as_costs, split
from bayescontrol.seeding import Stream

_PARTS = ("A", "B", "V", "P", "K", "Q", "R")


class LinearMode:
    """What a draw gives: A, B, W = VᵀV and the costs it believes in, with their P and K.

    >>> system = LinearSystem([[1.0]], [[1.0]], [[1.0]], [[1.0]])
    >>> mode = LinearMode.of(system)
    >>> mode.act(np.array([2.0]), Stream(0)).round(6), mode.K.round(6)
    (array([-1.236068]), array([[0.618034]]))
    >>> round(mode.log_likelihood(np.zeros(1), np.zeros(1), np.ones(1)), 6)
    -1.418939
    """

    __slots__ = ("A", "B", "K", "P", "V", "costs")

    def __init__(self, solved: Sequence[FloatArray], costs: Costs) -> None:
        self.A, self.B, self.V, self.P, self.K = solved
        self.costs = costs

    @classmethod
    def of(cls, system: LinearSystem) -> "LinearMode":
        """The mode that knows the system."""
        solved = system.A, system.B, factor(system.W), system.P, system.K
        return cls(solved, system.costs)

    def act(self, x: FloatArray, rng: Stream) -> FloatArray:
        """u = -K x."""
        u = np.empty(len(self.K))
        kernels.lqr.control(self.K, as_vector(x, len(self.A), "the state"), u)
        return u

    def log_likelihood(self, x: FloatArray, u: FloatArray, o: Any) -> float:
        """ln N(y; A x + B u, W)."""
        e = np.linalg.solve(self.V.T, np.asarray(split(o)[0]) - self.A @ x - self.B @ u)
        log_det = float(np.linalg.slogdet(self.V)[1])
        return -0.5 * (float(e @ e) + len(e) * log(2 * pi)) - log_det

    @property
    def W(self) -> FloatArray:  # noqa: N802 - the field's symbol
        """VᵀV."""
        return np.asarray(self.V.T @ self.V)

    def arrays(self) -> Any:
        """What the kernels work on."""
        return kernels.lqr.Mode(self.A, self.B, self.V, self.P, self.K)

    def save(self) -> Arrays:
        """Named arrays, `drawn/` before each name."""
        parts = (self.A, self.B, self.V, self.P, self.K, *self.costs)
        return {f"drawn/{name}": part.copy() for name, part in zip(_PARTS, parts, strict=True)}

    @classmethod
    def saved(cls, arrays: Arrays, n: int, m: int) -> "LinearMode | None":
        """What `save` gave, for n states and m inputs; None if no mode was saved."""
        names = {name for name in arrays if name.startswith("drawn/")}
        if not names:
            return None
        shapes = dict(
            zip(_PARTS, ((n, n), (n, m), (n, n), (n, n), (m, n), (n, n), (m, m)), strict=True)
        )
        parts = []
        for name, shape in shapes.items():
            part = arrays.get(f"drawn/{name}")
            if part is None or part.shape != shape or part.dtype != np.float64:
                raise IncompatibleState(f"the saved mode has no {name} of shape {shape}")
            if not np.isfinite(part).all():
                raise IncompatibleState(f"the saved array 'drawn/{name}' is not finite: damaged")
            parts.append(part.copy())
        return cls(parts[:5], Costs(*parts[5:]))

    def __repr__(self) -> str:
        return f"LinearMode(K = {np.array2string(self.K, precision=3, separator=', ')})"


_LN2 = 0.6931471805599453


class SystemBelief:
    """P(A, B, W | âo_<t) under known costs, or under a `CostBelief` that learns them too.

    `noise` is W where it is known. At most `tries` draws are made for one mode.

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

    def __init__(
        self,
        costs: Costs | CostBelief,
        *,
        noise: npt.ArrayLike | None = None,
        prior: SystemPrior | None = None,
        tries: int = 100,
    ) -> None:
        self.costs: KnownCosts | CostBelief
        if isinstance(costs, CostBelief):
            self.costs = costs.copy()
        else:
            self.costs = KnownCosts(as_costs(*costs))
        n, m = self.costs.n, self.costs.m
        if index(tries) < 1:
            raise InvalidPrior(f"tries={tries}: at least one draw is made")
        self.tries = index(tries)
        self._fit = SystemRegression(n, m, SystemPrior() if prior is None else prior)
        self._V: FloatArray | None = None
        if noise is not None:
            self._V = np.empty((n, n))
            kernels.regression.cholesky(as_definite(noise, n, "the noise"), self._V)
        self._room = kernels.riccati.room(n, m)
        self._last: LinearMode | None = None
        self._diagonal = self._fit.R.diagonal().copy()
        #: Draws that had no stabilising gain, or costs that were not definite.
        self.redrawn = 0

    # -- the verbs of a belief --------------------------------------------------------------

    def observe(self, x: npt.ArrayLike, a: npt.ArrayLike, o: Any) -> None:
        """Learn that input a led from x to o; o is the next state, or `Measured`.

        On an error nothing has changed.
        """
        v, u, y, cost = self._event(x, a, o)
        self.costs.learn(v, u, cost)
        self._fit.learn(v, u, y)

    def _event(
        self, x: npt.ArrayLike, a: npt.ArrayLike, o: Any
    ) -> tuple[FloatArray, FloatArray, FloatArray, float | None]:
        state, cost = split(o)
        y = as_vector(state, self.states, "the next state")
        v, u = as_vector(x, self.states, "the state"), as_vector(a, self.inputs, "the input")
        self.costs.check(v, u, cost)
        return v, u, y, cost

    def sample(self, rng: Stream) -> LinearMode:
        """A, B (and W, Q, R) from the posterior, until there is a gain that stabilises.

        Every draw that has none counts in `redrawn`; `NotStabilisable` after `tries` of them.
        """
        solved, left = self._blank(), self.tries
        while left > 0:
            costs, failed = self.costs.draw(rng, left)
            left -= failed
            if costs is None:
                break
            at_once = left if self.costs.known else 1  # unknown costs are drawn anew too
            failed = kernels.lqr.draw_mode(
                self._fit.F, self._freedom(), *costs, solved, at_once, self._room, rng.state
            )
            if failed >= 0:
                return self._take(solved, costs, self.tries - left + failed)
            left -= at_once
        raise NotStabilisable(
            f"none of {self.tries} systems drawn from {self!r} has a stabilising gain and definite "
            "costs: give a prior nearer to what is possible, or more `tries`"
        )

    def certain(self) -> LinearMode | None:
        """The mode of the posterior mean; None if it has no stabilising gain."""
        solved, costs = self._blank(), self.costs.mean()
        definite = self.costs.known or all(
            kernels.regression.cholesky(part, np.empty_like(part)) for part in costs
        )
        if not definite or not kernels.lqr.mean_mode(
            self._fit.F, self._freedom(), *costs, solved, self._room
        ):
            return None
        return self._take(solved, costs, 0)

    def _freedom(self) -> float:
        """ν, or 0 where the noise is known, as the kernels have it."""
        return self.nu if self._V is None else 0.0

    def hold(self) -> LinearMode | None:
        """The mode drawn last goes on, for want of another; counts in `redrawn`."""
        if self._last is not None:
            self.redrawn += 1
            self._diagonal = self._fit.R.diagonal().copy()
        return self._last

    def _blank(self) -> Any:
        n, m = self.states, self.inputs
        V = np.empty((n, n)) if self._V is None else self._V.copy()
        shapes = ((n, n), (n, m)), ((n, n), (m, n))
        (A, B), (P, K) = ((np.empty(shape) for shape in pair) for pair in shapes)
        return kernels.lqr.Mode(A, B, V, P, K)

    def _take(self, solved: Any, costs: Costs, failed: int) -> LinearMode:
        self.redrawn += failed
        self._diagonal = self._fit.R.diagonal().copy()
        self._last = LinearMode(solved, costs)
        return self._last

    # -- what a reader or the rule may ask ---------------------------------------------------

    @property
    def states(self) -> int:
        """n, the length of a state."""
        return self._fit.n

    @property
    def inputs(self) -> int:
        """m, the length of an input."""
        return self._fit.m

    @property
    def count(self) -> int:
        """Observations."""
        return self._fit.count

    @property
    def nu(self) -> float:
        """ν = ν₀ + t, the degrees of freedom of the noise."""
        return self._fit.nu

    def mean(self) -> FloatArray:
        """E[A B], n × (n + m)."""
        return self._fit.mean()

    def precision(self) -> FloatArray:
        """Λ: row i of [A B] has covariance W_ii Λ⁻¹."""
        return self._fit.precision()

    def scatter(self) -> FloatArray:
        """Ψ of the noise's inverse Wishart law."""
        return self._fit.scatter()

    def noise(self) -> FloatArray:
        """W where it is known, else E[W] = Ψ / (ν - n - 1), or Ψ / ν while that has no mean."""
        V = self._V
        if V is None:
            V = np.empty((self.states, self.states))
            kernels.lqr.mean_noise(self._fit.F, self.nu, V)
        return np.asarray(V.T @ V)

    def covariance(self, row: int) -> FloatArray:
        """The covariance of row i of [A B]: W_ii Λ⁻¹, with E[W] where the noise is unknown."""
        return np.asarray(float(self.noise()[row, row]) * np.linalg.inv(self.precision()))

    def posterior(self) -> FloatArray:
        """E[A B] on top of Λ: what evidence has made of the belief, as one array."""
        return np.vstack([self.mean(), self.precision()])

    def growth(self) -> float:
        """det Λ as a multiple of what it was at the last draw."""
        return kernels.lqr.growth(self._fit.F, self._diagonal)

    def log_predictive(self, x: npt.ArrayLike, a: npt.ArrayLike, o: Any) -> float:
        """ln P(o | âo_<t â_t): Student's t, or Gaussian where the noise is known."""
        v, u, y, cost = self._event(x, a, o)
        state = self._fit.log_predictive(np.concatenate([v, u]), y, self._V)
        return state + self.costs.log_predictive(v, u, cost)

    def surprise(self, x: npt.ArrayLike, a: npt.ArrayLike, o: Any) -> float:
        """-log2 P(o | âo_<t â_t), in bits. Changes nothing."""
        return -self.log_predictive(x, a, o) / _LN2

    @property
    def drawn(self) -> FloatArray:
        """The gain drawn last; NaN before the first draw."""
        shape = (self.inputs, self.states)
        return np.full(shape, np.nan) if self._last is None else self._last.K.copy()

    def last(self) -> LinearMode | None:
        """The mode drawn last."""
        return self._last

    # -- for compiled loops --------------------------------------------------------------------

    @property
    def fit(self) -> SystemRegression:
        """What the kernels work on, in place."""
        return self._fit

    def loop_parts(self) -> tuple[Any, Any, FloatArray, Any, float]:
        """The mode in charge, room for another, the diagonal at its draw, Riccati's room, and ν."""
        mode = self._blank() if self._last is None else self._last.arrays()
        copied = kernels.lqr.Mode(*(part.copy() for part in mode))
        return copied, self._blank(), self._diagonal.copy(), self._room, self._freedom()

    def fast_forward(self, observed: int, mode: Any, diagonal: FloatArray, failed: int) -> None:
        """Be where a compiled loop has led that worked on `fit`."""
        self._fit.count += observed
        self.redrawn += failed
        self._diagonal = diagonal
        if mode is not None:
            self._last = LinearMode(mode, self.costs.mean())

    # -- named arrays ----------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit."""
        return {
            **self._fit.save(),
            **{f"costs/{name}": array for name, array in self.costs.save().items()},
            **({} if self._last is None else self._last.save()),
            "noise": np.empty((0, 0)) if self._V is None else self._V.copy(),
            "sampler/redrawn": np.array(self.redrawn),
            "sampler/diagonal": self._diagonal.copy(),
        }

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for as many states and inputs and the same kind of costs."""
        if not isinstance(arrays, Mapping):
            raise IncompatibleState(f"{arrays!r} is not a mapping of arrays, as `save` gives")
        missing = {"noise", "sampler/redrawn", "sampler/diagonal"} - arrays.keys()
        if missing:
            raise IncompatibleState(f"the saved state lacks the arrays {sorted(missing)}")
        fit, own = self._fit.loaded(arrays), self.save()
        inner = {n[6:]: array for n, array in arrays.items() if n.startswith("costs/")}
        costs = self.costs.loaded(inner)
        for name in ("noise", "sampler/diagonal", "sampler/redrawn"):
            if arrays[name].shape != own[name].shape or arrays[name].dtype != own[name].dtype:
                raise IncompatibleState(f"the saved array {name!r} does not fit this belief")
        if arrays["noise"].tobytes() != own["noise"].tobytes():
            raise IncompatibleState("the saved belief knows another noise")
        diagonal, redrawn = arrays["sampler/diagonal"], int(arrays["sampler/redrawn"])
        if not ((diagonal > 0.0) & (diagonal < np.inf)).all() or redrawn < 0:
            raise IncompatibleState(
                f"the saved state is damaged: sampler/diagonal={diagonal}, redrawn={redrawn}"
            )
        last = LinearMode.saved(arrays, self.states, self.inputs)
        self._fit, self.costs, self._last = fit, costs, last
        self._diagonal, self.redrawn = diagonal.copy(), redrawn

    def merge(self, other: "SystemBelief") -> None:
        """The evidence of both, the prior counted once."""
        if not isinstance(other, SystemBelief):
            raise IncompatibleState(f"{other!r} is not a SystemBelief: nothing to merge")
        if other is self:
            raise IncompatibleState("a belief merged with itself would count its evidence twice")
        if self.save()["noise"].tobytes() != other.save()["noise"].tobytes():
            raise IncompatibleState("beliefs can be merged only if they know the same noise")
        fit, costs = self._fit.copy(), self.costs.copy()
        fit.merge(other._fit)
        costs.merge(other.costs)
        self._fit, self.costs = fit, costs

    def copy(self) -> "SystemBelief":
        """The same belief, free to go its own way."""
        twin = SystemBelief.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._fit = self._fit.copy()
        twin._diagonal = self._diagonal.copy()
        twin._room = kernels.riccati.room(self.states, self.inputs)
        twin.costs = self.costs.copy()
        return twin

    def __repr__(self) -> str:
        noise = "unknown noise" if self._V is None else "known noise"
        costs = ", unknown costs" * (not self.costs.known)
        what = f"{counted(self.states, 'state')}, {counted(self.inputs, 'input')}, {noise}{costs}"
        return f"SystemBelief({what}, after {counted(self.count, 'observation')})"
