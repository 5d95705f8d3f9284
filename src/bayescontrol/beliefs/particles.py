"""A belief over continuous parameters without a closed form: weighted points θ_1 … θ_n.

    w_i ← w_i P(o | θ_i, x, a)        P(θ | âo_≤t) ≈ Σ_i w_i δ(θ - θ_i)
    n_eff = (Σ w)² / Σ w²             below a share of n: resample, move, w ← 1/n

`observe` is deterministic: it only changes weights. `sample` may first renew the particles and is
the only source of randomness. The particles are saved, so that a run resumes exactly; beliefs
made of particles do not merge.

Resample-move (Gilks & Berzuini 2001) moves particles by Metropolis steps:

    renew     resample, w ← 1/n, then `moves` times for each particle
              θ' = θ + s/√d C ε          C Cᵀ the weighted covariance, ε standard normal
              θ ← θ' with probability min(1, π(θ') / π(θ)),   π(θ) = P(θ) Π_t P(o_t | θ, x_t, a_t)

Such a step leaves any posterior invariant, so the error goes to zero as n grows. The move of Liu
and West only preserves two moments and smooths everything else. Resample-move stores the whole
history, and a renewal reads it `moves` + 1 times. Renewals become rare as the posterior settles:
about one each time the evidence doubles.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import (
    Arrays,
    FloatArray,
    IntArray,
    as_integer,
    copy_if_array,
    require_between,
)
from bayescontrol._mode_queries import require_functions
from bayescontrol._support.columns import as_column
from bayescontrol._support.display import summary_html
from bayescontrol._support.saved import Array, Field, Number, Part, Saved, damaged, declare
from bayescontrol._support.values import pack, unpack
from bayescontrol.beliefs.weights import OnImpossible, Weights, as_log_likelihoods
from bayescontrol.errors import BadEvidence, IncompatibleState, InvalidPrior, counted
from bayescontrol.protocols import PosteriorMeasure, Summary
from bayescontrol.record import column_values
from bayescontrol.seeding import SeedLike, Stream, StreamLike, as_stream, require_stream

#: draw(n, rng) -> θ of shape (n, d)
Draw: TypeAlias = Callable[[int, Stream], Any]
#: log_likelihoods(θ, x, a, o) -> n numbers
LogLikelihoods: TypeAlias = Callable[[FloatArray, Any, Any, Any], Any]
#: act(θ_i, x, rng) -> a
Act: TypeAlias = Callable[[FloatArray, Any, Stream], Any]

# A saved state identifies its prior by this many draws from it.
_PRIOR_DRAWS = 8


class Particle:
    """A mode: one parameter θ and the policy for it.

    >>> theta = np.array([0.2, 0.7])
    >>> Particle(theta, lambda theta, x, rng: int(theta.argmax())).act(None, Stream(0))
    1
    """

    __slots__ = ("_act", "theta")

    def __init__(self, theta: FloatArray, act: Act) -> None:
        self.theta, self._act = theta, act

    def act(self, x: Any, rng: StreamLike) -> Any:
        """Draw a ~ P(a | θ, x)."""
        return self._act(self.theta, x, require_stream(rng))

    def __repr__(self) -> str:
        return f"Particle({', '.join(f'{t:.4g}' for t in self.theta)})"


def _checked_draws(draw: Draw, n: int, rng: Stream) -> FloatArray:
    """Return n draws from the prior; raise InvalidPrior unless they are finite, of shape (n, d)."""
    theta = np.array(draw(n, rng), np.float64, order="C")
    if theta.ndim != 2 or len(theta) != n or not theta.shape[1]:
        raise InvalidPrior(f"draw({n}, rng) returned shape {theta.shape}, expected ({n}, d)")
    if not np.isfinite(theta).all():
        raise InvalidPrior(f"draw({n}, rng) returned a parameter that is not finite: {theta}")
    return theta


class WeightedBelief(Saved):
    """Base of beliefs over weighted points; observations multiply the weights by likelihoods."""

    posterior_measure: ClassVar = PosteriorMeasure("posterior mean", "its own")
    _weights: Weights

    @abstractmethod
    def _answer(self, x: Any, a: Any, o: Any) -> object:
        """Return ln P(o | point, x, a) of every point, as the function of the user returns it."""

    def posterior(self) -> FloatArray:
        """Return the normalised weights w_i / Σ w, as a new array."""
        return self._weights.posterior()

    @property
    def effective_size(self) -> float:
        """n_eff = (Σ w)² / Σ w²: how many equally weighted points have the same information."""
        return kernels.particles.effective_size(self.posterior())

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """ln P(o | âo_<t â_t) ≈ ln Σ_i w_i P(o | m_i, x, a); -∞ if every point rules o out."""
        evidence = as_log_likelihoods(self._answer(x, a, o), x, a, o)
        return self._weights.log_predictive(evidence, log=True)

    _repr_html_ = summary_html


class ParticleBelief(WeightedBelief):
    """P(θ | âo_<t) by n weighted particles, for any likelihood that can be computed.

    `draw(n, rng)` returns n rows of θ from the prior, on an unbounded scale: logits instead of
    probabilities, logarithms instead of scales. `log_likelihoods(θ, x, a, o)` returns
    ln P(o | θ_i, x, a) for every row, `act(θ_i, x, rng)` returns an action. The first particles
    are drawn with `seed`.

    When `effective_size` is below `share` of n, `sample` renews the particles: systematic
    resampling, then the move of Liu and West, θ' = a θ + (1 - a) m + √(1 - a²) C ε with
    a = `shrinkage`, which preserves the mean m and the covariance C Cᵀ. With a near 1 the move
    preserves the shape of the posterior but leaves near-copies; with a = 0 it draws from the fitted
    Gaussian. `share=0` never renews. `ResampleMoveBelief` has another move, without smoothing.

    A saved belief contains a few draws from the prior with a fixed seed, and `load` rejects a
    state with another prior. `draw` should therefore use no randomness but `rng`.

    `particles` is their number n. `on_impossible` says what to do with an observation that every
    particle rules out.

    >>> def draw(n, rng): return rng.normal(size=(n, 1))                  # θ: the logit of a bias
    >>> def log_likelihoods(theta, x, a, o): return -np.log1p(np.exp(theta[:, 0] * (1 - 2 * o)))
    >>> belief = ParticleBelief(draw, log_likelihoods, lambda theta, x, rng: "toss", 500)
    >>> for o in (1, 1, 0, 1, 1, 1):
    ...     belief.observe(None, "toss", o)
    >>> belief
    ParticleBelief(500 particles of 1 parameter after 6 observations, effective size 26...)
    >>> belief.sample(Stream(1)).act(None, Stream(2))
    'toss'
    """

    format_name: ClassVar[str] = "ParticleBelief"

    # Advice in errors, for impossible evidence and for weights that rest on a single particle.
    _advice_impossible = (
        "Take more particles or a wider prior, or choose on_impossible='skip' or Floor(epsilon)"
    )
    _advice_collapsed = (
        "Take more particles, sample more often between observations, or use ResampleMoveBelief"
    )

    saved_fields = declare(
        Number("count", least=0),
        Array("drawn", lambda belief: belief._drawn_theta(), shape=(None,)),
        Part("sampler/", "_weights"),
        Array("sampler/theta", "_theta"),
        Number("sampler/renewals", "renewals", least=0),
        Array("sampler/prior_draws", lambda belief: belief._prior_draws),
    )

    def __init__(
        self,
        draw: Draw,
        log_likelihoods: LogLikelihoods,
        act: Act,
        particles: int = 1000,
        *,
        seed: SeedLike = 0,
        share: float = 0.5,
        shrinkage: float = 0.98,
        on_impossible: OnImpossible = "raise",
    ) -> None:
        require_functions(draw=draw, log_likelihoods=log_likelihoods, act=act)
        n = as_integer("particles", particles, 2, InvalidPrior)
        self._share = require_between("share", share, 0.0, 1.0)
        self._shrinkage = require_between("shrinkage", shrinkage, 0.0, 1.0)
        self._theta: FloatArray = _checked_draws(draw, n, as_stream(seed))
        self._draw, self._log_likelihoods, self._act = draw, log_likelihoods, act
        self._weights = Weights(np.full(n, 1.0 / n), on_impossible)
        #: The number of observations, including skipped ones.
        self.count = 0
        #: How often the particles were renewed.
        self.renewals = 0
        self._last: Particle | None = None

    # -- the Belief protocol ------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """w_i ← w_i P(o | θ_i, x, a). An error leaves the belief unchanged."""
        self._weights.learn(self._answer(x, a, o), x, a, o, "particles", self._advice_impossible)
        self.count += 1

    def _answer(self, x: Any, a: Any, o: Any) -> object:
        return self._log_likelihoods(self._theta, x, a, o)

    def skip(self, x: Any, a: Any) -> None:
        """Change nothing: parameters are constant, and particles have no private state."""

    def sample(self, rng: StreamLike) -> Particle:
        """Draw θ ~ P(θ | âo_<t); renew the particles first if necessary."""
        rng = require_stream(rng)
        self.renew(rng)
        self._last = Particle(self._theta[self._weights.draw(rng)].copy(), self._act)
        return self._last

    def renew(self, rng: StreamLike) -> bool:
        """Resample and move the particles if n_eff < share · n; return whether this was done."""
        is_due = self.effective_size < self._share * len(self)
        if is_due:
            self._renew(require_stream(rng))
        return is_due

    def _renew(self, rng: Stream) -> None:
        """Resample and move the particles, and set all weights to 1/n."""
        p, n = self.posterior(), len(self)
        if kernels.particles.effective_size(p) < 2.0:
            raise BadEvidence(
                f"after {self.count} observations the weights rest on one particle of {n}, from "
                f"which no spread can be computed. {self._advice_collapsed}"
            )
        chosen = np.empty(n, np.int64)
        kernels.particles.systematic(p, rng.random(), chosen)
        theta = self._move_particles(chosen, rng)
        weights = Weights(np.full(n, 1.0 / n), self._weights.on_impossible)
        weights.impossible = self._weights.impossible
        self._theta, self._weights = theta, weights
        self.renewals += 1

    def _move_particles(self, chosen: IntArray, rng: Stream) -> FloatArray:
        """Return the chosen particles after the move."""
        m, C = self._mean_and_factor()
        theta = np.empty_like(self._theta)
        kernels.particles.shrink(
            self._theta, chosen, m, C, self._shrinkage, np.empty_like(m), theta, rng.state
        )
        return theta

    def _mean_and_factor(self) -> tuple[FloatArray, FloatArray]:
        """Return the mean m and a matrix C such that C Cᵀ is the covariance."""
        m, V = self._moments()
        C = np.empty_like(V)
        kernels.particles.spread(V, C)
        return m, C

    # -- queries -------------------------------------------------------------------------

    @property
    def theta(self) -> FloatArray:
        """The particles, one row each: a copy."""
        return self._theta.copy()

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Return the weighted mean and covariance of the particles."""
        d = self._theta.shape[1]
        m, V = np.empty(d), np.empty((d, d))
        kernels.particles.moments(self._theta, self.posterior(), m, V)
        return m, V

    def mean(self) -> FloatArray:
        """E[θ | âo_<t] ≈ Σ w_i θ_i."""
        return self._moments()[0]

    def posterior_summary(self) -> Summary:
        """Return E[θ | âo_<t] and the number of observations."""
        return {"theta": {"mean": self.mean().tolist(), "count": self.count}}

    def covariance(self) -> FloatArray:
        """Cov[θ | âo_<t] ≈ Σ w_i (θ_i - m)(θ_i - m)ᵀ."""
        return self._moments()[1]

    @property
    def impossible(self) -> int:
        """How many observations were skipped or raised to the floor."""
        return self._weights.impossible

    def last(self) -> Particle | None:
        """The mode drawn last."""
        return self._last

    def __len__(self) -> int:
        """n, the number of particles."""
        return len(self._theta)

    # -- saving and copying -------------------------------------------------------------------

    def _drawn_theta(self) -> FloatArray:
        """Return θ of the mode drawn last; it is empty before the first draw."""
        return np.empty(0) if self._last is None else self._last.theta

    @cached_property
    def _prior_draws(self) -> FloatArray:
        """A few draws from the prior with a fixed seed, by which `load` detects another prior."""
        return _checked_draws(self._draw, len(self), Stream(0))[:_PRIOR_DRAWS].copy()

    def _check_state(self, new: SimpleNamespace) -> None:
        prior = self._prior_draws
        tolerance = 1e-9 * np.abs(prior).max()  # rounding of draws may differ between machines
        if not np.allclose(prior, new.prior_draws, rtol=0.0, atol=tolerance):
            raise IncompatibleState(
                f"saved with another prior: its first draw was {new.prior_draws[0]}, now it is "
                f"{prior[0]}: create the belief with the same `draw`, which takes all its "
                "randomness from its stream"
            )
        if new.drawn.size not in (0, self._theta.shape[1]):
            raise damaged(
                f"the particle drawn last is {new.drawn}: expected {self._theta.shape[1]} numbers, "
                "or none before the first draw"
            )
        new._last = Particle(new.drawn, self._act) if new.drawn.size else None

    def __repr__(self) -> str:
        n, d = self._theta.shape
        return (
            f"{type(self).__name__}({n} particles of {counted(d, 'parameter')} after "
            f"{counted(self.count, 'observation')}, effective size {self.effective_size:.4g})"
        )


#: A step of the history: (x_t, a_t, o_t).
Event: TypeAlias = tuple[Any, Any, Any]
#: The names of the saved columns of the history, and what they contain.
_HISTORY = {"history/x": "situations", "history/a": "actions", "history/o": "observations"}


def as_event(x: Any, a: Any, o: Any) -> Event:
    """Return a step of the history, with copies of arrays, which a simulator may reuse."""
    return copy_if_array(x), copy_if_array(a), copy_if_array(o)


class History(Field):
    """The steps of the history, saved as columns."""

    copied = True

    def save(self, owner: Any, arrays: Arrays) -> None:
        """Add the columns."""
        history = self.value(owner)
        columns = map(as_column, zip(*history, strict=True) if history else ((),) * 3)
        for (name, content), column in zip(_HISTORY.items(), columns, strict=True):
            what = f"the list of {content}"
            arrays[name] = pack(column.tolist(), what) if column.dtype == object else column

    def read(self, owner: Any, arrays: Arrays) -> list[Event]:
        """Return the steps."""
        columns = (arrays[name] for name in _HISTORY)
        # Columns of objects are saved as one text.
        values = (unpack(c) if c.dtype.kind == "U" and not c.ndim else c for c in columns)
        x, a, o = map(as_column, values)
        if not len(x) == len(a) == len(o):
            raise damaged(
                f"a history of {len(x)} situations, {len(a)} actions and {len(o)} observations: "
                "expected the same number of each"
            )
        return list(zip(*map(column_values, (x, a, o)), strict=True))


class ResampleMoveBelief(ParticleBelief):
    """P(θ | âo_<t) by n particles with resample-move; the error goes to zero as n grows.

    `log_prior(θ)` returns ln P(θ_i) + const for every row. A renewal makes `moves` Metropolis steps
    of size s = `scale`. The other arguments are those of `ParticleBelief`. The attribute `accepted`
    is the share of moves accepted at the last renewal: if it is near 0, use more `moves` or a
    smaller `scale`.

    >>> def draw(n, rng): return rng.normal(size=(n, 1))
    >>> def log_prior(theta): return -0.5 * theta[:, 0] ** 2
    >>> def log_likelihoods(theta, x, a, o): return -0.5 * (o - theta[:, 0]) ** 2
    >>> belief = ResampleMoveBelief(draw, log_prior, log_likelihoods, lambda theta, x, rng: 0, 2000)
    >>> rng = Stream(1)
    >>> for o in (1.2, 0.8, 1.1, 0.9, 1.0):
    ...     belief.observe(None, 0, o)
    ...     _ = belief.renew(rng)
    >>> round(float(belief.mean()[0]), 1), round(float(belief.covariance()[0, 0]), 1)  # 5/6, 1/6
    (0.8, 0.2)
    """

    format_name: ClassVar[str] = "ResampleMoveBelief"
    saved_fields = declare(
        Number("sampler/accepted", "accepted", finite=False), History("history/", "_history")
    )

    _advice_impossible = "Take more particles or a wider prior"
    _advice_collapsed = "Take more particles, or sample more often between observations"

    def __init__(
        self,
        draw: Draw,
        log_prior: Any,
        log_likelihoods: LogLikelihoods,
        act: Act,
        particles: int = 1000,
        *,
        moves: int = 3,
        scale: float = 2.38,
        seed: SeedLike = 0,
        share: float = 0.5,
    ) -> None:
        require_functions(log_prior=log_prior)
        self._moves = as_integer("moves", moves, 1)
        self._scale = require_between("scale", scale, 0.0, math.inf, ends="()")
        super().__init__(draw, log_likelihoods, act, particles, seed=seed, share=share)
        self._log_prior = log_prior
        self._history: list[Event] = []
        #: The share of moves accepted at the last renewal.
        self.accepted = math.nan

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """w_i ← w_i P(o | θ_i, x, a), and store the step. An error leaves the belief unchanged."""
        super().observe(x, a, o)
        self._history.append(as_event(x, a, o))

    def _log_target(self, theta: FloatArray) -> FloatArray:
        """Return ln π(θ_i) + const for every row of `theta`."""
        total = np.array(self._log_prior(theta), np.float64)
        if total.shape != theta.shape[:1]:
            raise BadEvidence(f"log_prior returned shape {total.shape}: give a number per particle")
        for x, a, o in self._history:
            total += self._log_likelihoods(theta, x, a, o)
        is_invalid = np.isnan(total) | (total == np.inf)
        if is_invalid.any():
            raise BadEvidence(
                f"ln P(θ) + Σ ln P(o | θ, x, a) is NaN or ∞ at θ = {theta[is_invalid][0]}: "
                "return -∞ where θ is impossible"
            )
        return total

    def _move_particles(self, chosen: IntArray, rng: Stream) -> FloatArray:
        """Return the chosen particles after `moves` Metropolis steps."""
        theta = self._theta[chosen]
        C = self._mean_and_factor()[1] * (self._scale / math.sqrt(theta.shape[1]))
        log_pi, accepted_moves = self._log_target(theta), 0
        for _ in range(self._moves):
            proposal = theta + rng.normal(size=theta.shape) @ C.T
            new_log_pi = self._log_target(proposal)
            # Accept if U < π(θ') / π(θ) for a uniform U: -ln U is exponential.
            accepted = log_pi - new_log_pi < rng.exponential(size=len(theta))
            theta[accepted], log_pi[accepted] = proposal[accepted], new_log_pi[accepted]
            accepted_moves += int(accepted.sum())
        self.accepted = accepted_moves / (self._moves * len(theta))
        return theta

    def _check_state(self, new: SimpleNamespace) -> None:
        super()._check_state(new)
        if len(new._history) != new.count:
            raise damaged(f"{new.count} observations, but a history of {len(new._history)} steps")
