"""Processes and a Dask cluster give the bytes of one core, and report their errors."""

import gc
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.interruptible import interruptible
from tests.limits import TIMEOUT

from bayescontrol.errors import MissingExtra
from bayescontrol.lab.discovery import find
from bayescontrol.lab.experiment import Experiment, ExperimentFailed
from bayescontrol.lab.parallel import ClusterUnavailable, dask_cluster, unordered
from bayescontrol.lab.runner import run_replicas
from bayescontrol.lab.store import ResultStore, Study

STUDIES = Path(__file__).parent / "studies"
PACED = f"{STUDIES / 'paced_study.py'}:paced"


@pytest.fixture(scope="module")
def dask() -> Iterator[None]:
    path = [*sys.path]
    sys.path.append(str(STUDIES))  # the workers of a local cluster use the same path
    try:
        with dask_cluster("local", workers=2):
            yield
    finally:
        sys.path[:] = path


def stored(folder: Path, experiment: Experiment[Any], settings: Any, **how: Any) -> bytes:
    with ResultStore(folder, Study.of(experiment, settings, PACED)) as store:
        run_replicas(experiment, settings, store=store, **how)
    return (folder / "columns.npz").read_bytes()


@pytest.mark.usefixtures("dask")
def test_one_core_processes_threads_and_dask_leave_the_same_bytes(tmp_path: Path) -> None:
    import joblib  # type: ignore[import-untyped]

    paced = find(PACED)
    settings = paced.settings(runs=41, steps=7)
    serial = stored(tmp_path / "serial", paced, settings)
    assert stored(tmp_path / "processes", paced, settings, workers=2) == serial
    assert stored(tmp_path / "dask", paced, settings, workers=None) == serial
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert stored(tmp_path / "threads", paced, settings, workers=None) == serial


@pytest.mark.usefixtures("dask")
@pytest.mark.parametrize("workers", [2, None])
def test_tasks_run_in_other_processes_and_the_rest_is_not_started_after_an_error(
    workers: int | None,
) -> None:
    found = list(unordered(lambda i: (i, os.getpid()), range(9), workers))
    assert sorted(i for i, _ in found) == list(range(9))
    assert os.getpid() not in {process for _, process in found}
    left = iter(range(999))
    with pytest.raises(ZeroDivisionError):
        list(unordered(lambda i: 1 / i, left, workers))
    assert len(list(left)) > 900


def test_a_cluster_with_one_thread_is_used() -> None:
    with dask_cluster("local", workers=1):
        assert os.getpid() not in set(unordered(lambda _: os.getpid(), range(3)))


@pytest.mark.usefixtures("dask")
def test_a_failed_replica_on_the_cluster_is_reported_with_its_traceback() -> None:
    faulty = find(f"{STUDIES / 'paced_study.py'}:faulty")
    with pytest.raises(ExperimentFailed, match="faulty: run 7 raised ValueError: seven") as caught:
        run_replicas(faulty, faulty.quick, None)
    assert "in _faulty_run" in str(caught.value.__cause__)


def test_a_cluster_that_does_not_answer_or_has_no_workers_is_reported() -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty:  # type: ignore[no-untyped-call]
        for address, problem in (
            (f"tcp://127.0.0.1:{free_port()}", r"no Dask scheduler answers at tcp://127\.0\.0\.1:"),
            ("nonsense://", "no Dask scheduler answers at nonsense"),
            (empty.scheduler_address, r"the Dask cluster at tcp.* has no workers"),
        ):
            with (
                pytest.raises(ClusterUnavailable, match=problem),
                dask_cluster(address, patience=0.3),
            ):
                pass


@pytest.mark.parametrize(("package", "extra"), [("distributed", "cluster"), ("joblib", "lab")])
def test_without_dask_or_joblib_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, package: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with (
        pytest.raises(MissingExtra, match=rf"pip install 'bayescontrol\[{extra}\]'"),
        dask_cluster(),
    ):
        pass


@pytest.mark.parametrize("how", [{"workers": 2}, {"workers": None}])
def test_a_worker_that_dies_is_reported(how: dict[str, Any], dask: None) -> None:
    deadly = find(f"{STUDIES / 'coin_study.py'}:deadly")
    with pytest.raises(ExperimentFailed, match="deadly: a worker died"):
        run_replicas(deadly, deadly.settings(runs=2), **how)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_first_compilation_is_announced_once(workers: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bayescontrol.cli", "run", f"{STUDIES / 'coin_study.py'}:compiled",
         "--runs", "8", "--workers", str(workers)],
        capture_output=True, text=True, timeout=TIMEOUT, check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stderr.count("compiling kernels that are used for the first time") == 1


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


def test_ctrl_c_while_workers_start_leaves_no_warning() -> None:
    def tasks() -> Iterator[float]:
        signal.raise_signal(signal.SIGINT)
        yield from [0.5] * 9

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest may ignore it
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with pytest.raises(KeyboardInterrupt):
                list(unordered(time.sleep, tasks(), workers=2))
            gc.collect()  # joblib warns when unused results are collected
    finally:
        signal.signal(signal.SIGINT, before)
    assert not caught
