"""The coin study, opened from its file as a user opens one."""

import sys
from pathlib import Path
from typing import Any

import pytest

from bayescontrol.lab.discovery import find
from bayescontrol.lab.experiment import Experiment

STUDY = Path(__file__).parent / "studies" / "coin_study.py"


@pytest.fixture(autouse=True)
def _own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture
def study() -> Path:
    return STUDY


@pytest.fixture
def coin(study: Path) -> Experiment[Any]:
    return find(f"{study}:coin")


@pytest.fixture
def paced(study: Path) -> Experiment[Any]:
    return find(f"{study.with_name('paced_study.py')}:paced")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install a package with entry points, as pip would leave it, for one test."""
    monkeypatch.syspath_prepend(STUDY.parent)

    def install(points: dict[str, str], package: str = "coins") -> None:
        site = tmp_path / package
        metadata = site / f"{package}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        lines = [f"{name} = {value}" for name, value in points.items()]
        (metadata / "entry_points.txt").write_text(
            "[bayescontrol.experiments]\n" + "\n".join(lines) + "\n"
        )
        monkeypatch.syspath_prepend(site)

    return install
