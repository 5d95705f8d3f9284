"""Plant bugs in a copy of the sources, one at a time, and see whether the tests notice.

A bug is killed when a related test fails. Anything else is reported: tests that pass (survived),
tests that could not run (broken), text that is no longer in the file (not applicable), and tests
that were all skipped. The user's sources and caches are never written to.
"""

import ast
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, TypeAlias

Verdict: TypeAlias = Literal["killed", "survived", "skipped", "broken", "not applicable", "timeout"]

FOLDER = Path(__file__).parent
REPOSITORY = FOLDER.parents[1]
PACKAGE = "bayescontrol"
#: Seconds for the related tests of one bug.
TIMEOUT = 300.0

_FAILED = re.compile(r"^FAILED (.+?)(?: - .*)?$", re.MULTILINE)
_PASSED = re.compile(r"\b\d+ passed\b")


class NotApplicable(ValueError):
    """The old text of a bug does not occur exactly once in its file."""


class ControlFailed(RuntimeError):
    """The related tests fail without a bug, so no verdict means anything."""


@dataclass(frozen=True)
class Bug:
    """One planted bug: replace `old` by `new` in `file`; then one of `tests` must fail."""

    name: str
    what: str
    #: Relative to the folder `src`.
    file: str
    old: str
    new: str
    #: Files or node ids, relative to the repository.
    tests: tuple[str, ...]
    #: Whether tests that run too long count as killed, for a bug that makes a loop endless.
    timeout_kills: bool = False

    def planted(self, text: str) -> str:
        """Return the source text with the bug in it."""
        count = text.count(self.old)
        if count != 1:
            raise NotApplicable(
                f"{self.name} no longer applies: its old text occurs {count} times in {self.file}"
            )
        return text.replace(self.old, self.new)


def load_bugs(folder: Path = FOLDER) -> list[Bug]:
    """Read the bugs of every TOML file in the folder."""
    bugs = []
    for path in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(path.read_text("utf-8"))["bug"]:
            bugs.append(Bug(**{**entry, "tests": tuple(entry["tests"])}))  # noqa: PERF401
    return bugs


def find_problem(bug: Bug, repository: Path = REPOSITORY) -> str | None:
    """Say what is wrong with an entry, without running anything; None if it is fine."""
    path = repository / "src" / bug.file
    if not path.is_file():
        return f"{bug.name} no longer applies: there is no file {bug.file}"
    text = path.read_text("utf-8")
    try:
        tree = ast.parse(bug.planted(text))
    except NotApplicable as error:
        return str(error)
    except SyntaxError as error:
        return f"{bug.name}: the new text is not valid Python: {error}"
    if ast.dump(tree) == ast.dump(ast.parse(text)):
        return f"{bug.name}: the new text changes no code"
    for test in bug.tests:
        file, _, function = test.partition("::")
        name = function.rpartition("::")[2].partition("[")[0]
        where = repository / file
        if not where.is_file():
            return f"{bug.name}: there is no test file {file}"
        if name and not re.search(rf"def {re.escape(name)}\(", where.read_text("utf-8")):
            return f"{bug.name}: there is no test {name} in {file}"
    return None if bug.tests else f"{bug.name}: no related tests are named"


@dataclass(frozen=True)
class Result:
    """The verdict on one bug."""

    bug: Bug
    verdict: Verdict
    seconds: float
    #: The test that failed, or what went wrong.
    detail: str = ""


class Workspace:
    """A copy of the sources with separate caches, for one worker."""

    def __init__(self, folder: Path, repository: Path, package: str) -> None:
        self.repository, self.package = repository, package
        self.source, self.cache = folder / "src", folder / "cache"
        ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
        # Times of modification are kept: Numba compares them before it uses a compiled kernel.
        shutil.copytree(repository / "src", self.source, ignore=ignore)
        self.cache.mkdir()
        self._process: subprocess.Popen[str] | None = None
        self._require_import()

    def _environment(self) -> dict[str, str]:
        saved = {name: v for name, v in os.environ.items() if not name.startswith("PYTEST_")}
        path = os.pathsep.join(map(str, (self.source, self.repository)))
        caches = {"NUMBA_CACHE_DIR": str(self.cache), "XDG_CACHE_HOME": str(self.cache)}
        # Loading plugins that no related test needs would take longer than most of the tests.
        return saved | caches | {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def _require_import(self) -> None:
        program = f"import {self.package}; print({self.package}.__file__)"
        found, _ = self._run(["-c", program], TIMEOUT)
        if not Path(found.strip()).is_relative_to(self.source):
            raise ControlFailed(f"{self.package} is not imported from the copy: {found.strip()}")

    def take_kernels(self, source: Path, cache: Path) -> None:
        """Copy the kernels that were compiled from another copy of the same sources."""
        from numba.core import caching

        locator: Any = caching._CacheLocator
        there, here = (
            locator.get_suitable_cache_subpath(str(place / self.package / "kernels" / "x.py"))
            for place in (source, self.source)
        )
        for compiled in (cache / PACKAGE).glob(f"*/{there}"):
            target = self.cache / PACKAGE / compiled.parent.name / here
            shutil.copytree(compiled, target, dirs_exist_ok=True)

    def test(self, tests: Sequence[str], *options: str, timeout: float) -> tuple[str, int | None]:
        """Run the tests; return their output and the exit code, None if they ran too long."""
        # A table of Gittins indices that a mutated planner stored must not serve the next bug.
        shutil.rmtree(self.cache / PACKAGE / "gittins", ignore_errors=True)
        command = ["-m", "pytest", "-q", "--no-header", "--tb=no", "-rfE", "-m", "not slow"]
        command += ["-p", "no:cacheprovider", *options, *tests]
        return self._run(command, timeout)

    def _run(self, arguments: list[str], timeout: float) -> tuple[str, int | None]:
        self._process = process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.repository,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that processes started by a test stop with it
        )
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            return "", None
        finally:
            self.stop()
            self._process = None
            process.communicate()
        return output, process.returncode

    def stop(self) -> None:
        """Stop the running tests, with all processes that they have started."""
        process = self._process
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    @contextmanager
    def planted(self, bug: Bug) -> Iterator[None]:
        """Plant the bug in the copy, and restore the file at the end."""
        path = self.source / bug.file
        text, before = path.read_text("utf-8"), path.stat()
        mutated = bug.planted(text)
        try:
            self._write(path, mutated)
            yield
        finally:
            self._write(path, text)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, "utf-8")
        # Two bugs in one second may have the same size: do not rely on the time stamp.
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)

    def judge(self, bug: Bug, timeout: float = TIMEOUT) -> Result:
        """Plant the bug, run its tests, and give the verdict."""
        began = time.perf_counter()
        verdict: Verdict
        try:
            with self.planted(bug):
                output, code = self.test(bug.tests, "-x", timeout=timeout)
        except (NotApplicable, FileNotFoundError) as error:
            return Result(bug, "not applicable", time.perf_counter() - began, str(error))
        failed = _FAILED.search(output)
        if code is None:
            verdict = "killed" if bug.timeout_kills else "timeout"
            detail = f"no result in {timeout:.0f} s"
        elif failed is not None:
            verdict, detail = "killed", failed[1]
        elif code == 0:
            verdict, detail = "survived" if _PASSED.search(output) else "skipped", ""
        else:
            verdict, detail = "broken", output.strip()[-500:]
        return Result(bug, verdict, time.perf_counter() - began, detail)


def user_cache() -> Path | None:
    """Return the folder of the user's compiled kernels; None if they are not stored."""
    from bayescontrol.kernels._jit import cache_folder

    return None if cache_folder is None else cache_folder.parent


def run(
    bugs: Sequence[Bug],
    *,
    workers: int = 2,
    timeout: float = TIMEOUT,
    report: Callable[[Result], None] = lambda result: None,
    repository: Path = REPOSITORY,
    package: str = PACKAGE,
) -> list[Result]:
    """Judge every bug, after a control run of all related tests without one."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        first = Workspace(Path(folder) / "0", repository, package)
        if (cache := user_cache()) is not None:
            first.take_kernels(repository / "src", cache)
        _control(first, bugs, timeout)
        spaces = [first]
        for number in range(1, min(workers, len(bugs))):
            spaces.append(Workspace(Path(folder) / str(number), repository, package))
            spaces[-1].take_kernels(first.source, first.cache)
        return _judge_all(bugs, spaces, timeout, report)


def _control(space: Workspace, bugs: Sequence[Bug], timeout: float) -> None:
    usable = [bug for bug in bugs if not find_problem(bug, space.repository)]
    tests = sorted({test for bug in usable for test in bug.tests})
    if not tests:
        return
    output, code = space.test(tests, timeout=max(timeout, TIMEOUT) * len(tests))
    if code != 0:
        raise ControlFailed(f"without a bug the related tests do not pass:\n{output[-3000:]}")


def _judge_all(
    bugs: Sequence[Bug],
    spaces: Sequence[Workspace],
    timeout: float,
    report: Callable[[Result], None],
) -> list[Result]:
    free: SimpleQueue[Workspace] = SimpleQueue()
    for space in spaces:
        free.put(space)
    stopped, report_lock = threading.Event(), threading.Lock()

    def judged(bug: Bug) -> Result:
        space = free.get()
        try:
            if stopped.is_set():
                raise KeyboardInterrupt
            result = space.judge(bug, timeout)
        finally:
            free.put(space)
        with report_lock:
            report(result)
        return result

    with ThreadPoolExecutor(len(spaces)) as pool:
        try:
            return list(pool.map(judged, bugs))
        except BaseException:
            stopped.set()
            for space in spaces:
                space.stop()
            raise
