"""The provenance of a replica: versions, machine, code and its commit.

Equal settings and run numbers give equal bytes only for equal code, so results record the code that
produced them. `code` is the sha256 of the file that defines `run`. The commit is that of the
repository of this file, if any; `dirty` is true if the repository has changes since. No package is
imported for this, and no name of a user or a host is stored.
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
    """The commit of the code, and whether files were changed or added since."""

    commit: str
    dirty: bool


class Provenance(msgspec.Struct, frozen=True):
    """The versions, machine and code that produced some replicas."""

    versions: dict[str, str]
    machine: dict[str, str]
    code: str
    git: Git | None = None


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that determine results."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # used without being installed
            found[name] = "unknown"
    return {**found, "python": platform.python_version(), "machine": platform.machine()}


def provenance_here(run: Callable[..., Any]) -> Provenance:
    """Return the provenance of replicas run in this process, without the commit."""
    return _provenance_of_source(source_of(run))


def source_of(run: Callable[..., Any]) -> Path | None:
    """Return the file that defines `run`, if there is one."""
    module = sys.modules.get(getattr(run, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    return Path(file) if file else None


@cache
def _provenance_of_source(source: Path | None) -> Provenance:
    """Cached part of `provenance_here`: return the provenance, with a digest of the file."""
    system = f"{platform.system()} {platform.release()}"
    machine = {"system": system, "processor": _processor(), "cores": str(os.cpu_count())}
    code = ""
    if source is not None and source.is_file():
        code = hashlib.sha256(source.read_bytes()).hexdigest()
    return Provenance(versions(), machine, code)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not a Linux system
        return platform.processor() or platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def git_state(source: Path | None) -> Git | None:
    """Return the state of the repository of `source`; None without repository or git."""
    if source is None or _git(source, "check-ignore", "-q", source.name) != "":
        return None  # in no repository, or ignored there, like an installed package
    commit, changes = _git(source, "rev-parse", "HEAD"), _git(source, "status", "--porcelain")
    if not commit or changes is None:
        return None
    return Git(commit, dirty=bool(changes))


def _git(source: Path, *arguments: str) -> str | None:
    """Return the output of git in the folder of `source`, or None if git fails.

    `check-ignore` returns "" if `source` is not ignored, and None if it is ignored.
    """
    command = ("git", "--no-optional-locks", "-C", str(source.parent), *arguments)
    try:
        completed = subprocess.run(  # noqa: S603 - fixed arguments, and the name of our own file
            command, capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # `check-ignore` exits with 1 for "not ignored", with 0 for "ignored", and above 1 on errors.
    expected_code = 1 if arguments[0] == "check-ignore" else 0
    return completed.stdout.strip() if completed.returncode == expected_code else None
