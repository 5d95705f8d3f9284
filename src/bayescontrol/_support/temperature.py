"""Temperature: draws from the posterior that are bolder (T > 1) or more careful (T < 1).

    normal                      variance times T
    beta, gamma, Dirichlet      all parameters divided by T
    finitely many modes         P(m | âo_<t)^(1/T), normalised
    mixture                     draw the component as at T = 1, then temper the draw from it

T = 1 is the control rule. The temperature belongs to the draw: what a belief learns and predicts
does not depend on it.
"""

from typing import Any, TypeVar

from bayescontrol._arrays import require_between
from bayescontrol._support.saved import Fixed, Saved, declare
from bayescontrol.errors import InvalidPrior, MissingCapability

B = TypeVar("B")


def as_temperature(temperature: Any) -> float:
    """Return T; raise InvalidPrior unless it is a number from 0.001 to 1000."""
    return require_between("temperature", temperature, 1e-3, 1e3, error=InvalidPrior)


class Tempered(Saved):
    """Base of beliefs whose draws have a temperature; 1 is the rule."""

    saved_fields = declare(Fixed("temperature"))

    _temperature = 1.0

    @property
    def temperature(self) -> float:
        """T: draws are bolder if it is above 1, more careful below; predictions ignore it."""
        return self._temperature

    @temperature.setter
    def temperature(self, temperature: float) -> None:
        self._temperature = as_temperature(temperature)
        self._apply_temperature()

    def _apply_temperature(self) -> None:
        """Update what depends on the temperature."""


def with_temperature(belief: B, temperature: float) -> B:
    """Set the temperature of a belief and return it; raise MissingCapability if it has none.

    >>> with_temperature([], 0.5)
    Traceback (most recent call last):
    bayescontrol.errors.MissingCapability: temperature=0.5: the draws of [] cannot be ...
    """
    if as_temperature(temperature) != 1.0:
        if not hasattr(type(belief), "temperature"):
            raise MissingCapability(
                f"temperature={temperature!r}: the draws of {belief!r} cannot be made bolder or "
                "more careful, because they have no closed form: use temperature=1"
            )
        tempered: Any = belief
        tempered.temperature = temperature
    return belief
