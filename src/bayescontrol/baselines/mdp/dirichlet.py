"""A belief over models of an MDP, m = (P, R).

    P(· | x,a) ~ Dirichlet(α, …, α),   R(x,a) ~ N(μ0, 1/λ0),   independent
    P(r, y | m, x, a) = P(y | x,a) N(r; R(x,a), 1/p)

Evidence is n(x,a,y), n(x,a) and Σ r: the posterior is of the same kind, α + n(x,a,y) and
λ = λ0 + p n(x,a). To draw a mode is to draw a model and to solve it: `kernels.mdp`.
Rewards may go with (x,a,y) instead, or be known.
"""

import math
import zlib
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from bayescontrol import kernels
from bayescontrol.arrays import Arrays, FloatArray
from bayescontrol.baselines.mdp.book import Book
from bayescontrol.baselines.mdp.sampled_model import SampledModel
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
)
from bayescontrol.mdp.table import MDP
from bayescontrol.seeding import Stream
from bayescontrol.values import format_text


@dataclass(frozen=True)
class ModelPrior:
    """P(· | x,a) ~ Dirichlet(α, …, α), R ~ N(μ0, 1/λ0), rewards with noise of precision p.

    `alpha=None` shares one observation among all successors of a pair, α = 1/X: few of them are
    likely, and it is not known which.

    >>> ModelPrior(mu0=1.0)
    ModelPrior(alpha=None, mu0=1.0, lambda0=1.0, precision=1.0)
    >>> ModelPrior(alpha=0.0)
    Traceback (most recent call last):
    bayescontrol.errors.InvalidPrior: alpha = 0.0 must be positive and finite
    """

    alpha: float | None = None
    mu0: float = 0.0
    lambda0: float = 1.0
    precision: float = 1.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.mu0):
            raise InvalidPrior(f"mu0 = {self.mu0}: the prior mean of a reward must be finite")
        for name in ("alpha", "lambda0", "precision"):
            value = getattr(self, name)
            if value is not None and not 0.0 < value < math.inf:
                raise InvalidPrior(f"{name} = {value} must be positive and finite")

    def format_text(self) -> str:
        """Return the text of the prior in stored data, which is part of the format."""
        return (
            f"ModelPrior(alpha={self.alpha!r}, mu0={self.mu0!r}, lambda0={self.lambda0!r}, "
            f"precision={self.precision!r})"
        )


class DirichletMDPBelief:
    """P(m | âo_<t) over models m of an MDP with declared states.

    `rewards="pair"` gives each (x,a) a mean reward, "transition" each (x,a,y). A known reward,
    `reward[x,a]` or `reward[x,a,y]`, is not learnt. `possible[x,a,y]` says which successors a pair
    may have, all by default; `allowed(x)` which actions a state offers.

    >>> belief = DirichletMDPBelief(2, ["stay", "go"], ModelPrior(alpha=1.0))
    >>> belief.observe(0, "go", (2.5, 1))
    >>> belief.posterior()[0]  # E[P(y | x,a)] in state 0: nothing seen of "stay"
    array([[0.5       , 0.5       ],
           [0.33333333, 0.66666667]])
    >>> belief.observe(0, "go", (float("nan"), 1))
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: reward nan after action 'go' in state 0: it must be a ...
    """

    format_name: ClassVar[str] = "DirichletMDPBelief"

    def __init__(
        self,
        states: int | Iterable[Hashable],
        actions: int | Iterable[Hashable],
        prior: ModelPrior | None = None,
        *,
        rewards: Literal["pair", "transition"] = "pair",
        reward: npt.ArrayLike | None = None,
        possible: npt.ArrayLike | None = None,
        allowed: Callable[[Any], Iterable[Any]] | None = None,
    ) -> None:
        if rewards not in ("pair", "transition"):
            raise ValueError(f"rewards={rewards!r}: write 'pair' or 'transition'")
        self.prior = ModelPrior() if prior is None else prior
        settings = {"prior": format_text(self.prior), "rewards": rewards}
        book = Book(states, actions, allowed, settings)
        pairs = book.allowed.shape
        shape = (*pairs, pairs[0])
        may = _mask(possible, shape) & book.allowed[:, :, None]
        lost = np.argwhere(book.allowed & ~may.any(2))
        if lost.size:
            x, a = book.states[lost[0][0]], book.actions[lost[0][1]]
            raise InvalidTable(f"state {x!r}, action {a!r}: `possible` leaves no successor")
        share = 1.0 / np.maximum(may.sum(2, keepdims=True), 1)
        #: α(x,a,y); 0 where y is not possible.
        self.alpha: FloatArray = may * (share if self.prior.alpha is None else self.prior.alpha)
        #: R where it is known.
        self.reward: FloatArray | None = None if reward is None else _known(reward, shape)
        for name, array in (("possible", may), ("reward", self.reward)):
            book.settings[name] = None if array is None else zlib.crc32(array.tobytes())
        book.arrays = {
            "n": np.zeros(shape),
            "tried": np.zeros(pairs),
            "total": np.zeros(pairs if rewards == "pair" else shape),
        }
        self._book = book
        self._last: SampledModel | None = None

    @classmethod
    def on(cls, mdp: MDP, prior: ModelPrior | None = None, **options: Any) -> "DirichletMDPBelief":
        """The belief for a given MDP: its states, its actions and what each state offers.

        >>> from bayescontrol.mdp import chain_mdp
        >>> DirichletMDPBelief.on(chain_mdp(3))
        DirichletMDPBelief(3 states, 2 actions after 0 transitions)
        """
        if not mdp.allowed.all():
            options = {"allowed": mdp.actions_in, **options}
        return cls(tuple(mdp.states), tuple(mdp.actions), prior, **options)

    # -- the verbs of a belief -----------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """n(x,a,y) += 1, Σ r += r for o = (r, y). On an error nothing has changed."""
        here, column, r, there = self._book.read(x, a, o)
        if self.alpha[here, column, there] == 0.0:
            raise ImpossibleObservation(
                f"state {o[1]!r} after action {a!r} in state {x!r}: `possible` rules it out"
            )
        total = self._book.arrays["total"]
        cell = (here, column) if total.ndim == 2 else (here, column, there)
        if not math.isfinite((float(total[cell]) + r) * self.prior.precision):
            raise BadEvidence(
                f"reward {r!r} after action {a!r} in state {x!r}: the sum of rewards would be no "
                "double any more; scale the rewards down"
            )
        total[cell] += r
        self._book.arrays["n"][here, column, there] += 1.0
        self._book.arrays["tried"][here, column] += 1.0

    def sample(self, rng: Stream) -> SampledModel:
        """A model from the posterior, solved."""
        arrays, kernel = self._book.arrays, kernels.mdp
        P = np.empty(self.alpha.shape)
        kernel.draw_transitions(self.alpha, arrays["n"], P, rng.state)
        if self.reward is None:
            total = arrays["total"]
            n = arrays["tried"] if total.ndim == 2 else arrays["n"]
            p = self.prior
            R = np.empty(total.shape)
            numbers = np.array([p.mu0, p.lambda0, p.precision])
            kernel.draw_rewards(n.ravel(), total.ravel(), numbers, R.ravel(), rng.state)
        else:
            R = self.reward
        self._last = self._model(P, R)
        return self._last

    def _model(self, P: FloatArray, R: FloatArray) -> SampledModel:
        return SampledModel(self._book, P, R, self.prior.precision if self.reward is None else None)

    # -- what a reader may ask -----------------------------------------------------------------

    @property
    def tried(self) -> FloatArray:
        """n(x,a): how often each action was seen in each state."""
        return self._book.arrays["tried"].copy()

    @property
    def count(self) -> int:
        """Transitions seen."""
        return int(self._book.arrays["tried"].sum())

    @property
    def states(self) -> tuple[Any, ...]:
        """The states, in the order of their numbers."""
        return tuple(self._book.states)

    def actions_in(self, x: Any) -> list[Any]:
        """The actions that state x offers."""
        return self._book.actions_in(x)

    def posterior(self) -> FloatArray:
        """E[P(y | x,a)] = (α + n(x,a,y)) / Σ_y (α + n(x,a,y)); 0 where x does not offer a."""
        weight = self.alpha + self._book.arrays["n"]
        return np.asarray(weight / np.maximum(weight.sum(2, keepdims=True), 1e-300))

    def mean_rewards(self) -> FloatArray:
        """E[R] = (λ0 μ0 + p Σ r) / (λ0 + p n), or R where it is known."""
        if self.reward is not None:
            return self.reward.copy()
        total, p = self._book.arrays["total"], self.prior
        n = self._book.arrays["tried" if total.ndim == 2 else "n"]
        lam = p.lambda0 + p.precision * n
        return np.asarray((p.lambda0 * p.mu0 + p.precision * total) / lam)

    def last(self) -> SampledModel | None:
        """The model drawn last."""
        return self._last

    # -- named arrays --------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Named arrays from which `load` continues bit for bit, the model drawn last included."""
        m = self._last
        drawn = np.empty(0) if m is None else np.concatenate([m.P.ravel(), m.R.ravel()])
        return {**self._book.save(), "drawn": drawn}

    def load(self, arrays: Arrays) -> None:
        """Take over what `save` gave, for a belief built alike."""
        book = self._book.copy()
        book.load(arrays)
        drawn = np.array(arrays.get("drawn", np.empty(0)), np.float64)
        like = self._book.arrays["total"] if self.reward is None else self.reward
        cells = self.alpha.size
        if drawn.size not in (0, cells + like.size) or not np.isfinite(drawn).all():
            raise IncompatibleState(f"the saved state is damaged: a model of {drawn.size} numbers")
        self._book, self._last = book, None
        if drawn.size:
            P, R = drawn[:cells].reshape(self.alpha.shape), drawn[cells:].reshape(like.shape)
            self._last = self._model(P, R)

    def merge(self, other: "DirichletMDPBelief") -> None:
        """The transitions of both; the prior counts once."""
        mine, other_book = self._book, getattr(other, "_book", None)
        if other_book is None or not mine.alike(other_book):
            raise IncompatibleState("beliefs can be merged only if they were built alike")
        for name, array in mine.arrays.items():
            array += other_book.arrays[name]

    def copy(self) -> "DirichletMDPBelief":
        """The same belief, free to go its own way."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._book = self._book.copy()
        return twin

    def __repr__(self) -> str:
        return f"DirichletMDPBelief({self._book!r} after {self.count} transitions)"


def _mask(possible: npt.ArrayLike | None, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    may = np.ones(shape, bool) if possible is None else np.array(possible)
    if may.shape != shape or may.dtype != bool:
        raise InvalidTable(
            f"possible has shape {may.shape} and type {may.dtype}: it needs {shape}, True or False"
        )
    return may


def _known(reward: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    r = np.array(reward, np.float64, order="C")
    if r.shape not in (shape, shape[:2]) or not np.isfinite(r).all():
        raise InvalidTable(
            f"reward has shape {r.shape}: {shape[:2]} or {shape} is needed, all of it finite"
        )
    return r
