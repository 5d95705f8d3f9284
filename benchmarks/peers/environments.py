"""A virtual environment for each peer, created on demand under `.peers/`, pinned by `NAME.txt`.

This project is not installed there, and the peers are not installed in our environment.
"""

import subprocess
import sys
import threading
import venv
from pathlib import Path

__all__ = ["PEERS", "NotInstalled", "interpreter"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".peers"
#: Display names of the peers, by the module that plays for them.
PEERS = {
    "river": "river",
    "smpybandits": "SMPyBandits",
    "mabwiser": "MABWiser",
    "bayesianbandits": "bayesianbandits",
}


_lock = threading.Lock()
_failures: dict[str, str] = {}


class NotInstalled(Exception):
    """A peer cannot be installed or run, with the reason."""


def interpreter(peer: str) -> Path:
    """Return the Python of the peer's environment; create it if it is missing or out of date.

    Raise `NotInstalled` if that fails; it is tried once in this process.
    """
    with _lock:
        if peer not in _failures:
            try:
                return _up_to_date(peer)
            except NotInstalled as reason:
                _failures[peer] = str(reason)
    raise NotInstalled(_failures[peer])


def _up_to_date(peer: str) -> Path:
    place = FOLDER / peer
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pins = (Path(__file__).parent / f"{peer}.txt").read_text()
    stamp = place / "installed.txt"
    if not (stamp.exists() and stamp.read_text() == pins):
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / ".gitignore").write_text("*\n")  # git ignores the folder
        venv.create(place, clear=True, with_pip=True)
        _install(python, Path(__file__).parent / f"{peer}.txt")
        stamp.write_text(pins)
    return python


def _install(python: Path, pins: Path) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--retries", "1", "-r", str(pins)]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        raise NotInstalled("pip took more than a quarter of an hour") from None
    if result.returncode:
        errors = [s for s in result.stderr.splitlines() if s.startswith("ERROR")] or [result.stderr]
        raise NotInstalled(errors[0].strip()[:200])
