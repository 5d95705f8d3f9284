"""What a log says beside the belief: the configuration, the arms that changed, the mean costs.

The configuration limits the decisions of an agent and their feedback:

    holdout       with this probability a decision ignores the belief: it takes the `control` arm,
                  or any eligible arm with equal probability
    eligibility   each mode chooses among the eligible arms: active ones, and those of `among`
    shares        p_i = clip(c P_i, low_i, high_i), with c such that Σ_i p_i = 1

in this order. With P the probabilities of the agent, Q those of the holdout and h its share,

    P(a | past, x) = (1 - h) clip(c P)(a) + h clip(d Q)(a)

is exact and logged. To draw from p with a mode, an action a ~ P is retained with probability
min(1, p_a / P_a), and otherwise drawn again from (p - P)⁺ / Σ (p - P)⁺: then a ~ p.

A mode maximises mean reward minus price; the belief stays about rewards.

    active ⇄ paused          active or paused → retired, for good          new → active

An arm that is paused or retired is not eligible; late feedback for it is still learned.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

import msgspec
import numpy as np
from msgspec.structs import asdict, replace

from bayescontrol._arrays import AnyArray, FloatArray
from bayescontrol._support.names import LARGEST_PRICE
from bayescontrol.durable.events import ARM_CHANGES, ArmChanged, Probabilities
from bayescontrol.durable.plain import (
    Value,
    as_plain,
    as_stored,
    from_plain,
    same_value,
    short_repr,
)
from bayescontrol.errors import (
    BadEvidence,
    DamagedLog,
    IncompatibleState,
    InvalidRequest,
    UnknownArm,
)
from bayescontrol.protocols import Totals
from bayescontrol.seeding import Stream

#: The price of an arm that is the mean of its reported costs.
REPORTED: Final = "reported"
#: Arms whose probability underflows are treated as if they had this one.
_TINY: Final = 1e-300
#: The sums of shares may differ from 1 by this much.
_ROUNDING: Final = 1e-9
_ACTIVE, _RETIRED = "active", "retired"
#: The states from which a change is possible; an added arm does not exist before.
_BEFORE: Final[Mapping[str, tuple[str, ...]]] = {
    "paused": ("active",),
    "resumed": ("paused",),
    "retired": ("active", "paused"),
}


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """What limits the decisions of an agent and their feedback; nothing by default.

    An event in the log makes it valid for later decisions, see `DurableAgent.configure`.

    >>> Configuration(holdout=0.05, shares={"red": (0.1, 1.0)}, prices={"blue": 0.02})
    Configuration(holdout=0.05, shares={'red': (0.1, 1.0)}, prices={'blue': 0.02})
    >>> Configuration(shares={"red": (0.6, 1.0), "blue": (0.6, 1.0)})
    Traceback (most recent call last):
    bayescontrol.errors.InvalidRequest: shares: the minimum shares sum to 1.2: give at most 1
    """

    #: The share of decisions that ignore the belief, and what they do: one arm, or any arm (None).
    holdout: float = 0.0
    control: Value = None
    #: The minimum and the maximum probability of an arm at every decision.
    shares: Mapping[Value, tuple[float, float]] = msgspec.field(default_factory=dict)
    #: The price of an arm in units of reward, or "reported": the mean of its reported costs.
    prices: Mapping[Value, float | str] = msgspec.field(default_factory=dict)
    #: Seconds after which a decision without an observation gets the `default`.
    window: float | None = None
    default: Value = None
    #: The least and the greatest valid reward.
    reward_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _require_number("holdout", self.holdout, 0.0, 1.0, "from 0 to 1")
        for name in ("shares", "prices"):
            if not isinstance(given := getattr(self, name), Mapping):
                raise InvalidRequest(f"{name}={short_repr(given)}: give a mapping from arms")
        low_sum = 0.0
        for arm, bounds in self.shares.items():
            low, high = _require_pair(f"shares[{arm!r}]", bounds, "(minimum, maximum)")
            _require_number(f"shares[{arm!r}] minimum", low, 0.0, 1.0, "from 0 to 1")
            _require_number(f"shares[{arm!r}] maximum", high, low, 1.0, f"from {low:g} to 1")
            low_sum += low
        if low_sum > 1.0 + _ROUNDING:
            raise InvalidRequest(f"shares: the minimum shares sum to {low_sum:.6g}: give at most 1")
        for arm, price in self.prices.items():
            if price != REPORTED:
                _require_number(
                    f"prices[{arm!r}]", price, -LARGEST_PRICE, LARGEST_PRICE, 'or "reported"'
                )
        if self.window is not None:
            _require_number("window", self.window, 0.0, math.inf, "of seconds, 0 or more")
        if (self.window is None) != (self.default is None):
            raise InvalidRequest(
                f"window={self.window!r}, default={short_repr(self.default)}: give both, the "
                "seconds to wait and the observation to record then, or neither"
            )
        if self.reward_range is not None:
            low, high = _require_pair("reward_range", self.reward_range, "(least, greatest)")
            _require_number("reward_range[0]", low, -math.inf, math.inf)
            _require_number("reward_range[1]", high, low, math.inf, f"from {low:g} up")
            if self.default is not None:
                self.require_in_range(self.default, "default")

    @classmethod
    def from_settings(cls, settings: Mapping[str, Value]) -> Self:
        """Return the configuration with these settings; raise `InvalidRequest` for unknown ones.

        >>> Configuration.from_settings({"windw": 60})
        Traceback (most recent call last):
        bayescontrol.errors.InvalidRequest: 'windw' is no setting of a configuration: use holdout...
        """
        for name in settings:
            if name not in cls.__struct_fields__:
                raise InvalidRequest(
                    f"{name!r} is no setting of a configuration: use "
                    f"{', '.join(cls.__struct_fields__)}"
                )
        given = {name: _as_tuple(v) for name, v in settings.items()}
        if isinstance(shares := given.get("shares"), Mapping):
            given["shares"] = {a: _as_tuple(bounds) for a, bounds in shares.items()}
        return cls(**given)

    def settings(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults, as plain values."""
        defaults = asdict(Configuration())
        given = {n: v for n, v in asdict(self).items() if not same_value(v, defaults[n])}
        stored: dict[str, Any] = as_stored(given, "the configuration")
        return stored

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        return f"Configuration({shown})"

    @property
    def is_plain(self) -> bool:
        """Whether decisions follow the agent alone: no holdout and no shares."""
        return not self.holdout and not self.shares

    def require_in_range(self, o: Value, what: str) -> None:
        """Raise `BadEvidence` if the reward of an observation is outside `reward_range`."""
        if self.reward_range is None or (isinstance(o, Totals) and not o.n):
            return
        low, high = self.reward_range
        r = o.total / o.n if isinstance(o, Totals) else first_value(o)
        if not (isinstance(r, int | float) and low <= r <= high):
            raise BadEvidence(
                f"{what} {short_repr(o)}: its reward must be a number from {low:g} to "
                f"{high:g}, the declared range"
            )

    def require_arms(self, arms: Sequence[Value]) -> None:
        """Raise `InvalidRequest` if a setting names an arm that is not one of these."""
        named = [("shares", a) for a in self.shares] + [("prices", a) for a in self.prices]
        named += [] if self.control is None else [("control", self.control)]
        for setting, arm in named:
            if arm not in arms:
                raise InvalidRequest(
                    f"{setting}: there is no arm {arm!r}, the agent has {short_repr(list(arms))}"
                )


def _require_pair(what: str, value: object, expected: str) -> tuple[Any, Any]:
    """Return a pair; raise `InvalidRequest` if the value is not one."""
    if not (isinstance(value, tuple | list) and len(value) == 2):
        raise InvalidRequest(f"{what}={short_repr(value)}: give {expected}")
    return value[0], value[1]


def _as_tuple(value: Value) -> Value:
    """Return a list as a tuple, and other values unchanged."""
    return tuple(value) if isinstance(value, list) else value


def _require_number(what: str, value: Any, low: float, high: float, bounds: str = "") -> None:
    """Raise `InvalidRequest` unless the value is a finite number from `low` to `high`."""
    valid = isinstance(value, int | float) and not isinstance(value, bool)
    if not (valid and math.isfinite(value) and low <= value <= high):
        expected = f"a number {bounds}".rstrip()
        raise InvalidRequest(f"{what}={short_repr(value)}: expected {expected}")


def first_value(o: Value) -> Value:
    """Return the reward of an observation: the first element of a list, or o itself."""
    return o[0] if isinstance(o, tuple | list) and o else o


# -- shares ----------------------------------------------------------------------------------------


def limited(P: Probabilities, shares: Mapping[Value, tuple[float, float]]) -> dict[Any, float]:
    """Return p_i = clip(c P_i, low_i, high_i), with c such that Σ_i p_i = 1.

    Raise `InvalidRequest` if the bounds of these arms do not permit that. Σ_i clip(c P_i) is
    piecewise linear in c, with corners where c P_i is a bound.

    >>> limited({"red": 0.9, "blue": 0.1}, {"blue": (0.2, 1.0)})
    {'red': 0.8, 'blue': 0.2}
    """
    given = [shares.get(a, (0.0, 1.0)) for a in P]
    low, high = np.array(given, np.float64).T
    least, most = float(low.sum()), float(high.sum())
    if least > 1.0 + _ROUNDING or most < 1.0 - _ROUNDING:
        raise InvalidRequest(
            f"no probabilities of the eligible arms {short_repr(list(P))} are within their shares: "
            f"the minima sum to {least:.6g} and the maxima to {most:.6g}; change the shares, or "
            "make more arms eligible"
        )
    q = np.maximum(np.array(list(P.values())), _TINY)
    corners = np.unique(np.concatenate([low / q, high / q]))
    sums = np.clip(np.outer(corners, q), low, high).sum(1)
    k = int(np.searchsorted(sums, 1.0))  # the first corner at which the sum is at least 1
    if k == 0 or k == len(corners):
        c = corners[min(k, len(corners) - 1)]
    else:
        step = (1.0 - sums[k - 1]) / (sums[k] - sums[k - 1])
        c = corners[k - 1] + step * (corners[k] - corners[k - 1])
    p = np.clip(c * q, low, high)
    return dict(zip(P, _with_sum_one(p, low, high).tolist(), strict=True))


def require_shares(arms: Sequence[Value], shares: Mapping[Value, tuple[float, float]]) -> None:
    """Raise `InvalidRequest` if no probabilities of these arms are within the shares."""
    limited(dict.fromkeys(arms, 1.0 / len(arms)), shares)


def _with_sum_one(p: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Correct the rounding of a sum within the bounds."""
    room = np.where(p.sum() < 1.0, high - p, p - low)
    total = room.sum()
    return p if total <= 0.0 else np.asarray(p + (1.0 - p.sum()) * room / total)


class Restriction(NamedTuple):
    """What a single decision restricts: the eligible arms (None: all) and the prices, by arm."""

    among: tuple[Hashable, ...] | None
    prices: tuple[tuple[Hashable, float], ...]


def draw_from(p: Mapping[Value, float], u: float) -> Any:
    """Return the arm at quantile u of these probabilities.

    >>> draw_from({"red": 0.25, "blue": 0.75}, 0.3)
    'blue'
    """
    total, last = 0.0, None
    for a, p_a in p.items():
        if p_a > 0.0:
            total, last = total + p_a, a
            if u < total:
                return a
    return last


def redrawn(a: Value, P: Probabilities, p: Mapping[Value, float], rng: Stream) -> Any:
    """Return an action from p, given a ~ P: a itself, or one that p favours more than P does."""
    if rng.random() * P[a] <= p[a]:
        return a
    surplus = {b: max(p[b] - P[b], 0.0) for b in p}
    total = math.fsum(surplus.values())
    return draw_from(surplus, rng.random() * total)


# -- the terms of a log --------------------------------------------------------------------------


class Terms(msgspec.Struct, frozen=True):
    """The state of a log beside the belief, after some event.

    >>> Terms().arm_state("red")
    'active'
    """

    configuration: Configuration = Configuration()
    #: The arms that were added, with their priors, in order.
    added: tuple[tuple[Value, Value], ...] = ()
    #: The arms that are not active, and their states.
    inactive: Mapping[Value, str] = {}
    #: By arm: the sum of its reported costs, and the number of rewards that they belong to.
    costs: Mapping[Value, tuple[float, int]] = {}

    def arm_state(self, arm: Value) -> str:
        """Return "active", "paused" or "retired"."""
        return self.inactive.get(arm, _ACTIVE)

    def configured(self, configuration: Configuration) -> "Terms":
        """Return the terms with another configuration."""
        return replace(self, configuration=configuration)

    def require_change(self, arm: Value, change: str, arms: Sequence[Value]) -> None:
        """Raise an error if this change of an arm is impossible; `arms` are all arms so far."""
        if change == "added":
            if arm in arms:
                raise InvalidRequest(
                    f"arm {arm!r} exists already and is {self.arm_state(arm)}: choose another name"
                )
            return
        if arm not in arms:
            raise UnknownArm(f"there is no arm {arm!r}: the agent has {short_repr(list(arms))}")
        state = self.arm_state(arm)
        if state not in _BEFORE[change]:
            problem = f"already {state}" if state == change else f"{state}: it cannot be {change}"
            advice = "; a retired arm does not return: add another one" if state == _RETIRED else ""
            raise InvalidRequest(f"arm {arm!r} is {problem}{advice}")
        if change == "resumed" or state != _ACTIVE:
            return
        others = [a for a in self.active(arms) if a != arm]
        if not others:
            raise InvalidRequest(
                f"arm {arm!r} is the only active arm: resume or add another one first"
            )
        if arm == self.configuration.control:
            raise InvalidRequest(
                f"arm {arm!r} is the control arm of the holdout: configure another control first"
            )
        require_shares(others, self.configuration.shares)

    def changed(self, event: ArmChanged) -> "Terms":
        """Return the terms after an event about an arm."""
        states = {**self.inactive, event.arm: ARM_CHANGES[event.change]}
        inactive = {arm: state for arm, state in states.items() if state != _ACTIVE}
        added = self.added
        if event.change == "added":
            added = (*added, (event.arm, event.prior))
        return replace(self, inactive=inactive, added=added)

    def with_cost(self, arm: Value, cost: float, o: Value) -> "Terms":
        """Return the terms after the cost of a decision was reported, with its observation."""
        total, n = self.costs.get(arm, (0.0, 0))
        rewards = o.n if isinstance(o, Totals) else 1
        return replace(self, costs={**self.costs, arm: (total + cost, n + rewards)})

    # -- one decision ----------------------------------------------------------------------------

    def active(self, arms: Sequence[Value]) -> list[Any]:
        """Return those of the arms that are active."""
        return [a for a in arms if a not in self.inactive]

    def prices(self) -> dict[Any, float]:
        """Return the price of each arm that has one; the price of an arm is 0 until it has."""
        means = {arm: total / n for arm, (total, n) in self.costs.items()}
        declared = self.configuration.prices.items()
        return {a: means.get(a, 0.0) if p == REPORTED else float(p) for a, p in declared}

    def restriction(
        self, among: Sequence[Value] | None, find_arms: Callable[[], Sequence[Value]]
    ) -> Restriction | None:
        """Return the eligible arms and the prices of a decision; None if nothing is restricted.

        `find_arms` returns all arms. Raise `UnknownArm` for an arm in `among` that does not exist,
        and `InvalidRequest` if no arm is eligible.
        """
        if among is None and not self.inactive and not self.configuration.prices:
            return None
        arms, prices = find_arms(), tuple(self.prices().items())
        if among is None and not self.inactive:
            return Restriction(None, prices)
        for a in among or ():
            if a not in arms:
                raise UnknownArm(
                    f"among: there is no arm {a!r}, the agent has {short_repr([*arms])}"
                )
        eligible = tuple(a for a in self.active(arms) if among is None or a in among)
        if not eligible:
            states = ", ".join(f"{a!r} is {self.arm_state(a)}" for a in among or ())
            raise InvalidRequest(
                f"no arm is eligible: {states or 'among=[]'}; name an active arm in `among`"
            )
        return Restriction(eligible, prices)

    # -- snapshots -------------------------------------------------------------------------------

    def save(self) -> AnyArray:
        """Return the terms as an array of bytes, for a snapshot."""
        plain = asdict(self) | {"configuration": self.configuration.settings()}
        return np.frombuffer(msgspec.json.encode(as_plain(plain, "the terms")), np.uint8)

    @classmethod
    def load(cls, saved: AnyArray) -> "Terms":
        """Return the terms that `save` stored; raise `IncompatibleState` if they are damaged."""
        try:
            plain = from_plain(msgspec.json.decode(saved.tobytes()))
            configuration = Configuration.from_settings(plain["configuration"])
            return cls(**{**plain, "configuration": configuration})
        except (
            msgspec.DecodeError,
            DamagedLog,
            TypeError,
            ValueError,
            LookupError,
        ) as error:
            raise IncompatibleState(f"the saved terms cannot be read: {error}") from None
