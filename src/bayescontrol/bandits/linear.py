"""Linear contextual bandits: Gaussian rewards whose mean is linear in the context.

    r = x·w_a + σ z        w_a ~ N(μ₀, Λ₀⁻¹), independent arms
    Λ_a = Λ₀ + Σ x xᵀ / σ²        Λ_a μ_a = Λ₀ μ₀ + Σ r x / σ²

The sums run over the pulls of arm a: evidence adds up, whatever its order.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from bayescontrol import kernels
from bayescontrol.arrays import FloatArray
from bayescontrol.bandits.contextual import ContextualBandit
from bayescontrol.bandits.family import number
from bayescontrol.bandits.regression import LIMIT, SETTINGS, Prior
from bayescontrol.errors import InvalidPrior
from bayescontrol.problems.description import ModelKind, SettingDoc

_KIND: Final = ModelKind(
    "linear-bandit",
    "Arms that pay x·w_a and Gaussian noise in situation x.",
    {
        "arms": SETTINGS["arms"],
        "features": SETTINGS["features"],
        "sd": SettingDoc("number", "Standard deviation σ of the noise. Default: 1."),
        "prior": SETTINGS["prior"],
    },
    example={"arms": ["red", "blue"], "features": 2, "sd": 0.5},
    observation=0.3,
    feedback="a number",
    situation=[1.0, 0.2],
    limits=(LIMIT,),
)


class GaussianNoise:
    """r = score + σ z: the reward is the score, with noise of known standard deviation.

    >>> GaussianNoise(2.0).expected(1.5, 0.1)
    1.5
    """

    model_kind: ClassVar[ModelKind] = _KIND
    additive: Final = True

    def __init__(self, sd: float = 1.0) -> None:
        given: Any = sd
        try:
            value = 0.0 if isinstance(given, str | bytes) else float(given)  # float would read text
        except (TypeError, ValueError):
            value = 0.0
        if not 1e-25 <= value <= 1e25:
            raise InvalidPrior(f"sd={sd!r}: the noise has a positive, finite standard deviation")
        self.sd = value
        self.constants: Final = np.array([self.sd])

    @property
    def kind(self) -> int:
        """Its number in `kernels.regression`."""
        return kernels.regression.GAUSSIAN

    def settings(self) -> dict[str, Any]:
        """σ."""
        return {"sd": self.sd}

    def reward(self, o: Any) -> float:
        """Any finite number."""
        return number(o, "a finite number")

    def mean(self, score: FloatArray) -> FloatArray:
        """The score."""
        return score

    def expected(self, s: float, q: float) -> float:
        """s."""
        return s

    def log_predictive(self, s: float, q: float, r: float) -> float:
        """ln N(r; s, q + σ²).

        >>> round(GaussianNoise().log_predictive(0.0, 0.0, 0.0), 6)
        -0.918939
        """
        variance = q + self.sd * self.sd
        return -0.5 * ((r - s) ** 2 / variance + math.log(2.0 * math.pi * variance))

    def format_text(self) -> str:
        """Return the text of the link in stored data, which is part of the format."""
        return f"GaussianNoise(sd={self.sd:g})"

    def __repr__(self) -> str:
        return f"GaussianNoise(sd={self.sd:g})"


class LinearBandit(ContextualBandit):
    """N arms that pay x·w_a and Gaussian noise; `features` is the length d of a context x.

    `prior` is (mean, precision) of the weights: numbers, a vector and a matrix, or one of them
    for each arm; (0, 1) by default.

    >>> bandit = LinearBandit(["red", "blue"], features=2, sd=0.5)
    >>> agent = bandit.agent()
    >>> from bayescontrol import Stream, interact
    >>> _, a = agent.decide([1.0, 0.3], Stream(0))      # now
    >>> agent.learn([1.0, 0.3], a, 0.7)                 # when the reward is known
    >>> world = bandit.environment([[1, 0], [0, 1]])
    >>> record = interact(bandit.agent(start=world.start), world, 500)
    >>> regret = world.regret(record)                   # cumulative
    >>> bool((regret[499] - regret[249]) / 250 < 0.1)
    True
    """

    model_kind: ClassVar[ModelKind] = _KIND

    def __init__(
        self,
        arms: int | Sequence[Hashable],
        features: int,
        sd: float = 1.0,
        prior: Prior = None,
    ) -> None:
        super().__init__(GaussianNoise(sd), arms, features, prior)
