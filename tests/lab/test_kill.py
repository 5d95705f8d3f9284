"""Killed at any moment and restarted, a job gives the same bytes and leaves no process behind.

The moments come from generators with fixed seeds. The operation hit by a kill depends on the
machine's timing, but the result must not. The checks are exact, so there are no false alarms.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.limits import TIMEOUT

PACED = f"{Path(__file__).parent / 'studies' / 'paced_study.py'}:paced"

# Small groups, so that a kill hits many different moments.
DRIVER = """
import sys
from pathlib import Path
from bayescontrol.lab import find, run_replicas, runner
from bayescontrol.lab.store import ResultStore, Study
runner._LEAST_SECONDS = 0.02
paced = find(sys.argv[1])
settings = paced.settings(runs=int(sys.argv[3]), seconds=float(sys.argv[5]))
with ResultStore(Path(sys.argv[2]), Study.of(paced, settings)) as store:
    print("open", flush=True)
    run_replicas(paced, settings, workers=int(sys.argv[4]), store=store)
print("done", flush=True)
"""


def start(folder: Path, runs: int, workers: int, seconds: float = 0.005) -> "subprocess.Popen[str]":
    words = (PACED, str(folder), str(runs), str(workers), str(seconds))
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def reference(folder: Path, runs: int, seconds: float = 0.005) -> bytes:
    process = start(folder, runs, 1, seconds)
    assert process.communicate(timeout=TIMEOUT)[0] == "done\n"
    return (folder / "columns.npz").read_bytes()


def kill_and_resume(tmp_path: Path, kills: int, longest: float, seed: int) -> None:
    """Kill this often, at random moments after the folder is opened; restart finished jobs."""
    runs, rng = 60, random.Random(seed)
    whole = reference(tmp_path / "whole", runs)
    killed = finished = 0
    folder = tmp_path / "0"
    while killed < kills or finished == 0:
        process = start(folder, runs, workers=1 + (killed + finished) % 2)
        moment = rng.uniform(0, longest) if killed < kills else TIMEOUT
        try:
            process.communicate(timeout=moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            killed += 1
            continue
        assert process.returncode == 0
        assert (folder / "columns.npz").read_bytes() == whole
        assert sorted(path.name for path in folder.iterdir()) == ["columns.npz", "manifest.json"]
        finished += 1
        folder = tmp_path / str(finished)
    assert killed == kills


def test_a_job_killed_a_few_times_ends_with_the_same_bytes(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, kills=4, longest=0.6, seed=1)


@pytest.mark.slow
def test_a_job_killed_sixty_times_ends_with_the_same_bytes(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, kills=60, longest=1.2, seed=2)


# A process that exits before its n-th disk operation, and leaves a partial write.
CRASHING = """
import os, sys
from dataclasses import replace
from pathlib import Path
from bayescontrol.lab import find, run_replicas, runner
from bayescontrol.lab.store import ResultStore, Study
runner._MOST_BYTES = 1000  # groups of five
paced = find(sys.argv[1])

def run(folder, runs):
    def counted(settings, i):
        with folder.with_suffix(".log").open("a") as log:
            print(i, file=log)
        return paced.run(settings, i)

    settings = paced.settings(runs=runs)
    with ResultStore(folder, Study.of(paced, settings)) as store:
        run_replicas(replace(paced, run=counted), settings, store=store)

def dying(before, left):
    def call(*args, **kwargs):
        left[0] -= 1
        if left[0] < 0:
            os._exit(9)
        return before(*args, **kwargs)
    return call

def in_child(work):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def crashing(folder, runs, touches):
    left = [touches]
    os.fsync = dying(lambda handle: None, left)  # a process dies here, not the machine
    for name in ("replace", "unlink", "rmdir", "mkdir"):
        setattr(Path, name, dying(getattr(Path, name), left))
    run(folder, runs)

place = Path(sys.argv[2])
for runs in (12, 20, 7):
    run(place / f"whole-{runs}", runs)
touches = crashes = 0
while True:
    folder = place / str(touches)
    code = in_child(lambda: crashing(folder, 12, touches))
    for runs in (20, 7):  # grown and shrunk, with a crash in each
        in_child(lambda: crashing(folder, runs, touches))
    run(folder, 20)
    whole = (place / "whole-20" / "columns.npz").read_bytes()
    assert (folder / "columns.npz").read_bytes() == whole, touches
    run(folder, 7)
    whole = (place / "whole-7" / "columns.npz").read_bytes()
    assert (folder / "columns.npz").read_bytes() == whole, touches
    executed = folder.with_suffix(".log").read_text().split()
    assert len(executed) <= 20 + 3 * 5, touches  # three crashes, a group in flight in each
    crashes += code == 9
    touches += 1
    if code == 0:
        break
print(crashes)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork to crash often in little time")
def test_a_crash_before_any_disk_operation_loses_at_most_one_group(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASHING, PACED, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 15


def children_of(process: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        if int(fields[1]) == process:
            found.append(int(status.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_the_workers_of_a_killed_process_exit(tmp_path: Path) -> None:
    process = start(tmp_path, 60, workers=2, seconds=0.2)
    deadline = time.monotonic() + TIMEOUT
    while len(workers := children_of(process.pid)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)  # two workers, and a resource tracker that ends by itself
    time.sleep(1.0)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    while any(Path(f"/proc/{one}").exists() for one in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(workers) >= 3
    assert [one for one in workers if Path(f"/proc/{one}").exists()] == []
