"""Who decides, and by which law: another, and the log's own agent.

    π_t(b | x_t)      of a function, or of an agent that learns from the log as it goes
    p_t(b | x_t)      of the log's model, after all events before decision t

The log holds p_t of the action taken. Of the others it is computed again, by folding the log, and
must agree.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from bayescontrol.durable.driver import Driver
from bayescontrol.durable.events import Created, Decided, Observed
from bayescontrol.durable.fold import Decisions, Fold
from bayescontrol.durable.models import Model, as_model
from bayescontrol.durable.plain import as_plain, canonical, shown
from bayescontrol.errors import InvalidRequest, MissingCapability, UnknownAction

__all__ = ["Fixed", "FixedPolicy", "Law", "Learner", "LoggedLaw", "Policy", "as_policy"]

#: {b: P(b | x)}
Law: TypeAlias = Mapping[Any, float]
#: π(x) -> {b: P(b | x)}
Fixed: TypeAlias = Callable[[Any], Law]


class Policy(Protocol):
    """π_t: a law for every situation, and what is learnt between decisions.

    >>> one: Policy = FixedPolicy(lambda x: {"red": 1.0}, None)
    >>> one.law(None)
    {'red': 1.0}
    """

    def law(self, x: Any) -> Law:
        """π_t(b | x) for every b."""
        ...

    def learn(self, x: Any, a: Any, o: Any) -> None:
        """The log's agent did a in x and saw o."""
        ...


def as_policy(other: Any, actions: list[Any] | None) -> Policy:
    """A function as it is, anything else as an agent that learns.

    >>> as_policy(lambda x: {"red": 1.0}, ["red", "blue"]).law(None)
    {'red': 1.0}
    """
    if callable(other) and not hasattr(other, "agent"):
        return FixedPolicy(other, actions)
    return Learner(as_model(other).driver())


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
        for a, p in law.items():
            if p and self._actions is not None and a not in self._actions:
                raise UnknownAction(
                    f"{where}: action {shown(a)} is none of the log's, {shown(self._actions)}"
                )
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

    def __init__(self, driver: Driver) -> None:
        if not driver.alone:
            raise MissingCapability(
                "an agent that moves by its observations cannot learn from the path of another: "
                "what-if needs feedback that stands alone"
            )
        self._driver = driver

    def law(self, x: Any) -> Law:
        """P(b | âo_<t, x)."""
        law = self._driver.law(self._driver.situation(None if self._driver.context_free else x))
        if law is None:
            raise MissingCapability(
                f"{self._driver.agent!r} has no exact action probabilities: give a function "
                "π(x) -> {action: probability}"
            )
        return law

    def learn(self, x: Any, a: Any, o: Any) -> None:
        """P(m | ·) ∝ P(o | m, x, a) P(m | ·)."""
        self._driver.learn(x, a, o)


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
        self._fold = Fold(model.driver(), created.seed)
        self._decisions = Decisions(None)
        self._known: dict[bytes, Law | None] = {}

    def decided(self, d: Decided) -> Law | None:
        """p_t(b | x_t), None where the model has none; `ModelMismatch` if the log's is another."""
        key = canonical(as_plain(d.x, "the situation"))
        if key not in self._known:
            self._known[key] = self._fold.driver.law(d.x)
        law = self._known[key]
        if law is not None:
            self._fold.require_probability(d, law)
        self._fold.take([d], self._decisions)
        if self._fold.driver.remembers:
            self._known.clear()
        return law

    def observed(self, event: Observed) -> None:
        """Learn from it, as the log's agent did."""
        self._fold.take([event], self._decisions)
        self._known.clear()
