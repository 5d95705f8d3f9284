"""A table on disk is used if it is intact, and recomputed if it is damaged."""

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import bayescontrol
from bayescontrol.baselines import GittinsTable, gittins_table


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def files() -> list[Path]:
    return sorted(gittins_table.folder().iterdir())


def test_a_table_is_stored_and_used_bit_for_bit_until_the_code_changes(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    GittinsTable(0.9, 10, cache=False)
    assert not gittins_table.folder().exists()
    one, two = GittinsTable(0.9, 10), GittinsTable(0.9, 10)
    assert (one.recalled, two.recalled) == (False, True)
    assert one.nu.tobytes() == two.nu.tobytes()
    assert one.radii.tobytes() == two.radii.tobytes()
    assert gittins_table.folder() == home / "bayescontrol" / "gittins"
    assert [path.suffix for path in files()] == [".npz"]
    monkeypatch.setattr(gittins_table, "_code", lambda: "another")
    assert not GittinsTable(0.9, 10).recalled


@pytest.mark.parametrize(
    "other",
    [
        {"discount": 0.8},
        {"pulls": 11},
        {"prior": (1.0, 2.0)},
        {"tolerance": 1e-5},
        {"lookahead": 10},
    ],
)
def test_the_key_includes_the_requested_settings(other: dict[str, object]) -> None:
    words: dict[str, object] = {"discount": 0.9, "pulls": 10}
    GittinsTable(**words)  # type: ignore[arg-type]
    assert not GittinsTable(**words | other).recalled  # type: ignore[arg-type]
    assert len(files()) == 2


#: Runs in a copy of the package. It computes a table, records which of our files were imported, and
#: edits each in turn. It prints the files that the key does not depend on, and the number of all.
EDITS = """
import sys
from pathlib import Path

import bayescontrol
from bayescontrol.baselines import GittinsTable
from bayescontrol.baselines import gittins_table

package, ran = Path(bayescontrol.__file__).parent, set()
sys.setprofile(lambda frame, event, arg: ran.add(frame.f_code.co_filename))
table = GittinsTable(0.9, 10, cache=False)
sys.setprofile(None)
ran |= {m.__file__ for name, m in sys.modules.items() if name.startswith("bayescontrol.kernels.")}
needed = [
    path for path in sorted(map(Path, ran))
    if path.parent in (package / "baselines", package / "kernels")
    and path.name != "__init__.py"
]
key, ignored = table.key, []
for path in needed:
    source = path.read_bytes()
    path.write_bytes(source + b"# edited")
    gittins_table._code.cache_clear()
    if table.key == key:
        ignored.append(path.stem)
    path.write_bytes(source)
print(*ignored)
print(len(needed))
"""


def test_the_key_depends_on_every_source_that_computes_a_table(home: Path) -> None:
    package = Path(bayescontrol.__file__).parent
    shutil.copytree(package, home / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    result = subprocess.run(
        [sys.executable, "-c", EDITS],
        env=os.environ | {"PYTHONPATH": str(home), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    ignored, needed = result.stdout.splitlines()
    assert ignored == ""
    # gittins_table and gittins_solver; the kernels gittins, elementary and _jit
    assert int(needed) >= 5


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda c: b"",
    "cut short": lambda c: c[:-8],
    "the first bit": lambda c: flipped(c, 0),
    "a bit of an index": lambda c: flipped(c, len(c) // 3),
    "a bit of a radius": lambda c: flipped(c, 2 * len(c) // 3),
    "foreign": lambda c: b"\x93NUMPY and something else altogether, of no use here at all",
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_file_is_detected_and_recomputed(how: str) -> None:
    table = GittinsTable(0.9, 10)
    (path,) = files()
    path.write_bytes(DAMAGE[how](path.read_bytes()))
    again = GittinsTable(0.9, 10)
    assert not again.recalled
    assert again.nu.tobytes() == table.nu.tobytes()
    assert GittinsTable(0.9, 10).recalled


def test_a_cache_folder_that_cannot_be_created_is_ignored(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = home / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not GittinsTable(0.9, 10).recalled
        assert not GittinsTable(0.9, 10).recalled


def test_a_full_disk_leaves_no_partial_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert not GittinsTable(0.9, 10).recalled
    assert files() == []
