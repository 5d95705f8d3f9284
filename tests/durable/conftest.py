"""A SQLite file with one log, for the tests of damaged files and failing disks."""

from pathlib import Path

import pytest
from tests.durable.conformance import ROWS

from bayescontrol.durable.stores.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a log of six rows, closed."""
    store = SqliteStore(f"sqlite:///{tmp_path / 'shop.db'}")
    store.log("checkout").append(ROWS)
    store.close()
    return tmp_path / "shop.db"
