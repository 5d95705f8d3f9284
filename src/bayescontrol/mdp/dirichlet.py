"""Posterior sampling for MDPs with declared states: the modes are models with their best policies.

    m = (P, R, σ²)    P(· | x,a) ~ Dirichlet(α, …, α),   R(x,a,y) ~ N(μ(x,a), T²)
                      μ(x,a) ~ N(m, S²)
    hypothesis        P(r, y | m, x, a) = P(y | x,a) N(r; R(x,a,y), σ²)
    policy            π_m maximises the average reward of the model

    n = n(x,a,y)      P(· | x,a) | âo_<t ~ Dirichlet(α + n)
    r̄ = r̄(x,a,y)      μ, R | T, σ, âo_<t are normal, see `kernels.average_reward`
    N, K, SS          σ² | âo_<t ~ InverseGamma(1 + (N - K)/2, (s² + SS)/2)
    K, J, SB          T² | âo_<t ~ InverseGamma(1 + (K - J)/2, (s² + SB)/2)

The N rewards belong to K transitions (x,a,y) of J pairs (x,a). SS is the sum of squares of the
rewards within transitions, SB that of the means r̄ within pairs. So the agent learns whether rewards
are noisy, and whether they depend on the next state. The unit of the rewards need not be known,
because m and s² are taken from them:

    m = mean of the r̄,   s² = (max r̄ - min r̄)² + SS/N;   s² = 1 while all rewards are equal

If all rewards are multiplied by c > 0, or shifted, the drawn rewards are too, and the actions stay
the same. An untried pair may pay far more than the pairs tried so far. So S has a heavy tail:
S = s/u² with u uniform in (0, 1]. If the range of the rewards is known, s is at least that range.

    m_k ~ P(m | âo_<t_k),   a_t = π_{m_k}(x_t) for t_k ≤ t < t_{k+1}

    t_{k+1}   TSDE (Ouyang et al. 2017): t - t_k > T_{k-1}, or some n_t(x,a) > 2 n_{t_k}(x,a);
              T_k is the length of episode k. Or any schedule of `bayescontrol.schedules`.
"""

import math
from collections.abc import Hashable, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from bayescontrol import errors, kernels
from bayescontrol._arrays import ArrayLike, BoolArray, FloatArray, IntArray, require_between
from bayescontrol._support.description import MOST_NUMBERS, ModelKind, SettingDoc, SizeLimit
from bayescontrol._support.display import summary_html
from bayescontrol._support.names import Names
from bayescontrol._support.saved import Array, Copied, Fixed, Number, damaged, declare
from bayescontrol._support.temperature import Tempered, with_temperature
from bayescontrol.errors import counted
from bayescontrol.mdp.gibbs import LARGEST
from bayescontrol.mdp.table import MDP, MDPEnvironment, advance, read_step
from bayescontrol.protocols import PosteriorMeasure
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Held, Schedule
from bayescontrol.seeding import SeedLike, Stream, StreamLike, as_stream, require_stream

#: ε of `kernels.average_reward.solve_average_reward`, and its limit of policy improvements.
RESTART, LIMIT = 1e-6, 200
#: Rewards whose relative difference is smaller count as equal.
ROUNDING = 1e-12


class RewardScale(NamedTuple):
    """What the prior of the rewards takes from the observed ones: m, s², SB, K and J."""

    mean: float
    square: float
    between: float
    transitions: int
    pairs: int


class SampledMDP:
    """An operation mode: a model P(y | x,a), R(x,a,y), σ², and the policy that is best for it.

    `belief` has the names of states and actions.

    >>> belief = DirichletBelief(2, 2)
    >>> P = np.array([[[1.0, 0.0], [0.1, 0.9]], [[0.5, 0.5], [0.0, 1.0]]])
    >>> R = np.array([[[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
    >>> m = SampledMDP(belief, P, R, sigma2=1.0)
    >>> m
    SampledMDP(2 states, 2 actions: ρ = 1)
    >>> m.act(0, Stream(0)), round(m.log_likelihood(0, 1, (0.0, 1)), 6)  # ln .9 + ln N(0; 0, 1)
    (1, -1.024299)
    """

    def __init__(
        self, belief: "DirichletBelief", P: FloatArray, R: FloatArray, sigma2: float
    ) -> None:
        self._states, self._actions = belief.states, belief.actions
        self.P, self.R, self.sigma2 = P, R, sigma2
        r = np.empty(P.shape[:2])
        kernels.average_reward.expected_rewards(P, R, r)
        r[~belief.allowed] = -np.inf
        #: The number of the action π(x), and the bias h(x) relative to the first state.
        self.policy: IntArray = np.empty(len(P), np.int64)
        self.bias: FloatArray = np.empty(len(P))
        #: ρ of π, and bounds of the best average reward of this model.
        self.gain, self.lower, self.upper = kernels.average_reward.solve_average_reward(
            P, r, RESTART, LIMIT, self.policy, self.bias
        )

    def act(self, x: Any, rng: StreamLike) -> Any:
        """Return π(x)."""
        return self._actions[int(self.policy[self._states.place(x)])]

    def action_probabilities(self, x: Any) -> dict[Any, float]:
        """Return probability 1 for π(x)."""
        return {self._actions[int(self.policy[self._states.place(x)])]: 1.0}

    def log_likelihood(self, x: Any, a: Any, o: Any) -> float:
        """ln P(y | x,a) + ln N(r; R(x,a,y), σ²)."""
        r, y = read_step(x, a, o, LARGEST)
        cell = self._states.place(x), self._actions.place(a), self._states.place(y)
        p, miss = float(self.P[cell]), r - float(self.R[cell])
        if p == 0.0:
            return -math.inf
        noise = math.log(2.0 * math.pi * self.sigma2) + miss**2 / self.sigma2
        return math.log(p) - 0.5 * noise

    def __repr__(self) -> str:
        states = counted(len(self._states), "state")
        return f"SampledMDP({states}, {counted(len(self._actions), 'action')}: ρ = {self.gain:.4g})"


class DirichletBelief(Tempered):
    """P(m | âo_<t) over the models m of an MDP with declared states.

    `states` and `actions` are names or their number. `alpha` is α; by default it is 1 divided by
    the number of possible successors, so that few successors are likely, but it is unknown which.
    `possible[x, a, y]` says which successors a pair may have, by default all. A pair without any is
    an action that x does not offer. `reward_range` is the largest reward minus the smallest if it
    is known; 0 means that it is unknown.

    >>> belief = DirichletBelief(2, ["stay", "go"], alpha=1.0)
    >>> belief.observe(0, "go", (2.5, 1))
    >>> belief.posterior()[0]  # E[P(y | x,a)] in state 0; "stay" is untried
    array([[0.5       , 0.5       ],
           [0.33333333, 0.66666667]])
    >>> belief.observe(0, "go", (float("nan"), 1))
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: reward nan after action 'go' in state 0 is invalid: ...
    """

    format_name: ClassVar[str] = "DirichletBelief"

    posterior_measure: ClassVar = PosteriorMeasure("average reward ρ, drawn last", "reward a step")
    saved_fields = declare(
        Fixed("states", lambda belief: list(belief.states)),
        Fixed("actions", lambda belief: list(belief.actions)),
        Fixed("alpha"),
        Fixed("reward_range"),
        Array("n"),
        Array("mean"),
        Number("scatter", least=0.0),
        Copied("tried"),
        Array("drawn", lambda belief: belief._saved_mode(), shape=(None,)),
    )

    def __init__(
        self,
        states: int | Sequence[Hashable],
        actions: int | Sequence[Hashable],
        *,
        alpha: float | None = None,
        possible: ArrayLike | None = None,
        reward_range: float = 0.0,
    ) -> None:
        self.states, self.actions = Names("state", states), Names("action", actions)
        may = self._possible(possible)
        #: Which actions the states offer, as a mask [x, a].
        self.allowed: BoolArray = np.asarray(may.any(2))
        if alpha is not None:
            alpha = require_between(
                "alpha", alpha, 0, LARGEST, ends="(]", error=errors.InvalidPrior
            )
        successors = np.maximum(may.sum(2, keepdims=True), 1)
        #: α(x,a,y), by default 1 divided by the number of successors; 0 where y is impossible.
        self.alpha: FloatArray = np.asarray(may / successors if alpha is None else may * alpha)
        self.reward_range = require_between(
            "reward_range", reward_range, 0, LARGEST, error=errors.InvalidPrior
        )
        #: n(x,a,y), the mean rewards r̄(x,a,y), and SS.
        self.n: FloatArray = np.zeros(may.shape)
        self.mean: FloatArray = np.zeros(may.shape)
        self.scatter = 0.0
        #: n(x,a) = Σ_y n(x,a,y): how often each action was taken in each state.
        self.tried: FloatArray = np.zeros(may.shape[:2])
        self._last: SampledMDP | None = None

    def _possible(self, given: ArrayLike | None) -> BoolArray:
        """Return the mask of the possible transitions; raise InvalidTable if it is invalid."""
        shape = len(self.states), len(self.actions), len(self.states)
        may = np.ones(shape, bool) if given is None else np.array(given)
        if may.shape != shape or may.dtype != bool:
            raise errors.InvalidTable(
                f"possible has shape {may.shape} and type {may.dtype}: expected booleans of {shape}"
            )
        stuck = np.flatnonzero(~may.any((1, 2)))
        if stuck.size:
            raise errors.InvalidTable(
                f"state {self.states[stuck[0]]!r} has no successor in `possible`: it must offer at "
                "least one action"
            )
        return may

    # -- belief ----------------------------------------------------------------------------------

    def observe(self, x: Any, a: Any, o: Any) -> None:
        """Count the transition and its reward: n(x,a,y) += 1 for o = (r, y).

        An error changes nothing.
        """
        r, y = read_step(x, a, o, LARGEST)
        here, column = self.states.place(x), self.actions.place(a)
        if not self.allowed[here, column]:
            offered = ", ".join(map(repr, self.actions_in(x)))
            raise errors.UnknownAction(
                f"state {x!r} does not offer action {a!r}: it offers {offered}"
            )
        try:
            cell = here, column, self.states.place(y)
        except LookupError as error:
            raise type(error)(f"{error}; after action {a!r} in state {x!r}") from None
        if self.alpha[cell] == 0.0:
            raise errors.ImpossibleObservation(
                f"state {y!r} after action {a!r} in state {x!r}: `possible` rules it out"
            )
        self.n[cell] += 1.0
        self.tried[here, column] += 1.0
        miss = r - self.mean[cell]
        self.mean[cell] += miss / self.n[cell]
        self.scatter += float(miss * (r - self.mean[cell]))

    def sample(self, rng: StreamLike) -> SampledMDP:
        """Draw a model from the posterior and solve it."""
        stream = require_stream(rng)
        P, R = np.empty(self.n.shape), np.empty(self.n.shape)
        T, spread = self._temperature, math.sqrt(self._temperature)
        kernels.average_reward.draw_transitions(self.alpha / T, self.n / T, P, stream.state)
        level = self._draw_levels(stream)
        kernels.average_reward.draw_rewards(self.n, self.mean, level, R, stream.state, spread)
        self._last = SampledMDP(self, P, R, level.noise)
        return self._last

    def _draw_levels(self, rng: Stream) -> "kernels.average_reward.RewardLevels":
        """Draw S², T² and σ², and return them with m."""
        scale, u = self.reward_scale(), 1.0 - rng.random()  # u in (0, 1]
        repeats, branches = self.count - scale.transitions, scale.transitions - scale.pairs
        noise = 0.5 * (scale.square + self.scatter) / rng.gamma(1.0 + 0.5 * repeats)
        between = 0.5 * (scale.square + scale.between) / rng.gamma(1.0 + 0.5 * branches)
        # S² = (s / u²)².
        return kernels.average_reward.RewardLevels(scale.mean, scale.square / u**4, between, noise)

    def reward_scale(self) -> RewardScale:
        """Return m, s², SB, K and J.

        >>> belief = DirichletBelief(2, 1)
        >>> for reward, y in ((2.0, 1), (4.0, 1), (1.0, 0)):
        ...     belief.observe(0, 0, (reward, y))
        >>> belief.reward_scale()  # the means are 3 and 1, and SS = 2
        RewardScale(mean=2.0, square=4.666666666666667, between=2.0, transitions=2, pairs=1)
        """
        observed = self.n > 0.0
        if not observed.any():
            return RewardScale(0.0, self.reward_range**2 or 1.0, 0.0, 0, 0)
        means, branches = self.mean[observed], observed.sum(2)
        centre = self.mean.sum(2) / np.maximum(branches, 1)  # unseen transitions have mean 0
        between = float(((self.mean - centre[:, :, None])[observed] ** 2).sum())
        square = float(np.ptp(means)) ** 2 + self.scatter / self.count
        if square <= (ROUNDING * float(np.abs(means).max())) ** 2:
            square = 0.0
        square = max(square, self.reward_range**2) or 1.0
        pairs = int((branches > 0).sum())
        return RewardScale(float(means.mean()), square, between, means.size, pairs)

    def log_predictive(self, x: Any, a: Any, o: Any) -> float:
        """Raise MissingCapability: the prior of the rewards is taken from the observed rewards.

        >>> DirichletBelief(2, 1).log_predictive(0, 0, (1.0, 1))
        Traceback (most recent call last):
        bayescontrol.errors.MissingCapability: a DirichletBelief has no predictive density of ...
        """
        raise errors.MissingCapability(
            "a DirichletBelief has no predictive density of rewards, because their scale is taken "
            "from the observed rewards: use `posterior()` for next states, or the `log_likelihood` "
            "of a drawn model"
        )

    # -- properties ------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Number of observed transitions."""
        return int(self.tried.sum())

    def actions_in(self, x: Any) -> list[Any]:
        """Return the actions that state x offers."""
        row = self.allowed[self.states.place(x)]
        return [self.actions[a] for a in np.flatnonzero(row).tolist()]

    def posterior(self) -> FloatArray:
        """E[P(y | x,a)] = (α + n(x,a,y)) / Σ_y (α + n(x,a,y)); 0 where x does not offer a."""
        weight = self.alpha + self.n
        total = weight.sum(2, keepdims=True)
        return np.asarray(weight / np.where(total > 0.0, total, 1.0))

    def posterior_summary(self) -> dict[str, dict[str, Any]]:
        """Return ρ as drawn last and the number of transitions."""
        rho = 0.0 if self._last is None else self._last.gain
        return {"rho": {"mean": rho, "count": self.count}}

    def last(self) -> SampledMDP | None:
        """Return the model that was drawn last."""
        return self._last

    # -- named arrays ----------------------------------------------------------------------------

    def _saved_mode(self) -> FloatArray:
        """Return P, R and σ² of the last drawn model; empty before the first draw."""
        m = self._last
        return np.empty(0) if m is None else np.concatenate([m.P.ravel(), m.R.ravel(), [m.sigma2]])

    def _check_state(self, new: SimpleNamespace) -> None:
        """Raise if the saved counts are invalid, and solve the model that was drawn last."""
        if (new.n < 0.0).any() or new.n[self.alpha == 0.0].any():
            raise damaged("'n' has counts that are negative, or of impossible transitions")
        size, new._last = self.n.size, None
        if new.drawn.size not in (0, 2 * size + 1):
            raise damaged(f"'drawn' has {new.drawn.size} numbers: expected 0 or {2 * size + 1}")
        if new.drawn.size:
            P, R = new.drawn[:-1].reshape(2, *self.n.shape)
            new._last = SampledMDP(self, P.copy(), R.copy(), float(new.drawn[-1]))

    def _after_load(self) -> None:
        """Compute n(x,a)."""
        self.tried = self.n.sum(2)

    def merge(self, other: "DirichletBelief") -> None:
        """Add the transitions of `other`; the prior counts once. An error changes nothing."""
        if not isinstance(other, DirichletBelief):
            raise errors.IncompatibleState(f"cannot merge {other!r}: it is not a DirichletBelief")
        same = (
            self.states == other.states
            and self.actions == other.actions
            and self.reward_range == other.reward_range
            and np.array_equal(self.alpha, other.alpha)
        )
        if not same:
            raise errors.IncompatibleState(
                f"cannot merge {other!r} into {self!r}: create both with the same states, actions, "
                "alpha, possible and reward_range"
            )
        n = self.n + other.n
        share = other.n / np.maximum(n, 1.0)
        apart = other.mean - self.mean
        self.scatter += other.scatter + float((self.n * share * apart**2).sum())
        self.mean = self.mean + share * apart
        self.n, self.tried = n, self.tried + other.tried

    _repr_html_ = summary_html

    def __repr__(self) -> str:
        states, actions = counted(len(self.states), "state"), counted(len(self.actions), "action")
        return f"DirichletBelief({states}, {actions} after {self.count} transitions)"


class HeldModel(Held[Any]):
    """A held model, with T_{k-1}, and whether some n(x,a) has more than doubled since its draw."""

    previous: int
    doubled: bool


def tsde(held: Held[Any], rng: Stream) -> bool:
    """Draw when the model is held longer than the previous one, or some n(x,a) has doubled.

    This is the schedule of Ouyang et al., "Learning unknown MDPs: a Thompson sampling approach"
    (2017), for a `DirichletAgent`.

    >>> held = HeldModel(t=9, age=3, x=None, drawn_in=None)
    >>> held.previous, held.doubled = 3, False
    >>> tsde(held, rng=None)
    False
    """
    if not isinstance(held, HeldModel):
        raise errors.MissingCapability(
            "tsde needs the counts of a DirichletAgent: use it only there"
        )
    return held.age > held.previous or held.doubled


class DirichletAgent(ControlRule[SampledMDP, Any, Any, Any]):
    """The control rule over models of an MDP; `start` is the first state.

    >>> from bayescontrol import interact
    >>> from bayescontrol.mdp import chain_mdp
    >>> agent = DirichletAgent(DirichletBelief(3, 2), 0)
    >>> record = interact(agent, chain_mdp(3).environment(), 2_000, seed=0)
    >>> float(record.observations["reward"][-99:].mean())  # ρ* = 1/3
    0.333...
    """

    format_name: ClassVar[str] = "DirichletAgent"
    saved_fields = declare(
        Number("episode/previous", "_previous", least=0), Array("episode/tried", "_tried")
    )

    def __init__(self, belief: DirichletBelief, start: Any, schedule: Schedule = tsde) -> None:
        belief.states.place(start)
        super().__init__(belief, start, advance, schedule)
        #: T_{k-1} and n(x,a) at the last draw.
        self._previous = 0
        self._tried = belief.tried.copy()

    def decide(self, x: Any, rng: Stream) -> tuple[SampledMDP, Any]:
        """Draw a model and return it with its action: an episode begins."""
        self._previous, self._tried = self._t - self._drawn_at, self.belief.tried.copy()
        return super().decide(x, rng)

    def _held(self) -> Held[Any]:
        """Return the held model as a schedule sees it, with the numbers that `tsde` needs."""
        held = HeldModel(*super()._held())
        held.previous = self._previous
        held.doubled = bool((self.belief.tried > 2.0 * self._tried).any())
        return held


_KIND: Final = ModelKind(
    "dirichlet-mdp",
    "A Markov decision process with declared states and unknown transitions and rewards, learned "
    "by posterior sampling of models.",
    {
        "states": SettingDoc("list of names, or their number", "All states.", largest=1_000),
        "actions": SettingDoc(
            "list of names, or their number", "The actions of the agent.", largest=1_000
        ),
        "start": SettingDoc("a state", "The first state. Default: the first of the list."),
        "alpha": SettingDoc(
            "number or null",
            "Prior weight of every successor of a state and action. Default: null, 1 divided by "
            "the number of possible successors.",
        ),
        "possible": SettingDoc(
            "states × actions × states true or false, or null",
            "The transitions that are possible. Default: null, all.",
        ),
        "reward_range": SettingDoc(
            "number", "The largest reward minus the smallest if it is known. Default: 0, unknown."
        ),
    },
    example={"states": ["home", "kitchen"], "actions": ["left", "right"]},
    observation={"tuple": [0.5, "kitchen"]},
    feedback='{"tuple": [reward, next state]}',
    limits=(
        SizeLimit(
            "states times states times actions",
            lambda size: size["states"] ** 2 * size["actions"],
            MOST_NUMBERS,
        ),
    ),
    schedules={"tsde": tsde},
)


class DirichletMDP:
    """An MDP with declared states and unknown transitions and rewards; `start` is the first state.

    The agent draws models from the posterior, and follows the policy with the best average reward
    in the drawn model. Neither the scale nor the noise of the rewards need be known.

    `states` and `actions` are names or their number. `alpha` is the prior weight of each successor,
    by default 1 divided by their number. `possible[x, a, y]` says which transitions are possible,
    by default all; a pair without successors is an action that the state does not offer. If you
    know the largest and the smallest reward, give their difference as `reward_range`: then the
    agent also looks for a large reward that is far from a small one.

    >>> problem = DirichletMDP(["home", "away"], ["stay", "go"])
    >>> problem
    DirichletMDP(2 states, 2 actions, start 'home')
    >>> agent = problem.agent()
    >>> agent.observe("go", (1.0, "away"))
    >>> agent
    DirichletAgent(DirichletBelief(2 states, 2 actions after 1 transitions), situation 'away', t=0)
    >>> agent.act(Stream(0)) in ("stay", "go")
    True
    """

    model_kind: ClassVar[ModelKind] = _KIND

    def __init__(
        self,
        states: int | Sequence[Hashable],
        actions: int | Sequence[Hashable],
        start: Any = None,
        *,
        alpha: float | None = None,
        possible: ArrayLike | None = None,
        reward_range: float = 0.0,
    ) -> None:
        self._prior_belief = belief = DirichletBelief(
            states, actions, alpha=alpha, possible=possible, reward_range=reward_range
        )
        self.states, self.actions = list(belief.states), list(belief.actions)
        self.start = self.states[0] if start is None and None not in self.states else start
        belief.states.place(self.start)
        self.alpha = None if alpha is None else float(alpha)
        self.possible = None if possible is None else np.array(possible).tolist()
        self.reward_range = belief.reward_range

    @classmethod
    def on(cls, mdp: MDP, start: Any = None, **settings: Any) -> "DirichletMDP":
        """Return the problem with the states and actions of an MDP, whose tables stay unknown.

        The other settings are those of the class.

        >>> from bayescontrol.mdp import chain_mdp
        >>> DirichletMDP.on(chain_mdp(3), start=2)
        DirichletMDP(3 states, 2 actions, start 2)
        """
        if not mdp.allowed.all():
            offered = np.repeat(mdp.allowed[:, :, None], len(mdp.states), 2)
            settings = {"possible": offered, **settings}
        return cls(list(mdp.states), list(mdp.actions), start, **settings)

    def settings(self) -> dict[str, Any]:
        """Return all constructor arguments as plain values, as logs store them."""
        names = ("states", "actions", "start", "alpha", "possible", "reward_range")
        return {name: getattr(self, name) for name in names}

    def belief(self) -> DirichletBelief:
        """Return the prior belief over models."""
        return self._prior_belief.copy()

    def agent(self, *, schedule: Schedule = tsde, temperature: float = 1.0) -> DirichletAgent:
        """Return the control rule over models in the first state; `schedule` ends its episodes.

        A `temperature` T divides the parameters of the Dirichlet distributions by T, and multiplies
        the variances of the rewards R given the drawn scales by T.
        """
        belief = with_temperature(self.belief(), temperature)
        return DirichletAgent(belief, self.start, schedule)

    def environment(self, mdp: MDP) -> MDPEnvironment:
        """Return the environment with these true transitions and rewards, in the first state."""
        return mdp.environment(self.start)

    def draw(self, seed: SeedLike) -> MDPEnvironment:
        """Draw a world from the prior, with rewards R(x,a,y) ~ N(0, 1) without noise.

        >>> DirichletMDP(3, 2).draw(seed=0)
        MDPEnvironment(MDP(3 states, 2 actions, 18 transitions) in state 0)
        """
        m, belief = self._prior_belief.copy().sample(as_stream(seed)), self._prior_belief
        mdp = MDP(m.P, m.R, states=self.states, actions=self.actions, allowed=belief.allowed)
        return self.environment(mdp)

    def __repr__(self) -> str:
        states, actions = counted(len(self.states), "state"), counted(len(self.actions), "action")
        return f"DirichletMDP({states}, {actions}, start {self.start!r})"
