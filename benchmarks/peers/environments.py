"""A virtual environment for each peer, made on demand under `.peers/`, pinned by `NAME.txt`.

Nothing of ours is installed there, and nothing of theirs in ours.
"""

import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["PEERS", "NotInstalled", "interpreter"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".peers"
#: What they call themselves, by the module that plays for them.
PEERS = {
    "river": "river",
    "smpybandits": "SMPyBandits",
    "mabwiser": "MABWiser",
    "bayesianbandits": "bayesianbandits",
}


class NotInstalled(Exception):
    """A peer that does not install, with pip's reason."""


def interpreter(peer: str) -> Path:
    """The Python of the peer's environment, which is made if it is missing or out of date."""
    place = FOLDER / peer
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    pins = (Path(__file__).parent / f"{peer}.txt").read_text()
    stamp = place / "installed.txt"
    if not (stamp.exists() and stamp.read_text() == pins):
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / ".gitignore").write_text("*\n")  # a folder that ignores itself
        venv.create(place, clear=True, with_pip=True)
        _install(python, Path(__file__).parent / f"{peer}.txt")
        stamp.write_text(pins)
    return python


def _install(python: Path, pins: Path) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--retries", "1", "-r", str(pins)]
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        raise NotInstalled("pip took more than a quarter of an hour") from None
    if made.returncode:
        errors = [s for s in made.stderr.splitlines() if s.startswith("ERROR")] or [made.stderr]
        raise NotInstalled(errors[0].strip()[:200])
