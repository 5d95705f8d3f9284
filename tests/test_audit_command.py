"""The command `bayescontrol audit`: table, page, JSON, exported worlds, errors."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bayescontrol.audit import WORLDS
from bayescontrol.cli.main import main

_FILE = """
from bayescontrol import NaiveMixture
from bayescontrol.audit import WORLDS, AgentPredictor

predictor = {name: AgentPredictor(world.agent(), world) for name, world in WORLDS.items()}
naive = {n: AgentPredictor(w.agent(kind=NaiveMixture), w) for n, w in WORLDS.items()}

def coin(history):
    print("asked")
    return {"A": 0.5, "B": 0.5}

def broken(history):
    return {"A": 1 / len(history.events)}
"""


def call(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, ["audit", *arguments])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"audited_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(_FILE)
    return str(path)


def test_without_a_predictor_the_worlds_are_listed() -> None:
    listed = call()
    assert listed.exit_code == 0
    assert all(name in listed.stdout for name in WORLDS)


def test_the_table_and_the_page_say_who_is_deluded(file: str, tmp_path: Path) -> None:
    options = ("--world", "liar", "--runs", "20", "--steps", "2", "--out", "found")
    assert "not deluded" in call(file, *options).stdout
    text = call(f"{file}:naive", *options).stdout
    assert "1.000 to 1.000" in text
    assert "not deluded" not in text
    page = (tmp_path / "found" / "index.html").read_text("utf-8")
    assert "Delusion index" in page
    assert page.count("<figure ") == 1
    assert (tmp_path / "found" / "liar.png").read_bytes()[1:4] == b"PNG"


def test_json_has_all_numbers_and_no_page_is_written(file: str, tmp_path: Path) -> None:
    result = call(f"{file}:coin", "--world", "two-hypotheses", "--runs", "20", "--json")
    found = json.loads(result.stdout)  # what the predictor prints does not disturb it
    written, forced = found["audits"]
    assert (written["histories"], forced["histories"]) == ("written", "forced")
    assert forced["verdict"] == "neither"
    assert written["regret"] is None
    assert not (tmp_path / "audit").exists()


def test_the_worlds_are_written_as_files_with_their_checker(tmp_path: Path) -> None:
    assert call("--export", str(tmp_path / "worlds")).exit_code == 0
    names = {path.name for path in (tmp_path / "worlds").iterdir()}
    assert names == {"README.md", "check_world.py", *(f"{name}.json" for name in WORLDS)}


def test_a_predictor_that_fails_is_reported_with_its_history(file: str) -> None:
    result = call(f"{file}:broken", "--world", "two-hypotheses")
    assert result.exit_code == 3
    assert (
        "in the world 'two-hypotheses' after the empty history: ZeroDivisionError" in result.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predictor",), "'predictor' is not file.py or file.py:attribute"),
        (("FILE:missing",), "has no attribute 'missing'"),
        (("FILE", "--world", "lair"), "there is no world 'lair'"),
        (("no_such_file.py",), "there is no file no_such_file.py"),
        (("FILE:WORLDS",), "is not a predictor"),
    ],
)
def test_a_usage_error_names_what_is_wrong(
    file: str, arguments: tuple[str, ...], message: str
) -> None:
    result = call(*(a.replace("FILE", file) for a in arguments))
    assert result.exit_code == 2
    assert message in result.stderr
