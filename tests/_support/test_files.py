"""One process writes to a folder at a time; its lock ends when the process is killed."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bayescontrol._support import files
from bayescontrol._support.files import atomic_write, leftovers, lock_folder
from bayescontrol.errors import Busy, Unwritable

HOLDER = """
import sys, time
from pathlib import Path
from bayescontrol._support import files
if sys.argv[2] == "without":
    files.fcntl = None
with files.lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture(params=["with", "without"])
def locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run with the locks of the operating system, and without them."""
    if request.param == "without":
        monkeypatch.setattr(files, "fcntl", None)
    return str(request.param)


def test_a_second_writer_gets_an_error_that_names_the_first(locks: str, tmp_path: Path) -> None:
    with lock_folder(tmp_path), pytest.raises(Busy, match=f"written by process {os.getpid()} on "):
        lock_folder(tmp_path).__enter__()
    with lock_folder(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_killed_process_is_taken_over(locks: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path), locks], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(Busy, match=f"written by process {process.pid} on "):
        lock_folder(tmp_path).__enter__()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(list(tmp_path.iterdir())) == 1
    with lock_folder(tmp_path):
        pass


def test_a_lock_of_another_machine_is_respected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "fcntl", None)
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()  # its id is now free on this machine
    (tmp_path / ".writer").write_text(f"{process.pid} another-node")
    words = rf"process {process.pid} on another-node: wait .* remove .*writer"
    with pytest.raises(Busy, match=words):
        lock_folder(tmp_path).__enter__()


def test_an_empty_lock_file_is_taken_over_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "fcntl", None)
    (tmp_path / ".writer").write_text("")
    with pytest.raises(Busy, match="written by another process"):
        lock_folder(tmp_path).__enter__()
    long_ago = time.time() - 60
    os.utime(tmp_path / ".writer", (long_ago, long_ago))
    with lock_folder(tmp_path):
        pass


def test_a_file_system_without_locks_uses_an_exclusive_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    assert files.fcntl is not None
    monkeypatch.setattr(files.fcntl, "flock", refuse)
    with lock_folder(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == [".writer"]
        with pytest.raises(Busy, match=f"written by process {os.getpid()}"):
            lock_folder(tmp_path).__enter__()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unwritable, match=r"cannot write to .*absent"):
        lock_folder(tmp_path / "absent").__enter__()


def test_a_file_is_replaced_only_when_it_is_written_without_an_error(tmp_path: Path) -> None:
    path = tmp_path / "columns.npz"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), atomic_write(path) as file:
        file.write(b"new" + None)  # type: ignore[operator]
    assert path.read_bytes() == b"old"
    assert leftovers(tmp_path) == []
    with pytest.raises(FileExistsError), atomic_write(path, overwrite=False) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    with atomic_write(path) as file:
        file.write(b"new")
    assert [p.name for p in tmp_path.iterdir()] == ["columns.npz"]
    assert path.read_bytes() == b"new"
