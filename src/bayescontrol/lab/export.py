"""Export records and results to xarray, and from there to pandas.

    Record              (step, …)         a list of records is stacked     (run, step, …)
    results             (run, …)          the second axis is step if it has `steps` entries
    xarray              one variable per column, with named axes; settings as attributes
    pandas              one row for each (run, step), one column per variable; name[i] along axes

Other libraries start from these: `polars.DataFrame(to_pandas(record).to_dict("list"))`. For
ArviZ, runs are chains and steps are draws (see the tutorial on studies).

Runs count from 0 and steps from 1. Values and types are not changed, except for Python objects,
which have no type elsewhere:

    named tuples                one column per field: observations.reward, observations.state
    tuples and lists            a further axis if all entries have one type: context[0], context[1];
                                otherwise one column per entry: actions.0, actions.1
    names of different types    text: arms "red" and 2 become "red" and "2"
    None in every row           the column is left out

Other objects are rejected, unless `objects` converts them. If the agent's modes have names, they
label the axis `mode` of the column `posterior`, and `drawn_mode_name` has the name of each drawn
mode. The libraries are the extra `export`, and are imported when called.
"""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np

from bayescontrol._arrays import AnyArray
from bayescontrol._support.columns import as_column
from bayescontrol._support.values import distinct_texts
from bayescontrol.errors import BayesControlError, needs_extra
from bayescontrol.lab.columns import comparable
from bayescontrol.lab.experiment import Columns
from bayescontrol.lab.runner import Result
from bayescontrol.lab.settings import plain
from bayescontrol.lab.store import StoredResults
from bayescontrol.record import Record

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import xarray as xr


#: One record, several records of the same shape, columns whose first axis is the run, or results.
Exportable: TypeAlias = Record | Sequence[Record] | Columns | Result | StoredResults
#: The names of each column's axes after the run, or after the step for records.
Dims: TypeAlias = Mapping[str, Sequence[str]]
#: A function that converts a Python object to a plain value.
Conversion: TypeAlias = Callable[[Any], Any] | None
#: The labels along an axis.
Coords: TypeAlias = Mapping[str, Sequence[Any] | AnyArray]


class Unexportable(BayesControlError, ValueError):
    """Another library cannot hold the columns, or axes do not match their names."""


def to_xarray(
    thing: Exportable,
    *,
    dims: Dims | None = None,
    coords: Coords | None = None,
    attrs: Mapping[str, Any] | None = None,
    objects: Conversion = None,
) -> "xr.Dataset":
    """Return a Dataset with the dimensions run, step and others.

    `dims` names the axes of a column after the run (after the step for records); an axis without a
    name is called `column_dim_0`. `coords` labels a dimension. Attributes are the
    settings and `attrs`. Numbers, strings and lists of them are unchanged; other values become
    JSON, so that netCDF accepts them. The arrays are shared, not copied.

    >>> import numpy as np
    >>> from bayescontrol import Record
    >>> record = Record([0, 1], [1.0, 0.5], {"posterior": np.full((2, 3), 1 / 3)})
    >>> data = to_xarray(record, dims={"posterior": ["mode"]}, coords={"mode": ["a", "b", "c"]})
    >>> dict(data.sizes), data.step.values.tolist(), data.posterior.dims
    ({'step': 2, 'mode': 3}, [1, 2], ('step', 'mode'))
    """
    xarray = _xarray()
    columns, leading, settings = _unpack(thing, objects)
    dims, coords, mode_names = dims or {}, dict(coords or {}), _mode_names(thing)
    if unknown := set(dims) - set(columns):
        raise Unexportable(
            f"dims has unknown columns {sorted(unknown)}: the columns are {', '.join(columns)}"
        )
    named: dict[str, tuple[tuple[str, ...], AnyArray]] = {}
    for name, array in columns.items():
        inner_shape = array.shape[len(leading) :]
        if name == "posterior" and name not in dims and inner_shape == (len(mode_names),):
            dims, coords = {"posterior": ["mode"], **dims}, {"mode": mode_names, **coords}
        has_steps = leading == ("run",) and inner_shape[:1] == (settings.get("steps"),)
        numbered = (f"{name}_dim_{k}" for k in range(len(inner_shape) - has_steps))
        axes = (*leading, *dims.get(name, [*["step"] * has_steps, *numbered]))
        if len(axes) != array.ndim or len(set(axes)) < len(axes):
            raise Unexportable(
                f"column {name!r} has shape {array.shape}, but its axes are {', '.join(axes)}"
            )
        named[name] = axes, array
        for axis, size in zip(axes, array.shape, strict=True):
            if axis in ("run", "step"):
                # Runs count from 0, steps from 1.
                coords.setdefault(axis, np.arange(size) + (axis == "step"))
    attributes = {name: _attribute(value) for name, value in {**settings, **(attrs or {})}.items()}
    labels = {axis: np.asarray(values) for axis, values in coords.items()}
    try:
        data: xr.Dataset = xarray.Dataset(named, labels, attributes)
    except ValueError as error:
        raise Unexportable(f"{error}: name the axes in dims, or rename a column") from error
    return data


def to_pandas(
    thing: Exportable,
    *,
    dims: Dims | None = None,
    coords: Coords | None = None,
    attrs: Mapping[str, Any] | None = None,
    objects: Conversion = None,
) -> "pd.DataFrame":
    """Return a DataFrame with a row for each run and step and a column for each variable.

    The arguments are those of `to_xarray`. Further axes become columns name[i], or name[label] if
    `coords` labels them. A value measured once per run is repeated in each of its rows. Settings
    are in `frame.attrs`.

    >>> import numpy as np
    >>> runs = {"regret": np.array([[0.5, 0.7], [0.1, 0.2]]), "lever": np.array([3, 4])}
    >>> to_pandas(runs, dims={"regret": ["step"]})
       run  step  regret  lever
    0    0     1     0.5      3
    1    0     2     0.7      3
    2    1     1     0.1      4
    3    1     2     0.2      4
    """
    data = to_xarray(thing, dims=dims, coords=coords, attrs=attrs, objects=objects)
    rows = [axis for axis in ("run", "step") if axis in data.dims]
    columns: dict[str, xr.DataArray] = {}
    for name, variable in data.data_vars.items():
        inner = [axis for axis in variable.dims if axis not in rows]
        for position in itertools.product(*(range(data.sizes[axis]) for axis in inner)):
            at = dict(zip(inner, position, strict=True))
            label = ",".join(str(data[axis].values[k]) for axis, k in at.items())
            key = f"{name}[{label}]" if at else str(name)
            if key in columns:
                raise Unexportable(f"two columns would be called {key!r}: rename one")
            columns[key] = variable.isel(at).reset_coords(drop=True)
    frame: pd.DataFrame = _xarray().Dataset(columns).to_dataframe(dim_order=rows).reset_index()
    frame.attrs = dict(data.attrs)
    return frame


def _xarray() -> Any:
    """Import xarray; raise an error that names the extra if it is missing."""
    with needs_extra("this export", "xarray", "export"):
        import xarray
    return xarray


def _unpack(
    thing: Exportable, objects: Conversion
) -> tuple[Columns, tuple[str, ...], dict[str, Any]]:
    """Return columns, the names of their first axes, and the settings."""
    if isinstance(thing, Record):
        return _record_columns(thing, objects), ("step",), {}
    if isinstance(thing, Result):
        settings = {"experiment": thing.experiment.name, **plain(thing.settings)}
        return _expand_all(thing.columns, objects), ("run",), settings
    if isinstance(thing, StoredResults):
        manifest = thing.manifest
        settings = {"experiment": manifest.experiment, **manifest.settings}
        settings["manifest"] = msgspec.to_builtins(manifest)
        return _expand_all(thing.columns, objects), ("run",), settings
    if isinstance(thing, Mapping):
        return _expand_all(thing, objects), ("run",), {}
    records = list(thing)
    if not records or not all(isinstance(record, Record) for record in records):
        raise Unexportable(
            f"{type(thing).__name__} cannot be exported: pass one Record, several, or results"
        )
    stacked = _stack([_record_columns(record, objects) for record in records])
    return stacked, ("run", "step"), {}


def _mode_names(thing: Exportable) -> tuple[str, ...]:
    """Return the names of the modes, if all records have the same; () otherwise."""
    records = [thing] if isinstance(thing, Record) else thing if isinstance(thing, Sequence) else []
    names = {getattr(record, "mode_names", ()) for record in records}
    return names.pop() if len(names) == 1 else ()


def _record_columns(record: Record, objects: Conversion) -> Columns:
    """Return the columns of a record without Python objects, and the names of the drawn modes."""
    columns = _expand_all(record.columns(), objects)
    drawn = columns.get("drawn_mode")
    if record.mode_names and drawn is not None and "drawn_mode_name" not in columns:
        columns["drawn_mode_name"] = np.array([*record.mode_names, ""])[drawn]  # -1: no mode
    return columns


def _stack(records: Sequence[Columns]) -> Columns:
    """Stack the columns of records; raise `Unexportable` if their columns differ."""
    layouts = ({name: (c.dtype, c.shape) for name, c in columns.items()} for columns in records)
    first, *others = map(comparable, layouts)
    for i, layout in enumerate(others, 1):
        if layout != first:
            raise Unexportable(f"record {i} has columns {layout}; record 0 has {first}")
    return {name: np.stack([columns[name] for columns in records]) for name in first}


def _expand_all(columns: Columns, objects: Conversion) -> dict[str, AnyArray]:
    """Replace columns of Python objects by plain ones: see the table of the module docstring."""
    expanded: dict[str, AnyArray] = {}
    for name, values in columns.items():
        for key, column in _expand(name, np.asarray(values), objects).items():
            if key in expanded:
                raise Unexportable(f"two columns would be called {key!r}: rename one")
            expanded[key] = column
    return expanded


def _expand(name: str, array: AnyArray, objects: Conversion) -> dict[str, AnyArray]:
    """Return the columns that replace one column; itself if it has no Python objects."""
    if array.dtype.names:
        fields = {f"{name}.{field}": array[field] for field in array.dtype.names}
        return _expand_all(fields, objects)
    if not array.dtype.hasobject:
        return {name: array}
    values = array.ravel().tolist()
    if objects is not None:
        converted = as_column([objects(value) for value in values])
        if not converted.dtype.hasobject:
            return {name: converted.reshape(array.shape + converted.shape[1:])}
    kinds = set(map(type, values))
    if kinds == {type(None)}:
        return {}
    if all(isinstance(value, tuple | list) for value in values):
        if len(set(map(len, values))) == 1:
            labels = getattr(values[0], "_fields", None) if len(kinds) == 1 else None
            return _expand_entries(name, array.shape, values, labels, objects)
    elif str in kinds and kinds <= {str, int, float, bool, type(None)}:
        texts = distinct_texts(dict.fromkeys(values))
        column = as_column([texts[value] for value in values])
        if not column.dtype.hasobject:
            return {name: column.reshape(array.shape)}
    raise Unexportable(
        f"column {name!r} holds Python objects such as {array.flat[0]!r}: pass objects=str, or "
        "another function that converts each to a plain value"
    )


def _expand_entries(
    name: str, shape: tuple[int, ...], values: list[Any], labels: Any, objects: Conversion
) -> dict[str, AnyArray]:
    """Return columns for tuples or lists of one length; `labels` are the fields of named tuples.

    Entries of one type become a further axis of the column, other entries columns of their own.
    """
    entries = [as_column(entry) for entry in zip(*values, strict=True)]
    entries = [entry.reshape(shape + entry.shape[1:]) for entry in entries]
    has_one_type = len({(entry.dtype.kind, entry.shape) for entry in entries}) == 1
    if labels is None and has_one_type and entries[0].dtype.kind in "biufcU":
        return {name: np.stack(entries, axis=len(shape))}
    parts = zip(labels or range(len(entries)), entries, strict=True)
    return _expand_all({f"{name}.{label}": entry for label, entry in parts}, objects)


def _attribute(value: Any) -> Any:
    """Convert a value for netCDF: keep numbers, strings and lists of them; others become JSON."""
    converted = plain(value)
    items = converted if isinstance(converted, list) else [converted]
    kinds = set(map(type, items))
    fits_int64 = all(abs(item) < 2**63 for item in items if isinstance(item, int))
    if items and fits_int64 and (kinds == {str} or kinds <= {int, float}):
        return converted
    return json.dumps(converted)
