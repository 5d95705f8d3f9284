"""Finite classes of modes by name, built in or registered by users.

    make(name, setting=value, …) -> policy[m, x, a], hypothesis[m, x, a, o], T[x, a, o]

A class is a function whose settings all have defaults, registered as an entry point of the group
`bayescontrol.classes`. It returns anything that `tabulate` accepts: tables, a list of modes, or an
agent. Settings may be given as text, for the command line.
"""

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, NamedTuple, cast, get_type_hints

import msgspec

from bayescontrol._support.registered import convert_text, load_registered
from bayescontrol.errors import BayesControlError
from bayescontrol.finite import examples
from bayescontrol.finite.tabular import TabularModes
from bayescontrol.finite.tabulate import tabulate

_GROUP: Final = "bayescontrol.classes"
_PACKAGE: Final = "bayescontrol.finite"
_BUILT_IN: Final = {
    "bias-grid": "bayescontrol.bandits.joint:bias_grid",
    "chain": f"{_PACKAGE}.chain:chain",
    "consistency": f"{_PACKAGE}.examples:consistency_diagram",
    "consistency-repaired": f"{_PACKAGE}.examples:consistency_repaired",
    "core": f"{_PACKAGE}.examples:core_diagram",
    "goals": "bayescontrol.mdp.modes:goal_worlds",
    "policy-diagram": f"{_PACKAGE}.examples:policy_diagram",
    "prize-or-frog": f"{_PACKAGE}.examples:prize_or_frog",
    "three-modes": f"{_PACKAGE}.classes:_three_modes",
    "trap": f"{_PACKAGE}.examples:trap",
}


class UnknownClass(BayesControlError, LookupError):
    """No class of modes has that name, or its entry point is not valid.

    >>> make("bias-grit")
    Traceback (most recent call last):
    bayescontrol.finite.classes.UnknownClass: no class of modes is called 'bias-grit', did you \
mean bias-grid? There are: ...
    """


class InvalidSetting(BayesControlError, ValueError):
    """The class has no such setting, or the value has the wrong type.

    >>> make("chain", k="many")
    Traceback (most recent call last):
    bayescontrol.finite.classes.InvalidSetting: chain: k='many' is not of type int
    """


class ClassSetting(NamedTuple):
    """One setting of a class: its name, its type as text and its default.

    >>> describe("chain").settings
    (ClassSetting(name='k', type='int', default=3),)
    """

    name: str
    type: str
    default: Any


class ClassDescription(NamedTuple):
    """The name, a one-line summary and the settings of a class."""

    name: str
    summary: str
    settings: tuple[ClassSetting, ...]


def names() -> tuple[str, ...]:
    """Return the names of the registered classes, sorted, without importing the classes.

    >>> names()[:3]
    ('bias-grid', 'chain', 'consistency')
    """
    return tuple(sorted({point.name for point in _all_entry_points()}))


def describe(name: str) -> ClassDescription:
    """Describe the class and its settings.

    >>> [setting.name for setting in describe("goals").settings]
    ['rows', 'columns', 'goals', 'p']
    """
    function = _load_function(name)
    known = _settings(name, function).items()
    settings = tuple(ClassSetting(key, _type_name(hint), default) for key, (default, hint) in known)
    summary = (inspect.getdoc(function) or "").partition("\n")[0]
    return ClassDescription(name, summary, settings)


def make(name: str, /, **settings: Any) -> TabularModes:
    """Return the tables of the class with this name; settings replace its defaults.

    >>> make("bias-grid", arms=3)
    TabularModes(27 modes, 1 situation, 3 actions, 2 observations)
    >>> make("bias-grid", levels="0.1,0.9")
    TabularModes(4 modes, 1 situation, 2 actions, 2 observations)
    """
    return tabulate(call_with_settings(name, _load_function(name), settings))


def call_with_settings(name: str, function: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """Call a function; `settings`, whose values may be text, replace its defaults."""
    known, converted = _settings(name, function), {}
    for key, value in settings.items():
        if key not in known:
            listed = f"its settings are {', '.join(known)}" if known else "it has no settings"
            raise InvalidSetting(f"{name}: there is no setting {key!r}, {listed}")
        converted[key] = _convert(name, key, value, known[key][1])
    return function(**converted)


def _all_entry_points() -> list[EntryPoint]:
    """Return the built-in classes and those registered by installed packages."""
    built_in = [EntryPoint(name, value, _GROUP) for name, value in _BUILT_IN.items()]
    return [*built_in, *entry_points(group=_GROUP)]


def _load_function(name: str) -> Callable[..., Any]:
    """Import the function that is registered as `name`, or raise UnknownClass."""
    value, function = load_registered("class of modes", name, _all_entry_points(), UnknownClass)
    if not callable(function):
        raise UnknownClass(
            f"the entry point {name!r} ({value}) holds {function!r}: it must be a function "
            "that returns tables, a list of modes or an agent"
        )
    return cast("Callable[..., Any]", function)


def _settings(name: str, function: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """Return the default and the type of each setting; raise UnknownClass without a default.

    The type is the annotation, else the type of the default.
    """
    try:
        annotations = get_type_hints(function)
    except (NameError, TypeError):  # unknown names, or not a plain function
        annotations = {}
    settings = {}
    for key, parameter in inspect.signature(function).parameters.items():
        default = parameter.default
        if default is parameter.empty:
            raise UnknownClass(f"class {name!r}: setting {key!r} has no default: add one")
        settings[key] = default, annotations.get(key, _type_of(default))
    return settings


def _type_of(default: Any) -> Any:
    """Return the type of a default: any type for None, that of the first item for a tuple."""
    if default is None:
        return Any
    if isinstance(default, tuple) and default:
        return tuple[type(default[0]), ...]  # type: ignore[misc]
    return type(default)


def _convert(name: str, key: str, value: Any, hint: Any) -> Any:
    """Convert a value, perhaps text, to the type of the setting, or raise InvalidSetting."""
    try:
        return convert_text(value, hint)
    except msgspec.ValidationError:
        raise InvalidSetting(f"{name}: {key}={value!r} is not of type {_type_name(hint)}") from None


def _type_name(hint: Any) -> str:
    """Return the type as text: "several float" for a sequence, and without "| None"."""
    text = hint.__name__ if isinstance(hint, type) and "[" not in str(hint) else str(hint)
    text = text.replace("collections.abc.", "").replace("typing.", "").removesuffix(" | None")
    outer, bracket, inner = text.partition("[")
    if bracket and outer in ("Sequence", "tuple", "list"):
        return f"several {inner.rstrip(']').removesuffix(', ...')}"
    return text


def _three_modes() -> TabularModes:
    """Two levers: the left one pays, the right one, or neither; P(m) = .5, .3, .2."""
    return tabulate(examples.three_modes(), prior=examples.THREE_MODES_PRIOR)
