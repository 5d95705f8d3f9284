"""Bernoulli arms with a joint prior over all biases: a pull of one arm informs about the others.

    JointBandit          b[m, a] = P(o = 1 | m, a), finitely many hypotheses m
    bias_grid            every combination of a few biases, as a tabular class
    LogitNormalBandit    θ ~ N(μ, Σ),  P(o = 1 | θ, a) = σ(θ_a), a belief made of particles

Mode m pulls arg max_a b[m, a]; mode θ pulls arg max_a θ_a. The posterior of a `JointBandit` is
exact: P(m | âo_≤t) ∝ P(m) Π_t b[m, a_t]^(o_t) (1 - b[m, a_t])^(1 - o_t).
"""

from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from bayescontrol._arrays import ArrayLike, FloatArray, as_integer, as_numbers
from bayescontrol._support.description import MOST_NUMBERS, ModelKind, SettingDoc, SizeLimit
from bayescontrol._support.names import (
    Among,
    Choice,
    ChoosesAmong,
    Names,
    Prices,
    eligible_places,
    prices_of,
)
from bayescontrol._support.temperature import with_temperature
from bayescontrol.bandits.arms import ArmsEnvironment
from bayescontrol.bandits.discrete import BernoulliBandit
from bayescontrol.bandits.draws import weighted_quantiles
from bayescontrol.bandits.family import zero_or_one
from bayescontrol.beliefs.particles import Particle, ParticleBelief
from bayescontrol.beliefs.totals import observe_each
from bayescontrol.errors import InvalidPrior, InvalidTable
from bayescontrol.finite.tabular import Labels, TabularEnvironment, TabularModes
from bayescontrol.protocols import Totals
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import SeedLike, Stream, as_stream


class JointBandit(TabularModes):
    """M joint hypotheses about N Bernoulli arms: `biases[m, a]`, with prior P(m).

    The names of the modes contain a digest of their biases, so that a belief saved for other
    biases is rejected. The prior is saved with the belief.

    `prior` is P(m), uniform by default.

    >>> bandit = JointBandit([[0.9, 0.1], [0.1, 0.9]])        # one arm is good, one is bad
    >>> agent = bandit.agent()
    >>> agent.observe(0, 0)                                   # arm 0 fails, so arm 1 is good
    >>> {a: round(p, 12) for a, p in agent.action_probabilities().items()}
    {0: 0.1, 1: 0.9}
    >>> bandit.expected(agent.belief.posterior()).round(6)
    array([0.18, 0.82])
    """

    fused_loop = staticmethod(TabularModes.fused_loop)
    #: The belief can learn totals, see `FiniteBelief.observe_totals`.
    pays_zero_or_one: ClassVar[bool] = True
    model_kind: ClassVar[ModelKind] = ModelKind(
        "joint-bandit",
        "Arms 0, 1, … that pay 0 or 1, under one of M joint hypotheses.",
        {
            "biases": SettingDoc(
                "M lists of one number for each arm",
                "biases[m][a]: the probability that arm a pays 1 if hypothesis m is true.",
            ),
            "prior": SettingDoc("list of M probabilities", "P(m). Default: uniform."),
        },
        example={"biases": [[0.9, 0.1], [0.1, 0.9]], "prior": [0.5, 0.5]},
        observation=1,
        feedback="0 or 1",
        outcomes=lambda _: 2,
    )

    def __init__(self, biases: ArrayLike, prior: ArrayLike | None = None) -> None:
        b = as_numbers(biases, "biases", InvalidTable) + 0.0  # turns -0.0 into 0.0 for the digest
        if b.ndim != 2 or not b.size:
            raise InvalidTable(f"biases of shape {b.shape}: expected biases[hypothesis, arm]")
        bad = np.argwhere(~((b >= 0.0) & (b <= 1.0)))
        if bad.size:
            m, a = bad[0]
            raise InvalidTable(f"biases[{m}, {a}] is {b[m, a]:g}: expected a bias in [0, 1]")
        #: b[m, a] = P(o = 1 | m, a).
        self.biases: FloatArray = b
        self._labels = Names("arm", b.shape[1])
        policy = np.zeros(b.shape)
        policy[np.arange(len(b)), b.argmax(1)] = 1.0
        names = [f"m{m}#{sha256(row.tobytes()).hexdigest()[:8]}" for m, row in enumerate(b)]
        hypothesis = np.stack([1.0 - b, b], -1)[:, None]
        super().__init__(policy[:, None, :], hypothesis, names=names, prior=prior)

    def _cell(self, table: npt.NDArray[Any], x: int, a: Any, o: Any) -> Any:
        """Return table[x, a, o]; raise UnknownArm or BadEvidence if a or o is invalid."""
        return super()._cell(table, x, self._labels.place(a), int(zero_or_one(o)))

    def observation_probabilities(self, x: int, a: int) -> dict[int, FloatArray]:
        """P(o | m, a) for all m, by observation."""
        return super().observation_probabilities(x, self._labels.place(a))

    def choosing_among(self, among: Among = None, prices: Prices = None) -> Self:
        """Return the same hypotheses; mode m pulls the eligible arm with the largest b - price."""
        places = eligible_places(self._labels, np.arange(len(self._labels)), among)
        costs = prices_of(self._labels, places, prices)
        net = self.biases[:, places] - (0.0 if costs is None else costs)
        return self._with_policies(places, np.eye(len(places))[net.argmax(1)][:, None])

    def environment(self, m: int | ArrayLike) -> TabularEnvironment:
        """The world of hypothesis m, or a world with the given biases.

        >>> bandit = JointBandit([[0.9, 0.1], [0.1, 0.9]])
        >>> bandit.environment(1)
        TabularEnvironment(mode 1 of JointBandit(2 hypotheses about 2 arms), situation 0)
        >>> bandit.environment([0.4, 0.6])
        TabularEnvironment(mode 0 of JointBandit(1 hypotheses about 2 arms), situation 0)
        """
        if isinstance(m, int | np.integer):
            return super().environment(int(m))
        biases = np.atleast_1d(as_numbers(m, "biases", InvalidTable))
        if biases.shape != self.biases.shape[1:]:
            arms = self.biases.shape[1]
            raise InvalidTable(f"biases of shape {biases.shape} for {arms} arms: give one per arm")
        return TabularEnvironment(JointBandit([biases]), 0)

    def expected(self, v: FloatArray) -> FloatArray:
        """E[o | a] for every arm, if the hypotheses have probabilities v."""
        return np.asarray(v @ self.biases)

    def settings(self) -> dict[str, Any]:
        """Return b[m, a] and P(m) as plain values, as logs store them."""
        return {"biases": self.biases.tolist(), "prior": self.prior.tolist()}

    def __repr__(self) -> str:
        modes, arms = self.biases.shape
        return f"JointBandit({modes} hypotheses about {arms} arms)"


#: The largest number of modes of `bias_grid`.
MOST_MODES = 10_000


def bias_grid(arms: int = 2, levels: Sequence[float] = (0.2, 0.5, 0.8)) -> TabularModes:
    """Every combination of biases from `levels`; each mode pulls its best arm, ties at random.

    The last arm varies fastest; the name of a mode lists its biases. Pulling the best arm of m*
    gives no evidence about the other arms. A mode that agrees with m* on this arm but prefers
    another arm is therefore in the core of m*. The rewards of the arm that this mode prefers
    refute it, so the class converges all the same.

    >>> modes = bias_grid()
    >>> modes
    TabularModes(9 modes, 1 situation, 2 actions, 2 observations)
    >>> modes.name(2), modes[2].likelihood(0, a=1, o=1), modes[2].action_probabilities(0)
    ('(.2, .8)', 0.8, {1: 1.0})
    >>> modes[4].action_probabilities(0)  # (.5, .5)
    {0: 0.5, 1: 0.5}
    """
    as_integer("arms", arms, 1, InvalidTable)
    values = [float(level) for level in levels]
    if not values or len(set(values)) < len(values) or not all(0.0 <= v <= 1.0 for v in values):
        raise InvalidTable(
            f"bias_grid(levels={levels}): give one or more different probabilities, each only once"
        )
    if len(values) ** arms > MOST_MODES:
        raise InvalidTable(
            f"bias_grid with {len(values)} levels for each of {arms} arms has "
            f"{len(values)}^{arms} modes, the limit is {MOST_MODES}: use fewer arms or levels"
        )
    theta = np.array(list(product(values, repeat=arms)))
    best = theta == theta.max(1, keepdims=True)
    return TabularModes(
        (best / best.sum(1, keepdims=True))[:, None],
        np.stack([1.0 - theta, theta], -1)[:, None],
        names=[f"({', '.join(map(_format_bias, biases))})" for biases in theta.tolist()],
        labels=Labels(("always",), tuple(f"arm {k}" for k in range(arms)), ("0", "1")),
    )


def _format_bias(bias: float) -> str:
    """Format 0.2 as ".2", 0 as "0" and 1 as "1"."""
    return f"{bias:g}".removeprefix("0") or "0"


def _pull_best(theta: FloatArray, x: object, rng: Stream) -> int:
    """The policy of mode θ: pull arg max_a θ_a."""
    return int(theta.argmax())


def _pull_best_of(choice: Choice, theta: FloatArray, x: object, rng: Stream) -> int:
    """The policy of mode θ in a block of `choosing`: pull arg max_a σ(θ_a) - price_a."""
    places, costs = choice
    net = theta[places] if costs is None else 1.0 / (1.0 + np.exp(-theta[places])) - costs
    return int(places[net.argmax()])


class LogitNormalBelief(ChoosesAmong, ParticleBelief):
    """P(θ | âo_<t) over the log-odds of all arms, by particles.

    >>> belief = LogitNormalBandit([0.0, 1.0], np.eye(2), particles=100).belief()
    >>> with belief.choosing(among=[0]):
    ...     belief.sample(Stream(0)).act(None, Stream(1))
    0
    """

    format_name: ClassVar[str] = "LogitNormalBelief"

    @property
    def labels(self) -> Names:
        """The arms."""
        return Names("arm", self._theta.shape[1])

    def observe_totals(self, x: Any, a: Any, totals: Totals) -> None:
        """Learn rewards of 0 and 1, at most 10,000, one by one. An error changes nothing."""
        observe_each(self, x, a, totals)

    def _choose(self, choice: Choice | None) -> None:
        super()._choose(choice)
        self._act = partial(_pull_best_of, choice) if choice else _pull_best


def _arm_rewards(belief: ParticleBelief) -> dict[str, dict[str, float]]:
    """Return the mean and the central 95 % interval of σ(θ_a) over the particles, for every arm."""
    w, rewards = belief.posterior(), {}
    for a, t in enumerate(belief.theta.T):
        bias = 1.0 / (1.0 + np.exp(-t))
        low, high = weighted_quantiles(bias, w, (0.025, 0.975)).tolist()
        rewards[str(a)] = {"mean": float(w @ bias), "low": low, "high": high}
    return rewards


class LogitNormalBandit:
    """N arms 0 … N-1 with log-odds N(mean, covariance); the belief has `particles` particles.

    `mean` has one entry per arm, and `covariance` is their N × N matrix.

    >>> bandit = LogitNormalBandit([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]], particles=2000)
    >>> agent = bandit.agent()
    >>> for _ in range(5):
    ...     agent.observe(0, 1)
    >>> bool(agent.belief.mean()[1] > 0.5)                    # arm 1 was never pulled
    True
    """

    model_kind: ClassVar[ModelKind] = ModelKind(
        "logit-normal-bandit",
        "Correlated arms 0 … N-1 that pay 0 or 1: their log-odds are jointly Gaussian.",
        {
            "mean": SettingDoc("list of N numbers", "The mean log-odds of each arm."),
            "covariance": SettingDoc(
                "N × N matrix", "Covariance of the log-odds; symmetric and positive definite."
            ),
            "particles": SettingDoc(
                "whole number", "Number of particles in the belief. Default: 1000.", largest=10_000
            ),
        },
        example={"mean": [0.0, 0.0], "covariance": [[1.0, 0.9], [0.9, 1.0]]},
        observation=1,
        feedback="0 or 1",
        context_free=True,
        arm_rewards=_arm_rewards,
        limits=(
            SizeLimit(
                "particles times arms", lambda size: size["particles"] * size["mean"], MOST_NUMBERS
            ),
        ),
    )

    def __init__(self, mean: ArrayLike, covariance: ArrayLike, particles: int = 1000) -> None:
        mu = as_numbers(mean, f"mean {mean!r}", InvalidPrior)
        Sigma = as_numbers(covariance, f"covariance {covariance!r}", InvalidPrior)
        if mu.ndim != 1 or not mu.size or Sigma.shape != (mu.size, mu.size):
            raise InvalidPrior(
                f"mean of shape {mu.shape} and covariance of shape {Sigma.shape}: expected shapes "
                "(N,) and (N, N)"
            )
        finite = np.isfinite(mu).all() and np.isfinite(Sigma).all()
        if not finite or not np.array_equal(Sigma, Sigma.T):
            raise InvalidPrior(f"{mean=}, {covariance=}: must be finite, the covariance symmetric")
        try:
            self._C: FloatArray = np.asarray(np.linalg.cholesky(Sigma), np.float64)
        except np.linalg.LinAlgError:
            raise InvalidPrior(f"covariance={covariance!r} is not positive definite") from None
        self.mean, self.covariance, self.particles = mu, Sigma, particles
        self._labels = Names("arm", mu.size)

    def _draw(self, n: int, rng: Stream) -> FloatArray:
        """Draw n rows θ ~ N(mean, covariance)."""
        return np.asarray(self.mean + rng.normal(size=(n, self.mean.size)) @ self._C.T)

    def _log_likelihoods(self, theta: FloatArray, x: object, a: Any, o: Any) -> FloatArray:
        """Return ln σ(θ_a) if o is 1, or ln σ(-θ_a) if o is 0, for every row of `theta`."""
        t, r = theta[:, self._labels.place(a)], zero_or_one(o)
        return np.asarray(-np.logaddexp(0.0, -t if r else t))

    def belief(self, seed: SeedLike = 0) -> "LogitNormalBelief":
        """Return the prior belief, with particles drawn with `seed`."""
        return LogitNormalBelief(
            self._draw, self._log_likelihoods, _pull_best, self.particles, seed=as_stream(seed)
        )

    def agent(
        self, seed: SeedLike = 0, *, schedule: Schedule = every_step, temperature: float = 1.0
    ) -> ControlRule[Particle, None, int, float]:
        """Return the control rule for this bandit, with particles drawn with `seed`.

        Stored agents have the default seed. Particles have no other `temperature` than 1.
        """
        return ControlRule(with_temperature(self.belief(seed), temperature), schedule=schedule)

    def environment(self, biases: ArrayLike) -> ArmsEnvironment:
        """A world with these true biases."""
        return BernoulliBandit(self.mean.size).environment(biases)

    def draw(self, seed: SeedLike) -> ArmsEnvironment:
        """A world drawn from the prior."""
        theta = self._draw(1, as_stream(seed))[0]
        return self.environment(1.0 / (1.0 + np.exp(-theta)))

    def settings(self) -> dict[str, Any]:
        """Return μ, Σ and the number of particles as plain values, as logs store them."""
        mean, covariance = self.mean.tolist(), self.covariance.tolist()
        return {"mean": mean, "covariance": covariance, "particles": self.particles}

    def __repr__(self) -> str:
        return f"LogitNormalBandit({self.mean.size} arms, {self.particles} particles)"
