"""What a user gives as text: the name of a registered object, and the value of a setting."""

import difflib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import EntryPoint
from typing import Any

import msgspec

from bayescontrol.errors import BayesControlError


def load_registered(
    what: str, name: str, points: Sequence[EntryPoint], error_type: type[BayesControlError]
) -> tuple[str, Any]:
    """Load the object that an entry point registers as `name`; return its address and the object.

    Raises `error_type` if `name` is unknown or registered twice, or if loading fails.
    """
    found = {point.value: point for point in points if point.name == name}
    if not found:
        known = sorted({point.name for point in points})
        similar = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        suggestion = f", did you mean {' or '.join(similar)}?" if similar else "."
        listed = ", ".join(known) or "none"
        raise error_type(f"no {what} is called {name!r}{suggestion} There are: {listed}")
    if len(found) > 1:
        raise error_type(
            f"{name!r} is registered more than once: {', '.join(sorted(found))}; "
            "uninstall or rename one of them"
        )
    ((value, point),) = found.items()
    try:
        return value, point.load()
    except Exception as error:  # a user's module may raise anything
        raise error_type(
            f"{what} {name!r} ({value}) cannot be loaded: {type(error).__name__}: {error}"
        ) from error


def convert_text(value: Any, hint: Any) -> Any:
    """Convert a value, perhaps text, to the type `hint`; raise the first error if none fits.

    >>> convert_text(".5,1", tuple[float, ...]), convert_text("1e3", float)
    ((0.5, 1.0), 1000.0)
    """
    errors = []
    for reading in _readings(value) if isinstance(value, str) else (value,):
        try:
            return msgspec.convert(reading, hint, strict=False)
        except msgspec.ValidationError as error:
            errors.append(error)
    raise errors[0]


def _readings(text: str) -> Iterator[Any]:
    """Yield the ways to read a text: string, JSON, number, list with commas, list of numbers."""
    yield text
    with suppress(msgspec.DecodeError):
        yield msgspec.json.decode(text)
    with suppress(ValueError):
        yield float(text)  # .5 and 1e3 are not JSON
    parts = [part.strip() for part in text.split(",")]
    yield parts
    with suppress(ValueError):
        yield list(map(float, parts))
