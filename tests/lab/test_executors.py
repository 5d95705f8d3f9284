"""Processes, a Dask cluster and shards give the bytes of one core, and report their errors."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bayescontrol.lab.executors import ClusterUnavailable, Dask, Processes
from tests.interruptible import interruptible
from tests.limits import TIMEOUT

from bayescontrol.errors import MissingExtra
from bayescontrol.lab.discovery import find
from bayescontrol.lab.experiment import Experiment, ExperimentFailed
from bayescontrol.lab.runner import run_replicas
from bayescontrol.lab.store import ResultStore, Shard, Study, merge

STUDIES = Path(__file__).parent / "studies"
PACED = f"{STUDIES / 'paced_study.py'}:paced"


@pytest.fixture(scope="module")
def dask() -> Iterator[Dask]:
    path = [*sys.path]
    sys.path.append(str(STUDIES))  # the workers of a local cluster use the same path
    try:
        with Dask("local", workers=2) as executor:
            yield executor
    finally:
        sys.path[:] = path


class RecordedProgress:
    """Progress that counts its compilation messages."""

    def __init__(self) -> None:
        self.messages = 0

    def advance(self, done: int, total: int, /) -> None: ...

    def compiling(self) -> None:
        self.messages += 1


def stored(folder: Path, experiment: Experiment[Any], settings: Any, **how: Any) -> bytes:
    with ResultStore(folder, Study.of(experiment, settings, PACED)) as store:
        run_replicas(experiment, settings, store=store, **how)
    return (folder / "columns.npz").read_bytes()


def test_serial_processes_dask_and_merged_shards_leave_the_same_bytes(
    dask: Dask, tmp_path: Path
) -> None:
    paced = find(PACED)
    settings = paced.settings(runs=41, steps=7)
    serial = stored(tmp_path / "serial", paced, settings)
    assert stored(tmp_path / "processes", paced, settings, workers=2) == serial
    assert stored(tmp_path / "dask", paced, settings, executor=dask) == serial
    parts = [tmp_path / "part-1", tmp_path / "part-2"]
    stored(parts[0], paced, settings, shard=Shard(1, 2))
    stored(parts[1], paced, settings, shard=Shard(2, 2), workers=2)
    merge(tmp_path / "merged", parts)
    assert (tmp_path / "merged" / "columns.npz").read_bytes() == serial


def test_a_failed_replica_on_the_cluster_is_reported_with_its_cause(dask: Dask) -> None:
    faulty = find(f"{STUDIES / 'paced_study.py'}:faulty")
    with pytest.raises(ExperimentFailed, match="faulty: run 7 raised ValueError: seven") as caught:
        run_replicas(faulty, faulty.quick, executor=dask)
    assert isinstance(caught.value.__cause__, ValueError)


def test_the_cluster_reports_a_compilation_once(dask: Dask) -> None:
    compiled, reported = find(f"{STUDIES / 'coin_study.py'}:compiled"), RecordedProgress()
    run_replicas(compiled, compiled.settings(runs=3), executor=dask, progress=reported)
    deadline = time.monotonic() + TIMEOUT
    while not dask.compiling() and time.monotonic() < deadline:
        time.sleep(0.05)  # the message is sent separately from the results
    assert dask.compiling()
    assert reported.messages <= 1


def test_a_cluster_that_does_not_answer_is_reported() -> None:
    with pytest.raises(
        ClusterUnavailable, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:"
    ):
        Dask(f"tcp://127.0.0.1:{free_port()}", patience=0.2)
    with pytest.raises(ClusterUnavailable, match="no Dask scheduler answers at nonsense"):
        Dask("nonsense://", patience=0.2)


def test_a_cluster_without_workers_is_reported() -> None:
    from distributed import LocalCluster

    with (
        LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty,  # type: ignore[no-untyped-call]
        pytest.raises(ClusterUnavailable, match=r"the Dask cluster at tcp.* has no workers"),
    ):
        Dask(empty.scheduler_address, patience=0.3)


def test_without_dask_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtra, match=r"pip install 'bayescontrol\[cluster\]'"):
        Dask("local")


def test_processes_have_the_requested_width_and_stop_on_an_error() -> None:
    begun = time.monotonic()
    with pytest.raises(ZeroDivisionError), Processes(2) as pool:  # noqa: PT012 - it is the with
        assert pool.width == 2
        future = pool.submit(time.sleep, 60)
        while not future.running():
            time.sleep(0.01)
        raise ZeroDivisionError
    assert time.monotonic() - begun < 30


# -- a cluster without our files ----------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A scheduler and a worker in separate processes, in another folder."""
    place = tmp_path_factory.mktemp("cluster")
    address = f"tcp://127.0.0.1:{free_port()}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": place}
    dask = [sys.executable, "-m", "dask"]
    host = ["--host", "127.0.0.1", "--no-dashboard"]
    port = ["--port", address.rpartition(":")[2]]
    worker = ["worker", address, "--nthreads", "1", "--no-nanny", *host]
    started = [subprocess.Popen([*dask, "scheduler", *host, *port], **quiet)]  # type: ignore[call-overload]
    started.append(subprocess.Popen([*dask, *worker], **quiet))  # type: ignore[call-overload]
    try:
        yield address
    finally:
        for process in started:
            process.terminate()
            process.wait(timeout=TIMEOUT)


def test_a_study_in_a_file_is_sent_to_the_workers_of_a_cluster(
    address: str, tmp_path: Path
) -> None:
    away = tmp_path / "away_study.py"  # not on the path of any worker
    away.write_text((STUDIES / "paced_study.py").read_text())
    command = [sys.executable, "-m", "bayescontrol.cli", "run", f"{away}:paced", "--runs", "21"]
    for out, how in (("far", ["--dask", address]), ("near", [])):
        done = subprocess.run(
            [*command, "--out", str(tmp_path / out), *how],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            env={**os.environ, "COLUMNS": "100"},
        )
        assert done.returncode == 0, done.stderr
    near, far = (tmp_path / out / "columns.npz" for out in ("near", "far"))
    assert near.read_bytes() == far.read_bytes()


def test_ctrl_c_stops_a_local_cluster_quietly_and_keeps_finished_replicas(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bayescontrol.cli", "run", PACED, "--dask", "local"]
    command += ["--workers", "2", "--set", "seconds=0.2", "--runs", "500", "--out", str(tmp_path)]
    with interruptible(command) as process:
        deadline = time.monotonic() + TIMEOUT
        while not list(tmp_path.glob("pending/*.npz")) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # to the whole group, as a terminal does
        out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err, err
    assert f"Finished replicas: {tmp_path}. Run the same command to continue" in err
    assert list(tmp_path.glob("pending/*.npz"))
