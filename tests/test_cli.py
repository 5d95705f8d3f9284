"""The command line: output, exit codes, and no traceback for invalid calls."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tests.interruptible import interruptible
from tests.limits import TIMEOUT

from bayescontrol._support.files import lock_folder
from bayescontrol.cli.main import main
from bayescontrol.lab.manifest import results_in
from bayescontrol.lab.store import read

STUDY = Path(__file__).parent / "lab" / "studies" / "coin_study.py"
COIN = f"{STUDY}:coin"
PACED, FAULTY, PICKY, SIZED = (
    f"{STUDY.with_name('paced_study.py')}:{name}" for name in ("paced", "faulty", "picky", "sized")
)
Call = Callable[..., Result]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    site = tmp_path_factory.mktemp("site")
    metadata = site / "coins-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: coins\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[bayescontrol.experiments]\ncoin = coin_study:coin\nfalse = coin_study:false\n"
        "gone = no_such_module:gone\n"
    )
    monkeypatch.syspath_prepend(STUDY.parent)
    monkeypatch.syspath_prepend(site)


def shell(*words: object, **options: Any) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "bayescontrol.cli", *map(str, words)]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.run(command, timeout=TIMEOUT, check=False, **options)


# -- in a real shell ---------------------------------------------------------------------


def test_standard_output_contains_only_json_even_if_workers_print(tmp_path: Path) -> None:
    done = shell("run", f"{STUDY}:talking", "--json", "--workers", 2, "--runs", 5)
    assert done.returncode == 0
    assert json.loads(done.stdout)["settings"]["runs"] == 5
    assert "throwing 4" in done.stderr
    assert "talking: 5/5 runs" in done.stderr


def test_the_files_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    for workers in (1, 2):
        out = tmp_path / str(workers)
        done = shell("run", COIN, "--runs", 21, "--workers", workers, "--out", out)
        assert done.returncode == 0, done.stderr
    same = ["claims.json", "columns.npz", "share.pdf", "share.png"]
    dated = ["index.html", "manifest.json"]
    files = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert files == sorted([*same, *dated])
    for name in same:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    with np.load(tmp_path / "1" / "columns.npz", allow_pickle=False) as columns:
        assert columns["share"].shape == (21, 25)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_stops_cleanly(workers: int) -> None:
    command = [sys.executable, "-m", "bayescontrol.cli", "run", f"{STUDY}:slow"]
    with interruptible([*command, "--workers", str(workers)]) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "slow: 40 runs to do\n"
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)  # to the whole process group, like a terminal
        out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130
    assert out == ""
    assert err.strip() == "Interrupted. All workers have stopped."


@pytest.mark.parametrize("workers", [1, 2])
def test_after_ctrl_c_the_same_command_continues(workers: int, tmp_path: Path) -> None:
    words = ["run", PACED, "--json", "--set", "seconds=0.05", "--runs", "120"]
    words += ["--workers", str(workers), "--out", str(tmp_path)]
    with interruptible([sys.executable, "-m", "bayescontrol.cli", *words]) as process:
        deadline = time.monotonic() + TIMEOUT
        while not list(tmp_path.glob("pending/*.npz")) and time.monotonic() < deadline:
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130, err
    assert f"Finished replicas: {tmp_path}. Run the same command to continue" in err
    done = shell(*words)
    assert done.returncode == 0, done.stderr
    assert re.search(r"paced: \d+ of 120 replicas found, \d+ to run", done.stderr)
    done = shell(*words)
    assert "paced: 120 of 120 replicas found, nothing to run\n" in done.stderr
    assert json.loads(done.stdout)["settings"]["runs"] == 120


def test_an_ascii_terminal_still_gets_the_table() -> None:
    done = shell("run", COIN, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "0.503 ? 0.017" in done.stdout


# -- run -----------------------------------------------------------------------------------


def test_a_refuted_claim_of_the_paper_is_printed_with_its_reason_and_exits_0(call: Call) -> None:
    done = call("run", COIN)
    assert done.exit_code == 0
    assert "refuted" in done.stdout
    assert "printed-share (section 1, figure 2)" in done.stdout
    assert "the printed coin & ours differ" in done.stdout
    assert "0.503 ± 0.017" in done.stdout
    assert "Shares" in done.stdout


def test_a_failed_claim_of_ours_exits_1(call: Call) -> None:
    assert call("run", f"{STUDY}:false").exit_code == 1
    assert call("run", f"{STUDY}:false", "--sweep", "seed=0,1").exit_code == 1
    done = call("run", f"{STUDY}:false", "--json")
    assert done.exit_code == 1
    claim = json.loads(done.stdout)["claims"][-1]
    assert (claim["expected"], claim["ours"], claim["error"]) == ("Infinity", "NaN", None)


def test_a_claim_that_is_not_comparable_exits_0_and_is_null_in_json(call: Call) -> None:
    done = call("run", f"{STUDY}:lost")
    assert done.exit_code == 0
    assert "Claims of the paper: 1 not comparable. Our own checks: 2 passed." in done.stdout
    claim = json.loads(call("run", f"{STUDY}:lost", "--json").stdout)["claims"][1]
    assert (claim["holds"], claim["verdict"]) == (None, "not comparable")


def test_settings_come_from_the_command_line(call: Call) -> None:
    words = ("--seed", 3, "--runs", 7, "--steps", 9, "--set", "bias=0.25", "--set", "marks=1,9")
    done = call("run", COIN, *words, "--json")
    assert json.loads(done.stdout)["settings"] == {
        "seed": 3,
        "runs": 7,
        "steps": 9,
        "bias": 0.25,
        "side": "heads",
        "marks": [1, 9],
    }


def test_json_has_exactly_the_promised_keys_and_lists_its_files(call: Call) -> None:
    done = call("run", COIN, "--json", "--out", "results")
    content = json.loads(done.stdout)
    assert list(content) == ["experiment", "settings", "claims", "artifacts", "code"]
    assert set(map(len, content["claims"])) == {11}
    assert all(Path(path).is_file() for path in content["artifacts"])
    assert [Path(path).name for path in content["artifacts"]] == [
        "manifest.json",
        "columns.npz",
        "claims.json",
        "share.png",
        "share.pdf",
        "index.html",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "no-such-study"), "no experiment is called 'no-such-study'"),
        (("run", COIN, "--runs", "0"), "runs=0: expected `int` >= 1 (runs, int ≥ 1: number of"),
        (("run", COIN, "--steps", "many"), "steps=many: expected `int`"),
        (("run", COIN, "--set", "bais=1"), "did you mean bias?"),
        (("run", COIN, "--set", "bias"), "--set bias: expected KEY=VALUE"),
        (("run", COIN, "--runs", 3, "--set", "runs=4"), "runs was already set to 3"),
        (("run", COIN, "--workers", "0"), "0 is not in the range"),
        (("run", COIN, "--out", f"{STUDY}/x"), "cannot write to"),
        (("run", COIN, "--fresh"), "use either --keep-stale or --fresh, and only together with"),
        (("run", COIN, "--fresh", "--keep-stale", "--out", "x"), "use either --keep-stale or"),
        (("run", COIN, "--dask", "nonsense://"), "no Dask scheduler answers at nonsense://"),
        (("run", COIN, "--sweep", "bias"), "--sweep bias: write --sweep KEY=VALUE,VALUE,..."),
        (("run", COIN, "--sweep", "bias=.1,2"), "bias=2: expected `float` <= 1.0"),
        (("report", "no-such-folder"), "no-such-folder holds no results"),
        (("run",), "Missing argument 'NAME'"),
        (("reproduce", "--only", "no-such-study"), "no experiment is called"),
        (("reproduce", "--out", STUDY, "coin"), "cannot write to"),
        (("list", "no-such-study"), "no experiment is called"),
        (("dance",), "No such command 'dance'"),
    ],
)
@pytest.mark.usefixtures("installed")
def test_an_invalid_call_exits_2_with_a_message_and_no_traceback(
    call: Call, words: tuple[Any, ...], message: str
) -> None:
    done = call(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_an_error_in_a_replica_exits_3_and_shows_its_location(call: Call) -> None:
    done = call("run", f"{STUDY}:broken")
    assert done.exit_code == 3
    assert "Error: broken: run 3 raised ZeroDivisionError" in done.stderr
    assert "_broken_run" in done.stderr


# -- existing results -------------------------------------------------------------------------


def test_more_runs_in_the_same_folder_run_only_the_new_ones(call: Call, tmp_path: Path) -> None:
    assert call("run", PACED, "--runs", 5, "--out", "grown").exit_code == 0
    done = call("run", PACED, "--runs", 9, "--out", "grown")
    assert "paced: 5 of 9 replicas found, 4 to run" in done.stderr
    call("run", PACED, "--runs", 9, "--out", "fresh")
    grown, fresh = (tmp_path / name / "columns.npz" for name in ("grown", "fresh"))
    assert grown.read_bytes() == fresh.read_bytes()


def test_an_altered_file_is_reported_on_standard_error_and_run_again(tmp_path: Path) -> None:
    command = ("run", PACED, "--runs", 5, "--out", tmp_path)
    shell(*command)
    before = (tmp_path / "columns.npz").read_bytes()
    (tmp_path / "columns.npz").write_bytes(before.replace(b"NUMPY", b"NUMPX", 1))
    done = shell(*command)
    assert done.returncode == 0
    assert (
        f"{tmp_path / 'columns.npz'} is truncated or was altered: its seal is broken" in done.stderr
    )
    assert "paced: 5 runs to do" in done.stderr
    assert (tmp_path / "columns.npz").read_bytes() == before


def test_a_folder_of_another_study_or_in_use_is_refused(call: Call, tmp_path: Path) -> None:
    call("run", PACED, "--runs", 2, "--out", "results")
    for words in (
        ("run", PACED, "--runs", 2, "--seed", 4, "--out", "results"),
        ("run", COIN, "--runs", 2, "--out", "results"),
        ("run", PACED, "--sweep", "scale=1,2", "--out", "results"),
        ("reproduce", "--only", COIN, "--out", "results"),
    ):
        done = call(*words)
        assert done.exit_code == 2
        assert re.search(
            r"results (already )?holds .*: (use|choose) another folder, or (remove|delete)",
            done.stderr,
        )
    with lock_folder(tmp_path / "results"):
        done = call("run", PACED, "--runs", 2, "--out", "results")
    assert done.exit_code == 2
    assert "results is being written by process" in done.stderr


def test_a_broken_experiment_says_where_its_finished_replicas_are(call: Call) -> None:
    done = call("run", FAULTY, "--out", "results")
    assert done.exit_code == 3
    assert "Finished replicas: results. Run the same command to continue" in done.stderr
    assert (
        "faulty: 7 of 60 replicas found, 53 to run"
        in call("run", FAULTY, "--out", "results").stderr
    )


def test_a_report_is_rebuilt_from_saved_results(call: Call, tmp_path: Path) -> None:
    call("run", COIN, "--out", "results")
    (tmp_path / "results" / "index.html").unlink()
    done = call("report", "results")
    assert done.exit_code == 0
    assert done.stdout == f"Report: {tmp_path / 'results' / 'index.html'}\n"
    done = call("report", "results", "--out", "elsewhere")
    assert (tmp_path / "elsewhere" / "index.html").is_file()
    (tmp_path / "results" / "columns.npz").write_bytes(b"")
    assert call("report", "results").exit_code == 2


# -- sweeps -----------------------------------------------------------------------------------


def test_a_sweep_runs_each_point_once_and_joins_the_claims(call: Call, tmp_path: Path) -> None:
    words = ("run", PACED, "--runs", 4, "--sweep", "scale=1,2", "--sweep", "seed=0,5")
    done = call(*words, "--out", "swept")
    assert done.exit_code == 0, done.stderr
    assert "Our numbers over scale, seed" in done.stdout
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("  end ")]
    assert len(row) == 2 + 4  # claim, expected value, and our number at each point
    folders = results_in(tmp_path / "swept")
    assert [read(folder).manifest.settings["scale"] for folder in folders] == [1, 1, 2, 2]
    with (tmp_path / "swept" / "claims.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [(row["scale"], row["seed"], row["name"]) for row in table] == [
        ("1.0", "0", "end"),
        ("1.0", "5", "end"),
        ("2.0", "0", "end"),
        ("2.0", "5", "end"),
    ]
    page = (tmp_path / "swept" / "index.html").read_text("utf-8")
    assert all(f'<a href="{folder.name}/index.html">' in page for folder in folders)
    assert all((folder / "index.html").is_file() for folder in folders)
    again = call("run", PACED, "--runs", 4, "--sweep", "scale=2,3", "--out", "swept")
    assert "4 of 4 replicas found, nothing to run" in again.stderr
    assert "paced, scale = 3.0 (2 of 2): 4 runs to do" in again.stderr


@pytest.mark.parametrize("out", [(), ("--out", "swept")])
def test_a_sweep_prints_one_json_object_with_a_list(call: Call, out: tuple[str, ...]) -> None:
    done = call("run", COIN, "--runs", 4, "--sweep", "bias=0.25,0.5", "--json", *out)
    assert done.exit_code == 0
    content = json.loads(done.stdout)
    assert list(content) == ["experiment", "sweep", "points", "artifacts"]
    assert content["sweep"] == {"bias": [0.25, 0.5]}
    assert [list(point) for point in content["points"]] == [
        ["experiment", "settings", "claims", "artifacts", "code"]
    ] * 2
    assert [Path(path).name for path in content["artifacts"]] == (
        ["manifest.json", "claims.csv", "sweep.png", "sweep.pdf", "index.html"] if out else []
    )
    assert all(Path(path).is_file() for point in content["points"] for path in point["artifacts"])


@pytest.mark.parametrize("out", [(), ("--out", "swept")])
def test_a_broken_point_does_not_stop_the_sweep(
    call: Call, tmp_path: Path, out: tuple[str, ...]
) -> None:
    done = call("run", PICKY, "--runs", 2, "--sweep", "scale=1,2,3", "--json", *out)
    assert done.exit_code == 3
    assert "Error: picky: score raised ValueError: scale 2 cannot be scored" in done.stderr
    points = json.loads(done.stdout)["points"]
    assert [point["settings"]["scale"] for point in points] == [1, 3]
    if out:
        assert len(results_in(tmp_path / "swept")) == 2
        assert call("report", "swept").exit_code == 0


# -- list, reproduce -------------------------------------------------------------------------


@pytest.mark.usefixtures("installed")
def test_list_shows_every_experiment_and_survives_a_broken_one(call: Call) -> None:
    done = call("list")
    assert done.exit_code == 0
    assert "how often a biased coin falls on heads" in done.stdout
    assert "cannot be loaded: ModuleNotFoundError" in done.stdout


def test_list_name_shows_its_settings(call: Call) -> None:
    done = call("list", COIN)
    assert "float ≥ 0, ≤ 1" in done.stdout
    assert "probability of heads" in done.stdout


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("names", ["coin false", "coin,false", "coin, false"])
def test_reproduce_prints_one_screen_and_writes_an_index_and_pages(
    call: Call, tmp_path: Path, names: str
) -> None:
    words = names.split(" ") if "," not in names else [names]
    done = call("reproduce", "--only", *words, "--workers", "1")
    assert done.exit_code == 1
    assert len(done.stdout.splitlines()) < 20
    assert f"Report: {tmp_path / 'report' / 'index.html'}" in done.stdout
    page = (tmp_path / "report" / "index.html").read_text("utf-8")
    for name in ("coin", "false"):
        assert f'<a href="{name}/index.html">' in page
        own = (tmp_path / "report" / name / "index.html").read_text("utf-8")
        assert 'href="../index.html"' in own
        assert 'href="share.png"' in own
    assert (tmp_path / "report" / "coin" / "columns.npz").is_file()
    assert results_in(tmp_path / "report") == tuple(
        Path(tmp_path / "report" / name) for name in ("coin", "false")
    )


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("size", "runs"), [("--quick", 20), ("--full", 400)])
def test_reproduce_runs_at_the_chosen_size(call: Call, size: str, runs: int) -> None:
    done = call("reproduce", size, "--only", "coin", "--workers", "1", "--json")
    assert done.exit_code == 0
    content = json.loads(done.stdout)
    assert list(content) == ["experiments", "artifacts"]
    assert content["experiments"][0]["settings"]["runs"] == runs
    pages = [content["artifacts"][0], content["experiments"][0]["artifacts"][-1]]
    assert pages == ["report/index.html", "report/coin/index.html"]
    assert all(Path(page).is_file() for page in pages)


@pytest.mark.usefixtures("installed")
def test_reproduce_continues_where_it_stopped(call: Call, tmp_path: Path) -> None:
    words = ("reproduce", "--only", "coin", "false", "--workers", "1")
    call(*words)
    shutil.rmtree(tmp_path / "report" / "false")
    (tmp_path / "report" / "manifest.json").unlink()
    done = call(*words)
    assert "coin (1 of 2): 20 of 20 replicas found, nothing to run" in done.stderr
    assert "false (2 of 2): 20 runs to do" in done.stderr
    assert done.exit_code == 1


@pytest.mark.usefixtures("installed")
def test_a_broken_experiment_does_not_prevent_the_report_of_the_others(
    call: Call, tmp_path: Path
) -> None:
    done = call("reproduce", FAULTY, "coin", f"{STUDY.with_name('paced_study.py')}:unscored")
    assert done.exit_code == 3
    assert "Error: faulty: run 7 raised ValueError: seven" in done.stderr
    assert "Error: unscored: score raised ValueError" in done.stderr
    assert f"Report: {tmp_path / 'report' / 'index.html'}" in done.stdout
    assert results_in(tmp_path / "report") == (tmp_path / "report" / "coin",)
    page = (tmp_path / "report" / "index.html").read_text("utf-8")
    assert "seven" in page
    assert '<a href="coin/index.html">' in page


def test_dead_workers_do_not_prevent_the_experiments_that_follow(tmp_path: Path) -> None:
    out = tmp_path / "report"
    done = shell("reproduce", f"{STUDY}:deadly", COIN, "--workers", 2, "--out", out)
    assert done.returncode == 3
    assert "Error: deadly: a worker died" in done.stderr
    assert "coin (2 of 2): 20/20 runs" in done.stderr
    assert results_in(out) == (out / "coin",)


@pytest.mark.usefixtures("installed")
def test_an_experiment_that_cannot_be_loaded_does_not_prevent_the_others(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bayescontrol.cli.studies.names", lambda: ("coin", "gone"))
    done = call("reproduce", "--json", "--workers", "1")
    assert done.exit_code == 3
    assert "experiment 'gone' (no_such_module:gone) cannot be loaded" in done.stderr
    content = json.loads(done.stdout)
    assert list(content) == ["experiments", "artifacts"]
    assert [one["experiment"] for one in content["experiments"]] == ["coin"]


@pytest.mark.usefixtures("installed")
def test_reproduce_at_another_size_does_not_overwrite_existing_results(call: Call) -> None:
    words = ("reproduce", "--only", SIZED, "--workers", "1")
    assert call(*words).exit_code == 0
    done = call(*words, "--full")
    assert done.exit_code == 2
    assert "report/sized holds sized with" in done.stderr


def test_help_and_version_are_available(call: Call) -> None:
    assert "reproduce" in call("--help").stdout
    assert "--workers" in call("run", "--help").stdout
    assert call("--version").stdout.startswith("bayescontrol, version ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_exits_4_without_a_traceback() -> None:
    with open("/dev/full", "w") as full:
        done = shell("list", stdout=full)
    assert done.returncode == 4
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_exits_4_without_a_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = shell("list", "chain", stdout=pipe)
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
