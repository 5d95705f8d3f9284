"""Saved state: a class declares its fields, and gets `save`, `load` and `copy` from here.

    Fixed       given at construction: saved, and compared at load
    Array       an evolving array: saved, restored, copied
    Number      an evolving number
    Plain       an evolving plain value, such as a situation
    Part        another object with a state, such as the belief of an agent; Parts: a list of them
    Copied      not saved: copied with the object
    Cache       not saved: made again in a copy

The value of a field is an attribute, or the result of a function of the object. Its dtype and shape
are those that the object has now; a shape can also be declared. `load` reads and checks all fields
before it changes anything.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cache
from types import EllipsisType, SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np

from bayescontrol._arrays import AnyArray, Arrays
from bayescontrol._support.values import pack, unpack
from bayescontrol.errors import BayesControlError, IncompatibleState, MissingCapability


def damaged(text: object) -> IncompatibleState:
    """Return the error for saved arrays that `save` cannot have returned."""
    return IncompatibleState(f"the saved state is damaged: {text}")


class SavedArrays(dict[str, AnyArray]):
    """The arrays that `save` returned; reading a missing one raises `IncompatibleState`."""

    def __init__(self, arrays: object) -> None:
        if not isinstance(arrays, Mapping):
            raise IncompatibleState(
                f"the saved state {arrays!r} is not a mapping of arrays as returned by `save`"
            )
        super().__init__(arrays)

    def __missing__(self, name: str) -> AnyArray:
        raise IncompatibleState(f"the saved state lacks the array {name!r}")


def require_arrays(arrays: object, names: Iterable[str]) -> None:
    """Raise `IncompatibleState` unless `arrays` is a mapping with these names, as from `save`."""
    saved = SavedArrays(arrays)
    for name in names:
        saved[name]


def with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays with the prefix before their names."""
    return {prefix + name: v for name, v in arrays.items()} if prefix else arrays


def part_of(arrays: Arrays, prefix: str) -> Arrays:
    """Return the saved arrays whose names begin with the prefix, and drop the prefix."""
    return {n.removeprefix(prefix): v for n, v in arrays.items() if n.startswith(prefix)}


def require_triangular(name: str, array: AnyArray) -> None:
    """Raise `IncompatibleState` unless the array is upper triangular, with a diagonal > 0."""
    positive = np.diagonal(array, axis1=-2, axis2=-1) > 0.0
    if np.tril(array, -1).any() or not positive.all():
        raise damaged(f"{name!r} is not a triangular factor")


@dataclass(eq=False)
class Field:
    """Base of the fields. `name` is the name of the saved array."""

    name: str
    #: The attribute, by default `name`; or a function of the object that returns the value.
    source: str | Callable[[Any], Any] = ""

    #: Whether a copy of the object has its own copy of the attribute.
    copied = False
    #: Whether the attribute is a list, dict or tuple, whose entries are copied too.
    nested = False
    #: Whether the value is loaded by the object in `source` itself.
    in_place = False

    @property
    def key(self) -> str:
        """The attribute, or else the last part of `name`.

        `load` stores the value under this name. A subclass replaces a field with the same key.
        """
        if isinstance(self.source, str):
            return self.source or self.name
        return self.name.rstrip("/").rpartition("/")[2]

    def value(self, owner: object) -> Any:
        """Return the value that the object has now."""
        if isinstance(self.source, str):
            return getattr(owner, self.source or self.name)
        return self.source(owner)

    def save(self, owner: object, arrays: Arrays) -> None:
        """Add the named arrays of this field."""
        raise NotImplementedError

    def read(self, owner: object, arrays: Arrays) -> Any:
        """Return the saved value; raise IncompatibleState if it does not fit the object."""
        raise NotImplementedError


@dataclass(eq=False)
class Fixed(Field):
    """A setting: the saved value must be equal to that of the object.

    `setting` is its name in the error, which is `name` by default.
    """

    setting: str = ""

    def __post_init__(self) -> None:
        self.setting = self.setting or self.name.rpartition("/")[2]

    def save(self, owner: object, arrays: Arrays) -> None:
        """Add the setting."""
        arrays[self.name] = _pack_setting(self.setting, self.value(owner))

    def read(self, owner: object, arrays: Arrays) -> Any:
        """Raise IncompatibleState, with both values, unless the setting is the same."""
        _require_same(owner, self.setting, self.value(owner), arrays[self.name])
        return self.value(owner)


def _pack_setting(setting: str, value: object) -> AnyArray:
    """Return arrays, numbers and texts as they are, other values as text."""
    if isinstance(value, str | float | int | np.ndarray):
        return np.array(value)
    return pack(value, f"the setting {setting}")


def _require_same(owner: object, setting: str, value: object, saved_array: AnyArray) -> None:
    """Raise IncompatibleState unless `value`, which the owner has, is equal to the saved one."""
    saved, mine = np.asarray(saved_array), _pack_setting(setting, value)
    same = saved.dtype.kind == mine.dtype.kind and np.array_equal(saved, mine)
    if not same and isinstance(value, dict | list | tuple):  # dicts may differ in order
        same = saved.dtype.kind == "U" and unpack(saved) == value
    if not same:
        raise IncompatibleState(
            f"saved with {setting} {_shown(saved)}, this {type(owner).__name__} has "
            f"{setting} {_shown(mine)}: create it with the same `{setting}`"
        )


class FixedPart(Field):
    """Another object whose saved arrays must all be the same; `name` is their prefix."""

    def save(self, owner: object, arrays: Arrays) -> None:
        """Add the arrays of the part."""
        arrays |= with_prefix(self.name, self.value(owner).save())

    def read(self, owner: object, arrays: Arrays) -> Any:
        """Raise IncompatibleState, with both values, unless the part is the same."""
        for name, mine in self.value(owner).save().items():
            _require_same(owner, name, mine, arrays[self.name + name])
        return self.value(owner)


def _shown(array: AnyArray) -> str:
    text = str(array.tolist())
    return text if len(text) <= 200 else f"{text[:200]}…"


@dataclass(eq=False)
class Array(Field):
    """An array, or a list of numbers. If the value is None now, it is neither saved nor restored.

    `shape` has an entry for each axis: a size, the name of an attribute that holds it, or None if
    any size is valid; `...` accepts any shape. Numbers must be finite unless `finite` is False. A
    `shared` array is only ever replaced, never changed in place, so that copies may share it.
    """

    _: KW_ONLY
    shape: tuple[int | str | None, ...] | EllipsisType | None = None
    finite: bool = True
    shared: bool = False

    def __post_init__(self) -> None:
        self.copied = not self.shared and isinstance(self.source, str)

    def save(self, owner: object, arrays: Arrays) -> None:
        """Add a copy of the array."""
        if (value := self.value(owner)) is not None:
            arrays[self.name] = np.array(value)

    def read(self, owner: object, arrays: Arrays) -> Any:
        """Return a copy of the saved array; a list if the object has a list."""
        mine = self.value(owner)
        if mine is None:
            return None
        shape = np.shape(mine) if self.shape is None else self.shape
        if isinstance(shape, EllipsisType):
            shape = np.shape(arrays[self.name])
        sizes = tuple(getattr(owner, n) if isinstance(n, str) else n for n in shape)
        dtype = np.asarray(mine).dtype
        array = checked_array(arrays, self.name, dtype, sizes, finite=self.finite)
        return array.tolist() if isinstance(mine, list) else array.copy()


class ArrayGroup(Field):
    """Named arrays of any shape; `name` is the prefix of their names."""

    def save(self, owner: object, arrays: Arrays) -> None:
        """Add the arrays."""
        arrays |= with_prefix(self.name, self.value(owner))

    def read(self, owner: object, arrays: Arrays) -> Arrays:
        """Return the saved arrays, without the prefix."""
        return part_of(arrays, self.name)


@dataclass(eq=False)
class Number(Field):
    """An integer or a float: finite unless `finite` is False, and at least `least`."""

    _: KW_ONLY
    finite: bool = True
    least: float = -math.inf

    def save(self, owner: object, arrays: Arrays) -> None:
        """Add the number as an array without axes."""
        arrays[self.name] = np.array(self.value(owner))

    def read(self, owner: object, arrays: Arrays) -> Any:
        """Return the saved number."""
        dtype = np.array(self.value(owner)).dtype
        number = checked_array(arrays, self.name, dtype, (), finite=self.finite).item()
        if number < self.least:
            raise damaged(f"{self.name!r} is {number}, below {self.least:g}")
        return number


def checked_array(
    arrays: Arrays, name: str, dtype: Any, shape: tuple[int | None, ...], *, finite: bool = True
) -> AnyArray:
    """Return a saved array; raise IncompatibleState unless it has this dtype and shape.

    None stands for any size.
    """
    array, expected = np.asarray(arrays[name]), np.dtype(dtype)
    sizes = zip(array.shape, shape, strict=False)
    fits = array.ndim == len(shape) and all(n is None or n == size for size, n in sizes)
    if not fits or array.dtype != expected:
        shown = ", ".join("any" if n is None else str(n) for n in shape)
        raise IncompatibleState(
            f"the saved array {name!r} is {array.dtype}{list(array.shape)}, not {expected}[{shown}]"
        )
    if finite and expected.kind == "f" and not np.isfinite(array).all():
        raise damaged(f"{name!r} is not finite: {_shown(array)}")
    return array


@dataclass(eq=False)
class Plain(Field):
    """A plain value: an array of numbers, or a Python literal. `what` describes it in errors."""

    what: str = ""
    _: KW_ONLY
    copied: bool = False

    def save(self, owner: object, arrays: Arrays) -> None:
        """Add the value as an array."""
        arrays[self.name] = pack(self.value(owner), self.what or f"the {self.name}")

    def read(self, owner: object, arrays: Arrays) -> Any:
        """Return the saved value."""
        return unpack(np.asarray(arrays[self.name]))


@dataclass(eq=False)
class Part(Field):
    """Another object with `save`, `load` and `copy`; `name` is the prefix of its arrays.

    A part that may be None needs `blank`, a function that returns an empty part to load into. A
    part that users hold, such as the belief of an agent, is loaded `in_place`: it stays the same
    object.
    """

    copied = True

    _: KW_ONLY
    in_place: bool = False
    blank: Callable[[Any], Any] | None = None

    def save(self, owner: object, arrays: Arrays) -> None:
        """Add the arrays of the part."""
        part = self.value(owner)
        if part is None and self.blank is not None:
            return
        if not (hasattr(part, "save") and hasattr(part, "load")):
            raise MissingCapability(f"{part!r} cannot be saved: it has no save and load")
        arrays |= with_prefix(self.name, part.save())

    def read(self, owner: object, arrays: Arrays) -> Any:
        """Return a part with the saved state; the present part does not change."""
        saved = part_of(arrays, self.name)
        if self.blank is not None and not saved:
            return None
        part = self.value(owner).copy() if self.blank is None else self.blank(owner)
        part.load(saved)
        return part


class Parts(Field):
    """A list of parts; the prefix of part i is `name`, i and a slash."""

    copied = nested = True

    def save(self, owner: object, arrays: Arrays) -> None:
        """Add the arrays of all parts."""
        for i, part in enumerate(self.value(owner)):
            arrays |= with_prefix(f"{self.name}{i}/", part.save())

    def read(self, owner: object, arrays: Arrays) -> Any:
        """Return parts with the saved states; the present parts do not change."""
        parts = _deep_copy(self.value(owner))
        for i, part in enumerate(parts):
            part.load(part_of(arrays, f"{self.name}{i}/"))
        return parts


@dataclass(eq=False)
class Copied(Field):
    """An attribute that is not saved; a copy of the object has its own copy.

    With `nested`, the attribute is a list, dict or tuple, and its entries are copied too.
    """

    copied = True

    _: KW_ONLY
    nested: bool = False


class Cache(Copied):
    """An attribute that is not saved; the function `source` returns that of a copy."""

    copied = False


def _deep_copy(value: Any) -> Any:
    """Copy a list, dict or named tuple and its entries."""
    if isinstance(value, dict):
        return {key: _deep_copy(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        entries = map(_deep_copy, value)
        return value._make(entries) if hasattr(value, "_make") else type(value)(entries)
    return value.copy()


def declare(*fields: Field) -> tuple[Field, ...]:
    """Return the fields, as `saved_fields` of a class."""
    return fields


class _Plan:
    """The fields of a class, sorted by what is done with them."""

    def __init__(self, cls: type) -> None:
        found: dict[str, Field] = {}
        for base in reversed(cls.__mro__):
            found |= {field.key: field for field in vars(base).get("saved_fields", ())}
        self.fields = fields = list(found.values())
        self.nested = [field.key for field in fields if field.nested]
        self.caches = [field for field in fields if isinstance(field, Cache)]
        self.saved = [field for field in fields if not isinstance(field, Copied)]
        self.in_place = [field for field in self.saved if field.in_place]
        self.loaded = [field for field in self.saved if not field.in_place]
        self.copied = frozenset(field.key for field in fields if field.copied and not field.nested)
        #: Keys of values that only `_check_state` uses: they are settings, or not attributes.
        self.only_checked = {
            field.key
            for field in self.loaded
            if isinstance(field, Fixed) or not isinstance(field.source, str)
        }


plan_of: Callable[[type], _Plan] = cache(_Plan)


class Saved:
    """Base of classes that declare their state in `saved_fields`.

    Subclasses add their fields to those of their bases; a field of the same attribute replaces that
    of the base.

    >>> class Coin(Saved):
    ...     saved_fields = declare(Fixed("prior"), Array("counts"))
    ...     def __init__(self, prior): self.prior, self.counts = prior, np.zeros(2)
    >>> coin = Coin(0.5)
    >>> coin.counts[1] += 1
    >>> coin.save()
    {'prior': array(0.5), 'counts': array([0., 1.])}
    >>> Coin(1.0).load(coin.save())
    Traceback (most recent call last):
    bayescontrol.errors.IncompatibleState: saved with prior 0.5, this Coin has prior 1.0: create ...
    """

    saved_fields: ClassVar[tuple[Field, ...]] = ()

    def save(self) -> Arrays:
        """Return the state as named arrays; `load` restores it bit for bit."""
        arrays: Arrays = {}
        for field in plan_of(type(self)).saved:
            field.save(self, arrays)
        return arrays

    def load(self, arrays: Arrays) -> None:
        """Restore what `save` returned, for an object with the same settings.

        Another state raises IncompatibleState and changes nothing.
        """
        plan, arrays, new = plan_of(type(self)), SavedArrays(arrays), SimpleNamespace()
        try:
            for field in plan.loaded:
                setattr(new, field.key, field.read(self, arrays))
            self._check_state(new)
        except IncompatibleState:
            raise
        except (BayesControlError, TypeError, ValueError, LookupError) as error:
            raise damaged(error) from None
        parts = [(field.value(self), part_of(arrays, field.name)) for field in plan.in_place]
        for part, _ in parts:
            if not hasattr(part, "load"):
                raise IncompatibleState(f"{part!r} cannot be loaded: it has no save and load")
        for part, saved in parts[:-1]:  # the last part checks its arrays itself
            part.copy().load(saved)
        for part, saved in parts:
            part.load(saved)
        for name, value in vars(new).items():
            if name not in plan.only_checked:
                setattr(self, name, value)
        self._after_load()

    def copy(self) -> Self:
        """Return an independent copy; what never changes is shared."""
        plan = plan_of(type(self))
        for field in plan.in_place:
            if not hasattr(part := field.value(self), "copy"):
                raise MissingCapability(f"{part!r} cannot be copied: it has no copy()")
        copied, clone = plan.copied, object.__new__(type(self))
        # One by one: attributes are found faster if nobody has read the `__dict__` of the object.
        for name, value in self.__dict__.items():
            setattr(clone, name, value.copy() if name in copied and value is not None else value)
        for name in plan.nested:
            setattr(clone, name, _deep_copy(getattr(self, name)))
        for field in plan.caches:
            setattr(clone, field.name, field.value(clone))
        clone._after_copy()
        return clone

    def _check_state(self, new: SimpleNamespace) -> None:
        """Raise an error if the loaded values do not fit together; may add values to set.

        `new` has the values by attribute. Nothing has changed yet.
        """

    def _after_load(self) -> None:
        """Compute what is not saved; must not raise."""

    def _after_copy(self) -> None:
        """Compute what depends on the parts of the copy."""

    def __copy__(self) -> Self:
        return self.copy()

    def __getstate__(self) -> dict[str, object]:
        """Return the attributes for pickle and deepcopy, without caches."""
        fresh = {field.name: field.value(self) for field in plan_of(type(self)).caches}
        return {**self.__dict__, **fresh}
