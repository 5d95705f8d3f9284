"""Records and results for other tools: xarray, pandas, polars, arviz.

    Record              (step, …)         several records, stacked     (run, step, …)
    results             (run, …)          the second axis is step where it has `steps` entries
    xarray              one variable a column, its axes named; settings as attributes
    pandas, polars      one row for each (run, step), one column a variable; name[i] along axes
    arviz               chain = run, draw = step

Runs count from 0 and steps from 1, as everywhere. Values and types go over bit for bit. Python
objects (tuples for actions, say) have no type elsewhere: they are refused, unless `objects`
says what to write for one, `str` for example. The libraries are extras, loaded when called.
"""

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bayescontrol.errors import MissingCapability
from bayescontrol.lab.named import Coords, Dims, Exportable, Named, Unexportable, named, table

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl
    import xarray as xr


def to_xarray(
    thing: Exportable,
    *,
    dims: Dims | None = None,
    coords: Coords | None = None,
    attrs: Mapping[str, Any] | None = None,
    objects: Callable[[Any], Any] | None = None,
) -> "xr.Dataset":
    """A Dataset with the dimensions run, step and others.

    `dims` names the axes of a column after the run (after the step for records); an axis
    without a name becomes `column_dim_0`, as arviz has it. `coords` labels a dimension.
    Attributes are the settings and `attrs`: numbers, texts and lists of them as they are,
    the rest as JSON, so that netCDF takes them. The arrays are shared, not copied.

    >>> import numpy as np
    >>> from bayescontrol import Record
    >>> record = Record([0, 1], [1.0, 0.5], {"posterior": np.full((2, 3), 1 / 3)})
    >>> data = to_xarray(record, dims={"posterior": ["mode"]}, coords={"mode": ["a", "b", "c"]})
    >>> dict(data.sizes), data.step.values.tolist(), data.posterior.dims
    ({'step': 2, 'mode': 3}, [1, 2], ('step', 'mode'))
    """
    return _dataset(named(thing, dims, coords, attrs, objects))


def to_pandas(
    thing: Exportable,
    *,
    dims: Dims | None = None,
    coords: Coords | None = None,
    attrs: Mapping[str, Any] | None = None,
    objects: Callable[[Any], Any] | None = None,
) -> "pd.DataFrame":
    """A DataFrame, tidy and wide: a row for each run and step, a column for each variable.

    Further axes become columns name[i], or name[label] where `coords` labels them. What is
    measured once a run stands in each of its rows. Settings are in `frame.attrs`.

    >>> import numpy as np
    >>> runs = {"regret": np.array([[0.5, 0.7], [0.1, 0.2]]), "lever": np.array([3, 4])}
    >>> to_pandas(runs, dims={"regret": ["step"]})
       run  step  regret  lever
    0    0     1     0.5      3
    1    0     2     0.7      3
    2    1     1     0.1      4
    3    1     2     0.2      4
    """
    known = named(thing, dims, coords, attrs, objects)
    frame: pd.DataFrame = _library("pandas").DataFrame(table(known))
    frame.attrs = dict(known.attrs)
    return frame


def to_polars(
    thing: Exportable,
    *,
    dims: Dims | None = None,
    coords: Coords | None = None,
    objects: Callable[[Any], Any] | None = None,
) -> "pl.DataFrame":
    """The table of `to_pandas` as a polars DataFrame, which has no place for settings.

    >>> from bayescontrol import Record
    >>> to_polars(Record(["left", "right"], [1, 0])).rows()
    [(1, 'left', 1), (2, 'right', 0)]
    """
    columns = table(named(thing, dims, coords, None, objects))
    for name, column in columns.items():
        if column.dtype.kind == "c" or (column.dtype.kind == "f" and column.dtype.itemsize > 8):
            raise Unexportable(
                f"column {name!r} is {column.dtype}, which polars cannot hold: export real and "
                "imaginary parts, or float64"
            )
    frame: pl.DataFrame = _library("polars").DataFrame(columns)
    return frame


def to_arviz(
    thing: Exportable,
    *,
    dims: Dims | None = None,
    coords: Coords | None = None,
    attrs: Mapping[str, Any] | None = None,
    objects: Callable[[Any], Any] | None = None,
    group: str = "posterior",
) -> Any:
    """chain = run, draw = step: a DataTree for arviz 1, InferenceData for arviz 0.

    Numbers measured at every step are in `group`, where summaries and plots look for them; the
    rest (texts, and what is measured once a run) in `constant_data`.

    >>> from bayescontrol import Record
    >>> data = to_arviz([Record([0, 1], [1.0, 0.5]), Record([1, 1], [0.0, 0.5])])
    >>> data.posterior.observations.dims, data.posterior.observations.shape
    (('chain', 'draw'), (2, 2))
    """
    known = named(thing, dims, coords, attrs, objects)
    rest = [
        name
        for name, (axes, array) in known.columns.items()
        if "step" not in axes or array.dtype.kind not in "biuf"
    ]
    if len(rest) == len(known.columns):
        raise Unexportable(
            f"no column holds a number for each step, there are {', '.join(rest)}: name the "
            'axis, as in dims={"regret": ["step"]}'
        )
    data = _dataset(known)
    if "run" not in data.dims:
        data = data.expand_dims(run=[0])
    data = data.rename(run="chain", step="draw").transpose("chain", "draw", ...)
    groups = {group: data.drop_vars(rest)}
    if rest:
        groups["constant_data"] = data[rest]
    return _inference_data(groups)


def _inference_data(groups: "dict[str, xr.Dataset]") -> Any:
    arviz = _library("arviz")
    # Not hasattr(arviz, "InferenceData"): arviz 1 answers that with a warning and a DataTree.
    if hasattr(arviz, "convert_to_datatree"):
        return _library("xarray").DataTree.from_dict(groups)
    return arviz.InferenceData(**groups)


def _library(name: str) -> Any:
    try:
        with warnings.catch_warnings():
            # Once a day arviz 0.2x announces its successor, which is served here as well.
            warnings.simplefilter("ignore", FutureWarning)
            return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingCapability(
            f'{name} is not installed; it comes with pip install "bayescontrol[export]"'
        ) from None


def _dataset(known: Named) -> "xr.Dataset":
    data: xr.Dataset = _library("xarray").Dataset(known.columns, known.coords, known.attrs)
    return data
