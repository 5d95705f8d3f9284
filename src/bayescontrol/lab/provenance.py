"""With what a replica was made: versions, machine, code and its commit.

Equal settings and run number promise equal bytes only for equal code, so results say with
which code each of them was made. `code` is the sha256 of the file that defines `run`; the
commit is that of the repository the file belongs to, if any, and dirty says whether anything
in it was changed since. Nothing is imported to find out, and no name of a user or a host is kept.
"""

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import msgspec

_PACKAGES: Final = ("bayescontrol", "numpy", "scipy", "numba", "matplotlib")


class Git(msgspec.Struct, frozen=True):
    """The commit of the code, and whether files were changed or added since.

    >>> Git("5bf9965", dirty=False)
    Git(commit='5bf9965', dirty=False)
    """

    commit: str
    dirty: bool


class Made(msgspec.Struct, frozen=True):
    """With what some replicas were made.

    >>> Made(versions={}, machine={}, code="").git is None
    True
    """

    versions: dict[str, str]
    machine: dict[str, str]
    code: str
    git: Git | None = None


def versions() -> dict[str, str]:
    """What the numbers are made with; nothing is imported to find out.

    >>> "bayescontrol" in versions() and "python" in versions()
    True
    """
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a copy that was not installed
            found[name] = "unknown"
    return {**found, "python": platform.python_version(), "machine": platform.machine()}


def made_here(run: Callable[..., Any]) -> Made:
    """With what this process makes replicas; the commit is left to the one who keeps them.

    >>> sorted(made_here(versions).machine)
    ['cores', 'processor', 'system']
    """
    return _made_here(source_of(run))


def source_of(run: Callable[..., Any]) -> Path | None:
    """The file that defines `run`, where there is one.

    >>> source_of(versions).name
    'provenance.py'
    """
    module = sys.modules.get(getattr(run, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    return Path(file) if file else None


@cache
def _made_here(source: Path | None) -> Made:
    machine = {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": str(os.cpu_count()),
    }
    code = ""
    if source is not None and source.is_file():
        code = hashlib.sha256(source.read_bytes()).hexdigest()
    return Made(versions(), machine, code)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not a Linux system
        return platform.processor() or platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def git_state(source: Path | None) -> Git | None:
    """The state of the repository that holds `source`; None where there is none, or no git.

    >>> git_state(Path("/no/such/study.py")) is None
    True
    """
    if source is None or _git(source, "check-ignore", "-q", source.name) != "":
        return None  # outside any repository, or ignored there, as an installed package is
    commit, changes = _git(source, "rev-parse", "HEAD"), _git(source, "status", "--porcelain")
    if not commit or changes is None:
        return None
    return Git(commit, dirty=bool(changes))


def _git(source: Path, *words: str) -> str | None:
    """What git prints in the folder of `source`; None if it cannot say."""
    command = ("git", "--no-optional-locks", "-C", str(source.parent), *words)
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, and the name of our own file
            command, capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # `check-ignore` answers "no" by 1, and "yes" by 0.
    wanted = 1 if words[0] == "check-ignore" else 0
    return done.stdout.strip() if done.returncode == wanted else None
