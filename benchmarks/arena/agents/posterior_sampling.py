"""Posterior sampling for average reward: the control rule over models of an MDP, in episodes.

    m = (P, R)   P(· | x,a) ~ Dirichlet(α, …, α),   R(x,a) ~ N(μ0, 1/λ0),   independent
    hypothesis   P(r, y | m, x, a) = P(y | x,a) N(r; R(x,a), 1/p)
    policy       π_m(x) = arg max_a Q_m(x,a), which maximises the average reward if m is true
    posterior    α + n(x,a,y),   λ = λ0 + p n(x,a),   mean (λ0 μ0 + p Σ r)/λ

    m_k ~ P(m | âo_<t_k),   a_t = π_{m_k}(x_t) for t_k ≤ t < t_{k+1}

    t_{k+1}   TSDE (Ouyang et al. 2017): t - t_k > T_{k-1}, or some n_t(x,a) > 2 n_{t_k}(x,a)
              DS-PSRL (Theocharous et al. 2018): T_k = 2^k
              every step: the control rule as printed

T_k is the length of episode k. The agent is a `ControlRule` that drops its mode at the end of an
episode. Rewards can depend on (x,a,y) instead of (x,a), or be known.
"""

import math
import zlib
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from benchmarks.arena.agents.average_reward import (
    draw_rewards,
    draw_transitions,
    expected_rewards,
    solve_average_reward,
)
from benchmarks.arena.agents.declared_model import DeclaredModel

from bayescontrol._arrays import Arrays, FloatArray, IntArray
from bayescontrol._support.saved import require_arrays
from bayescontrol._support.values import format_text
from bayescontrol.errors import (
    BadEvidence,
    ImpossibleObservation,
    IncompatibleState,
    InvalidPrior,
    InvalidTable,
)
from bayescontrol.mdp.table import MDP, advance
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Held
from bayescontrol.seeding import Stream, StreamLike

#: ε of `solve_average_reward`, and its limit of policy improvements.
RESTART, LIMIT = 1e-6, 200


class SampledModel:
    """An operation mode: P(y | x,a), R, and the policy that is optimal for them.

    >>> declared = DeclaredModel(2, 2, None, {})
    >>> P = np.array([[[1.0, 0.0], [0.1, 0.9]], [[0.5, 0.5], [0.0, 1.0]]])
    >>> m = SampledModel(declared, P, np.array([[0.0, 0.0], [0.0, 1.0]]), precision=1.0)
    >>> m
    SampledModel(2 states, 2 actions: ρ = 1)
    >>> m.act(0, Stream(0)), round(m.log_likelihood(0, 1, (0.0, 1)), 6)  # ln .9 + ln N(0; 0, 1)
    (1, -1.024299)
    """

    def __init__(
        self, declared: DeclaredModel, P: FloatArray, R: FloatArray, precision: float | None
    ) -> None:
        self._declared = declared
        self.P, self.R = P, R
        #: p of the rewards; None if rewards are known, so that they are no evidence.
        self.precision = precision
        r = R.copy() if R.ndim == 2 else np.empty(R.shape[:2])
        if R.ndim == 3:
            expected_rewards(P, R, r)
        #: r(x,a), -∞ where x does not offer a.
        self.r: FloatArray = np.where(declared.allowed, r, -np.inf)
        #: The number of the action π(x), and the bias h(x) relative to the first state.
        self.policy: IntArray = np.empty(len(declared.states), np.int64)
        self.bias: FloatArray = np.empty(len(declared.states))
        #: ρ, and bounds of the optimal average reward of this model.
        self.gain, self.lower, self.upper = solve_average_reward(
            self.P, self.r, RESTART, LIMIT, self.policy, self.bias
        )

    def act(self, x: Any, rng: Stream) -> Any:
        """π(x)."""
        return self._declared.actions[int(self.policy[self._declared.states.place(x)])]

    def action_probabilities(self, x: Any) -> dict[Any, float]:
        """Probability 1 on π(x)."""
        return {self._declared.actions[int(self.policy[self._declared.states.place(x)])]: 1.0}

    def log_likelihood(self, x: Any, a: Any, o: Any) -> float:
        """ln P(y | x,a) + ln N(r; R, 1/p); without the second term if rewards are known."""
        here, column, r, there = self._declared.read(x, a, o)
        p = float(self.P[here, column, there])
        if p == 0.0:
            return -math.inf
        if self.precision is None:
            return math.log(p)
        mean = float(self.R[here, column] if self.R.ndim == 2 else self.R[here, column, there])
        noise = math.log(self.precision / (2.0 * math.pi)) - self.precision * (r - mean) ** 2
        return math.log(p) + 0.5 * noise

    def __repr__(self) -> str:
        return f"SampledModel({self._declared!r}: ρ = {self.gain:.4g})"


@dataclass(frozen=True)
class ModelPrior:
    """P(· | x,a) ~ Dirichlet(α, …, α), R ~ N(μ0, 1/λ0), rewards with noise of precision p.

    `alpha=None` means α = 1/X, one pseudo-observation per pair: few successors are likely, but it
    is unknown which.

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
    `reward[x,a]` or `reward[x,a,y]`, is not learned. `possible[x,a,y]` says which successors a pair
    may have, all by default; `allowed(x)` which actions a state offers.

    >>> belief = DirichletMDPBelief(2, ["stay", "go"], ModelPrior(alpha=1.0))
    >>> belief.observe(0, "go", (2.5, 1))
    >>> belief.posterior()[0]  # E[P(y | x,a)] in state 0; "stay" is untried
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
        declared = DeclaredModel(states, actions, allowed, settings)
        pairs = declared.allowed.shape
        shape = (*pairs, pairs[0])
        may = _mask(possible, shape) & declared.allowed[:, :, None]
        lost = np.argwhere(declared.allowed & ~may.any(2))
        if lost.size:
            x, a = declared.states[lost[0][0]], declared.actions[lost[0][1]]
            raise InvalidTable(f"state {x!r}, action {a!r}: `possible` allows no successor")
        share = 1.0 / np.maximum(may.sum(2, keepdims=True), 1)
        #: α(x,a,y); 0 where y is impossible.
        self.alpha: FloatArray = may * (share if self.prior.alpha is None else self.prior.alpha)
        #: R if it is known, else None.
        self.reward: FloatArray | None = None if reward is None else _known(reward, shape)
        for name, array in (("possible", may), ("reward", self.reward)):
            declared.settings[name] = None if array is None else zlib.crc32(array.tobytes())
        declared.arrays = {
            "n": np.zeros(shape),
            "tried": np.zeros(pairs),
            "total": np.zeros(pairs if rewards == "pair" else shape),
        }
        self._declared = declared
        self._last: SampledModel | None = None

    @classmethod
    def on(cls, mdp: MDP, prior: ModelPrior | None = None, **options: Any) -> "DirichletMDPBelief":
        """The belief for the states and actions of a given MDP.

        >>> from bayescontrol.mdp import chain_mdp
        >>> DirichletMDPBelief.on(chain_mdp(3))
        DirichletMDPBelief(3 states, 2 actions after 0 transitions)
        """
        if not mdp.allowed.all():
            options = {"allowed": mdp.actions_in, **options}
        return cls(tuple(mdp.states), tuple(mdp.actions), prior, **options)

    # -- belief --------------------------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """n(x,a,y) += 1, Σ r += r for o = (r, y). On an error the belief is unchanged."""
        here, column, r, there = self._declared.read(x, a, o)
        if self.alpha[here, column, there] == 0.0:
            raise ImpossibleObservation(
                f"state {o[1]!r} after action {a!r} in state {x!r}: `possible` rules it out"
            )
        total = self._declared.arrays["total"]
        cell = (here, column) if total.ndim == 2 else (here, column, there)
        if not math.isfinite((float(total[cell]) + r) * self.prior.precision):
            raise BadEvidence(
                f"reward {r!r} after action {a!r} in state {x!r}: the sum of rewards would "
                "overflow; scale the rewards down"
            )
        total[cell] += r
        self._declared.arrays["n"][here, column, there] += 1.0
        self._declared.arrays["tried"][here, column] += 1.0

    def sample(self, rng: Stream) -> SampledModel:
        """Draw a model from the posterior and solve it."""
        arrays = self._declared.arrays
        P = np.empty(self.alpha.shape)
        draw_transitions(self.alpha, arrays["n"], P, rng.state)
        if self.reward is None:
            total = arrays["total"]
            n = arrays["tried"] if total.ndim == 2 else arrays["n"]
            p = self.prior
            R = np.empty(total.shape)
            numbers = np.array([p.mu0, p.lambda0, p.precision])
            draw_rewards(n.ravel(), total.ravel(), numbers, R.ravel(), rng.state)
        else:
            R = self.reward
        self._last = self._sampled_model(P, R)
        return self._last

    def _sampled_model(self, P: FloatArray, R: FloatArray) -> SampledModel:
        return SampledModel(
            self._declared, P, R, self.prior.precision if self.reward is None else None
        )

    # -- summaries -----------------------------------------------------------------------------

    @property
    def tried(self) -> FloatArray:
        """n(x,a): how often each action was taken in each state."""
        return self._declared.arrays["tried"].copy()

    @property
    def count(self) -> int:
        """The number of observed transitions."""
        return int(self._declared.arrays["tried"].sum())

    @property
    def states(self) -> tuple[Any, ...]:
        """The states, in the order of their numbers."""
        return tuple(self._declared.states)

    def actions_in(self, x: Any) -> list[Any]:
        """The actions that state x offers."""
        return self._declared.actions_in(x)

    def posterior(self) -> FloatArray:
        """E[P(y | x,a)] = (α + n(x,a,y)) / Σ_y (α + n(x,a,y)); 0 where x does not offer a."""
        weight = self.alpha + self._declared.arrays["n"]
        return np.asarray(weight / np.maximum(weight.sum(2, keepdims=True), 1e-300))

    def mean_rewards(self) -> FloatArray:
        """E[R] = (λ0 μ0 + p Σ r) / (λ0 + p n), or R if it is known."""
        if self.reward is not None:
            return self.reward.copy()
        total, p = self._declared.arrays["total"], self.prior
        n = self._declared.arrays["tried" if total.ndim == 2 else "n"]
        lam = p.lambda0 + p.precision * n
        return np.asarray((p.lambda0 * p.mu0 + p.precision * total) / lam)

    def last(self) -> SampledModel | None:
        """The last drawn model."""
        return self._last

    # -- named arrays --------------------------------------------------------------------------

    def save(self) -> Arrays:
        """Return named arrays, with the last drawn model, from which `load` continues exactly."""
        m = self._last
        drawn = np.empty(0) if m is None else np.concatenate([m.P.ravel(), m.R.ravel()])
        return {**self._declared.save(), "drawn": drawn}

    def load(self, arrays: Arrays) -> None:
        """Restore the state that `save` returned for a belief with the same settings."""
        declared = self._declared.copy()
        declared.load(arrays)
        drawn = np.array(arrays.get("drawn", np.empty(0)), np.float64)
        like = self._declared.arrays["total"] if self.reward is None else self.reward
        cells = self.alpha.size
        if drawn.size not in (0, cells + like.size) or not np.isfinite(drawn).all():
            raise IncompatibleState(f"the saved state is damaged: a model of {drawn.size} numbers")
        self._declared, self._last = declared, None
        if drawn.size:
            P, R = drawn[:cells].reshape(self.alpha.shape), drawn[cells:].reshape(like.shape)
            self._last = self._sampled_model(P, R)

    def merge(self, other: "DirichletMDPBelief") -> None:
        """Add the transitions of another belief; the prior counts once."""
        mine, theirs = self._declared, getattr(other, "_declared", None)
        if theirs is None or not mine.same_settings(theirs):
            raise IncompatibleState("only beliefs with the same settings can be merged")
        for name, array in mine.arrays.items():
            array += theirs.arrays[name]

    def copy(self) -> "DirichletMDPBelief":
        """An independent copy."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._declared = self._declared.copy()
        return twin

    def __repr__(self) -> str:
        return f"DirichletMDPBelief({self._declared!r} after {self.count} transitions)"


def _mask(possible: npt.ArrayLike | None, shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    may = np.ones(shape, bool) if possible is None else np.array(possible)
    if may.shape != shape or may.dtype != bool:
        raise InvalidTable(
            f"possible has shape {may.shape} and type {may.dtype}: expected booleans of shape "
            f"{shape}"
        )
    return may


def _known(reward: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    r = np.array(reward, np.float64, order="C")
    if r.shape not in (shape, shape[:2]) or not np.isfinite(r).all():
        raise InvalidTable(
            f"reward has shape {r.shape}: expected finite numbers of shape {shape[:2]} or {shape}"
        )
    return r


class Episode(NamedTuple):
    """The state of an episode before the next action.

    >>> e = Episode(t=7, length=4, last=3, before=np.array([[2.0]]), tried=np.array([[6.0]]))
    >>> e.doubled
    True
    """

    t: int  #: actions so far
    length: int  #: actions in this episode
    last: int  #: T_{k-1}, the length of the previous episode
    before: FloatArray  #: n(x,a) at its start
    tried: FloatArray  #: n(x,a) now

    @property
    def doubled(self) -> bool:
        """n_t(x,a) > 2 n_{t_k}(x,a) for some (x,a)."""
        return bool((self.tried > 2.0 * self.before).any())


#: Decides whether an episode ends.
Ends: TypeAlias = Callable[[Episode], bool]


def tsde(e: Episode) -> bool:
    """End when the episode is longer than the last one, or a number of visits has doubled.

    >>> counts = np.array([[5.0]])
    >>> tsde(Episode(4, 2, 2, counts, counts)), tsde(Episode(5, 3, 2, counts, counts))
    (False, True)
    """
    return e.length > e.last or e.doubled


def doubling_lengths(e: Episode) -> bool:
    """Episodes of 1, 2, 4, 8, … steps, independent of the observations.

    In t steps only log2 t models are drawn, and a bad one is used for long. For problems that need
    much exploration, such as mazes, these are far too few.

    >>> counts = np.array([[5.0]])
    >>> [t for t in range(1, 20) if doubling_lengths(Episode(t, t - 3, 2, counts, counts))][0]
    7
    """
    return e.length > e.t - e.length


def at_once(e: Episode) -> bool:
    """End after every step: a model is drawn for every action.

    >>> counts = np.array([[5.0]])
    >>> at_once(Episode(4, 1, 1, counts, counts))
    True
    """
    return True


def _hold(held: Held[Any], rng: Stream) -> bool:
    return False


class PosteriorSampling(ControlRule[SampledModel, Any, Any, Any]):
    """The control rule over models of an MDP; a new model is drawn when `ends` returns True.

    `start` is the initial state, by default the first.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import chain_mdp
    >>> mdp = chain_mdp(3)
    >>> agent = PosteriorSampling.on(mdp, ModelPrior(precision=100.0))
    >>> record = interact(agent, mdp.environment(), 500, seed=0)
    >>> float(record.observations["reward"][-99:].mean())  # ρ* = 1/3
    0.333...
    >>> agent.episode.length <= agent.episode.last + 1
    True
    """

    format_name: ClassVar[str] = "PosteriorSampling"

    def __init__(
        self, belief: DirichletMDPBelief, start: Hashable | None = None, ends: Ends = tsde
    ) -> None:
        if not callable(ends):
            raise TypeError(f"ends={ends!r} must be a function of an Episode, such as tsde")
        x = belief.states[0] if start is None else start
        belief.actions_in(x)
        super().__init__(belief, x, advance=advance, schedule=_hold)
        self.ends = ends
        self._last = 0
        self._before = belief.tried

    @classmethod
    def on(
        cls,
        mdp: MDP,
        prior: ModelPrior | None = None,
        *,
        start: Hashable | None = None,
        ends: Ends = tsde,
        **options: Any,
    ) -> "PosteriorSampling":
        """The agent for a given MDP; `options` are those of `DirichletMDPBelief`.

        >>> from bayescontrol.mdp import chain_mdp
        >>> PosteriorSampling.on(chain_mdp(3), start=2, ends=doubling_lengths).x
        2
        """
        return cls(DirichletMDPBelief.on(mdp, prior, **options), start, ends)

    @property
    def episode(self) -> Episode:
        """The current episode."""
        held = self._held()
        return Episode(held.t, held.age, self._last, self._before, self.belief.tried)

    def act(self, rng: StreamLike) -> Any:
        """π_m(x), with a new m if the episode has ended."""
        episode = self.episode
        if self.mode is None or self.ends(episode):
            self._last, self._before, self.mode = episode.length, episode.tried, None
        return super().act(rng)

    def observe(self, a: Any, o: Any) -> None:
        """Learn from o = (r, y) and move to y. On an error the agent is unchanged."""
        self.learn(self.x, a, o)
        self.x = o[1]

    def save(self) -> Arrays:
        """Return named arrays from which `load` continues bit for bit, also within an episode."""
        return {
            **super().save(),
            "episode/last": np.array(self._last),
            "episode/before": self._before.copy(),
        }

    def load(self, arrays: Arrays) -> None:
        """Restore the state that `save` returned for an agent with the same settings."""
        require_arrays(arrays, {"episode/last", "episode/before"})
        before, last = arrays["episode/before"], arrays["episode/last"]
        if before.shape != self._before.shape or before.dtype != np.float64 or last.shape != ():
            raise IncompatibleState(
                "the saved episode belongs to an agent with other states or actions"
            )
        super().load(arrays)
        self._last, self._before = int(last), before.copy()
