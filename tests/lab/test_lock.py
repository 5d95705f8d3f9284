"""One writer in a folder; a lock dies with its holder."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bayescontrol.lab import lock
from bayescontrol.lab.atomic import Unwritable
from bayescontrol.lab.lock import Busy, held

HOLDER = """
import sys, time
from pathlib import Path
from bayescontrol.lab import lock
if sys.argv[2] == "without":
    lock.fcntl = None
with lock.held(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(params=["with", "without"])
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the operating system's locks, and where it has none."""
    if request.param == "without":
        monkeypatch.setattr(lock, "fcntl", None)
    return str(request.param)


def test_a_second_writer_is_refused_and_told_who_is_there(locks: str, tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(Busy, match=f"written by process {os.getpid()} on "):
        held(tmp_path).__enter__()
    with held(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_killed_process_is_taken_over(locks: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), locks], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(Busy, match=f"written by process {process.pid} on "):
        held(tmp_path).__enter__()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(list(tmp_path.iterdir())) == 1
    with held(tmp_path):
        pass


def test_a_lock_made_by_another_machine_is_respected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    with subprocess.Popen([sys.executable, "-c", ""]) as process:  # has ended here, not there
        process.wait()
    (tmp_path / ".writer").write_text(f"{process.pid} another-node")
    words = rf"process {process.pid} on another-node: wait .* remove .*writer"
    with pytest.raises(Busy, match=words):
        held(tmp_path).__enter__()


def test_a_nameless_lock_is_given_time_and_then_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "fcntl", None)
    (tmp_path / ".writer").write_text("")
    with pytest.raises(Busy, match="written by another process"):
        held(tmp_path).__enter__()
    long_ago = time.time() - 60
    os.utime(tmp_path / ".writer", (long_ago, long_ago))
    with held(tmp_path):
        pass


def test_a_file_system_without_locks_gets_the_other_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    assert lock.fcntl is not None
    monkeypatch.setattr(lock.fcntl, "flock", refuse)
    with held(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == [".writer"]
        with pytest.raises(Busy, match=f"written by process {os.getpid()}"):
            held(tmp_path).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unwritable, match=r"cannot write to .*absent"):
        held(tmp_path / "absent").__enter__()
