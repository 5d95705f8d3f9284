"""A contextual bandit: arms with weights of their own, under one link and one prior.

    agent          P(a_t | âo_<t) = P(x_t·w_a is the largest score | âo_<t)
    environment    r ~ P(r | x_t·w_a), then x_{t+1}

The same face for every link.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from bayescontrol.bandits.contexts import as_context, next_context
from bayescontrol.bandits.linear_belief import LinearBelief
from bayescontrol.bandits.linear_weights import LinearWeights
from bayescontrol.bandits.linear_world import Contexts, LinearEnvironment
from bayescontrol.bandits.link import Link
from bayescontrol.bandits.regression import Prior, Regressions
from bayescontrol.errors import InvalidTable
from bayescontrol.problems.names import Names
from bayescontrol.rule import ControlRule
from bayescontrol.schedules import Schedule, every_step
from bayescontrol.seeding import Stream, as_stream


class ContextualBandit:
    """Arms with independent weights. `LinearBandit` and `LogisticBandit` are these.

    >>> from bayescontrol.bandits.linear import GaussianNoise
    >>> ContextualBandit(GaussianNoise(0.5), ["red", "blue"], 3)
    ContextualBandit(GaussianNoise(sd=0.5), 2 arms of 3 features)
    """

    model_part: ClassVar[str] = "link"
    not_stored_because: ClassVar[str] = "its link is code of your own"

    def __init__(
        self, link: Link, arms: int | Sequence[Hashable], features: int, prior: Prior = None
    ) -> None:
        self.link, self.labels, self.prior = link, Names("arm", arms), prior
        self._fits = Regressions(len(self.labels), features, prior)
        self.features = self._fits.features

    def belief(self) -> LinearBelief:
        """The prior belief."""
        return LinearBelief(self.link, list(self.labels), self.features, self.prior)

    def agent(
        self, start: npt.ArrayLike | None = None, *, schedule: Schedule = every_step
    ) -> ControlRule[LinearWeights, Any, Any, Any]:
        """The control rule over this bandit, in the context `start`.

        Without one use `decide(x, rng)` and `learn(x, a, o)`: `act` and `observe` would not know
        the context, and raise. In a simulated world it is `world.start`.

        >>> from bayescontrol import LinearBandit
        >>> LinearBandit(["short", "long"], features=2).agent().observe("short", 5.0)
        Traceback (most recent call last):
        bayescontrol.bandits.contexts.NoContext: no context yet: use decide(x, rng) ...
        """
        x = None if start is None else as_context(start, self.features).copy()
        return ControlRule(self.belief(), x, next_context, schedule)

    def environment(
        self,
        weights: npt.ArrayLike,
        contexts: Contexts = "normal",
        start: npt.ArrayLike | None = None,
    ) -> LinearEnvironment:
        """The world with these true weights, one row an arm."""
        world = LinearEnvironment(self.link, self.labels, weights, contexts, start)
        if world.truth.shape[1] != self.features:
            raise InvalidTable(
                f"weights of {world.truth.shape[1]} features, the bandit has {self.features}"
            )
        return world

    def draw(
        self,
        rng: "int | Stream | np.random.Generator | None",
        contexts: Contexts = "normal",
        start: npt.ArrayLike | None = None,
    ) -> LinearEnvironment:
        """A world drawn from the prior."""
        stream, weights = as_stream(rng), np.empty((len(self.labels), self.features))
        for j, w in enumerate(weights):
            self._fits.draw(j, stream.state, w)
        return self.environment(weights, contexts, start)

    def settings(self) -> dict[str, Any]:
        """Return the arms, the length of a context, the prior and the link's settings.

        >>> from bayescontrol import LogisticBandit
        >>> LogisticBandit(["red"], features=3).settings()
        {'arms': ['red'], 'features': 3, 'prior': [0.0, 1.0]}
        """
        prior = [np.asarray(part, np.float64).tolist() for part in self.prior or (0.0, 1.0)]
        return {
            "arms": list(self.labels), "features": self.features, "prior": prior,
            **self.link.settings(),
        }  # fmt: skip

    def __repr__(self) -> str:
        shown = f"{len(self.labels)} arms of {self.features} features"
        return f"{type(self).__name__}({self.link!r}, {shown})"
