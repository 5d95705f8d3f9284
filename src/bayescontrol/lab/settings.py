"""Settings from text: `key=value` to a frozen, validated dataclass; and sweeps over settings.

    settings = replace(defaults, key_1 = convert(value_1), ...)
    key      = sha256(name of the experiment, settings without `runs`)
    points   = { settings with k_1 = v_1, k_2 = v_2, ... :  v_1 in V_1, v_2 in V_2, ... }

A field has its type, bounds and description in its annotation (`msgspec.Meta`); msgspec converts
and validates. Lists are written with commas (`depths=1,2,3`) or as JSON. A replica depends on the
settings without `runs` and on its number, so the key identifies its results.

`C=5,30,200` sweeps over three values of C. If values contain commas, write a JSON list:
`depths=[[1,2],[1,2,3]]`. The last setting varies fastest. Each point is a study in a folder named
by its key: a larger sweep reuses the results of a smaller one.
"""

import dataclasses
import difflib
import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from bayescontrol._support.registered import convert_text
from bayescontrol.errors import BayesControlError
from bayescontrol.lab.experiment import Experiment

S = TypeVar("S")
#: Hex digits of a key in the name of a folder: two points never share it by chance.
_FOLDER_LENGTH: Final = 16


class InvalidSettings(BayesControlError, ValueError):
    """The experiment has no such setting, or the value is invalid."""


@dataclass(frozen=True)
class Field:
    """The description of one setting; the type includes its bounds."""

    name: str
    type: str
    default: Any
    description: str


def describe(kind: type[Any]) -> tuple[Field, ...]:
    """Describe the settings of an experiment, in the order of their declaration.

    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 100
    >>> describe(Settings)
    (Field(name='runs', type='int ≥ 1', default=100, description='number of replicas'),)
    """
    defaults = kind()
    return tuple(
        Field(name, _type_name(hint), getattr(defaults, name), _description(hint))
        for name, hint in _hints(kind).items()
    )


def parse(kind: type[S], values: Mapping[str, str]) -> S:
    """Return the default settings with some replaced by `values`, converted from text.

    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     runs: Annotated[int, msgspec.Meta(ge=1, description="number of replicas")] = 100
    >>> parse(Settings, {"runs": "250"})
    Settings(runs=250)
    >>> parse(Settings, {"runs": "0"})
    Traceback (most recent call last):
    bayescontrol.lab.settings.InvalidSettings: runs=0: expected `int` >= 1...
    """
    hints = _hints(kind)
    allowed = f" Allowed settings: {', '.join(hints)}"
    converted: dict[str, Any] = {}
    for name, text in values.items():
        if name not in hints:
            similar = difflib.get_close_matches(name, hints, n=1)
            hint = f", did you mean {similar[0]}?" if similar else "."
            raise InvalidSettings(f"{name}={text}: there is no setting {name!r}{hint}{allowed}")
        try:
            converted[name] = convert_text(text, hints[name])
        except msgspec.ValidationError as error:
            # Every value is given as a string; that is not the mistake.
            problem = str(error).removesuffix(", got `str`")
            field = f"{name}, {_type_name(hints[name])}: {_description(hints[name])}".rstrip(": ")
            raise InvalidSettings(
                f"{name}={text}: {problem[:1].lower()}{problem[1:]} ({field}).{allowed}"
            ) from None
    try:
        return kind(**converted)
    except ValueError as error:  # raised by the settings' own __post_init__
        settings_text = ", ".join(f"{name}={text}" for name, text in values.items())
        raise InvalidSettings(f"{settings_text}: {error}.{allowed}") from error


def plain(value: Any) -> Any:
    """Convert settings or numbers to JSON types; NaN and infinities become strings.

    >>> plain({"eps": math.nan, "depths": (1, math.inf), "name": "chain"})
    {'eps': 'NaN', 'depths': [1, 'Infinity'], 'name': 'chain'}
    """
    bare = msgspec.to_builtins(value, enc_hook=_python_scalar)
    if isinstance(bare, Mapping):
        return {str(name): plain(item) for name, item in bare.items()}
    if isinstance(bare, list | tuple):
        return [plain(item) for item in bare]
    if isinstance(bare, float) and not math.isfinite(bare):
        return "NaN" if math.isnan(bare) else "Infinity" if bare > 0 else "-Infinity"
    return bare


def restore(kind: type[S], values: Mapping[str, Any]) -> S:
    """Restore settings from the plain values that `plain` made of them.

    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     runs: int = 100
    ...     eps: float = math.inf
    >>> restore(Settings, plain(Settings(runs=3)))
    Settings(runs=3, eps=inf)
    """
    try:
        return msgspec.convert(dict(values), kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidSettings(
            f"{kind.__name__} cannot be restored from {dict(values)}: {error}; the values were "
            "written by another version of the experiment"
        ) from error


def add_settings(values: dict[str, str], pairs: Sequence[str]) -> dict[str, str]:
    """Add settings of the form KEY=VALUE to `values`; reject a setting that is given twice."""
    for text in pairs:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidSettings(f"--set {text}: expected KEY=VALUE")
        if key in values:
            raise InvalidSettings(f"--set {text}: {key} was already set to {values[key]}")
        values[key] = value
    return values


def key(experiment: str, settings: Any) -> str:
    """Return the sha256 of the experiment's name and its settings without `runs`, in hex.

    >>> key("chain", {"seed": 0, "runs": 10}) == key("chain", {"runs": 20, "seed": 0})
    True
    >>> key("chain", {"seed": 0}) == key("chain", {"seed": 1})
    False
    """
    try:
        values = plain(settings)
    except TypeError as error:
        raise InvalidSettings(
            f"{experiment}: {settings} cannot be stored ({error}); use numbers, strings, "
            "booleans, and tuples of them"
        ) from error
    values = {name: value for name, value in values.items() if name != "runs"}
    text = json.dumps([experiment, values], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Point:
    """One point of a sweep: its settings, the swept values, and the name of its folder.

    >>> Point(None, {"C": 5}, "5e1f").label
    'C = 5'
    """

    settings: Any
    swept: dict[str, Any]
    folder: str

    @property
    def label(self) -> str:
        """The swept settings as text."""
        return ", ".join(f"{name} = {value}" for name, value in self.swept.items())


def values_of(sweeps: Sequence[str]) -> dict[str, list[str]]:
    """Parse `--sweep` options into the values of each swept setting, as text.

    >>> values_of(["C=5,30", "depths=[[1,2],[3]]"])
    {'C': ['5', '30'], 'depths': ['[1, 2]', '[3]']}
    """
    found: dict[str, list[str]] = {}
    for text in sweeps:
        name, equals, values_text = text.partition("=")
        if not equals or not values_text.strip():
            raise InvalidSettings(f"--sweep {text}: write --sweep KEY=VALUE,VALUE,...")
        if name in found:
            raise InvalidSettings(f"--sweep {text}: {name} is swept twice; list all values once")
        found[name] = _split_values(values_text)
        repeated = {value for value in found[name] if found[name].count(value) > 1}
        if repeated:
            raise InvalidSettings(f"--sweep {text}: {', '.join(sorted(repeated))} is listed twice")
    return found


def points(
    experiment: Experiment[Any], fixed: Mapping[str, str], sweeps: Mapping[str, Sequence[str]]
) -> tuple[Point, ...]:
    """Return all points of a sweep, with the other settings from `fixed`; validate all values.

    >>> from types import SimpleNamespace as Some
    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     seed: int = 0
    ...     runs: int = 10
    ...     C: float = 5.0
    >>> chosen = points(Some(name="maze", settings=Settings), {"runs": "3"}, {"C": ["5", "30"]})
    >>> [point.settings for point in chosen]
    [Settings(seed=0, runs=3, C=5.0), Settings(seed=0, runs=3, C=30.0)]
    """
    for name, value in fixed.items():
        if name in sweeps:
            raise InvalidSettings(f"{name} is both swept and set to {value}: remove one of the two")
    found: list[Point] = []
    for values in itertools.product(*sweeps.values()):
        settings = parse(experiment.settings, {**fixed, **dict(zip(sweeps, values, strict=True))})
        plain_settings = plain(settings)
        folder = key(experiment.name, settings)[:_FOLDER_LENGTH]
        if "runs" in sweeps:  # the key does not depend on runs
            folder = f"{folder}-{plain_settings['runs']}"
        point = Point(settings, {name: plain_settings[name] for name in sweeps}, folder)
        if any(folder == earlier.folder for earlier in found):
            raise InvalidSettings(f"--sweep: {point.label} is listed twice")
        found.append(point)
    return tuple(found)


def axes(points: Sequence[Point]) -> dict[str, list[Any]]:
    """Return the values of each swept setting, in the order of the points.

    >>> axes([Point(None, {"C": 5}, ""), Point(None, {"C": 30}, "")])
    {'C': [5, 30]}
    """
    found: dict[str, list[Any]] = {}
    for name, value in (item for point in points for item in point.swept.items()):
        if value not in found.setdefault(name, []):
            found[name].append(value)
    return found


def _split_values(text: str) -> list[str]:
    """Split the values of a sweep: the items of a JSON list, or the parts between commas."""
    with suppress(ValueError):
        values = json.loads(text)
        if isinstance(values, list):
            return [value if isinstance(value, str) else json.dumps(value) for value in values]
    return [part.strip() for part in text.split(",")]


def _python_scalar(value: Any) -> Any:
    """Convert a NumPy scalar to a number of Python, for msgspec."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is not a number, string, boolean or tuple")


def _hints(kind: type[Any]) -> dict[str, Any]:
    """Return the annotation of each field of a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _metas(hint: Any) -> list[msgspec.Meta]:
    """Return the `msgspec.Meta` objects of an annotation: its bounds and description."""
    return [extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, msgspec.Meta)]


def _description(hint: Any) -> str:
    """Return the description in an annotation, empty without one."""
    return next((meta.description for meta in _metas(hint) if meta.description), "")


def _type_name(hint: Any) -> str:
    """Describe a type with its bounds, such as "int ≥ 1"."""
    bounds = [
        f" {sign} {bound}"
        for meta in _metas(hint)
        for sign, bound in (("≥", meta.ge), (">", meta.gt), ("≤", meta.le), ("<", meta.lt))
        if bound is not None
    ]
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(bare) is Literal:
        return " | ".join(map(str, get_args(bare)))
    if get_origin(bare) is None and isinstance(bare, type):
        return bare.__name__ + ",".join(bounds)
    # Compound types, such as list[int] and int | None.
    return str(bare).replace("typing.", "") + ",".join(bounds)
