"""docs/architecture.md agrees with the files and with the layers that import-linter checks."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")


def test_every_file_on_the_page_exists() -> None:
    files = re.findall(r"`([\w/]+\.py)`", PAGE)
    assert len(files) > 50
    assert [file for file in files if not (ROOT / "src/bayescontrol" / file).is_file()] == []


def test_the_layers_on_the_page_are_those_of_the_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = project["tool"]["importlinter"]["contracts"][0]
    block = re.sub(r" :\n +", " : ", PAGE.split("```text\n")[1].split("```")[0])
    # Columns: the group of the layer, its modules, what they do.
    rows = [line[16:] for line in block.splitlines() if not line[16:].startswith("---")]
    shown = [row.split(" : ") if ":" in row else row[:38].split() for row in rows]
    assert shown == [re.split(r" [|:] ", layer) for layer in contract["layers"]]
