"""Every planted bug still applies, the bugs cover all folders, and the runner judges correctly."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.limits import TIMEOUT
from tests.mutants.__main__ import chosen, print_table
from tests.mutants.runner import (
    REPOSITORY,
    Bug,
    ControlFailed,
    Result,
    find_problem,
    load_bugs,
    run,
)

BUGS = load_bugs()
SOURCE = REPOSITORY / "src"
#: Folders that need no bug: files for a browser.
WITHOUT_BUGS = ("bayescontrol/serve/page",)


def folders() -> list[str]:
    """Every folder of the library that must have a bug, relative to `src`."""
    found = [path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py")]
    return sorted(name for name in found if not name.startswith(WITHOUT_BUGS))


def test_there_are_at_least_sixty_bugs_with_distinct_names() -> None:
    names = [bug.name for bug in BUGS]
    assert len(names) >= 60
    assert sorted(set(names)) == sorted(names)


def test_every_bug_still_applies_and_its_tests_exist() -> None:
    assert [problem for bug in BUGS if (problem := find_problem(bug))] == []


def test_every_planted_bug_is_described_in_one_sentence() -> None:
    assert [bug.name for bug in BUGS if not bug.what.endswith(".") or "\n" in bug.what] == []


def test_every_folder_has_a_planted_bug() -> None:
    covered = {parent.as_posix() for bug in BUGS for parent in Path(bug.file).parents}
    assert [name for name in folders() if name not in covered] == []


# -- the runner, on a package of one function ------------------------------------------------------

TINY = """\
def larger(a, b):
    return a if a > b else b


def unused(a):
    return a
"""
TESTS = """\
import time

import pytest
from tiny.numbers import larger


def test_the_larger_number_is_found():
    assert larger(1, 2) == 2


def test_it_takes_no_time():
    time.sleep(larger(0, -1))


@pytest.mark.skip(reason="not here")
def test_that_is_skipped():
    assert larger(1, 2) == 1
"""
KILLING_TEST = "tests/test_tiny.py::test_the_larger_number_is_found"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one tested function, and one that no test calls."""
    package = tmp_path / "src" / "tiny"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "numbers.py").write_text(TINY)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_tiny.py").write_text(TESTS)
    return tmp_path


def bug(old: str, new: str, test: str = KILLING_TEST, name: str = "bug") -> Bug:
    return Bug(name, "It is wrong.", "tiny/numbers.py", old, new, (test,))


def judge(repository: Path, bugs: Sequence[Bug], timeout: float = TIMEOUT) -> list[Result]:
    return run(bugs, repository=repository, package="tiny", workers=2, timeout=timeout)


def test_the_runner_distinguishes_killed_survived_broken_skipped_and_not_applicable(
    repository: Path,
) -> None:
    skipped = "tests/test_tiny.py::test_that_is_skipped"
    bugs = [
        bug("a > b", "a < b", name="killed"),
        bug("    return a\n", "    return -a\n", name="survived"),
        bug("def larger(", "def largest(", name="broken"),
        bug("a > b", "a < b", skipped, name="skipped"),
        bug("a >= b", "a < b", name="gone"),
        bug("return a", "return b", name="twice"),
    ]
    results = judge(repository, bugs)
    assert [(r.bug.name, r.verdict) for r in results] == [
        ("killed", "killed"), ("survived", "survived"), ("broken", "broken"),
        ("skipped", "skipped"), ("gone", "not applicable"), ("twice", "not applicable"),
    ]  # fmt: skip
    assert results[0].detail == KILLING_TEST
    assert "occurs 2 times" in results[5].detail
    assert (repository / "src" / "tiny" / "numbers.py").read_text() == TINY


def test_two_bugs_of_equal_length_in_one_file_are_not_mixed_up(repository: Path) -> None:
    pair = [bug("a > b", "a < b", name="wrong"), bug("a > b", "b < a", name="the same")]
    results = run([*pair, pair[0]], repository=repository, package="tiny", workers=1)
    assert [r.verdict for r in results] == ["killed", "survived", "killed"]


def test_a_timeout_kills_only_if_that_is_declared(repository: Path) -> None:
    sleeps = bug("a > b", "a < b", "tests/test_tiny.py::test_it_takes_no_time")
    sleeps = replace(sleeps, old="return a if a > b else b", new="return 600", name="sleeps")
    declared = replace(sleeps, timeout_kills=True, name="declared")
    results = judge(repository, [sleeps, declared], timeout=10.0)
    assert [r.verdict for r in results] == ["timeout", "killed"]


def test_without_a_bug_the_tests_must_pass(repository: Path) -> None:
    (repository / "tests" / "test_tiny.py").write_text(TESTS.replace("== 2", "== 3"))
    with pytest.raises(ControlFailed, match="test_the_larger_number_is_found"):
        judge(repository, [bug("a > b", "a < b")])


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (bug("a >= b", "a"), "occurs 0 times"),
        (bug("a > b", "a >"), "not valid Python"),
        (bug("def larger(a, b):", "def larger(a, b):  # b"), "changes no code"),
        (bug("a > b", "a", "tests/test_none.py"), "no test file"),
        (bug("a > b", "a", "tests/test_tiny.py::test_none"), "no test test_none"),
        (replace(bug("a > b", "a"), tests=()), "no related tests"),
        (replace(bug("a > b", "a"), file="tiny/letters.py"), "no file tiny/letters.py"),
    ],
)
def test_an_invalid_entry_is_reported(repository: Path, entry: Bug, words: str) -> None:
    assert words in (find_problem(entry, repository) or "")


def test_a_valid_entry_has_no_problem(repository: Path) -> None:
    assert find_problem(bug("a > b", "a < b"), repository) is None


def test_the_table_begins_with_survivors_and_ends_with_counts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = bug("a > b", "a < b", name="one")
    two = replace(one, name="two")
    print_table([Result(one, "killed", 1.0, KILLING_TEST), Result(two, "survived", 1.0)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("survived")
    assert "two" in lines[0]
    assert lines[-1] == "2 planted bugs: 1 killed, 1 survived"


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SystemExit, match="no planted bug is named none"):
        chosen(BUGS, ["none"])
    assert [one.name for one in chosen(BUGS, [BUGS[0].name])] == [BUGS[0].name]
