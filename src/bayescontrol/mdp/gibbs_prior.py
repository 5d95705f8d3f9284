"""What the MDP agent holds before it has seen anything.

ξ(x,a,y) ~ N(μ0, 1/λ0)        r | ξ ~ N(ξ, 1/p)                         p known
ξ(x,a,y) ~ N(μ0, 1/(λ0 p))    r | ξ ~ N(ξ, 1/p)    p ~ Gamma(a0, b0)    p unknown
"""

from dataclasses import dataclass, fields

import numpy as np

from bayescontrol.errors import InvalidPrior

#: Rewards and hyperparameters beyond this are refused: their squares would leave the doubles.
LARGEST = 1e100


@dataclass(frozen=True)
class GibbsPrior:
    """ξ(x,a,y) ~ N(μ0, 1/λ0), noise of precision p.

    `precision=None`: p is unknown, ξ(x,a,y) ~ N(μ0, 1/(λ0 p)) and p ~ Gamma(shape, rate), and the
    chain draws it too. How widely Q is sampled, so how long the agent explores, goes with 1/√p:
    choose p so that 1/√p is about the spread of M(y) among the successors of a state, or let the
    chain find it.

    >>> GibbsPrior(precision=100)
    GibbsPrior(mu0=1.0, lambda0=1.0, precision=100.0, shape=1.0, rate=1.0)
    >>> GibbsPrior(lambda0=0)
    Traceback (most recent call last):
    bayescontrol.errors.InvalidPrior: lambda0 = 0: it must be positive, between 1e-100 and 1e+100
    """

    mu0: float = 1.0
    lambda0: float = 1.0
    precision: float | None = 1.0
    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name == "precision":
                continue
            number = isinstance(value, int | float | np.integer | np.floating)
            if field.name == "mu0":
                if not (number and abs(value) <= LARGEST):
                    raise InvalidPrior(f"mu0 = {value!r}: it must be a number within ±{LARGEST:g}")
            elif not (number and 1.0 / LARGEST <= value <= LARGEST):
                raise InvalidPrior(
                    f"{field.name} = {value!r}: it must be positive, "
                    f"between {1 / LARGEST:g} and {LARGEST:g}"
                )
            object.__setattr__(self, field.name, float(value))

    def format_text(self) -> str:
        """Return the text of the prior in stored data, which is part of the format.

        >>> GibbsPrior(precision=None).format_text()
        'GibbsPrior(mu0=1.0, lambda0=1.0, precision=None, shape=1.0, rate=1.0)'
        """
        return (
            f"GibbsPrior(mu0={self.mu0!r}, lambda0={self.lambda0!r}, precision={self.precision!r}, "
            f"shape={self.shape!r}, rate={self.rate!r})"
        )
