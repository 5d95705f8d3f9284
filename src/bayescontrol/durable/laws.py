"""Who decides, and by which law: another, and the log's own agent.

    π_t(b | x_t)      of a function, or of an agent that learns from the log as it goes
    p_t(b | x_t)      of the log's model, after all events before decision t

The log holds p_t of the action taken. Of the others it is computed again, by folding the log, and
must agree. A law is computed once for each posterior and each situation.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from bayescontrol.durable.driver import Driver
from bayescontrol.durable.events import Created, Decided, Event
from bayescontrol.durable.fold import Decisions, Fold
from bayescontrol.durable.models import Model, as_model
from bayescontrol.durable.plain import as_plain, canonical, shown
from bayescontrol.errors import InvalidRequest, MissingCapability, UnknownAction

#: {b: P(b | x)}
Law: TypeAlias = Mapping[Any, float]
#: π(x) -> {b: P(b | x)}
Fixed: TypeAlias = Callable[[Any], Law]

L = TypeVar("L")
#: Situations whose laws are remembered.
_MOST: Final = 256


class Laws(Generic[L]):
    """x -> P(b | past, x), each computed once until `clear`: whoever learns must call it.

    >>> from bayescontrol import BernoulliBandit
    >>> laws = Laws(as_model(BernoulliBandit(["red", "blue"])).driver().law)
    >>> laws.of(None), laws.of(None) is laws.of(None)
    ({'red': 0.5, 'blue': 0.5}, True)
    """

    def __init__(self, law: Callable[[Any], L]) -> None:
        self._law = law
        self._known: dict[bytes, L] = {}

    def of(self, x: Any) -> L:
        """The law in x; it is everyone's, and must not be changed."""
        key = b"" if x is None else canonical(as_plain(x, "the situation"))
        if key not in self._known:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[key] = self._law(x)
        return self._known[key]

    def clear(self) -> None:
        """The posterior is another."""
        self._known.clear()


class Decider(Protocol):
    """π_t: a law for every situation, and what is learnt between decisions.

    >>> one: Decider = FixedPolicy(lambda x: {"red": 1.0}, None)
    >>> one.law(None)
    {'red': 1.0}
    """

    def law(self, x: Any) -> Law:
        """π_t(b | x) for every b."""
        ...

    def learn(self, x: Any, a: Any, o: Any) -> None:
        """The log's agent did a in x and saw o."""
        ...


def as_decider(other: Any, actions: list[Any] | None) -> Decider:
    """A function as it is, anything else as an agent that learns.

    >>> as_decider(lambda x: {"red": 1.0}, ["red", "blue"]).law(None)
    {'red': 1.0}
    """
    if callable(other) and not hasattr(other, "agent"):
        return FixedPolicy(other, actions)
    if isinstance(other, Mapping):
        raise InvalidRequest(
            f"the other is {shown(other)}: give a function of the situation, "
            "lambda x: {action: probability}"
        )
    return Learner(as_model(other).driver(), actions)


def _require_known(law: Law, actions: list[Any] | None, where: str) -> None:
    for a, p in law.items():
        if p and actions is not None and a not in actions:
            raise UnknownAction(
                f"{where}: action {shown(a)} is none of the log's, {shown(actions)}"
            )


class FixedPolicy:
    """π(x), required to be probabilities of known actions.

    >>> FixedPolicy(lambda x: {"red": 0.7}, None).law(None)
    Traceback (most recent call last):
    bayescontrol.errors.InvalidRequest: the policy gives {'red': 0.7} in None: not probabilities ...
    """

    def __init__(self, policy: Fixed, actions: list[Any] | None) -> None:
        self._policy, self._actions = policy, actions

    def law(self, x: Any) -> Law:
        """π(b | x)."""
        given: Any = self._policy(x)
        where = f"the policy gives {shown(given)} in {shown(x)}"
        if not isinstance(given, Mapping):
            raise InvalidRequest(f"{where}: not probabilities, {{action: probability}}")
        try:
            law = {a: float(p) for a, p in given.items()}
        except (TypeError, ValueError):
            law = {}
        if not (all(p >= 0.0 for p in law.values()) and abs(sum(law.values()) - 1.0) <= 1e-9):
            raise InvalidRequest(f"{where}: not probabilities of sum 1")
        _require_known(law, self._actions, where)
        return law

    def learn(self, x: Any, a: Any, o: Any) -> None:
        """A fixed policy does not."""


class Learner:
    """π_t = P(b | âo_<t, x): an agent, in the hands of the log.

    >>> from bayescontrol import BernoulliBandit
    >>> learner = Learner(as_model(BernoulliBandit(["red", "blue"])).driver())
    >>> learner.learn(None, "red", 1)
    >>> learner.law(None)
    {'red': 0.666..., 'blue': 0.333...}
    """

    def __init__(self, driver: Driver, actions: list[Any] | None = None) -> None:
        if not driver.alone:
            raise MissingCapability(
                "an agent that moves by its observations cannot learn from the path of another: "
                "what-if needs feedback that stands alone"
            )
        self._driver, self._actions = driver, actions

    def law(self, x: Any) -> Law:
        """P(b | âo_<t, x)."""
        law = self._driver.law(self._own(x))
        if law is None:
            raise MissingCapability(
                f"{self._driver.agent!r} has no exact action probabilities: give a function "
                "π(x) -> {action: probability}"
            )
        _require_known(law, self._actions, f"the other gives {shown(dict(law))}")
        return law

    def learn(self, x: Any, a: Any, o: Any) -> None:
        """P(m | ·) ∝ P(o | m, x, a) P(m | ·)."""
        self._driver.learn(self._own(x), a, o)

    def _own(self, x: Any) -> Any:
        """The situation as this agent knows it."""
        return self._driver.situation(None if self._driver.context_free else x)


class LoggedLaw:
    """p_t of every action: the log folded with its own model.

    >>> from bayescontrol import BernoulliBandit
    >>> model = as_model(BernoulliBandit(["red", "blue"]))
    >>> made = Created(seq=1, format=1, model=model.name, version=1,
    ...                settings=dict(model.settings), seed=0, time=0.0)
    >>> LoggedLaw(model, made).decided(Decided(seq=2, x=None, a="red", p=0.5, key=None, time=0.0))
    {'red': 0.5, 'blue': 0.5}
    """

    def __init__(self, model: Model, created: Created) -> None:
        #: The log's agent, after the last event that was told.
        self.fold = Fold(model.driver(), created.seed)
        self._decisions = Decisions(None)
        self._laws = Laws(self.fold.driver.law)

    def decided(self, d: Decided, *, draw: bool = False) -> Law | None:
        """p_t(b | x_t), None where the model has none; `ModelMismatch` if the log's is another.

        With `draw` the action must come out again too.
        """
        law = None if d.p is None else self._laws.of(d.x)
        self.fold.require_probability(d, law)
        self.fold.take([d], self._decisions, d.seq if draw else None)
        if self.fold.driver.remembers:
            self._laws.clear()
        return law

    def take(self, event: Event) -> None:
        """Fold it, as the log's agent did; nothing is compared."""
        self.fold.take([event], self._decisions)
        self._laws.clear()
