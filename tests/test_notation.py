"""The names in docs/notation.md exist in the stated files."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(
    r"^\| (?P<symbol>.+?) \| (?P<names>`[^|]+`) \| (?P<equation>.+) \| `(?P<file>[^`]+)` \|$"
)
TABLE = [
    line
    for line in (ROOT / "docs/notation.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| symbol")
]


def test_the_table_has_many_rows_and_no_malformed_one() -> None:
    assert len(TABLE) > 20
    assert [line for line in TABLE if not ROW.match(line)] == []


@pytest.mark.parametrize("line", TABLE)
def test_every_name_in_the_notation_exists_in_its_file(line: str) -> None:
    row = ROW.match(line)
    assert row is not None
    path = ROOT / "src/bayescontrol" / row["file"]
    assert path.is_file(), f"{row['file']} does not exist"
    dotted = row["file"].removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    module = importlib.import_module(f"bayescontrol.{dotted}")
    for name in re.findall(r"`([^`]+)`", row["names"]):
        owner, _, attribute = name.partition(".")
        thing = getattr(module, owner)
        # An attribute set in __init__ is named in the class's source.
        assert not attribute or hasattr(thing, attribute) or f"self.{attribute}" in path.read_text()
