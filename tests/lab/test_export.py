"""Records and results are exported to xarray and pandas bit for bit."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from bayescontrol import Record, interact
from bayescontrol.errors import MissingExtra
from bayescontrol.finite.examples import three_modes
from bayescontrol.lab import Experiment, conduct, run_replicas
from bayescontrol.lab.export import Unexportable, to_pandas, to_xarray
from bayescontrol.lab.store import ResultStore, Study, read
from bayescontrol.record import drawn_mode, posterior


def played(run: int) -> Record:
    modes = three_modes()
    probes = {"posterior": posterior, "drawn": drawn_mode}
    agent = modes.agent([0.5, 0.3, 0.2])
    return interact(agent, modes.environment(0), 5, seed=1, run=run, probes=probes)


def every_type() -> Record:
    odd = np.array([0.1, -0.0, np.nan, np.inf, 5e-324])
    return Record(
        actions=["left", "right", "ä", "", "left"],
        observations=odd,
        probes={
            "large": np.array([2**63 - 1, -(2**63), 0, 1, 2]),
            "small": np.arange(5, dtype=np.uint8),
            "half": odd.astype(np.float32),
            "seen": np.array([True, False, True, True, False]),
        },
    )


def same(found: Any, array: npt.NDArray[Any]) -> bool:
    """Compare type, shape and bytes; for text, whose type varies, compare the characters."""
    other = np.asarray(found)
    if array.dtype.kind == "U":
        return bool(other.tolist() == array.tolist())
    return (
        other.dtype == array.dtype
        and other.shape == array.shape
        and other.tobytes() == array.tobytes()
    )


# -- values -----------------------------------------------------------------------------------


def test_every_type_reaches_xarray_and_pandas_bit_for_bit() -> None:
    record = every_type()
    data, frame = to_xarray(record), to_pandas(record)
    assert list(data.data_vars) == list(record.columns())
    assert list(frame.columns) == ["step", *record.columns()]
    for name, column in record.columns().items():
        assert same(data[name].values, column)
        assert same(frame[name].to_numpy(), column)
    assert data.sizes == {"step": 5}
    for steps in (data.step.values, frame["step"]):
        assert same(steps, np.arange(1, 6))


def test_several_records_are_stacked_along_the_run() -> None:
    records = [played(run) for run in range(3)]
    data = to_xarray(records, dims={"posterior": ["mode"]})
    assert data.posterior.dims == ("run", "step", "mode")
    assert data.run.values.tolist() == [0, 1, 2]
    for run, record in enumerate(records):
        for name, column in record.columns().items():
            assert same(data[name].isel(run=run).values, column)


def test_a_table_has_a_row_for_each_run_and_step_and_a_column_along_other_axes() -> None:
    records = [played(run) for run in range(2)]
    names = ["a", "b", "c"]
    frame = to_pandas(records, dims={"posterior": ["mode"]}, coords={"mode": names})
    assert frame.shape == (10, 8)
    assert list(frame.columns)[4:] == ["posterior[a]", "posterior[b]", "posterior[c]", "drawn"]
    for (run, step), row in frame.groupby(["run", "step"]):
        there = records[run]["posterior"][step - 1]
        assert same(row[[f"posterior[{name}]" for name in names]].to_numpy()[0], there)
    assert frame["run"].to_list() == [0] * 5 + [1] * 5


def test_a_value_per_run_is_repeated_in_each_of_its_rows() -> None:
    columns = {"total": np.array([3, 4]), "curve": np.array([[[1, 2, 3]], [[4, 5, 6]]])}
    frame = to_pandas(columns, dims={"curve": ["agent", "step"]})
    assert frame["total"].to_list() == [3, 3, 3, 4, 4, 4]
    assert frame["curve[0]"].to_list() == [1, 2, 3, 4, 5, 6]
    assert to_pandas({"total": np.array([3, 4])}).to_dict("list") == {
        "run": [0, 1],
        "total": [3, 4],
    }


# -- results ----------------------------------------------------------------------------------


def test_exported_results_have_their_settings_and_a_step_axis(coin: Experiment[Any]) -> None:
    result = conduct(coin, coin.settings(runs=4, steps=6, marks=(1, 5)))
    result = replace(result, columns={**result.columns, "sides": np.ones((4, 2))})
    data, frame = to_xarray(result), to_pandas(result)
    assert data.share.dims == ("run", "step")
    assert data.sides.dims == ("run", "sides_dim_0")
    assert data.heads.dims == data["first"].dims == ("run",)
    for name, column in result.columns.items():
        assert same(data[name].values, column)
    assert frame.shape == (24, 7)
    for attrs in (data.attrs, frame.attrs):
        assert (attrs["experiment"], attrs["steps"], attrs["bias"]) == ("coin", 6, 0.5)
        assert attrs["marks"] == [1, 5]


def test_results_read_from_a_folder_have_their_runs_and_manifest(
    coin: Experiment[Any], tmp_path: Path
) -> None:
    settings = coin.settings(runs=5, steps=6)
    with ResultStore(tmp_path, Study.of(coin, settings)) as store:
        columns = run_replicas(coin, settings, store=store)
    data = to_xarray(read(tmp_path))
    assert data.run.values.tolist() == [0, 1, 2, 3, 4]
    for name, column in columns.items():
        assert same(data[name].values, column)
    assert json.loads(data.attrs["manifest"])["experiment"] == data.attrs["experiment"] == "coin"


def test_attributes_can_be_written_to_netcdf(tmp_path: Path) -> None:
    pytest.importorskip("h5netcdf", exc_type=ImportError)
    import xarray as xr

    attrs = {
        "seed": 2**100,
        "runs": np.int64(3),
        "eps": 0.25,
        "name": "chain",
        "depths": (1, 2),
        "agents": ["a", "b"],
        "mixed": [1, "a"],
        "quick": True,
        "none": None,
        "nested": {"a": [1]},
    }
    data = to_xarray(every_type(), attrs=attrs)
    data.to_netcdf(tmp_path / "record.nc", engine="h5netcdf")
    back = xr.load_dataset(tmp_path / "record.nc", engine="h5netcdf")
    for name, column in every_type().columns().items():
        assert same(back[name].values, column)
    assert (back.attrs["runs"], back.attrs["eps"], back.attrs["name"]) == (3, 0.25, "chain")
    assert list(back.attrs["depths"]) == [1, 2]
    for name in ("seed", "mixed", "quick", "none", "nested"):
        assert json.loads(back.attrs[name]) == attrs[name]


# -- refusals ---------------------------------------------------------------------------------


def test_python_objects_are_refused_unless_a_conversion_is_given() -> None:
    record = Record([{"left": 1}, {"right": 2}], [1.0, 2.0])
    with pytest.raises(Unexportable, match=r"'actions' holds Python objects such as {'left': 1}"):
        to_xarray(record)
    with pytest.raises(Unexportable, match="to a plain value"):
        to_xarray(record, objects=lambda value: value)
    assert to_pandas(record, objects=lambda a: max(a.values()))["actions"].to_list() == [1, 2]
    pairs = Record([("left", 1), ("right", 2)], [1.0, 2.0])
    assert to_pandas(pairs, objects=str)["actions"].to_list() == ["('left', 1)", "('right', 2)"]


@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        ({"y": np.ones((2, 3))}, {"dims": {"z": ["mode"]}}, r"\['z'\]: the columns are y"),
        ({"y": np.ones((2, 3))}, {"dims": {"y": ["a", "b"]}}, r"shape \(2, 3\)"),
        ({"y": np.ones((2, 3))}, {"dims": {"y": ["run"]}}, "its axes are run, run"),
        (
            {"y": np.ones(2), "z": np.ones(3)},
            {},
            "conflicting sizes for dimension 'run': length 3 on 'z'",
        ),
        ({"y": np.array(1.0)}, {}, r"shape \(\)"),
        ({"run": np.ones(2)}, {}, "'run'.* found in both data_vars and coords"),
        (
            {"y": np.ones(2)},
            {"coords": {"run": [1, 2, 3]}},
            "conflicting sizes for dimension 'run': .*length 3",
        ),
        ([], {}, "list cannot be exported"),
        ([Record([1], [1]), Record([1, 2], [1, 2])], {}, "record 1 has columns"),
        ([Record([1], [1]), Record([1], [1.0])], {}, "record 1 has columns"),
    ],
)
def test_inconsistent_axes_are_refused(columns: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(Unexportable, match=problem):
        to_xarray(columns, **options)


def test_a_missing_library_is_reported_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(MissingExtra, match=r"xarray, .*pip install 'bayescontrol\[export\]'"):
        to_pandas(every_type())


def test_the_lines_of_the_tutorial_for_polars_and_arviz_work() -> None:
    polars, arviz = pytest.importorskip("polars"), pytest.importorskip("arviz")
    table = polars.DataFrame(to_pandas(every_type()).to_dict("list"))
    assert table.columns == ["step", *every_type().columns()]
    chains = to_xarray([played(run) for run in range(4)]).rename(run="chain", step="draw")
    data = arviz.convert_to_inference_data(chains[["posterior"]])
    assert data.posterior.posterior.dims == ("chain", "draw", "mode")
