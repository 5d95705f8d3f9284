"""What a log says beside the belief: the configuration, the arms that changed, the mean costs.

    active ⇄ paused          active or paused → retired, for good          new → active

An arm that is paused or retired is not eligible; late feedback for it is still learned.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from bayescontrol._arrays import AnyArray
from bayescontrol.durable.configuration import REPORTED, Configuration, Restriction
from bayescontrol.durable.events import ARM_CHANGES, ArmChanged
from bayescontrol.durable.plain import as_plain, from_plain, short_repr
from bayescontrol.errors import DamagedLog, IncompatibleState, InvalidRequest, UnknownArm

_ACTIVE, _RETIRED = "active", "retired"
#: The states from which a change is possible; an added arm does not exist before.
_BEFORE: Final[Mapping[str, tuple[str, ...]]] = {
    "paused": ("active",),
    "resumed": ("paused",),
    "retired": ("active", "paused"),
}


class Terms(msgspec.Struct, frozen=True):
    """The state of a log beside the belief, after some event.

    >>> Terms().arm_state("red")
    'active'
    """

    configuration: Configuration = Configuration()
    #: The arms that were added, with their priors, in order.
    added: tuple[tuple[Any, Any], ...] = ()
    #: The arms that are not active, and their states.
    inactive: Mapping[Any, str] = {}
    #: By arm: the sum and the number of its reported costs.
    costs: Mapping[Any, tuple[float, int]] = {}

    def arm_state(self, arm: Any) -> str:
        """Return "active", "paused" or "retired"."""
        return self.inactive.get(arm, _ACTIVE)

    def configured(self, configuration: Configuration) -> "Terms":
        """Return the terms with another configuration."""
        return Terms(configuration, self.added, self.inactive, self.costs)

    def require_change(self, arm: Any, change: str, arms: Sequence[Any]) -> None:
        """Raise an error if this change of an arm is impossible; `arms` are all arms so far."""
        if change == "added":
            if arm in arms:
                raise UnknownArm(f"there is an arm {arm!r} already, {self.arm_state(arm)}")
            return
        if arm not in arms:
            raise UnknownArm(f"there is no arm {arm!r}: the agent has {short_repr(list(arms))}")
        state = self.arm_state(arm)
        if state not in _BEFORE[change]:
            raise InvalidRequest(
                f"arm {arm!r} is {state}: it cannot be {change}"
                + ("; a retired arm does not return" if state == _RETIRED else "")
            )
        if change != "resumed" and state == _ACTIVE and len(self.active(arms)) == 1:
            raise InvalidRequest(
                f"arm {arm!r} is the only active arm: resume or add another one first"
            )

    def changed(self, event: ArmChanged) -> "Terms":
        """Return the terms after an event about an arm."""
        inactive, added = dict(self.inactive), self.added
        state = ARM_CHANGES[event.change]
        if state == _ACTIVE:
            inactive.pop(event.arm, None)
        else:
            inactive[event.arm] = state
        if event.change == "added":
            added = (*added, (event.arm, event.prior))
        return Terms(self.configuration, added, inactive, self.costs)

    def with_cost(self, arm: Any, cost: float) -> "Terms":
        """Return the terms after a cost of an arm was reported."""
        total, n = self.costs.get(arm, (0.0, 0))
        costs = {**self.costs, arm: (total + cost, n + 1)}
        return Terms(self.configuration, self.added, self.inactive, costs)

    # -- one decision ----------------------------------------------------------------------------

    def active(self, arms: Sequence[Any]) -> list[Any]:
        """Return those of the arms that are active."""
        return [a for a in arms if a not in self.inactive]

    def prices(self) -> dict[Any, float]:
        """Return the price of each arm that has one; the price of an arm is 0 until it has."""
        found = {}
        for arm, price in self.configuration.prices.items():
            if price == REPORTED:
                total, n = self.costs.get(arm, (0.0, 0))
                found[arm] = total / n if n else 0.0
            else:
                found[arm] = float(price)
        return found

    def restriction(self, among: Sequence[Any] | None, arms: Sequence[Any]) -> Restriction | None:
        """Return the eligible arms and the prices of a decision; None if nothing is restricted.

        `arms` are all arms. Raise `UnknownArm` for an arm in `among` that does not exist, and
        `InvalidRequest` if no arm is eligible.
        """
        eligible = None
        if among is not None:
            unknown = [a for a in among if a not in arms]
            if unknown:
                raise UnknownArm(
                    f"among: there is no arm {unknown[0]!r}, the agent has {short_repr([*arms])}"
                )
            eligible = tuple(a for a in self.active(arms) if a in among)
        elif self.inactive:
            eligible = tuple(self.active(arms))
        if eligible == ():
            states = {a: self.arm_state(a) for a in among or ()}
            raise InvalidRequest(
                f"no arm is eligible: among={short_repr(among)}, where {short_repr(states)}"
            )
        prices = self.prices()
        if eligible is None and not prices:
            return None
        return Restriction(eligible, tuple(prices.items()))

    # -- snapshots -------------------------------------------------------------------------------

    def save(self) -> AnyArray:
        """Return the terms as an array of bytes, for a snapshot."""
        plain = {
            "configuration": self.configuration.settings(), "added": [list(a) for a in self.added],
            "inactive": dict(self.inactive), "costs": dict(self.costs),
        }  # fmt: skip
        return np.frombuffer(msgspec.json.encode(as_plain(plain, "the terms")), np.uint8)

    @classmethod
    def load(cls, saved: AnyArray) -> "Terms":
        """Return the terms that `save` stored; raise `IncompatibleState` if they are damaged."""
        try:
            plain = from_plain(msgspec.json.decode(saved.tobytes()))
            return cls(
                Configuration.from_settings(plain["configuration"]),
                tuple((arm, prior) for arm, prior in plain["added"]), plain["inactive"],
                plain["costs"],
            )  # fmt: skip
        except (msgspec.DecodeError, DamagedLog, TypeError, ValueError, LookupError) as error:
            raise IncompatibleState(f"the saved terms cannot be read: {error}") from None
