"""Bandits whose posterior is given by joint draws of the mean rewards of all arms.

    draws[i, j] = m_ij, the mean reward of arm j in draw i        w_i ← w_i P(o | m_ij) for a = j
    P(a = j | âo_<t) ≈ Σ_i w_i [j = arg max_k m_ik]

    P(o | m)      Bernoulli     m^o (1 - m)^(1 - o)         Poisson       m^o e^(-m) / o!
                  exponential   e^(-o/m) / m                geometric     m^o / (1 + m)^(o + 1)
                  Gaussian      N(o; m, σ²), σ known

The draws may come from any model, with correlated arms for example. The mean reward must determine
the distribution of the rewards. A draw with more than one largest mean pulls one of them at random.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, cast

import numpy as np

from bayescontrol._arrays import ArrayLike, FloatArray
from bayescontrol._support import description
from bayescontrol._support.names import Choice, ChoosesAmong, Names
from bayescontrol._support.saved import Fixed, declare
from bayescontrol._support.temperature import with_temperature
from bayescontrol._support.values import distinct_texts, format_text
from bayescontrol.bandits.arms import ArmsEnvironment, MeanRewards
from bayescontrol.bandits.family import Family
from bayescontrol.bandits.roster import Arms
from bayescontrol.beliefs.draws import DrawsBelief
from bayescontrol.beliefs.totals import observe_each
from bayescontrol.errors import InvalidPrior, MissingCapability, counted
from bayescontrol.kernels.families import number
from bayescontrol.protocols import PosteriorMeasure, Probabilities, Summary, Totals
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import StreamLike

# -- ln P(o | m) of the families -------------------------------------------------------------------


def _times_log(r: float, m: FloatArray) -> FloatArray | float:
    """Return r ln m, with 0 ln 0 = 0."""
    return r * np.log(m) if r else 0.0


def _bernoulli(m: FloatArray, r: float, constants: FloatArray) -> FloatArray:
    return np.asarray(np.log(m) if r else np.log1p(-m))


def _poisson(m: FloatArray, r: float, constants: FloatArray) -> FloatArray:
    return _times_log(r, m) - m - math.lgamma(r + 1.0)


def _exponential(m: FloatArray, r: float, constants: FloatArray) -> FloatArray:
    return -np.log(m) - r / m


def _geometric(m: FloatArray, r: float, constants: FloatArray) -> FloatArray:
    return _times_log(r, m) - (r + 1.0) * np.log1p(m)


def _gaussian(m: FloatArray, r: float, constants: FloatArray) -> FloatArray:
    sd = float(constants[0])
    return -0.5 * ((r - m) / sd) ** 2 - math.log(sd) - 0.5 * math.log(2.0 * math.pi)


#: ln P(o | m) for an array of m, from the reward and the constants of the family.
LogDensity: TypeAlias = Callable[[FloatArray, float, FloatArray], FloatArray]


class MeanParameter(NamedTuple):
    """The smallest and largest mean reward of a family, and ln P(o | m)."""

    low: float
    high: float
    log_density: LogDensity


#: The families whose mean reward determines the distribution of the rewards, by their numbers.
_FAMILIES: Final[Mapping[int, MeanParameter]] = {
    number("bernoulli"): MeanParameter(0.0, 1.0, _bernoulli),
    number("gaussian"): MeanParameter(-math.inf, math.inf, _gaussian),
    number("poisson"): MeanParameter(0.0, math.inf, _poisson),
    number("exponential"): MeanParameter(math.ulp(0.0), math.inf, _exponential),
    number("geometric"): MeanParameter(0.0, math.inf, _geometric),
}


class _ArmRewards:
    """The likelihood and the policy of draws of the mean rewards."""

    def __init__(self, family: Family, names: Names) -> None:
        if family.kind not in _FAMILIES:
            raise MissingCapability(
                f"{family!r}: its mean reward does not determine the distribution of its rewards; "
                "give draws of all parameters to a DrawsBelief, with a log_likelihood of your own"
            )
        self.family, self.names, self.of_mean = family, names, _FAMILIES[family.kind]

    def log_likelihood(self, draws: FloatArray, x: object, a: Any, o: Any) -> FloatArray:
        """Return ln P(o | m_ij) of arm j for every draw i."""
        m, r = draws[:, self.names.place(a)], self.family.reward(o)
        with np.errstate(divide="ignore", over="ignore"):  # impossible rewards give -∞
            return self.of_mean.log_density(m, r, self.family.constants)

    def act(self, m: FloatArray, x: object, rng: StreamLike) -> Any:
        """Return the arm with the largest mean reward; ties are broken at random."""
        return MeanRewards(tuple(self.names), m).act(x, rng)

    def act_among(self, choice: Choice, m: FloatArray, x: object, rng: StreamLike) -> Any:
        """Return the eligible arm with the largest mean reward minus price."""
        mode = MeanRewards([self.names[j] for j in choice.places.tolist()], m[choice.places])
        mode.prices = choice.prices
        return mode.act(x, rng)


def weighted_quantiles(values: FloatArray, w: FloatArray, tails: ArrayLike) -> FloatArray:
    """Return for each p of `tails` the smallest value v with Σ w_i [v_i ≤ v] ≥ p.

    >>> weighted_quantiles(np.array([3.0, 1.0, 2.0]), np.array([0.2, 0.3, 0.5]), [0.25, 0.75])
    array([1., 2.])
    """
    order = np.argsort(values)
    places = np.searchsorted(np.cumsum(w[order]), np.asarray(tails))
    return np.asarray(values[order][places.clip(max=len(values) - 1)])


# -- the belief and the problem --------------------------------------------------------------------


class ArmDrawsBelief(ChoosesAmong, DrawsBelief):
    """P(m | âo_<t) over the mean rewards of all arms, by draws of shape (draws, arms).

    `family` is the family of the arms and `arms` their number or names; the other arguments are
    those of `DrawsBelief`.

    >>> from bayescontrol import BernoulliBandit
    >>> belief = BernoulliBandit(["red", "blue"]).agent(draws=[[0.2, 0.6], [0.8, 0.7]]).belief
    >>> belief.observe(None, "red", 1)
    >>> belief.action_probabilities()
    {'red': 0.8, 'blue': 0.2}
    >>> {arm: round(mean, 6) for arm, mean in belief.expected().items()}
    {'red': 0.68, 'blue': 0.68}
    """

    format_name: ClassVar[str] = "ArmDrawsBelief"
    stateless_draws: ClassVar[bool] = True
    context_free: ClassVar[bool] = True
    posterior_measure: ClassVar = PosteriorMeasure("mean reward", "reward")
    saved_fields = declare(
        Fixed("family", lambda belief: format_text(belief._rewards.family)),
        Fixed("arms", lambda belief: list(belief._rewards.names)),
    )

    def __init__(self, family: Family, arms: Arms, draws: ArrayLike, **options: Any) -> None:
        self._rewards = rewards = _ArmRewards(family, Names("arm", arms))
        super().__init__(draws, log_likelihood=rewards.log_likelihood, act=rewards.act, **options)

    def _as_draws(self, draws: Any) -> FloatArray:
        """Return the draws as floats; raise InvalidPrior unless each arm has a mean reward."""
        m = np.asarray(super()._as_draws(draws), np.float64)
        arms, (low, high, _) = list(self._rewards.names), self._rewards.of_mean
        if m.ndim != 2 or m.shape[1] != len(arms):
            raise InvalidPrior(
                f"draws of shape {m.shape} for {counted(len(arms), 'arm')}: expected draws[draw, "
                "arm], the mean reward of every arm in every draw"
            )
        for i, j in np.argwhere((m < low) | (m > high)):
            raise InvalidPrior(
                f"draws[{i}, {j}] is {m[i, j]:g}: the mean reward of arm {arms[j]!r} must be in "
                f"[{low:g}, {high:g}]"
            )
        m.flags.writeable = False
        return m

    def observe_totals(self, x: Any, a: Any, totals: Totals) -> None:
        """Learn rewards of 0 and 1, at most 10,000, one by one. An error changes nothing."""
        if self._rewards.family.kind != number("bernoulli"):
            raise MissingCapability(
                f"draws for {self._rewards.family!r} cannot learn totals: observe the rewards one "
                "by one, observe(x, a, o)"
            )
        observe_each(self, x, a, totals)

    @property
    def labels(self) -> Names:
        """All arms."""
        return self._rewards.names

    def _choose(self, choice: Choice | None) -> None:
        super()._choose(choice)
        self._act = partial(self._rewards.act_among, choice) if choice else self._rewards.act

    def action_probabilities(self, x: Any = None) -> Probabilities:
        """P(a = j | âo_<t) = Σ_i w_i [j = arg max_k m_ik] of every arm; ties share w_i evenly."""
        arms: Sequence[Any] = self.labels
        net = self._draws
        if self._choice is not None:
            places, costs = self._choice
            arms = tuple(arms[j] for j in places.tolist())
            net = np.ascontiguousarray(net[:, places]) - (0.0 if costs is None else costs)
        is_best = net == net.max(1, keepdims=True)
        share = self.posterior() / is_best.sum(1)
        p = np.einsum("i,ij->j", share, is_best)
        return dict(zip(arms, p.tolist(), strict=True))

    def expected(self) -> dict[Any, float]:
        """E[r | âo_<t] = Σ_i w_i m_ij of every arm."""
        return dict(zip(self.labels, self.mean().tolist(), strict=True))

    def mean_intervals(self, tails: FloatArray) -> FloatArray:
        """Return quantiles of every arm's mean reward, shape (arms, tails)."""
        w = self.posterior()
        return np.array([weighted_quantiles(m, w, tails) for m in self._draws.T])

    def posterior_summary(self) -> Summary:
        """Return the mean reward of every arm."""
        texts = distinct_texts(self.labels)
        return {texts[arm]: {"mean": mean} for arm, mean in self.expected().items()}


class DrawsBandit:
    """A bandit with joint draws of the mean rewards of its arms in place of its prior.

    `problem` is a bandit with independent arms, such as `BernoulliBandit`; its prior is not used.
    `draws` have the shape (draws, arms), and `log_weights` are those of `DrawsBelief`. The agent is
    the same as `problem.agent(draws=draws)`; to open a durable agent, pass the `DrawsBandit`.

    >>> from bayescontrol import BernoulliBandit
    >>> bandit = DrawsBandit(BernoulliBandit(["red", "blue"]), [[0.2, 0.6], [0.8, 0.7]])
    >>> bandit.agent().action_probabilities()
    {'red': 0.5, 'blue': 0.5}
    """

    model_kind: ClassVar[description.ModelKind] = description.ModelKind(
        "draws-bandit",
        "A bandit whose posterior is given by joint draws of the mean rewards of its arms.",
        {
            "problem": description.SettingDoc("name of a model", "The kind of the bandit."),
            "settings": description.SettingDoc(
                '{"dict": [["arms", …], …]}', "The settings of that bandit; its prior is not used."
            ),
            "draws": description.SettingDoc(
                "lists of one number for each arm", "The mean rewards of the arms in each draw."
            ),
            "log_weights": description.SettingDoc(
                "list of numbers or null",
                "The logarithm of the first weight of each draw, up to a constant. Default: equal.",
            ),
        },
        example={
            "problem": "bernoulli-bandit",
            "settings": {"dict": [["arms", ["red", "blue"]]]},
            "draws": [[0.2, 0.6], [0.8, 0.7], [0.4, 0.3]],
        },
        observation=1,
        feedback="as for the bandit",
        limits=(
            description.SizeLimit(
                "draws times arms",
                lambda size: size["draws"] * size["settings.arms"],
                description.MOST_NUMBERS,
            ),
        ),
    )

    #: Whether the belief keeps events for `refit`, see `DrawsBelief`.
    keep_events: ClassVar[bool] = True

    def __init__(
        self, problem: Any, draws: ArrayLike, log_weights: ArrayLike | None = None
    ) -> None:
        if not hasattr(problem, "family"):
            raise MissingCapability(
                f"{problem!r} is no bandit with independent arms: use a DrawsBelief with a "
                "log_likelihood of your own"
            )
        self.problem = problem
        #: The logarithms of the first weights; None if they are equal.
        self.log_weights = None if log_weights is None else np.array(log_weights)
        # The belief validates the draws.
        self.draws: FloatArray = ArmDrawsBelief(
            problem.family, problem.labels, draws, log_weights=log_weights
        ).draws

    def belief(self) -> ArmDrawsBelief:
        """Return the belief before any observation."""
        return ArmDrawsBelief(
            self.problem.family, self.problem.labels, self.draws,
            log_weights=self.log_weights, keep_events=self.keep_events,
        )  # fmt: skip

    def agent(
        self, *, schedule: Schedule = every_step, temperature: float = 1.0
    ) -> ControlRule[Any, None, Any, float]:
        """Return the control rule for this bandit; draws have no other `temperature` than 1."""
        return ControlRule(with_temperature(self.belief(), temperature), schedule=schedule)

    def environment(self, truth: ArrayLike | Mapping[Any, Any]) -> ArmsEnvironment:
        """Return a world with these true parameters, as `problem.environment` does."""
        return cast("ArmsEnvironment", self.problem.environment(truth))

    def settings(self) -> dict[str, Any]:
        """Return the kind and the settings of the bandit, the draws and the weights."""
        log_weights = None if self.log_weights is None else self.log_weights.tolist()
        return {
            "problem": description.stored_name(self.problem),
            "settings": self.problem.settings(),
            "draws": self.draws.tolist(),
            "log_weights": log_weights,
        }

    def __repr__(self) -> str:
        return f"DrawsBandit({self.problem!r}, {counted(len(self.draws), 'draw')})"
