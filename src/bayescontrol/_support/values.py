"""Store situations and private states as arrays: plain data only, never code.

A NumPy array is stored as it is. Python literals (None, numbers, strings, and tuples, lists,
dicts, sets of them) are stored as their `repr`.

Classes and their parameters have names in stored data that do not change when the code is
renamed: `format_name` and `format_text`.
"""

import ast
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from bayescontrol._arrays import AnyArray
from bayescontrol.errors import IncompatibleState, MissingCapability

NUMERIC = "biufc"


def pack(value: object, what: str) -> AnyArray:
    """Convert a plain value to an array; raise MissingCapability if that is not possible."""
    if isinstance(value, np.ndarray) and value.dtype.kind in NUMERIC:
        return value.copy()
    if isinstance(value, np.generic):
        value = value.item()
    text = repr(value)
    try:
        is_literal = bool(ast.literal_eval(text) == value)
    except (ValueError, SyntaxError):
        is_literal = False
    if not is_literal:
        raise MissingCapability(
            f"{what} is {text[:80]}, which cannot be saved: use an array or a plain Python "
            "literal, such as a tuple of numbers"
        )
    return np.array(text)


def unpack(array: AnyArray) -> Any:
    """Return the value that `pack` converted."""
    if array.dtype.kind in NUMERIC:
        return array.copy()
    try:
        return ast.literal_eval(array.item())
    except (ValueError, SyntaxError, TypeError):
        raise IncompatibleState(
            f"the saved state is damaged: {str(array)[:80]!r} is not a Python literal"
        ) from None


def format_name(cls: type, default: str) -> str:
    """Return the name of a class in stored data: the `format_name` that the class declares.

    If the class declares none, return `default`. Subclasses do not inherit `format_name`.

    >>> class Renamed:
    ...     format_name = "Original"
    >>> format_name(Renamed, "Renamed"), format_name(int, "int")
    ('Original', 'int')
    """
    return str(vars(cls).get("format_name", default))


def format_text(value: object) -> str:
    """Return the text of a value in stored data: its `format_text`, or its repr.

    A class declares `format_text` as a text or a method. Subclasses do not inherit it.

    >>> class Prior:
    ...     def format_text(self): return "Prior(scale=2)"
    >>> format_text(Prior()), format_text((1, 2))
    ('Prior(scale=2)', '(1, 2)')
    """
    declared = vars(type(value)).get("format_text")
    if declared is None:
        return repr(value)
    return declared if isinstance(declared, str) else str(declared(value))


def distinct_texts(values: Iterable[Any]) -> dict[Any, str]:
    """Return a different text for each value: its `str`, or its `repr` where that is ambiguous.

    >>> distinct_texts(["red", 2]), distinct_texts([1, "1"])
    ({'red': 'red', 2: '2'}, {1: '1', '1': "'1'"})
    """
    things = list(values)
    texts = distinct([str(v) for v in things], [repr(v) for v in things])
    return dict(zip(things, texts, strict=True))


def distinct(short: list[str], long: list[str]) -> list[str]:
    """Return the short texts; the long text where a short one is not unique.

    If that still leaves two equal texts, return the long ones, which must all differ.
    """
    count = Counter(short)
    texts = [s if count[s] == 1 else t for s, t in zip(short, long, strict=True)]
    return texts if len(set(texts)) == len(texts) else long


def description(thing: object) -> str:
    """Return the class of an object and its public numbers, texts, tuples and arrays.

    It identifies modes without names in a saved state.

    >>> class Coin:
    ...     def __init__(self, p): self.p, self._tosses = p, 0
    >>> description(Coin(0.9))
    'Coin(p=0.9)'
    """
    cls, state = type(thing), object.__getstate__(thing)
    parts = state if isinstance(state, tuple) else (state,)  # of __dict__ and __slots__
    known = {
        name: _plain_text(value)
        for part in parts
        for name, value in (part or {}).items()
        if name[0] != "_" and not isinstance(getattr(cls, name, None), cached_property)
    }
    text = ", ".join(f"{name}={value}" for name, value in sorted(known.items()) if value)
    return f"{format_name(cls, cls.__name__)}({text if len(text) < 80 else _digest(text)})"


def _plain_text(value: object) -> str:
    """Return a number, to nine digits, a text or a tuple as text; "" for anything else.

    Of an array return the shape and a digest.
    """
    if isinstance(value, float | np.floating):
        return f"{value:.9g}"
    if isinstance(value, tuple) and all(texts := [_plain_text(v) for v in value]):
        return f"({', '.join(texts)})"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        # Rounded to float32: the last bits of a double depend on the machine.
        rounded = value.astype(np.float32) if value.dtype.kind == "f" else value
        return f"{value.shape} {_digest(rounded.tobytes().hex())}"
    return repr(value) if isinstance(value, str | bytes | int | np.integer | None) else ""


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()
