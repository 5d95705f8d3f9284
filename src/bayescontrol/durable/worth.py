"""What an observation is worth: r = reward(o), a finite number in [least, most].

Where a kind of model says how many outcomes it has (`ModelKind.outcomes`), the range is known: that
of reward(o) over all of them. It must hold every reward there can be, not just those that came: an
interval made of rewards in [least, most] says nothing of others.
"""

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from bayescontrol.durable.events import Created
from bayescontrol.durable.kinds import KINDS
from bayescontrol.durable.plain import shown
from bayescontrol.errors import BadEvidence, InvalidRequest, MissingCapability

#: The least and the most that a reward can be.
Bounds: TypeAlias = tuple[float, float]


class Worth:
    """r of an observation, within bounds if there are any.

    >>> worth = Worth(reward_of, (0.0, 10.0))
    >>> worth.of(5, "event 3"), worth.scaled(5.0)
    (5.0, 0.5)
    >>> worth.of(11, "event 3")
    Traceback (most recent call last):
    bayescontrol.errors.BadEvidence: event 3: observation 11 is worth 11.0, not within ...
    """

    def __init__(self, reward: Callable[[Any], float], bounds: Bounds | None) -> None:
        self._reward, self.bounds = reward, bounds

    def of(self, o: Any, where: str) -> float:
        """reward(o); `BadEvidence` if it is none."""
        given: Any = self._reward(o)
        try:
            r = math.nan if isinstance(given, str | bytes) else float(given)
        except (TypeError, ValueError):
            r = math.nan
        if not math.isfinite(r):
            raise BadEvidence(
                f"{where}: observation {shown(o)} is worth {shown(given)}: a reward is a finite "
                "number; say what it is worth, reward=…"
            )
        if self.bounds is not None and not self.bounds[0] <= r <= self.bounds[1]:
            raise BadEvidence(
                f"{where}: observation {shown(o)} is worth {r}, not within {self.bounds}: give "
                "bounds=(…, …) that hold every reward there can be"
            )
        return r

    def scaled(self, r: float) -> float:
        """(r - least) / (most - least), from 0 to 1; what rounding puts beyond is an end."""
        least, most = self.bounds or (0.0, 1.0)
        return min(max((r - least) / (most - least or 1.0), 0.0), 1.0)

    def unscaled(self, v: float) -> float:
        """least + (most - least) v."""
        least, most = self.bounds or (0.0, 1.0)
        return least + (most - least) * v


def reward_of(o: Any) -> float:
    """The observation itself, or its first part.

    >>> reward_of(1), reward_of((0.5, "door"))
    (1.0, 0.5)
    """
    first = o[0] if isinstance(o, tuple | list) and o else o
    if isinstance(first, bool | int | float):
        return float(first)
    raise MissingCapability(f"observation {o!r} is no reward: say what it is worth, reward=…")


def required_bounds(bounds: Any) -> Bounds:
    """Two finite numbers, the first the lesser.

    >>> required_bounds((1, 0))
    Traceback (most recent call last):
    bayescontrol.errors.InvalidRequest: bounds=(1, 0): the least and the most a reward can be
    """
    try:
        least, most = (float(b) for b in bounds)
    except (TypeError, ValueError):
        least = most = math.nan
    if not (least < most and math.isfinite(most - least)):
        raise InvalidRequest(f"bounds={shown(bounds)}: the least and the most a reward can be")
    return least, most


def known_bounds(created: Created, worth: Worth) -> Bounds | None:
    """min and max of reward(o) over all outcomes o, where the kind of the log's model tells them.

    >>> made = Created(seq=1, format=1, model="bernoulli-bandit", version=1, settings={}, seed=0,
    ...                time=0.0)
    >>> known_bounds(made, Worth(lambda o: 3 * o - 1, None))
    (-1.0, 2.0)
    """
    outcomes = KINDS[created.model].model_kind.outcomes if created.model in KINDS else None
    if outcomes is None:
        return None
    rewards = [worth.of(o, "the model") for o in range(outcomes(created.settings))]
    return min(rewards), max(rewards)
