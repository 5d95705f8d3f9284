"""A bandit problem: arms of one family, their belief, simulated worlds, and a bound on regret.

    agent          P(a_t | âo_<t) = P(m_a is the largest mean reward | âo_<t)
    environment    o ~ P(o | m*, a)
    regret         lim inf_t  regret_t / ln t  ≥  Σ_{j: μ_j < μ*}  (μ* - μ_j) / KL(j ‖ *)

The bound holds for every consistent agent (Lai & Robbins 1985). KL(j ‖ *) is the divergence of the
rewards of the best arm from those of arm j.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

import numpy as np

from bayescontrol import kernels
from bayescontrol._arrays import ArrayLike
from bayescontrol._support.names import Names
from bayescontrol._support.temperature import with_temperature
from bayescontrol.bandits.arms import ArmsBelief, ArmsEnvironment, MeanRewards
from bayescontrol.bandits.changing_learned import Given, changing_problem
from bayescontrol.bandits.draws import DrawsBandit
from bayescontrol.bandits.family import Family, FamilyKind
from bayescontrol.bandits.learned import Learned, LearnedArmsBelief
from bayescontrol.bandits.pooled import Pooled
from bayescontrol.bandits.roster import Arms
from bayescontrol.beliefs.changing_problem import Changing
from bayescontrol.errors import InvalidTable, MissingCapability, UnknownArm
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import SeedLike, as_stream


class Bandit:
    """Independent arms of one family; the base of `BernoulliBandit` and similar classes.

    >>> from bayescontrol.bandits.discrete import Bernoulli
    >>> bandit = Bandit(Bernoulli(), 3, prior=(2, 2))
    >>> bandit
    Bandit(Bernoulli(), 3 arms)
    >>> bandit.draw(0).means().shape
    (3,)
    """

    #: The description of the family, if the class stands for one.
    model_kind: ClassVar[FamilyKind]
    model_part: ClassVar[str] = "family"
    not_stored_because: ClassVar[str] = "its family is code of your own"

    def __init__(self, family: Family, arms: Arms, prior: ArrayLike | None = None) -> None:
        self.family = family
        self.labels = Names("arm", arms)
        self.prior = family.prior(prior, len(self.labels))
        #: The prior as the user gave it; None for the default of the family.
        self.stated = None if prior is None else np.array(prior)
        self._prior_beliefs: dict[bool, ArmsBelief] = {}

    def belief(self, *, screening: bool = True) -> ArmsBelief:
        """Return a copy of the prior belief; see `ArmsBelief` for `screening`."""
        if screening not in self._prior_beliefs:  # building a belief is slower than a short run
            belief: Any = LearnedArmsBelief if isinstance(self.family, Learned) else ArmsBelief
            self._prior_beliefs[screening] = belief(
                self.family, list(self.labels), self.stated, screening=screening
            )
        return self._prior_beliefs[screening].copy()

    def agent(
        self,
        *,
        schedule: Schedule = every_step,
        screening: bool = True,
        draws: ArrayLike | None = None,
        temperature: float = 1.0,
    ) -> ControlRule[MeanRewards, None, Any, float]:
        """Return an agent that acts by Thompson sampling: the control rule for this bandit.

        `ArmsBelief` explains `screening`. With `draws` of shape (draws, arms), joint draws of the
        mean rewards from a posterior of your own replace the prior, see `DrawsBandit`. A
        `temperature` below 1 makes the agent explore less, one above 1 more.

        >>> from bayescontrol import BernoulliBandit
        >>> agent = BernoulliBandit(["red", "blue"]).agent(temperature=0.25)
        >>> agent.observe("red", 1)
        >>> round(agent.action_probabilities()["red"], 3)  # 0.667 at temperature 1
        0.78
        """
        if draws is not None:
            return DrawsBandit(self, draws).agent(schedule=schedule, temperature=temperature)
        belief = with_temperature(self.belief(screening=screening), temperature)
        return ControlRule(belief, schedule=schedule)

    def changing(self, *, per_arm: bool = False, **options: Any) -> Changing:
        """Return the same problem for a world that changes; see `ChangePointBelief` for options.

        All arms change together, or each arm at its own times with `per_arm`. A learned scale or
        prior survives the changes, see `LearnedChangingBelief`.

        >>> from bayescontrol import BernoulliBandit, interact, metrics
        >>> bandit = BernoulliBandit(["red", "blue"])
        >>> world = bandit.changing().environment([0.8, 0.2], changes={500: [0.2, 0.8]})
        >>> record = interact(bandit.changing().agent(), world, 1000, seed=0)
        >>> bool(metrics.regret(record, world)[-1] < 50)
        True
        """
        return changing_problem(self, per_arm, options)

    # -- for `LearnedChangingBelief` -------------------------------------------------------------

    @property
    def learns_scale(self) -> bool:
        """Whether the prior is learned."""
        return isinstance(self.family, Learned)

    def given_each(self, location: float) -> list[Given]:
        """Return the values of the hyperparameters, around a location of rewards in units."""
        return cast("Learned", self.family).given_each(location)

    def find_unit(self, rewards: Sequence[float]) -> tuple[float, float] | None:
        """Return the location and the unit of these rewards; None if they do not tell it."""
        return cast("Learned", self.family).find_unit(rewards)

    def belief_given(self, given: Given, arms: Arms) -> ArmsBelief:
        """Return a static belief about these arms with fixed hyperparameters."""
        return ArmsBelief(given.family, arms, given.prior, screening=False)

    def pooled(self) -> Pooled:
        """Return the same arms in segments, such as countries, which learn from each other.

        The situation is the segment. Arms of a new segment start from what all segments have
        taught.

        >>> from bayescontrol import BernoulliBandit
        >>> BernoulliBandit(2).pooled()
        BernoulliBandit(Bernoulli(), 2 arms).pooled()
        """
        if self.stated is not None or not hasattr(self.family, "for_segments"):
            raise MissingCapability(
                f"{self!r} cannot be pooled: use BernoulliBandit(arms), PoissonBandit(arms) or "
                "GaussianBandit(arms) without a prior, which the segments teach"
            )
        return Pooled(self, self.family.for_segments())

    def environment(self, truth: ArrayLike | Mapping[Any, Any]) -> ArmsEnvironment:
        """Return a world with these true parameters: for Bernoulli arms, the biases.

        They are listed in the order of the arms, or in a dictionary by the names of the arms.
        """
        if isinstance(truth, Mapping):
            if set(truth) != set(self.labels):
                raise UnknownArm(
                    f"the true parameters are for the arms {list(truth)}: give one for each of "
                    f"{list(self.labels)}"
                )
            truth = [truth[arm] for arm in self.labels]
        return ArmsEnvironment(self.family, self.labels, self.family.truth(truth, len(self.labels)))

    def draw(self, seed: SeedLike) -> ArmsEnvironment:
        """A world drawn from the prior."""
        truth = self.family.draw_truth(self.prior, as_stream(seed))
        return ArmsEnvironment(self.family, self.labels, truth)

    def settings(self) -> dict[str, Any]:
        """Return the arms, a prior row for each and the family's settings, as logs store them.

        >>> from bayescontrol import PoissonBandit
        >>> PoissonBandit(2).settings()
        {'arms': [0, 1], 'prior': [[1.0, 1.0], [1.0, 1.0]]}
        """
        prior = self.family.default if self.stated is None else self.stated
        rows = np.broadcast_to(np.asarray(prior, np.float64), self.prior.shape)
        return {"arms": list(self.labels), "prior": rows.tolist(), **self.family.settings()}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.family!r}, {len(self.labels)} arms)"


def lai_robbins(means: ArrayLike) -> float:
    """Return Σ_j Δ_j / KL(j ‖ *) of Bernoulli arms, with Δ_j = μ* - μ_j.

    The sum is over the arms below the best mean μ*. It is 0 for μ* = 1, where KL is infinite.

        KL(j ‖ *) = μ_j ln μ_j/μ* + (1 - μ_j) ln (1 - μ_j)/(1 - μ*)

    >>> round(lai_robbins([0.5] + 9 * [0.4]), 3)
    44.697
    """
    mu = np.asarray(means, np.float64)
    if mu.ndim != 1 or mu.size == 0 or not ((mu >= 0.0) & (mu <= 1.0)).all():
        raise InvalidTable(f"means {means!r}: give one number in [0, 1] per arm")
    best = float(mu.max())
    if best == 1.0:
        return 0.0
    KL = kernels.beta_distribution.divergence
    worse = mu[mu < best].tolist()
    return sum(((best - m) / KL(m, 1.0 - m, best, 1.0 - best) for m in worse), 0.0)
