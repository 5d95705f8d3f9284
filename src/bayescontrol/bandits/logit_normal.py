"""Correlated Bernoulli arms: their log-odds are jointly Gaussian.

    θ ~ N(μ, Σ)        P(o = 1 | θ, a) = σ(θ_a)        the mode pulls arg max_a θ_a

There is no conjugate form: the belief is made of particles. Through Σ a pull of one arm tells
about its kin.
"""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from bayescontrol.arrays import FloatArray
from bayescontrol.bandits.bandit import ArmsEnvironment
from bayescontrol.bandits.bernoulli import BernoulliBandit
from bayescontrol.bandits.family import number
from bayescontrol.beliefs.particles import Particle, ParticleBelief
from bayescontrol.errors import BadEvidence, InvalidPrior
from bayescontrol.problems.description import MOST_NUMBERS, ModelKind, SettingDoc, SizeLimit
from bayescontrol.problems.names import Names
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import Stream, as_stream


def _best(theta: FloatArray, x: object, rng: Stream) -> int:
    return int(theta.argmax())


def _arm_rewards(belief: ParticleBelief) -> dict[str, dict[str, float]]:
    """E[σ(θ_a)] and its central 95 % interval over the particles, for every arm."""
    w, rewards = belief.posterior(), {}
    for a, t in enumerate(belief.theta.T):
        order = np.argsort(t)
        bias = 1.0 / (1.0 + np.exp(-t[order]))
        below = np.cumsum(w[order])
        low, high = bias[np.searchsorted(below, (0.025, 0.975)).clip(max=len(t) - 1)]
        mean = float(w[order] @ bias)
        rewards[str(a)] = {"mean": mean, "low": float(low), "high": float(high)}
    return rewards


class LogitNormalBandit:
    """N arms 0 … N-1 with log-odds N(mean, covariance); `particles` of them make a belief.

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
        versions={1: {"rng": 0}},
        context_free=True,
        arm_rewards=_arm_rewards,
        limits=(
            SizeLimit(
                "particles times arms", lambda size: size["particles"] * size["mean"], MOST_NUMBERS
            ),
        ),
    )

    def __init__(
        self, mean: npt.ArrayLike, covariance: npt.ArrayLike, particles: int = 1000
    ) -> None:
        try:
            mu, Sigma = np.array(mean, np.float64), np.array(covariance, np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidPrior(
                f"mean {mean!r}: give the mean log-odds of every arm, a vector of numbers, and "
                f"their covariance, a matrix ({error})"
            ) from None
        if mu.ndim != 1 or not mu.size or Sigma.shape != (mu.size, mu.size):
            raise InvalidPrior(f"mean of shape {mu.shape}, covariance of shape {Sigma.shape}")
        finite = np.isfinite(mu).all() and np.isfinite(Sigma).all()
        if not finite or not np.array_equal(Sigma, Sigma.T):
            raise InvalidPrior("mean and covariance must be finite, the covariance symmetric")
        try:
            self._C: FloatArray = np.asarray(np.linalg.cholesky(Sigma), np.float64)
        except np.linalg.LinAlgError:
            raise InvalidPrior("the covariance is not positive definite") from None
        self.mean, self.covariance, self.particles = mu, Sigma, particles
        self._labels = Names("arm", mu.size)

    def _draw(self, n: int, rng: Stream) -> FloatArray:
        return np.asarray(self.mean + rng.normal(size=(n, self.mean.size)) @ self._C.T)

    def _log_likelihoods(self, theta: FloatArray, x: object, a: Any, o: Any) -> FloatArray:
        t, r = theta[:, self._labels.place(a)], number(o, "0 or 1")
        if r not in (0.0, 1.0):
            raise BadEvidence(f"reward {o!r}: a Bernoulli arm pays 0 or 1")
        return np.asarray(-np.logaddexp(0.0, -t if r else t))

    def belief(self, rng: int | Stream = 0) -> ParticleBelief:
        """The prior belief; `rng` draws its particles."""
        return ParticleBelief(self._draw, self._log_likelihoods, _best, self.particles, rng=rng)

    def agent(
        self, rng: int | Stream = 0, *, schedule: Schedule = every_step
    ) -> ControlRule[Particle, None, int, float]:
        """The control rule over this bandit."""
        return ControlRule(self.belief(rng), schedule=schedule)

    def environment(self, biases: npt.ArrayLike) -> ArmsEnvironment:
        """The world with these true biases."""
        return BernoulliBandit(self.mean.size).environment(biases)

    def draw(self, rng: "int | Stream | np.random.Generator | None") -> ArmsEnvironment:
        """A world drawn from the prior.

        >>> LogitNormalBandit([0.0, 0.0], [[1.0, 0.9], [0.9, 1.0]]).draw(0).means.shape
        (2,)
        """
        theta = self._draw(1, as_stream(rng))[0]
        return self.environment(1.0 / (1.0 + np.exp(-theta)))

    def settings(self) -> dict[str, Any]:
        """Return μ, Σ and the number of particles as plain values, as logs store them."""
        mean, covariance = self.mean.tolist(), self.covariance.tolist()
        return {"mean": mean, "covariance": covariance, "particles": self.particles}

    def __repr__(self) -> str:
        return f"LogitNormalBandit({self.mean.size} arms, {self.particles} particles)"
