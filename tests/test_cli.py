"""The command line as a user meets it: output, exit codes, and no traceback for a wrong call."""

import json
import os
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

from bayescontrol.cli import main

STUDY = Path(__file__).parent / "lab" / "studies" / "coin_study.py"
COIN = f"{STUDY}:coin"
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


def shell(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "bayescontrol.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


# -- in a real shell ---------------------------------------------------------------------


def test_json_is_alone_on_standard_output_whatever_the_workers_print(tmp_path: Path) -> None:
    done = shell("run", f"{STUDY}:talking", "--json", "--workers", 2, "--runs", 5)
    assert done.returncode == 0
    assert json.loads(done.stdout)["settings"]["runs"] == 5
    assert "throwing 4" in done.stderr
    assert "talking: 5/5 runs" in done.stderr


def test_any_number_of_workers_writes_the_same_files(tmp_path: Path) -> None:
    for workers in (1, 2):
        out = tmp_path / str(workers)
        done = shell("run", COIN, "--runs", 21, "--workers", workers, "--out", out)
        assert done.returncode == 0, done.stderr
    files = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert files == ["claims.json", "columns.npz", "index.html", "share.pdf", "share.png"]
    for name in files:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    with np.load(tmp_path / "1" / "columns.npz", allow_pickle=False) as columns:
        assert columns["share"].shape == (21, 25)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_stops_cleanly(workers: int) -> None:
    command = [sys.executable, "-m", "bayescontrol.cli", "run", f"{STUDY}:slow"]
    process = subprocess.Popen(
        [*command, "--workers", str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stderr is not None
        assert process.stderr.readline() == "slow: 40 runs to do\n"
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to everyone
        out, err = process.communicate(timeout=20)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130
    assert out == ""
    assert err.strip() == "Stopped. Nothing is left running."


def test_a_screen_without_the_symbols_still_gets_the_table() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bayescontrol.cli", "run", COIN],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"0.503 ? 0.017" in done.stdout


# -- run -----------------------------------------------------------------------------------


def test_a_refuted_claim_of_the_paper_is_printed_with_its_reason_and_exits_0(call: Call) -> None:
    done = call("run", COIN)
    assert done.exit_code == 0
    assert "refuted" in done.stdout
    assert "printed-share is refuted: the printed coin & ours differ" in done.stdout
    assert "0.503 ± 0.017" in done.stdout
    assert "Shares" in done.stdout


def test_a_failed_claim_of_ours_exits_1(call: Call) -> None:
    assert call("run", f"{STUDY}:false").exit_code == 1
    done = call("run", f"{STUDY}:false", "--json")
    assert done.exit_code == 1
    claim = json.loads(done.stdout)["claims"][-1]
    assert (claim["expected"], claim["ours"], claim["error"]) == ("Infinity", "NaN", None)


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
    assert list(content) == ["experiment", "settings", "claims", "artifacts"]
    assert set(map(len, content["claims"])) == {7}
    assert all(Path(path).is_file() for path in content["artifacts"])
    assert len(content["artifacts"]) == 5


def test_the_place_of_the_report_is_said(call: Call, tmp_path: Path) -> None:
    done = call("run", COIN, "--out", "results")
    assert f"Report: {tmp_path / 'results' / 'index.html'}" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "no-such-study"), "no experiment is called 'no-such-study'"),
        (("run", COIN, "--runs", "0"), "runs=0: expected `int` >= 1 (runs, int ≥ 1: number of"),
        (("run", COIN, "--steps", "many"), "steps=many: expected `int`"),
        (("run", COIN, "--set", "bais=1"), "did you mean bias?"),
        (("run", COIN, "--set", "bias"), "--set bias: write --set KEY=VALUE"),
        (("run", COIN, "--runs", 3, "--set", "runs=4"), "runs is given twice, first as 3"),
        (("run", COIN, "--workers", "0"), "0 is not in the range"),
        (("run", COIN, "--out", f"{STUDY}/x"), "cannot write to"),
        (("run",), "Missing argument 'NAME'"),
        (("reproduce", "--only", "no-such-study"), "no experiment is called"),
        (("reproduce", "--out", STUDY, "coin"), "cannot write to"),
        (("list", "no-such-study"), "no experiment is called"),
        (("dance",), "No such command 'dance'"),
    ],
)
@pytest.mark.usefixtures("installed")
def test_a_wrong_call_exits_2_with_a_message_and_no_traceback(
    call: Call, words: tuple[Any, ...], message: str
) -> None:
    done = call(*words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_broken_replica_exits_3_and_shows_where_it_broke(call: Call) -> None:
    done = call("run", f"{STUDY}:broken")
    assert done.exit_code == 3
    assert "Error: broken: run 3 raised ZeroDivisionError" in done.stderr
    assert "_broken_run" in done.stderr


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
def test_reproduce_joins_the_claims_and_writes_one_page(call: Call, tmp_path: Path) -> None:
    done = call("reproduce", "--only", "coin", "false", "--workers", "1")
    assert done.exit_code == 1
    assert done.stdout.count("what is claimed") == 1
    assert f"Report: {tmp_path / 'report' / 'index.html'}" in done.stdout
    page = (tmp_path / "report" / "index.html").read_text("utf-8")
    assert page.count("data:image/png;base64,") == 2
    assert (tmp_path / "report" / "coin" / "columns.npz").is_file()


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("size", "runs"), [("--quick", 20), ("--full", 400)])
def test_reproduce_runs_at_the_chosen_size(call: Call, size: str, runs: int) -> None:
    done = call("reproduce", size, "--only", "coin", "--workers", "1", "--json")
    assert done.exit_code == 0
    content = json.loads(done.stdout)
    assert list(content) == ["experiments", "artifacts"]
    assert content["experiments"][0]["settings"]["runs"] == runs
    assert Path(content["artifacts"][0]).is_file()


def test_help_and_version_speak(call: Call) -> None:
    assert "reproduce" in call("--help").stdout
    assert "--workers" in call("run", "--help").stdout
    assert call("--version").stdout.startswith("bayescontrol, version ")
