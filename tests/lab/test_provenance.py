"""Results record the versions, the code and the commit that produced them."""

import subprocess
from pathlib import Path

import pytest

from bayescontrol.lab import provenance
from bayescontrol.lab.provenance import _OUR_FOLDER, git_state, provenance_here, source_of, versions


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    return subprocess.run(
        ["git", "-C", str(folder), *identity, *words], check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "study.py").write_text("x = 1\n")
    (tmp_path / ".gitignore").write_text("installed/\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "study")
    return tmp_path


def test_the_commit_and_whether_anything_changed_are_reported(repository: Path) -> None:
    clean = git_state(repository / "study.py")
    assert clean is not None
    assert clean.commit == git(repository, "rev-parse", "HEAD")
    assert not clean.dirty
    (repository / "study.py").write_text("x = 2\n")
    changed = git_state(repository / "study.py")
    assert changed is not None
    assert changed.dirty


def test_code_outside_a_repository_or_ignored_there_has_no_commit(repository: Path) -> None:
    (repository / "installed").mkdir()
    (repository / "installed" / "package.py").write_text("")
    assert git_state(repository / "installed" / "package.py") is None
    assert git_state(repository.parent / "study.py") is None
    assert git_state(None) is None


def test_a_machine_without_git_has_no_commit(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert git_state(repository / "study.py") is None


def test_reading_the_state_does_not_change_the_repository(repository: Path) -> None:
    before = {p: p.stat().st_mtime_ns for p in (repository / ".git").rglob("*")}
    git_state(repository / "study.py")
    assert before == {p: p.stat().st_mtime_ns for p in (repository / ".git").rglob("*")}


def test_the_source_is_the_file_that_defines_run() -> None:
    source = source_of(versions)
    assert source is not None
    assert source.name == "provenance.py"
    assert provenance_here(versions) == provenance_here(git_state)
    assert source_of(eval("lambda settings, i: {}", {"__name__": "nowhere"})) is None


def test_a_package_that_is_not_installed_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "_PACKAGES", ("no-such-package",))
    assert versions.__wrapped__()["no-such-package"] == "unknown"


def test_a_change_in_any_part_that_results_depend_on_changes_the_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [path.relative_to(_OUR_FOLDER) for path in _OUR_FOLDER.rglob("*.py")]
    parts = {file.parts[0]: tmp_path / file for file in files}
    for path in parts.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    monkeypatch.setattr(provenance, "_OUR_FOLDER", tmp_path)
    unchanged, left_out = provenance._digest_of_package.__wrapped__(), set()
    for part, path in parts.items():
        path.write_text("changed")
        if provenance._digest_of_package.__wrapped__() == unchanged:
            left_out.add(part)
        path.write_text("")
    assert left_out == {"cli", "plot", "report", "durable", "offpolicy", "serve"}
