"""Columns with names for their axes, and the table made of them.

    Record      (step, …)     several records, stacked     (run, step, …)
    results     (run, …), and (run, step, …) where the second axis has `steps` entries
    table       row (run, step) of column name[i] = value[run, step, i]

Nothing is converted on the way; what cannot go over as it is, is refused by name.
"""

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from bayescontrol.errors import BayesControlError
from bayescontrol.lab.experiment import Columns
from bayescontrol.lab.runner import Result
from bayescontrol.lab.settings import plain
from bayescontrol.lab.store import Stored
from bayescontrol.record import Record, as_column

#: One record, several of the same shape, columns whose first axis is the run, or results.
Exportable: TypeAlias = Record | Sequence[Record] | Columns | Result | Stored
#: The names of a column's axes after the run, for records after the step.
Dims: TypeAlias = Mapping[str, Sequence[str]]
#: The labels along an axis.
Coords: TypeAlias = Mapping[str, Sequence[Any] | npt.NDArray[Any]]


class Unexportable(BayesControlError, ValueError):
    """Columns that another library cannot hold, or axes that do not fit their names.

    >>> issubclass(Unexportable, ValueError)
    True
    """


@dataclass(frozen=True)
class Named:
    """Columns, each with the names of its axes; labels of the axes; what is known of them all.

    >>> Named({"y": (("run",), np.arange(2))}, {}, {}).columns["y"][0]
    ('run',)
    """

    #: Name -> axes and values.
    columns: dict[str, tuple[tuple[str, ...], npt.NDArray[Any]]]
    coords: dict[str, npt.NDArray[Any]]
    attrs: dict[str, Any]


def named(
    thing: Exportable,
    dims: Dims | None,
    coords: Coords | None,
    attrs: Mapping[str, Any] | None,
    objects: Callable[[Any], Any] | None,
) -> Named:
    """The columns of a record, of several, or of results, their axes named as `lab.export` says.

    >>> squares = named({"square": np.arange(6).reshape(3, 2)}, None, None, {"seed": 7}, None)
    >>> squares.columns["square"][0], squares.coords["run"].tolist(), squares.attrs
    (('run', 'square_dim_0'), [0, 1, 2], {'seed': 7})
    """
    columns, leading, runs, known = _taken(thing)
    unknown = set(dims or {}) - set(columns)
    if unknown:
        raise Unexportable(f"dims names {sorted(unknown)}: there are {', '.join(columns)}")
    found: dict[str, tuple[tuple[str, ...], npt.NDArray[Any]]] = {}
    sizes: dict[str, int] = {}
    for name, values in columns.items():
        array = _plain(name, values, objects)
        own = array.shape[len(leading) :]
        axes = (*leading, *_axes(name, own, leading, known.get("steps"), dims))
        if len(axes) != array.ndim or len(set(axes)) < len(axes):
            raise Unexportable(
                f"column {name!r} has shape {array.shape}, its axes are called {', '.join(axes)}"
            )
        for axis, size in zip(axes, array.shape, strict=True):
            if sizes.setdefault(axis, size) != size:
                raise Unexportable(
                    f"axis {axis!r} has {size} entries in column {name!r} and {sizes[axis]} "
                    "elsewhere: give it another name in dims"
                )
        found[name] = (axes, array)
    clash = sorted(set(found) & set(sizes))
    if clash:
        raise Unexportable(f"{clash} are names both of columns and of axes: rename one in dims")
    labels: dict[str, npt.NDArray[Any]] = {}
    if "run" in sizes:
        labels["run"] = np.arange(sizes["run"]) if runs is None else np.array(runs)
    if "step" in sizes:
        labels["step"] = np.arange(1, sizes["step"] + 1)
    for axis, given in (coords or {}).items():
        if sizes.get(axis) != len(given):
            raise Unexportable(
                f"coords has {len(given)} labels for axis {axis!r}, the axes are {sizes}"
            )
        labels[axis] = np.asarray(given)
    return Named(found, labels, {k: _attribute(v) for k, v in {**known, **(attrs or {})}.items()})


def _taken(
    thing: Exportable,
) -> tuple[Columns, tuple[str, ...], range | None, dict[str, Any]]:
    """Columns, the names of their first axes, the numbers of the runs, and the settings."""
    if isinstance(thing, Record):
        return thing.columns(), ("step",), None, {}
    if isinstance(thing, Result):
        settings = {"experiment": thing.experiment.name, **plain(thing.settings)}
        return thing.columns, ("run",), None, settings
    if isinstance(thing, Stored):
        manifest = thing.manifest
        about = {"experiment": manifest.experiment, **manifest.settings}
        about["manifest"] = msgspec.to_builtins(manifest)
        return thing.columns, ("run",), range(*manifest.replicas), about
    if isinstance(thing, Mapping):
        return thing, ("run",), None, {}
    records = list(thing)
    if not records or not all(isinstance(record, Record) for record in records):
        raise Unexportable(
            f"{type(thing).__name__} cannot be exported: pass a Record, several, or results"
        )
    return _stacked(records), ("run", "step"), None, {}


def _stacked(records: Sequence[Record]) -> Columns:
    first = _layout(records[0])
    for i, record in enumerate(records):
        if _layout(record) != first:
            raise Unexportable(f"record {i} has columns {_layout(record)}, record 0 has {first}")
    return {name: np.stack([record[name] for record in records]) for name in first}


def _layout(record: Record) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Types and shapes; texts may differ in length."""
    return {
        name: ("text" if column.dtype.kind == "U" else str(column.dtype), column.shape)
        for name, column in record.columns().items()
    }


def _axes(
    name: str, shape: tuple[int, ...], leading: tuple[str, ...], steps: Any, dims: Dims | None
) -> tuple[str, ...]:
    if dims is not None and name in dims:
        return tuple(dims[name])
    ahead = ("step",) if leading == ("run",) and shape and shape[0] == steps else ()
    return (*ahead, *(f"{name}_dim_{k}" for k in range(len(shape) - len(ahead))))


def _plain(
    name: str, values: npt.NDArray[Any], objects: Callable[[Any], Any] | None
) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if not array.dtype.hasobject:
        return array
    if objects is not None:
        made = as_column([objects(value) for value in array.ravel()])
        if not made.dtype.hasobject:
            return made.reshape(array.shape + made.shape[1:])
    raise Unexportable(
        f"column {name!r} holds Python objects such as {array.flat[0]!r}: pass objects=str, or "
        "another function that makes one plain value of each"
    )


def _attribute(value: Any) -> Any:
    """As netCDF takes it: a number, a text or a list of one of them; all else as JSON."""
    bare = plain(value)
    kinds = {type(item) for item in bare} if isinstance(bare, list) else {type(bare)}
    whole = bare if isinstance(bare, list) else [bare]
    fits = all(abs(item) < 2**63 for item in whole if isinstance(item, int))
    if whole and fits and (kinds == {str} or kinds <= {int, float}):
        return bare
    return json.dumps(bare)


def table(known: Named) -> dict[str, npt.NDArray[Any]]:
    """Columns of equal length: (run, step) as rows, further axes as columns of their own.

    >>> pairs = named({"y": np.array([[5, 6], [7, 8]])}, None, None, None, None)
    >>> {name: column.tolist() for name, column in table(pairs).items()}
    {'run': [0, 1], 'y[0]': [5, 7], 'y[1]': [6, 8]}
    """
    rows: list[str] = [axis for axis in ("run", "step") if axis in known.coords]
    shape = tuple(len(known.coords[axis]) for axis in rows)
    grids = np.meshgrid(*(known.coords[axis] for axis in rows), indexing="ij")
    out = {axis: grid.ravel() for axis, grid in zip(rows, grids, strict=True)}
    for name, (axes, array) in known.columns.items():
        wide = [axis for axis in axes if axis not in rows]
        here = [axis for axis in rows if axis in axes]
        sorted_ = array.transpose([axes.index(axis) for axis in (*here, *wide)])
        absent = tuple(rows.index(axis) for axis in rows if axis not in axes)
        full = np.broadcast_to(np.expand_dims(sorted_, absent), shape + sorted_.shape[len(here) :])
        flat = full.reshape(math.prod(shape), -1)
        labels = (known.coords.get(a, range(array.shape[axes.index(a)])) for a in wide)
        for k, label in enumerate(itertools.product(*labels)):
            key = f"{name}[{','.join(map(str, label))}]" if label else name
            if key in out:
                raise Unexportable(f"two columns would be called {key!r}: rename one")
            out[key] = np.ascontiguousarray(flat[:, k])
    return out
