"""How a problem describes itself to logs, to the HTTP server and to `what_if`.

    problem                              ->  model_kind.name, model_kind.version, problem.settings()
    KINDS[name](**settings).agent(...)   ->  the same agent

A problem class declares `model_kind` and a method `settings()`. Names of kinds, versions and
settings are stored in logs: they never change. All built-in kinds are listed in `durable.models`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from bayescontrol.errors import MissingCapability


@dataclass(frozen=True)
class SettingDoc:
    """Documentation of one setting: the shape of its JSON value and its meaning.

    `largest` bounds the number, or the length of the list, that a client may send over HTTP.
    """

    shape: str
    meaning: str
    largest: int | None = None


@dataclass(frozen=True)
class SizeLimit:
    """A bound on the combined size of several settings that a client may send over HTTP.

    The function `size` receives a mapping from settings to their number or length, 0 for missing
    settings. The field `states` of a nested setting `costs` is called `"costs.states"`.
    """

    what: str
    size: Callable[[Mapping[str, int]], int]
    largest: int


@dataclass(frozen=True)
class ModelKind:
    """What a problem class declares about itself."""

    #: The name in logs and over HTTP.
    name: str
    #: One sentence for the documentation.
    summary: str
    #: The settings by their stored names, in the order of the constructor.
    settings: Mapping[str, SettingDoc]
    #: Valid settings, and an observation and a situation (if needed) that go with them.
    example: Mapping[str, Any]
    observation: Any
    #: What an observation is, in words.
    feedback: str
    situation: Any = None
    #: Stored in logs. A change to the update or to the random sequence of the agent raises it.
    version: int = 1
    #: Whether actions never depend on a situation.
    context_free: bool = False
    #: If observations are 0, 1, …, n - 1: the function that returns n for given settings.
    outcomes: Callable[[Mapping[str, Any]], int] | None = None
    #: If the belief is not about arms: the function that returns, for a belief, the mean reward of
    #: every arm and the ends of its central 95 % interval.
    arm_rewards: Callable[[Any], Mapping[str, Mapping[str, float]]] | None = None
    #: Bounds on the size of an agent that is created over HTTP.
    limits: tuple[SizeLimit, ...] = ()
    #: Schedules that only agents of this kind can follow, by their stored names.
    schedules: Mapping[str, Any] = field(default_factory=dict)


def kind_of(problem: object) -> ModelKind | None:
    """Return the kind of model of a problem, or None if its class does not declare one.

    The exact class must declare `model_kind`. Subclasses do not inherit it, because they may
    behave differently. A general class instead declares `model_part`, the name of an attribute
    whose exact class declares the kind: the family of a `Bandit`, for example.
    """
    declared = vars(type(problem))
    if "model_part" in declared:
        declared = vars(type(getattr(problem, declared["model_part"])))
    return cast("ModelKind | None", declared.get("model_kind"))


def stored_name(problem: object) -> str:
    """Return the name of a problem's kind; raise MissingCapability if it has none."""
    kind = kind_of(problem)
    if kind is None:
        raise MissingCapability(f"{problem!r} cannot be stored: its settings are code")
    return kind.name


#: Settings that several kinds share.
ARMS = SettingDoc("list of names, or their number", "The arms to choose from.", largest=1_000)
#: The most numbers in the belief of an agent that is created over HTTP.
MOST_NUMBERS = 1_000_000
