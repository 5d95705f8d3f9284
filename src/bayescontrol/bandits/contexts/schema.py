"""Contexts with names: a mapping of fields, or a row of a data frame, becomes a vector x.

    x = (1, fields in the order of the schema)

    number      (value - center) / scale
    boolean     0 or 1
    category    one feature per category, 1 for the category of x; all are 0 for an unseen one

So an unseen category is predicted by the constant and the other fields. Without a given scale, a
number is used as it is, and a bandit that learns its prior learns the scale too.
"""

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, Final

import numpy as np

from bayescontrol._arrays import FloatArray
from bayescontrol.errors import BadEvidence, InvalidTable

_NUMBER, _BOOLEAN = "number", "boolean"
#: What may be given for a number.
_OPTIONS: Final = ("center", "scale")


class Schema:
    """The fields of a context, as a mapping from their names to what they hold.

    A field is "number", a dict with the `center` and `scale` of a number, "boolean", or a list of
    categories. Both are optional: numbers may have any scale, see `LinearBandit`.

    >>> age = {"center": 40, "scale": 15}
    >>> schema = Schema({"age": age, "plan": ["free", "pro"], "new": "boolean"})
    >>> schema.names
    ['1', 'age', 'plan=free', 'plan=pro', 'new']
    >>> schema.encode({"age": 55, "plan": "pro", "new": False}).tolist()
    [1.0, 1.0, 0.0, 1.0, 0.0]
    >>> schema.encode({"age": 40, "plan": "trial", "new": True}).tolist()
    [1.0, 0.0, 0.0, 0.0, 1.0]
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        if not fields:
            raise InvalidTable("features={}: give at least one field, as {'age': 'number'}")
        self.fields = {name: _checked_field(name, field) for name, field in fields.items()}
        #: The names of the features: the constant, then those of the fields.
        self.names = ["1"]
        for name, field in self.fields.items():
            is_category = isinstance(field, list)
            self.names += [f"{name}={c}" for c in field] if is_category else [name]
        numbers = {name for name, field in self.fields.items() if isinstance(field, dict)}
        #: Whether the scale of a feature is known: it is not for a number without `scale`.
        is_scaled = [n not in numbers or "scale" in self.fields[n] for n in self.names]
        self.is_scaled = np.array(is_scaled)

    def encode(self, x: Any) -> FloatArray:
        """Return the features of a mapping or a row of a data frame, or raise BadEvidence.

        Fields that the schema does not have are refused, because logs would store them.
        """
        features = [1.0]
        for name, field in self.fields.items():
            if name not in x.keys():  # noqa: SIM118 - `in` a pandas.Series is not documented
                raise BadEvidence(f"context lacks the field {name!r}: use {', '.join(self.fields)}")
            features += _encoded(name, field, x[name])
        if len(x) > len(self.fields):
            other = next(name for name in x.keys() if name not in self.fields)  # noqa: SIM118
            raise BadEvidence(
                f"context has the field {other!r}, which the features lack: give only "
                f"{', '.join(self.fields)}"
            )
        return np.array(features)

    def settings(self) -> dict[str, Any]:
        """Return the fields as plain values, as logs store them."""
        return dict(self.fields)

    def json_schema(self) -> dict[str, Any]:
        """Return a JSON schema of the contexts, for clients in other languages.

        An unseen category is valid, so categories are examples, not an enumeration.

        >>> Schema({"age": "number", "plan": ["free", "pro"]}).json_schema()["required"]
        ['age', 'plan']
        """
        properties = {name: _json_field(field) for name, field in self.fields.items()}
        return {
            "type": "object", "properties": properties, "required": list(properties),
            "additionalProperties": False,
        }  # fmt: skip

    def __len__(self) -> int:
        """The number of features."""
        return len(self.names)

    def __repr__(self) -> str:
        return f"Schema({self.fields!r})"


def _checked_field(name: Any, field: Any) -> Any:
    """Return a field as a plain value, or raise InvalidTable."""
    if field == _BOOLEAN:
        return _BOOLEAN
    if isinstance(field, list | tuple) and field and len(set(map(str, field))) == len(field):
        return list(field)
    if isinstance(field, Mapping) or field == _NUMBER:
        number = dict(field) if isinstance(field, Mapping) else {}
        values = [float(v) if isinstance(v, Real) else math.nan for v in number.values()]
        if set(number) <= set(_OPTIONS) and all(map(math.isfinite, values)):
            number = {"center": 0.0, **dict(zip(number, values, strict=True))}
            if number.get("scale", 1.0) > 0.0:
                return number
    raise InvalidTable(
        f"features: field {name!r} is {field!r}: expected 'number', {{'center': 40, 'scale': 15}} "
        "with a positive scale, 'boolean', or a list of different categories"
    )


def _json_field(field: Any) -> dict[str, Any]:
    """Return the JSON schema of a field."""
    if not isinstance(field, list):
        return {"type": _BOOLEAN if field == _BOOLEAN else _NUMBER}
    is_text = all(isinstance(category, str) for category in field)
    schema = {"description": "A category; others count as unseen.", "examples": field}
    return {"type": "string", **schema} if is_text else schema


def _encoded(name: str, field: Any, value: Any) -> list[float]:
    """Return the features of one field, or raise BadEvidence."""
    if isinstance(field, list):
        return [float(value == category) for category in field]
    is_boolean = isinstance(value, bool | np.bool_)
    if field == _BOOLEAN:
        if is_boolean or (isinstance(value, Real) and value in (0, 1)):
            return [float(value)]
        raise BadEvidence(f"context {name}={value!r}: expected True or False")
    if is_boolean or not isinstance(value, Real) or not math.isfinite(value):
        raise BadEvidence(f"context {name}={value!r}: expected a finite number")
    return [(float(value) - field["center"]) / field.get("scale", 1.0)]
