"""The scripts of the first hour are short, run in an empty folder, and write their figures."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("script", "lines", "figure"),
    [("first_comparison.py", 10, "comparison.png"), ("first_modes.py", 25, "posterior.png")],
)
def test_a_script_writes_its_figure(script: str, lines: int, figure: str, tmp_path: Path) -> None:
    text = (DOCS / script).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= lines
    environment = {**os.environ, "MPLBACKEND": "agg"}
    command = [sys.executable, "-W", "error", str(DOCS / script)]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [figure]
    assert (tmp_path / figure).read_bytes().startswith(b"\x89PNG")
    page = (DOCS / "first-hour.md").read_text(encoding="utf-8")
    assert " ".join(done.stdout.split()) in " ".join(page.split())


def test_the_first_hour_shows_both_scripts() -> None:
    page = (DOCS / "first-hour.md").read_text(encoding="utf-8")
    for script in ("first_comparison.py", "first_modes.py"):
        assert f"```{{literalinclude}} {script}\n```" in page
