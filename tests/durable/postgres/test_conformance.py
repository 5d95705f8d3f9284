"""The PostgreSQL store passes the conformance tests."""

from collections.abc import Iterator

import pytest
from tests.durable.conformance import Reopen, StoreConformance

from bayescontrol.durable.stores.postgres import PostgresStore


class TestPostgres(StoreConformance):
    @pytest.fixture
    def reopen(self, url: str) -> Iterator[Reopen]:
        opened: list[PostgresStore] = []

        def again() -> PostgresStore:
            opened.append(PostgresStore(url))
            return opened[-1]

        yield again
        for store in opened:
            store.close()
