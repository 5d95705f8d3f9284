"""The SQLite store passes the conformance tests."""

from pathlib import Path

import pytest
from tests.durable.conformance import Reopen, StoreConformance

from bayescontrol.durable.sqlite import SqliteStore


class TestSqlite(StoreConformance):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Reopen:
        return lambda: SqliteStore(str(tmp_path / "shop.db"))
