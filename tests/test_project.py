"""The files around the code agree with each other: versions, workflows, decisions."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

import bayescontrol

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = re.findall(r":: (3\.\d+)", "\n".join(PROJECT["classifiers"]))


def read(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_the_version_is_the_same_everywhere() -> None:
    assert PROJECT["version"] == bayescontrol.__version__ == str(read("CITATION.cff")["version"])
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", changelog, re.MULTILINE)[0] == PROJECT["version"]


def test_the_workflow_tests_every_supported_python_on_three_systems() -> None:
    jobs = read(".github/workflows/test.yml")["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    assert matrix["python"] == PYTHONS
    assert len(matrix["os"]) == 3
    (left_out,) = matrix["exclude"]
    steps = jobs["all"]["steps"]
    assert left_out == {"os": jobs["all"]["runs-on"], "python": steps[1]["with"]["python-version"]}
    assert steps[-1]["run"].startswith("make test")


def test_what_the_workflow_skips_exists() -> None:
    commands = [
        step.get("run", "") for step in read(".github/workflows/test.yml")["jobs"]["test"]["steps"]
    ]
    skipped = re.findall(r"--ignore=(\S+)", "\n".join(commands))
    assert len(skipped) > 5
    assert [path for path in skipped if not (ROOT / path).exists()] == []


def test_hooks_and_make_check_run_the_same_tools() -> None:
    local = read(".pre-commit-config.yaml")["repos"][-1]
    tools = {hook["entry"].replace(".venv/bin/", "$(BIN)/") for hook in local["hooks"]}
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").split("\ncheck:")[1].split("\n\n")[0]
    lines = {
        line.strip().removesuffix(" .").removesuffix(" --check") for line in recipe.splitlines()[1:]
    }
    assert lines == tools


def test_only_tags_are_published_and_by_trusted_publishing() -> None:
    release = read(".github/workflows/release.yml")
    assert release[True] == {"push": {"tags": ["v*"]}}  # YAML reads the key "on" as true
    publish = release["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == "build"


def test_read_the_docs_builds_what_make_docs_builds() -> None:
    config = read(".readthedocs.yaml")
    assert config["sphinx"] == {"configuration": "docs/conf.py", "fail_on_warning": True}
    assert (ROOT / config["python"]["install"][0]["requirements"]).is_file()
    assert config["build"]["tools"]["python"] in PYTHONS


def test_every_dependency_has_its_reason() -> None:
    page = (ROOT / "docs/adr/0002-dependencies.md").read_text(encoding="utf-8")
    extras = PROJECT["optional-dependencies"]
    needed = [
        *PROJECT["dependencies"],
        *(name for key in extras if key != "all" for name in extras[key]),
    ]
    names = {re.split(r"[\[<>=; ]", name)[0] for name in needed}
    shown = page.lower().replace("python-control", "control")
    assert [name for name in names if name not in shown] == []
    assert [extra for extra in extras if f"| `{extra}` |" not in page] == []


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs/adr").glob("0*.md")), ids=lambda path: path.stem
)
def test_a_decision_is_one_page_in_the_list(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {int(page.stem[:4])}. ")
    assert len(text) < 6000
    assert f"\n{page.stem}\n" in (ROOT / "docs/adr/index.md").read_text(encoding="utf-8")
