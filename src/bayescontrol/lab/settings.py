"""Settings from text: `key=value` to a frozen, validated dataclass.

    settings = replace(defaults, key_1 = convert(value_1), ...)

A field carries its type, bounds and description in its annotation (`msgspec.Meta`); msgspec
converts and checks. Several values are written with commas (`depths=1,2,3`) or as JSON.

    key = sha256(name of the experiment, settings without `runs`)

What a replica gives depends on these and on its own number, not on how many there are: the
key is the address of its results.
"""

import dataclasses
import difflib
import hashlib
import json
import math
import types
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from bayescontrol.errors import BayesControlError

S = TypeVar("S")


class InvalidSettings(BayesControlError, ValueError):
    """A setting that the experiment lacks, or a value that it cannot take.

    >>> issubclass(InvalidSettings, ValueError)
    True
    """


@dataclass(frozen=True)
class Field:
    """One setting: its name, type with bounds, default and description, as text.

    >>> Field("runs", "int ≥ 1", 100, "number of replicas").default
    100
    """

    name: str
    type: str
    default: Any
    description: str


def describe(kind: type[Any]) -> tuple[Field, ...]:
    """The settings of an experiment, in the order of their declaration.

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
    """The default settings with `values` in place of some.

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
            near = difflib.get_close_matches(name, hints, n=1)
            meant = f", did you mean {near[0]}?" if near else "."
            raise InvalidSettings(f"{name}={text}: there is no setting {name!r}{meant}{allowed}")
        try:
            converted[name] = _convert(text, hints[name])
        except msgspec.ValidationError as error:
            problem = str(error).removesuffix(", got `str`")  # all values come as text
            field = f"{name}, {_type_name(hints[name])}: {_description(hints[name])}".rstrip(": ")
            raise InvalidSettings(
                f"{name}={text}: {problem[:1].lower()}{problem[1:]} ({field}).{allowed}"
            ) from None
    try:
        return kind(**converted)
    except ValueError as error:  # what the settings check about several fields together
        given = ", ".join(f"{name}={text}" for name, text in values.items())
        raise InvalidSettings(f"{given}: {error}.{allowed}") from error


def plain(value: Any) -> Any:
    """Any settings or numbers as JSON can hold them; NaN and infinities become strings.

    >>> plain({"eps": math.nan, "depths": (1, math.inf), "name": "chain"})
    {'eps': 'NaN', 'depths': [1, 'Infinity'], 'name': 'chain'}
    """
    bare = msgspec.to_builtins(value, enc_hook=_scalar)
    if isinstance(bare, Mapping):
        return {str(name): plain(item) for name, item in bare.items()}
    if isinstance(bare, list | tuple):
        return [plain(item) for item in bare]
    if isinstance(bare, float) and not math.isfinite(bare):
        return "NaN" if math.isnan(bare) else "Infinity" if bare > 0 else "-Infinity"
    return bare


def restore(kind: type[S], values: Mapping[str, Any]) -> S:
    """The settings s out of plain(s).

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
            f"{kind.__name__} cannot be made of {dict(values)}: {error}; they were written by "
            "another version of the experiment"
        ) from error


def key(experiment: str, settings: Any) -> str:
    """sha256 of the experiment's name and its settings without `runs`, as 64 hex digits.

    >>> key("chain", {"seed": 0, "runs": 10}) == key("chain", {"runs": 20, "seed": 0})
    True
    >>> key("chain", {"seed": 0}) == key("chain", {"seed": 1})
    False
    """
    try:
        values = plain(settings)
    except TypeError as error:
        raise InvalidSettings(
            f"{experiment}: {settings} cannot be written down ({error}); use numbers, strings, "
            "booleans, and tuples of them"
        ) from error
    values = {name: value for name, value in values.items() if name != "runs"}
    text = json.dumps([experiment, values], sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _scalar(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is no plain value")


def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _readings(text: str) -> Iterator[Any]:
    yield text
    with suppress(msgspec.DecodeError):
        yield msgspec.json.decode(text)
    with suppress(ValueError):
        yield float(text)  # .5 and 1e3, which people write and JSON does not
    yield [part.strip() for part in text.split(",")]


def _convert(text: str, hint: Any) -> Any:
    first: msgspec.ValidationError | None = None
    for value in _readings(text):
        try:
            return msgspec.convert(value, hint, strict=False)
        except msgspec.ValidationError as error:
            first = first or error
    assert first is not None
    raise first


def _metas(hint: Any) -> tuple[msgspec.Meta, ...]:
    if get_origin(hint) is not Annotated:
        return ()
    return tuple(extra for extra in get_args(hint)[1:] if isinstance(extra, msgspec.Meta))


def _description(hint: Any) -> str:
    return next((meta.description for meta in _metas(hint) if meta.description), "")


def _type_name(hint: Any) -> str:
    bounds = [
        f" {sign} {bound}"
        for meta in _metas(hint)
        for sign, bound in (("≥", meta.ge), (">", meta.gt), ("≤", meta.le), ("<", meta.lt))
        if bound is not None
    ]
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(bare) is Literal:
        return " | ".join(map(str, get_args(bare)))
    if get_origin(bare) is None and isinstance(bare, type) and bare is not types.NoneType:
        return bare.__name__ + ",".join(bounds)
    return str(bare).replace("typing.", "") + ",".join(bounds)
