"""Compiled kernels are read only from a folder that no other user can write to.

Numba unpickles the files of its cache. Each planted index below creates a file when it is
unpickled, as an attacker's index could run a program.
"""

import gc
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bayescontrol import warm_up
from bayescontrol.kernels import _jit, elementary
from bayescontrol.kernels._jit import in_memory

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows has no owner and mode")
as_root = pytest.mark.skipif(
    os.name == "posix" and os.geteuid() != 0, reason="only root can give a file to another user"
)
ANOTHER = 12345
CALL = "from bayescontrol.kernels.elementary import exp; print(exp(0.0))"


def run(program: str = CALL, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process without a home, with the environment variables `env`."""
    clean = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=clean | {"HOME": "/dev/null/nobody"} | env,
        capture_output=True,
        text=True,
        check=True,
    )


class Payload:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.marker,)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache filled by a real process."""
    home = tmp_path_factory.mktemp("cache")
    result = run(XDG_CACHE_HOME=str(home))
    assert result.stdout == "1.0\n"
    assert "not kept" not in result.stderr
    return home / "bayescontrol"


@pytest.fixture
def planted(filled: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A folder whose cache contains a payload, and the file that the payload would create."""
    home, marker = tmp_path / "cache", tmp_path / "marker"
    home.mkdir()
    shutil.copytree(filled, home / "bayescontrol")
    indices = list(home.rglob("*.nbi"))
    assert indices
    for index in indices:
        index.write_bytes(pickle.dumps(Payload(marker)))
    return home, marker


def test_a_new_cache_is_private_and_the_next_process_reads_it(filled: Path) -> None:
    assert filled.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in filled.iterdir())
    before = {path: path.stat().st_mtime_ns for path in filled.rglob("*.nb?")}
    assert before
    run(XDG_CACHE_HOME=str(filled.parent))
    assert {path: path.stat().st_mtime_ns for path in filled.rglob("*.nb?")} == before


def test_the_planted_file_runs_in_the_owners_folder(planted: tuple[Path, Path]) -> None:
    """Otherwise the tests below would be meaningless."""
    home, marker = planted
    run(XDG_CACHE_HOME=str(home))
    assert marker.exists()


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ("TMPDIR", "compiled kernels are not kept on disk"),  # the shared folder, without a home
        ("NUMBA_CACHE_DIR", "can be written by other users. Run chmod -R go-w on that folder"),
    ],
)
def test_a_cache_that_others_can_write_to_is_not_used(
    variable: str, words: str, planted: tuple[Path, Path]
) -> None:
    home, marker = planted
    (home / "bayescontrol").chmod(0o777)
    result = run(**{variable: str(home)})
    assert result.stdout == "1.0\n"
    assert not marker.exists()
    assert words in result.stderr


@as_root
@pytest.mark.parametrize("what", ["the cache", "one file"])
def test_a_cache_of_another_user_is_not_used(what: str, planted: tuple[Path, Path]) -> None:
    home, marker = planted
    open_to_readers(home / "bayescontrol")
    chosen = [home / "bayescontrol"] if what == "the cache" else list(home.rglob("*.nbi"))
    for path in chosen:
        os.chown(path, ANOTHER, ANOTHER)
    result = run(XDG_CACHE_HOME=str(home))
    assert result.stdout == "1.0\n"
    assert not marker.exists()
    assert "belongs to another user" in result.stderr


def open_to_readers(outer: Path) -> None:
    """Set the default permissions of most systems: readable by everybody."""
    for path in (outer, *outer.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


# -- individual checks -------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"])
def test_every_environment_variable_for_the_folder_is_checked(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    folder = (tmp_path / ".cache" if variable == "HOME" else tmp_path) / "bayescontrol"
    assert _jit._cache_folder() == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o770)
    with pytest.warns(RuntimeWarning, match="can be written by other users"):
        assert _jit._cache_folder() is None


def test_without_a_writable_home_nothing_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    with pytest.warns(RuntimeWarning, match="each process compiles them again: .*Not a directory"):
        assert _jit._cache_folder() is None


@pytest.fixture
def module_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "elementary-0"
    (folder / "kernels_0").mkdir(parents=True)
    (folder / "kernels_0" / "exp.nbi").touch()
    open_to_readers(folder)
    return folder


PARTS = [".", "kernels_0", "kernels_0/exp.nbi"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_no_part_of_a_module_folder_may_be_writable(
    part: str, mode: int, module_folder: Path
) -> None:
    assert _jit._risk_within(module_folder) is None
    wrong = module_folder / part
    wrong.chmod(wrong.stat().st_mode | mode)
    assert _jit._risk_within(module_folder) == f"{wrong} can be written by other users"


def test_only_links_matter_in_a_private_folder(module_folder: Path) -> None:
    (module_folder / "kernels_0").chmod(0o777)
    module_folder.chmod(0o700)
    assert _jit._risk_within(module_folder) is None
    link = module_folder / "kernels_0" / "log.nbi"
    link.symlink_to(module_folder / "kernels_0" / "exp.nbi")
    module_folder.chmod(0o755)
    (module_folder / "kernels_0").chmod(0o755)
    assert _jit._risk_within(module_folder) == f"{link} is a symbolic link"


@as_root
@pytest.mark.parametrize("part", PARTS)
def test_no_part_may_belong_to_another_user(part: str, module_folder: Path) -> None:
    os.chown(module_folder / part, ANOTHER, ANOTHER)
    assert _jit._risk_within(module_folder) == f"{module_folder / part} belongs to another user"


@as_root
def test_parents_and_links_in_the_path_may_not_belong_to_another_user(tmp_path: Path) -> None:
    folder, link = tmp_path / "bayescontrol", tmp_path / "link"
    folder.mkdir(mode=0o700)
    link.symlink_to(folder)
    assert _jit._risk(link) is None
    os.chown(link, ANOTHER, ANOTHER, follow_symlinks=False)
    assert _jit._risk(link) == f"{link} is a symbolic link of another user"
    os.chown(tmp_path, ANOTHER, ANOTHER)
    assert _jit._risk(folder) == f"{tmp_path} belongs to another user"


def test_a_folder_that_others_can_replace_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "bayescontrol"
    folder.mkdir(mode=0o700)
    assert _jit._risk(folder) is None
    tmp_path.chmod(0o777)
    assert _jit._risk(folder) == f"every user can replace what lies in {tmp_path}"
    tmp_path.chmod(0o1777)  # sticky bit, as for /tmp: only the owner can replace it
    assert _jit._risk(folder) is None


PROGRAM = """
import bayescontrol as bc
bandit = bc.BernoulliBandit(["red", "blue"])
for _ in range(2):
    agent = bandit.agent()
    print(agent.act(bc.Stream(0)) in ("red", "blue"))
"""


def test_the_first_compilation_is_announced_once(tmp_path: Path) -> None:
    first, second = (run(PROGRAM, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first.stdout == second.stdout == "True\nTrue\n"
    assert first.stderr.count("compiling kernels") == 1
    assert "bayescontrol.warm_up() compiles the common ones" in first.stderr
    assert second.stderr == ""
    # Another program that compiles other kernels does not announce it again.
    files = set(tmp_path.rglob("*.nbi"))
    assert run(NUMBA_CACHE_DIR=str(tmp_path)).stderr == ""
    assert set(tmp_path.rglob("*.nbi")) > files


def test_a_kernel_gives_the_same_result_inside_another_kernel() -> None:
    exp: Any = elementary.exp

    @in_memory
    def twice(x: float) -> Any:
        return exp(x) + exp(x)

    assert twice(1.25) == 2.0 * exp(1.25) == 2.0 * exp.py_func(1.25)
    # Callers get a version without machine code, made by methods of Numba that must still exist.
    for version in exp.get_overload.__self__.overloads.values():
        assert isinstance(version.library, _jit._InnerLibrary)
    for name in ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals"):
        assert hasattr(_jit._InnerLibrary.__base__, name)
    assert hasattr(type(exp._compiler), "_customize_flags")


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_garbage_collector_is_paused_only_while_a_kernel_compiles(is_enabled: bool) -> None:
    listener, kernel = _jit._CompileListener(), SimpleNamespace(py_func=elementary.exp.py_func)  # type: ignore[attr-defined]
    compilation: Any = SimpleNamespace(data={"dispatcher": kernel})
    inner: Any = SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=kernel.py_func)})
    (gc.enable if is_enabled else gc.disable)()
    try:
        listener.on_start(compilation)
        listener.on_start(inner)
        listener.on_end(inner)
        assert not gc.isenabled()
        listener.on_end(compilation)
        assert gc.isenabled() == is_enabled
    finally:
        gc.enable()


def test_warming_up_runs_every_group_of_kernels() -> None:
    lines: list[str] = []
    assert warm_up(lines.append) > 0.0
    assert lines[0] == "random numbers (1 of 9)"
    assert len(lines) == 9


@pytest.mark.slow
def test_after_warming_up_nothing_is_compiled(tmp_path: Path) -> None:
    warm = run("import bayescontrol; bayescontrol.warm_up()", NUMBA_CACHE_DIR=str(tmp_path))
    assert (warm.stdout, warm.stderr) == ("", "")
    programs = (
        PROGRAM,
        "import bayescontrol as bc\n"
        "b = bc.PoissonBandit(3)\nbc.interact(b.agent(), b.environment([1, 2, 3]), 50)",
        "from bayescontrol.mdp import GibbsMDP, Maze\nfrom bayescontrol import interact\n"
        "interact(GibbsMDP(4, 0).agent(), Maze().environment(0), 50)",
        "import bayescontrol as bc\n"
        "m = bc.DiscreteMode(lambda x: {0: 1.0}, lambda x, a: {1: 0.5, 0: 0.5})\n"
        "bc.interact(bc.ControlRule(bc.FiniteBelief([m, m])), m.environment(), 9)",
    )
    for program in programs:
        assert run(program, NUMBA_CACHE_DIR=str(tmp_path)).stderr == ""
